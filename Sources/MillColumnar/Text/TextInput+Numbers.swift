package import MillBase

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

extension TextInput {
    package static func integer(_ text: UnsafeBufferPointer<UInt8>, as type: SQLType, within range: ClosedRange<Int64>) throws(SQLError) -> Int64 {
        let body = trimmed(text)
        var index = 0
        var negative = false
        if let first = body.first, first == UInt8(ascii: "-") || first == UInt8(ascii: "+") {
            negative = first == UInt8(ascii: "-")
            index = 1
        }
        guard index < body.count else { throw invalid(text, as: type) }
        // Counted downwards: the negative side is one larger.
        var value: Int64 = 0
        var overflow = false
        while index < body.count {
            guard isDigit(body[index]) else { throw invalid(text, as: type) }
            let (product, first) = value.multipliedReportingOverflow(by: 10)
            let (difference, second) = product.subtractingReportingOverflow(Int64(body[index] &- 48))
            overflow = overflow || first || second
            value = difference
            index += 1
        }
        if !negative {
            overflow = overflow || value == .min
            value = 0 &- value
        }
        guard !overflow, range.contains(value) else { throw outOfRange(text, as: type) }
        return value
    }

    package static func boolean(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Bool {
        let body = trimmed(text)
        // Any unique beginning of a word counts.
        func begins(_ word: StaticString, atLeast count: Int = 1) -> Bool {
            guard body.count >= count, body.count <= word.utf8CodeUnitCount else { return false }
            return body.indices.allSatisfy { lowered(body[$0]) == word.utf8Start[$0] }
        }
        if begins("true") || begins("yes") || begins("on", atLeast: 2) || equals(body, "1") { return true }
        if begins("false") || begins("no") || begins("off", atLeast: 2) || equals(body, "0") { return false }
        throw invalid(text, as: .boolean)
    }

    package static func float64(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Double {
        if let special = specialFloat(trimmed(text)) { return special }
        return try withNumber(text, as: .float64) { (pointer, end) throws(SQLError) -> Double in
            let value = strtod(pointer, end)
            if value.isInfinite || (value == 0 && hasNonzeroDigit(text)) { throw outOfRange(text, as: .float64) }
            return value
        }
    }

    package static func float32(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Float {
        if let special = specialFloat(trimmed(text)) { return Float(special) }
        return try withNumber(text, as: .float32) { (pointer, end) throws(SQLError) -> Float in
            let value = strtof(pointer, end)
            if value.isInfinite || (value == 0 && hasNonzeroDigit(text)) { throw outOfRange(text, as: .float32) }
            return value
        }
    }

    private static func specialFloat(_ body: UnsafeBufferPointer<UInt8>) -> Double? {
        guard let last = body.last, !isDigit(last), last != UInt8(ascii: ".") else { return nil }
        var word = body
        var negative = false
        if let first = body.first, first == UInt8(ascii: "-") || first == UInt8(ascii: "+") {
            negative = first == UInt8(ascii: "-")
            word = UnsafeBufferPointer(rebasing: body[1...])
        }
        if equals(body, "nan") { return .nan }
        guard equals(word, "infinity") || equals(word, "inf") else { return nil }
        return negative ? -.infinity : .infinity
    }

    /// Checks the shape of a decimal number, so that the C library's own forms (hexadecimal, nan(...)) do not slip in, and
    /// hands it over with a zero at its end.
    private static func withNumber<R>(
        _ text: UnsafeBufferPointer<UInt8>, as type: SQLType,
        _ body: (UnsafePointer<CChar>, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) throws(SQLError) -> R
    ) throws(SQLError) -> R {
        let number = trimmed(text)
        guard !number.isEmpty, number.count < 100_000, number.allSatisfy({ isDigit($0) || $0 == 43 || $0 == 45 || $0 == 46 || $0 | 32 == 101 }) else {
            throw invalid(text, as: type)
        }
        var copy = number.map { CChar(truncatingIfNeeded: $0) }
        copy.append(0)
        var consumed = 0
        let result = try copy.withUnsafeMutableBufferPointer { (buffer) throws(SQLError) -> R in
            // The array has at least the zero.
            let base = buffer.baseAddress.unsafelyUnwrapped
            var end: UnsafeMutablePointer<CChar>?
            let result = try body(base, &end)
            consumed = end.map { $0 - base } ?? 0
            return result
        }
        guard consumed == number.count else { throw invalid(text, as: type) }
        return result
    }

    /// Whether the digits before an exponent say anything but zero: such a value that reads as 0 has underflowed.
    private static func hasNonzeroDigit(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        for byte in text {
            if byte | 32 == 101 { return false }
            if byte &- 49 < 9 { return true }
        }
        return false
    }

    /// `precision` and `scale` are those of the target, nil for any.
    package static func decimal(_ text: UnsafeBufferPointer<UInt8>, precision: Int? = nil, scale: Int? = nil) throws(SQLError) -> Decimal {
        let body = trimmed(text)
        let value = try parseDecimal(body, text)
        guard let precision else { return value }
        return try value.constrained(precision: precision, scale: scale ?? 0)
    }

    private static func parseDecimal(_ body: UnsafeBufferPointer<UInt8>, _ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Decimal {
        if let special = specialFloat(body) { return Decimal(special.isNaN ? .nan : special < 0 ? .negativeInfinity : .positiveInfinity) }
        var index = 0
        var negative = false
        if let first = body.first, first == UInt8(ascii: "-") || first == UInt8(ascii: "+") {
            negative = first == UInt8(ascii: "-")
            index = 1
        }
        var builder = DecimalBuilder()
        var digits = 0
        var sawPoint = false
        scan: while index < body.count {
            switch body[index] {
            case 48...57:
                builder.append(digit: body[index] &- 48, afterPoint: sawPoint)
                digits += 1
            case UInt8(ascii: ".") where !sawPoint: sawPoint = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"): break scan
            default: throw invalid(text, as: .numeric)
            }
            index += 1
        }
        guard digits > 0 else { throw invalid(text, as: .numeric) }
        var exponent = 0
        if index < body.count {
            index += 1
            var minus = false
            if index < body.count, body[index] == 43 || body[index] == 45 {
                minus = body[index] == 45
                index += 1
            }
            guard index < body.count else { throw invalid(text, as: .numeric) }
            while index < body.count {
                guard isDigit(body[index]) else { throw invalid(text, as: .numeric) }
                exponent = min(exponent * 10 + Int(body[index] &- 48), 1_000_000)
                index += 1
            }
            if minus { exponent = -exponent }
        }
        guard let value = builder.finish(exponent: exponent, negative: negative) else { throw outOfRange(text, as: .numeric) }
        return value
    }

    package static func bytea(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> [UInt8] {
        if text.count >= 2, text[0] == UInt8(ascii: "\\"), text[1] == UInt8(ascii: "x") { return try hex(UnsafeBufferPointer(rebasing: text[2...])) }
        return try escapedBytes(text)
    }

    /// Bytes as they are, a backslash before three octal digits or another backslash.
    package static func escapedBytes(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            guard text[index] == UInt8(ascii: "\\") else {
                out.append(text[index])
                index += 1
                continue
            }
            if index + 1 < text.count, text[index + 1] == UInt8(ascii: "\\") {
                out.append(UInt8(ascii: "\\"))
                index += 2
            } else if index + 3 < text.count, (48...51).contains(text[index + 1]), (48...55).contains(text[index + 2]), (48...55).contains(text[index + 3]) {
                out.append((text[index + 1] - 48) << 6 | (text[index + 2] - 48) << 3 | (text[index + 3] - 48))
                index += 4
            } else {
                throw SQLError(.invalidTextRepresentation, "invalid input syntax for type bytea")
            }
        }
        return out
    }

    /// Pairs of hexadecimal digits, white space allowed between pairs.
    package static func hex(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(text.count / 2)
        var index = 0
        while index < text.count {
            if isSpace(text[index]) {
                index += 1
                continue
            }
            let high = try hexDigit(text[index])
            guard index + 1 < text.count else {
                throw SQLError(.invalidParameterValue, "invalid hexadecimal data: odd number of digits")
            }
            out.append(high << 4 | (try hexDigit(text[index + 1])))
            index += 2
        }
        return out
    }

    private static func hexDigit(_ byte: UInt8) throws(SQLError) -> UInt8 {
        switch byte {
        case 48...57: return byte - 48
        case 65...70: return byte - 55
        case 97...102: return byte - 87
        default: throw SQLError(.invalidParameterValue, "invalid hexadecimal digit: \"\(String(decoding: [byte], as: UTF8.self))\"")
        }
    }
}

/// Collects decimal digits into 128 bits: what does not fit behind the point is rounded, before the point it overflows.
struct DecimalBuilder {
    private var unscaled: Int128 = 0
    private var scale = 0
    private var dropped = 0
    private var roundUp = false
    private var isFull = false

    mutating func append(digit: UInt8, afterPoint: Bool) {
        if !isFull, unscaled < Decimal.unscaledLimit / 10 {
            unscaled = unscaled * 10 + Int128(digit)
            if afterPoint { scale += 1 }
            return
        }
        if !isFull { roundUp = digit >= 5 }
        isFull = true
        if !afterPoint { dropped += 1 }
    }

    func finish(exponent: Int, negative: Bool) -> Decimal? {
        var value = unscaled
        if roundUp { value += 1 }
        // A number of units of ten to the minus `position`.
        let position = scale - dropped - exponent
        if value == 0 { return Decimal(unscaled: 0, scale: Int32(min(max(position, 0), 38))) }
        var scale = position
        if position < 0 {
            guard -position <= 38 else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: Decimal.powerOfTen(Int32(-position)))
            if overflow { return nil }
            value = product
            scale = 0
        } else if position > 38 {
            value = position - 38 > 38 ? 0 : Decimal.divideRounding(value, by: Decimal.powerOfTen(Int32(position - 38)))
            scale = 38
        }
        guard value < Decimal.unscaledLimit else { return nil }
        return Decimal(unscaled: negative ? -value : value, scale: Int32(scale))
    }
}
