import MillBase

/// Turns the bytes of a token into the text it stands for: case folding, doubled quotes, escapes.
enum TokenText {
    static func folded(_ bytes: ArraySlice<UInt8>, _ folding: Dialect.Folding) -> String {
        switch folding {
        case .none: String(decoding: bytes, as: UTF8.self)
        case .lower:
            String(unsafeUninitializedCapacity: bytes.count) { buffer in
                var count = 0
                for byte in bytes {
                    buffer[count] = byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
                    count += 1
                }
                return count
            }
        case .upper:
            String(unsafeUninitializedCapacity: bytes.count) { buffer in
                var count = 0
                for byte in bytes {
                    buffer[count] = byte &- UInt8(ascii: "a") < 26 ? byte & 0xdf : byte
                    count += 1
                }
                return count
            }
        }
    }

    /// What stands between the quotes of `range`, with doubled quotes made single and continued parts joined.
    static func unquoted(_ bytes: [UInt8], _ range: Range<Int>) -> [UInt8] {
        let quote = bytes[range.upperBound - 1]
        var out: [UInt8] = []
        out.reserveCapacity(range.count)
        var isInside = false
        var index = range.lowerBound
        while index < range.upperBound {
            let byte = bytes[index]
            if byte == quote {
                if isInside, index + 1 < range.upperBound, bytes[index + 1] == quote {
                    out.append(quote)
                    index += 1
                } else {
                    isInside.toggle()
                }
            } else if isInside {
                out.append(byte)
            }
            index += 1
        }
        return out
    }

    /// A plain string: one copy if no quote is inside.
    static func string(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        let contents = bytes[(range.lowerBound + 1)..<(range.upperBound - 1)]
        guard contents.contains(UInt8(ascii: "'")) else { return String(decoding: contents, as: UTF8.self) }
        return String(decoding: unquoted(bytes, range), as: UTF8.self)
    }

    static func dollarString(_ bytes: [UInt8], _ range: Range<Int>) -> String {
        var tag = range.lowerBound + 1
        while bytes[tag] != UInt8(ascii: "$") { tag += 1 }
        let length = tag + 1 - range.lowerBound
        return String(decoding: bytes[(range.lowerBound + length)..<(range.upperBound - length)], as: UTF8.self)
    }

    /// An integer or a decimal without underscores; hexadecimal, octal and binary become decimal.
    ///
    /// - Throws: 22003 for a prefixed integer over 128 bits.
    static func number(_ bytes: [UInt8], _ range: Range<Int>) throws(SQLError) -> String {
        let digits = bytes[range].filter { $0 != UInt8(ascii: "_") }
        guard digits.count > 2, digits[0] == UInt8(ascii: "0"), let radix = Lexer.radix(digits[1]) else {
            return String(decoding: digits, as: UTF8.self).lowercased()
        }
        guard let value = UInt128(String(decoding: digits[2...], as: UTF8.self), radix: radix) else {
            throw SQLError(
                .numericValueOutOfRange, "integer \(String(decoding: bytes[range], as: UTF8.self)) is out of range",
                at: SourceSpan(range.lowerBound, range.upperBound))
        }
        return String(value)
    }

    /// The inside of `E'...'`.
    ///
    /// - Throws: 22025 for a bad Unicode escape, 22021 where the escaped bytes are not UTF-8.
    static func escapeString(_ bytes: [UInt8], _ range: Range<Int>) throws(SQLError) -> String {
        var decoder = EscapeDecoder(bytes: bytes, range: range)
        return try decoder.decode()
    }

    /// The inside of `U&'...'` or `U&"..."`: `\XXXX` and `\+XXXXXX`.
    ///
    /// - Throws: 22025 for a bad escape.
    static func unicodeText(_ bytes: [UInt8], _ range: Range<Int>) throws(SQLError) -> String {
        let inside = unquoted(bytes, (range.lowerBound + 2)..<range.upperBound)
        let span = SourceSpan(range.lowerBound, range.upperBound)
        var units: [UInt8] = []
        var pending: UInt32?
        var index = 0
        while index < inside.count {
            guard inside[index] == UInt8(ascii: "\\") else {
                guard pending == nil else { throw EscapeDecoder.badPair(span) }
                units.append(inside[index])
                index += 1
                continue
            }
            if index + 1 < inside.count, inside[index + 1] == UInt8(ascii: "\\") {
                guard pending == nil else { throw EscapeDecoder.badPair(span) }
                units.append(UInt8(ascii: "\\"))
                index += 2
                continue
            }
            let isLong = index + 1 < inside.count && inside[index + 1] == UInt8(ascii: "+")
            let first = index + (isLong ? 2 : 1)
            let length = isLong ? 6 : 4
            guard first + length <= inside.count, let code = EscapeDecoder.hex(inside[first..<first + length]) else {
                throw SQLError(
                    .invalidEscapeSequence, "invalid Unicode escape", hint: "Unicode escapes must be \\XXXX or \\+XXXXXX.", at: span)
            }
            try EscapeDecoder.append(code, to: &units, pending: &pending, span: span)
            index = first + length
        }
        guard pending == nil else { throw EscapeDecoder.badPair(span) }
        return String(decoding: units, as: UTF8.self)
    }
}

/// Decodes the backslash escapes of one `E'...'` literal.
struct EscapeDecoder {
    let bytes: [UInt8]
    let range: Range<Int>
    private var index: Int
    private var out: [UInt8] = []
    /// A high surrogate that waits for its low one.
    private var pending: UInt32?

    init(bytes: [UInt8], range: Range<Int>) {
        self.bytes = bytes
        self.range = range
        index = range.lowerBound + 1
    }

    private var span: SourceSpan { SourceSpan(range.lowerBound, range.upperBound) }

    mutating func decode() throws(SQLError) -> String {
        let quote = UInt8(ascii: "'")
        var isInside = false
        while index < range.upperBound {
            let byte = bytes[index]
            index += 1
            if byte == quote {
                if isInside, index < range.upperBound, bytes[index] == quote {
                    try literal(quote)
                    index += 1
                } else {
                    isInside.toggle()
                }
            } else if isInside {
                if byte == UInt8(ascii: "\\") { try escape() } else { try literal(byte) }
            }
        }
        guard pending == nil else { throw Self.badPair(span) }
        guard !out.contains(0), let text = String(validating: out, as: UTF8.self) else {
            throw SQLError(
                .characterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\" in an escaped string", at: span)
        }
        return text
    }

    private mutating func literal(_ byte: UInt8) throws(SQLError) {
        guard pending == nil else { throw Self.badPair(span) }
        out.append(byte)
    }

    private mutating func escape() throws(SQLError) {
        let byte = bytes[index]
        index += 1
        switch byte {
        case UInt8(ascii: "b"): try literal(8)
        case UInt8(ascii: "f"): try literal(12)
        case UInt8(ascii: "n"): try literal(10)
        case UInt8(ascii: "r"): try literal(13)
        case UInt8(ascii: "t"): try literal(9)
        case UInt8(ascii: "v"): try literal(11)
        case UInt8(ascii: "0")...UInt8(ascii: "7"):
            var value = UInt32(byte - UInt8(ascii: "0"))
            var digits = 1
            while digits < 3, let digit = bytes[index].hexValue, digit < 8 {
                value = value * 8 + UInt32(digit)
                index += 1
                digits += 1
            }
            try literal(UInt8(truncatingIfNeeded: value))
        case UInt8(ascii: "x"):
            guard bytes[index].hexValue != nil else { return try literal(byte) }
            var value: UInt8 = 0
            var digits = 0
            while digits < 2, let digit = bytes[index].hexValue {
                value = value << 4 | digit
                index += 1
                digits += 1
            }
            try literal(value)
        case UInt8(ascii: "u"): try unicode(length: 4)
        case UInt8(ascii: "U"): try unicode(length: 8)
        default: try literal(byte)
        }
    }

    private mutating func unicode(length: Int) throws(SQLError) {
        guard index + length < range.upperBound, let code = Self.hex(bytes[index..<index + length]) else {
            throw SQLError(
                .invalidEscapeSequence, "invalid Unicode escape", hint: "Unicode escapes must be \\uXXXX or \\UXXXXXXXX.", at: span)
        }
        index += length
        try Self.append(code, to: &out, pending: &pending, span: span)
    }

    static func hex(_ digits: ArraySlice<UInt8>) -> UInt32? {
        var value: UInt32 = 0
        for digit in digits {
            guard let digit = digit.hexValue else { return nil }
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    /// Adds a code point, or one half of a surrogate pair.
    static func append(_ code: UInt32, to out: inout [UInt8], pending: inout UInt32?, span: SourceSpan) throws(SQLError) {
        var code = code
        if let high = pending {
            guard (0xdc00...0xdfff).contains(code) else { throw badPair(span) }
            code = 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00)
            pending = nil
        } else if (0xd800...0xdbff).contains(code) {
            pending = code
            return
        }
        guard code != 0, let scalar = Unicode.Scalar(code) else {
            throw (0xdc00...0xdfff).contains(code)
                ? badPair(span) : SQLError(.invalidEscapeSequence, "invalid Unicode escape value", at: span)
        }
        out.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
    }

    static func badPair(_ span: SourceSpan) -> SQLError {
        SQLError(.syntaxError, "invalid Unicode surrogate pair", at: span)
    }
}
