import MillBase
import MillColumnar
import MillConnectorKit

/// The narrowest type that texts can be read as: bigint, double precision, boolean, date, timestamp, timestamp with time zone, or else varchar.
///
/// A number with a zero in front of other digits is a text, such as a postal code.
struct TypeGuess {
    private static let order: [SQLType] = [.int64, .float64, .boolean, .date, .timestamp, .timestamptz]
    private var candidates = Self.order
    private var isUsed = false

    /// The type of all texts seen; varchar before the first.
    var type: SQLType { isUsed ? candidates.first ?? .varchar : .varchar }

    mutating func see(_ text: String) {
        isUsed = true
        guard !candidates.isEmpty else { return }
        candidates.removeAll { !Self.isOne(text, $0) }
    }

    private static func isOne(_ text: String, _ type: SQLType) -> Bool {
        let bytes = Array(text.utf8)
        let hasForm =
            switch type {
            case .int64, .float64: isNumber(bytes, mayHaveFraction: type == .float64)
            case .boolean: ["true", "false"].contains(text.lowercased())
            case .date: bytes.count == 10 && isDate(bytes)
            case .timestamp: isTimestamp(bytes, hasZone: false)
            default: isTimestamp(bytes, hasZone: true)
            }
        // Digits in the right places may still be no day.
        return hasForm && (try? TextInput.scalar(text, as: type)) != nil
    }

    private static func isNumber(_ bytes: [UInt8], mayHaveFraction: Bool) -> Bool {
        let digits = bytes.first == UInt8(ascii: "-") ? bytes.dropFirst() : bytes[...]
        guard let first = digits.first, isDigit(first),
            first != UInt8(ascii: "0") || digits.count == 1 || !isDigit(digits[digits.startIndex + 1])
        else {
            return false
        }
        return mayHaveFraction ? digits.allSatisfy { isDigit($0) || ".eE+-".utf8.contains($0) } : digits.allSatisfy(isDigit)
    }

    private static func isDate(_ bytes: [UInt8]) -> Bool {
        bytes.count >= 10
            && (0..<10).allSatisfy { index in index == 4 || index == 7 ? bytes[index] == UInt8(ascii: "-") : isDigit(bytes[index]) }
    }

    private static func isTimestamp(_ bytes: [UInt8], hasZone: Bool) -> Bool {
        guard bytes.count >= 16, isDate(bytes), bytes[10] == UInt8(ascii: " ") || bytes[10] == UInt8(ascii: "T") else { return false }
        let clock = bytes[11...]
        guard clock.allSatisfy({ isDigit($0) || ":.+-Z".utf8.contains($0) }), clock.contains(UInt8(ascii: ":")) else { return false }
        return hasZone == clock.contains { "+-Z".utf8.contains($0) }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

/// The columns that paths have by `column=value`: bigint or date where all values are, else varchar.
enum PartitionColumns {
    static func fields(of paths: [String]) -> [Field] {
        var names: [String] = []
        var guesses: [String: TypeGuess] = [:]
        for path in paths {
            for part in HivePath.values(in: path) {
                if guesses[part.column] == nil { names.append(part.column) }
                var guess = guesses[part.column] ?? TypeGuess()
                if let value = part.value { guess.see(value) }
                guesses[part.column] = guess
            }
        }
        return names.map { name in
            let type = guesses[name]?.type ?? .varchar
            return Field(name, [.int64, .date].contains(type) ? type : .varchar)
        }
    }
}
