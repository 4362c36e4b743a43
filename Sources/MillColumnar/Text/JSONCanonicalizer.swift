package import MillBase

/// Any JSON text to the canonical text that a jsonb value is kept as.
///
/// Two texts of one value give the same bytes: keys sorted by length, then bytes; the last of equal keys kept; `", "` and
/// `": "` between; strings unescaped and written with the fewest escapes; numbers written out without exponent, as
/// PostgreSQL's numeric keeps them, so that 1.0 and 1.00 stay apart.
///
/// One pass, members written to the output as they come: an object whose keys already are in order, which is the case for
/// text that has been through here, is never moved.
package enum JSONCanonicalizer {
    /// Nesting at most.
    package static let depthMax = 512
    /// Digits that an exponent may unfold to, so that a few bytes cannot become megabytes.
    static let numberDigitsMax = 16_383

    /// Appends the canonical form of `text`.
    /// - Throws: 22P02 for text that is not JSON, 22P05 for `\u0000`, 54001 when it is nested too deep.
    package static func canonicalize(_ text: UnsafeBufferPointer<UInt8>, to out: inout [UInt8]) throws(SQLError) {
        var writer = JSONWriter(text)
        out.reserveCapacity(out.count + text.count)
        try writer.value(&out, depth: 0)
        writer.skipSpaces()
        guard writer.at == text.count else { throw writer.malformed("Expected end of input") }
    }

    /// Appends `text` as a JSON string in quotes.
    package static func appendString(_ text: UnsafeBufferPointer<UInt8>, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        for byte in text { appendEscaped(byte, to: &out) }
        out.append(UInt8(ascii: "\""))
    }

    @inline(__always) static func appendEscaped(_ byte: UInt8, to out: inout [UInt8]) {
        if byte >= 32, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { return out.append(byte) }
        out.append(UInt8(ascii: "\\"))
        switch byte {
        case 8: out.append(UInt8(ascii: "b"))
        case 9: out.append(UInt8(ascii: "t"))
        case 10: out.append(UInt8(ascii: "n"))
        case 12: out.append(UInt8(ascii: "f"))
        case 13: out.append(UInt8(ascii: "r"))
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): out.append(byte)
        default:
            TextOutput.append("u00", to: &out)
            withUnsafeBytes(of: byte) { TextOutput.appendHex($0.assumingMemoryBound(to: UInt8.self), to: &out) }
        }
    }
}

private struct JSONWriter {
    let text: UnsafeBufferPointer<UInt8>
    var at = 0
    /// The unescaped bytes of the keys of all objects now open, side by side.
    private var keys: [UInt8] = []

    init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

    private struct Member {
        var key: Range<Int>
        /// `"key": value` in the output.
        var piece: Range<Int>
    }

    func malformed(_ detail: String) -> SQLError {
        SQLError(.invalidTextRepresentation, "invalid input syntax for type json", detail: "\(detail) at byte \(at + 1).")
    }

    @inline(__always) private func peek() -> UInt8 { at < text.count ? text[at] : 0 }

    @inline(__always) mutating func skipSpaces() {
        while at < text.count, text[at] == 32 || text[at] == 10 || text[at] == 13 || text[at] == 9 { at += 1 }
    }

    mutating func value(_ out: inout [UInt8], depth: Int) throws(SQLError) {
        guard depth < JSONCanonicalizer.depthMax else { throw SQLError(.statementTooComplex, "json is nested too deep") }
        skipSpaces()
        switch peek() {
        case UInt8(ascii: "{"): try object(&out, depth)
        case UInt8(ascii: "["): try array(&out, depth)
        case UInt8(ascii: "\""):
            out.append(UInt8(ascii: "\""))
            try string { JSONCanonicalizer.appendEscaped($0, to: &out) }
            out.append(UInt8(ascii: "\""))
        case UInt8(ascii: "t"): try word("true", &out)
        case UInt8(ascii: "f"): try word("false", &out)
        case UInt8(ascii: "n"): try word("null", &out)
        case UInt8(ascii: "-"), 48...57: try number(&out)
        default: throw malformed(at < text.count ? "Expected a value" : "The input ended unexpectedly")
        }
    }

    private mutating func word(_ word: StaticString, _ out: inout [UInt8]) throws(SQLError) {
        let count = word.utf8CodeUnitCount
        guard at + count <= text.count, (0..<count).allSatisfy({ text[at + $0] == word.utf8Start[$0] }) else { throw malformed("Unknown word") }
        at += count
        TextOutput.append(word, to: &out)
    }

    private mutating func array(_ out: inout [UInt8], _ depth: Int) throws(SQLError) {
        at += 1
        out.append(UInt8(ascii: "["))
        skipSpaces()
        if peek() == UInt8(ascii: "]") {
            at += 1
            return out.append(UInt8(ascii: "]"))
        }
        while true {
            try value(&out, depth: depth + 1)
            skipSpaces()
            if peek() == UInt8(ascii: "]") {
                at += 1
                return out.append(UInt8(ascii: "]"))
            }
            guard peek() == UInt8(ascii: ",") else { throw malformed("Expected \",\" or \"]\"") }
            at += 1
            TextOutput.append(", ", to: &out)
        }
    }

    private mutating func object(_ out: inout [UInt8], _ depth: Int) throws(SQLError) {
        at += 1
        out.append(UInt8(ascii: "{"))
        skipSpaces()
        if peek() == UInt8(ascii: "}") {
            at += 1
            return out.append(UInt8(ascii: "}"))
        }
        let keysStart = keys.count
        let outStart = out.count
        var members: [Member] = []
        var inOrder = true
        while true {
            skipSpaces()
            guard peek() == UInt8(ascii: "\"") else { throw malformed("Expected a string") }
            let start = out.count
            let keyStart = keys.count
            out.append(UInt8(ascii: "\""))
            try member(&out)
            skipSpaces()
            guard peek() == UInt8(ascii: ":") else { throw malformed("Expected \":\"") }
            at += 1
            TextOutput.append("\": ", to: &out)
            let key = keyStart..<keys.count
            try value(&out, depth: depth + 1)
            if let last = members.last, order(last.key, key) >= 0 { inOrder = false }
            members.append(Member(key: key, piece: start..<out.count))
            skipSpaces()
            if peek() == UInt8(ascii: "}") { break }
            guard peek() == UInt8(ascii: ",") else { throw malformed("Expected \",\" or \"}\"") }
            at += 1
            TextOutput.append(", ", to: &out)
        }
        at += 1
        if !inOrder { rearrange(&members, &out, from: outStart) }
        keys.removeSubrange(keysStart...)
        out.append(UInt8(ascii: "}"))
    }

    /// Reads a key into both the output and `keys`.
    private mutating func member(_ out: inout [UInt8]) throws(SQLError) {
        var bytes: [UInt8] = []
        try string { bytes.append($0) }
        for byte in bytes { JSONCanonicalizer.appendEscaped(byte, to: &out) }
        keys += bytes
    }

    private func order(_ a: Range<Int>, _ b: Range<Int>) -> Int {
        if a.count != b.count { return a.count - b.count }
        for offset in 0..<a.count where keys[a.lowerBound + offset] != keys[b.lowerBound + offset] {
            return Int(keys[a.lowerBound + offset]) - Int(keys[b.lowerBound + offset])
        }
        return 0
    }

    private func rearrange(_ members: inout [Member], _ out: inout [UInt8], from start: Int) {
        let pieces = Array(out[start...])
        out.removeSubrange(start...)
        // Of equal keys the one that came last is kept.
        let sorted = members.indices.sorted { a, b in
            let order = order(members[a].key, members[b].key)
            return order != 0 ? order < 0 : a < b
        }
        for (position, index) in sorted.enumerated() {
            if position + 1 < sorted.count, order(members[index].key, members[sorted[position + 1]].key) == 0 { continue }
            if out.count > start { TextOutput.append(", ", to: &out) }
            out += pieces[(members[index].piece.lowerBound - start)..<(members[index].piece.upperBound - start)]
        }
    }

    /// Reads a string from its opening to its closing quote and gives its unescaped bytes.
    private mutating func string(_ emit: (UInt8) -> Void) throws(SQLError) {
        at += 1
        while true {
            guard at < text.count else { throw malformed("The string is not closed") }
            let byte = text[at]
            at += 1
            switch byte {
            case UInt8(ascii: "\""): return
            case 0..<32: throw malformed("A control character must be escaped")
            case UInt8(ascii: "\\"): try escape(emit)
            default: emit(byte)
            }
        }
    }

    private mutating func escape(_ emit: (UInt8) -> Void) throws(SQLError) {
        let byte = peek()
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): emit(byte)
        case UInt8(ascii: "b"): emit(8)
        case UInt8(ascii: "f"): emit(12)
        case UInt8(ascii: "n"): emit(10)
        case UInt8(ascii: "r"): emit(13)
        case UInt8(ascii: "t"): emit(9)
        case UInt8(ascii: "u"):
            var code = try codeUnit()
            if code == 0 { throw SQLError(.untranslatableCharacter, "unsupported Unicode escape sequence", detail: "\\u0000 cannot be converted to text.") }
            if code & 0xFC00 == 0xD800 {
                guard peek() == UInt8(ascii: "\\"), at + 1 < text.count, text[at + 1] == UInt8(ascii: "u") else {
                    throw malformed("A high surrogate needs a low one after it")
                }
                at += 2
                let low = try codeUnit()
                guard low & 0xFC00 == 0xDC00 else { throw malformed("A high surrogate needs a low one after it") }
                code = 0x10000 + (code & 0x3FF) << 10 + low & 0x3FF
            }
            guard let scalar = Unicode.Scalar(code) else { throw malformed("A low surrogate needs a high one before it") }
            for byte in UTF8.encode(scalar).unsafelyUnwrapped { emit(byte) }
        default: throw malformed("Unknown escape")
        }
    }

    private mutating func codeUnit() throws(SQLError) -> UInt32 {
        guard at + 4 <= text.count else { throw malformed("\\u needs four hexadecimal digits") }
        var code: UInt32 = 0
        for _ in 0..<4 {
            let byte = text[at]
            let digit: UInt8
            switch byte {
            case 48...57: digit = byte - 48
            case 65...70: digit = byte - 55
            case 97...102: digit = byte - 87
            default: throw malformed("\\u needs four hexadecimal digits")
            }
            code = code << 4 | UInt32(digit)
            at += 1
        }
        return code
    }

    private mutating func number(_ out: inout [UInt8]) throws(SQLError) {
        let start = at
        if peek() == UInt8(ascii: "-") { at += 1 }
        let wholeStart = at
        digits()
        let wholeEnd = at
        guard wholeEnd > wholeStart, text[wholeStart] != 48 || wholeEnd == wholeStart + 1 else { throw malformed("Malformed number") }
        var fraction = at..<at
        if peek() == UInt8(ascii: ".") {
            at += 1
            let first = at
            digits()
            guard at > first else { throw malformed("Malformed number") }
            fraction = first..<at
        }
        var exponent = 0
        if peek() | 32 == UInt8(ascii: "e") {
            at += 1
            var minus = false
            if peek() == 43 || peek() == 45 {
                minus = peek() == 45
                at += 1
            }
            let first = at
            while at < text.count, TextInput.isDigit(text[at]) {
                exponent = min(exponent * 10 + Int(text[at] &- 48), 1_000_000)
                at += 1
            }
            guard at > first else { throw malformed("Malformed number") }
            if minus { exponent = -exponent }
        }
        if exponent == 0 {
            // Zero has no sign in numeric.
            let isZero = !text[wholeStart..<wholeEnd].contains { $0 != 48 } && !text[fraction].contains { $0 != 48 }
            out.append(contentsOf: text[(isZero ? wholeStart : start)..<max(wholeEnd, fraction.upperBound)])
        } else {
            try shifted(wholeStart..<wholeEnd, fraction, by: exponent, negative: wholeStart > start, &out)
        }
    }

    private mutating func digits() { while at < text.count, TextInput.isDigit(text[at]) { at += 1 } }

    /// Writes the digits with the point moved by the exponent.
    private func shifted(_ whole: Range<Int>, _ fraction: Range<Int>, by exponent: Int, negative: Bool, _ out: inout [UInt8]) throws(SQLError) {
        guard exponent.magnitude + UInt(whole.count + fraction.count) <= JSONCanonicalizer.numberDigitsMax else {
            throw SQLError(.numericValueOutOfRange, "value overflows numeric format")
        }
        var digits = Array(text[whole]) + Array(text[fraction])
        var point = whole.count + exponent
        if point < 1 {
            digits.insert(contentsOf: repeatElement(48, count: 1 - point), at: 0)
            point = 1
        }
        if point > digits.count { digits.append(contentsOf: repeatElement(48, count: point - digits.count)) }
        let isZero = !digits.contains { $0 != 48 }
        var first = 0
        while first < point - 1, digits[first] == 48 { first += 1 }
        if negative, !isZero { out.append(UInt8(ascii: "-")) }
        out += digits[first..<point]
        if point < digits.count {
            out.append(UInt8(ascii: "."))
            out += digits[point...]
        }
    }
}
