import MillBase
import MillColumnar

/// The fields of JSON objects in the order in which they are first met, with the type that all their values have: what `TypeGuess` says of
/// strings; bigint, double precision and boolean of JSON's own; jsonb where there are objects or arrays.
struct JSONSample {
    private struct Seen {
        var texts: TypeGuess?
        var literals: TypeGuess?
        var isNested = false
    }

    private var names: [String] = []
    private var seen: [String: Seen] = [:]

    var fields: [Field] {
        names.map { name in
            let field = seen[name] ?? Seen()
            let type: SQLType =
                switch (field.isNested, field.texts?.type, field.literals?.type) {
                case (true, _, _): .jsonb
                case (false, let text?, nil): [.date, .timestamp, .timestamptz].contains(text) ? text : .varchar
                case (false, nil, let literal?): literal
                default: .varchar
                }
            return Field(name, type)
        }
    }

    /// A line that is no JSON object tells nothing.
    mutating func see(_ line: ArraySlice<UInt8>) {
        var canonical: [UInt8] = []
        let isJSON = line.withUnsafeBufferPointer { (try? JSONCanonicalizer.canonicalize($0, to: &canonical)) != nil }
        // Canonical objects have their keys in another order, so it is the line that is gone through.
        guard isJSON, canonical.first == UInt8(ascii: "{") else { return }
        var rest = line.drop { Self.isSpace($0) }.dropFirst()
        while true {
            rest = rest.drop { Self.isSpace($0) || $0 == UInt8(ascii: ",") }
            guard rest.first == UInt8(ascii: "\""), let name = Self.string(Self.value(&rest)) else { return }
            rest = rest.drop { Self.isSpace($0) || $0 == UInt8(ascii: ":") }
            see(Self.value(&rest), of: name)
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { [32, 9, 10, 13].contains(byte) }

    private mutating func see(_ value: ArraySlice<UInt8>, of name: String) {
        if seen[name] == nil {
            names.append(name)
            seen[name] = Seen()
        }
        var field = seen[name] ?? Seen()
        switch value.first {
        case UInt8(ascii: "{"), UInt8(ascii: "["): field.isNested = true
        case UInt8(ascii: "n"): break
        case UInt8(ascii: "\""): field.texts = Self.guess(field.texts, Self.string(value) ?? "")
        default: field.literals = Self.guess(field.literals, String(decoding: value.prefix { !Self.isSpace($0) }, as: UTF8.self))
        }
        seen[name] = field
    }

    private static func guess(_ guess: TypeGuess?, _ text: String) -> TypeGuess {
        var guess = guess ?? TypeGuess()
        guess.see(text)
        return guess
    }

    /// Takes a value off text that is JSON.
    private static func value(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var depth = 0
        var isInside = false
        var index = rest.startIndex
        while index < rest.endIndex {
            let byte = rest[index]
            if isInside {
                if byte == UInt8(ascii: "\\") { index += 1 } else if byte == UInt8(ascii: "\"") { isInside = false }
                if !isInside, depth == 0 {
                    index += 1
                    break
                }
            } else if byte == UInt8(ascii: "\"") {
                isInside = true
            } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                depth += 1
            } else if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") {
                if depth == 0 { break }
                depth -= 1
                if depth == 0 {
                    index += 1
                    break
                }
            } else if depth == 0, byte == UInt8(ascii: ",") {
                break
            }
            index += 1
        }
        let end = min(index, rest.endIndex)
        defer { rest = rest[end...] }
        return rest[..<end]
    }

    /// The text of a string in quotes; nil for one that ends too early.
    private static func string(_ text: ArraySlice<UInt8>) -> String? {
        guard text.count >= 2 else { return nil }
        guard text.contains(UInt8(ascii: "\\")) else { return String(decoding: text.dropFirst().dropLast(), as: UTF8.self) }
        var canonical: [UInt8] = []
        guard text.withUnsafeBufferPointer({ (try? JSONCanonicalizer.canonicalize($0, to: &canonical)) != nil }) else { return nil }
        return unescaped(canonical[...])
    }

    /// The text of a canonical string in quotes.
    private static func unescaped(_ text: ArraySlice<UInt8>) -> String {
        var bytes: [UInt8] = []
        var rest = text.dropFirst().dropLast()
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\"), let escape = rest.popFirst() else {
                bytes.append(byte)
                continue
            }
            switch escape {
            case UInt8(ascii: "b"): bytes.append(8)
            case UInt8(ascii: "f"): bytes.append(12)
            case UInt8(ascii: "n"): bytes.append(10)
            case UInt8(ascii: "r"): bytes.append(13)
            case UInt8(ascii: "t"): bytes.append(9)
            case UInt8(ascii: "u"):
                // Canonical text has only control characters left.
                bytes.append(UInt8(String(decoding: rest.prefix(4), as: UTF8.self), radix: 16) ?? UInt8(ascii: "?"))
                rest = rest.dropFirst(4)
            default: bytes.append(escape)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
