import MillBase
import MillColumnar

/// A to_char pattern for numbers: 9 0 . , D G S MI PL FM L $.
struct NumberFormat {
    private var whole: [Character] = []
    private var fraction: [Character] = []
    private var hasPoint = false
    private var fillsBlanks = true
    private var signFirst = false
    private var signLast = false
    private var minusLast = false
    private var prefix = ""

    /// - Throws: 0A000 for a pattern outside this set.
    init(_ pattern: String) throws(SQLError) {
        var rest = Substring(pattern)
        while let character = rest.first {
            let upper = character.uppercased()
            if rest.uppercased().hasPrefix("FM") {
                fillsBlanks = false
                rest = rest.dropFirst(2)
                continue
            }
            if rest.uppercased().hasPrefix("MI") {
                minusLast = true
                rest = rest.dropFirst(2)
                continue
            }
            rest = rest.dropFirst()
            switch upper {
            case "9", "0": if hasPoint { fraction.append(character) } else { whole.append(character) }
            case ".", "D": hasPoint = true
            case ",", "G": whole.append(",")
            case "S": if whole.isEmpty { signFirst = true } else { signLast = true }
            case "$", "L": prefix += upper == "$" ? "$" : " "
            case " ": prefix += " "
            default: throw SQLError(.featureNotSupported, "the number format \"\(pattern)\" is not supported")
            }
        }
    }

    func append(_ value: Decimal, to out: inout [UInt8]) throws(SQLError) {
        let rounded = try value.rounded(to: fraction.count)
        var text: [UInt8] = []
        TextOutput.append(rounded.magnitude, to: &text)
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        var digits = Array(parts.first ?? [])
        let isNegative = Decimal.order(rounded, .zero) < 0
        if digits == [48], !fraction.isEmpty || !whole.contains("9") { digits = [] }
        let slots = whole.count { $0 != "," }
        let isFull = !rounded.isFinite || digits.count > slots
        var body: [UInt8] = []
        var left = slots
        var started = false
        for character in whole {
            if character == "," {
                body.append(started ? UInt8(ascii: ",") : 32)
                continue
            }
            defer { left -= 1 }
            if isFull { body.append(UInt8(ascii: "#")); started = true; continue }
            if left <= digits.count {
                body.append(digits[digits.count - left])
                started = true
            } else if character == "0" || started {
                body.append(48)
                started = true
            } else {
                body.append(32)
            }
        }
        if hasPoint {
            body.append(UInt8(ascii: "."))
            body += isFull ? fraction.map { _ in UInt8(ascii: "#") } : Array(parts.count > 1 ? parts[1] : [])
            if !fillsBlanks, !isFull {
                let fixed = fraction.lastIndex(of: "0").map { $0 + 1 } ?? 0
                var extra = fraction.count - fixed
                while extra > 0, body.last == 48 {
                    body.removeLast()
                    extra -= 1
                }
            }
        }
        place(body, isNegative, &out)
    }

    /// The sign stands right before the first digit unless the pattern puts it elsewhere.
    private func place(_ body: [UInt8], _ isNegative: Bool, _ out: inout [UInt8]) {
        let blanks = body.prefix { $0 == 32 }.count
        if fillsBlanks { out.append(contentsOf: repeatElement(32, count: blanks)) }
        if signFirst {
            out.append(isNegative ? UInt8(ascii: "-") : UInt8(ascii: "+"))
        } else if !signLast, !minusLast {
            if isNegative { out.append(UInt8(ascii: "-")) } else if fillsBlanks { out.append(32) }
        }
        out += prefix.utf8
        out += body[blanks...]
        if signLast { out.append(isNegative ? UInt8(ascii: "-") : UInt8(ascii: "+")) }
        if minusLast { if isNegative { out.append(UInt8(ascii: "-")) } else if fillsBlanks { out.append(32) } }
    }
}
