/// Values as the text that a Postgres client reads.
///
/// PostgreSQL's output functions, with RisingWave's form where the two differ: timestamptz ends in `+00:00`, and the
/// fraction of a second has 0, 3 or 6 digits. Everything appends bytes to one buffer: no String is made per value.
package enum TextOutput {
    package static func append(_ text: StaticString, to out: inout [UInt8]) {
        out.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    package static func append(_ value: Int64, to out: inout [UInt8]) {
        if value < 0 { out.append(UInt8(ascii: "-")) }
        append(value.magnitude, minDigits: 1, to: &out)
    }

    /// Decimal digits, padded with zeros in front.
    package static func append(_ value: UInt64, minDigits: Int, to out: inout [UInt8]) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 40) { digits in
            var rest = value
            var start = 40
            while rest != 0 || 40 - start < minDigits {
                start -= 1
                digits[start] = UInt8(truncatingIfNeeded: rest % 10) + 48
                rest /= 10
            }
            out.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start..<40]))
        }
    }

    package static func append(_ value: Bool, to out: inout [UInt8]) { out.append(value ? UInt8(ascii: "t") : UInt8(ascii: "f")) }

    /// The value with as many digits after the point as its scale says.
    package static func append(_ value: Decimal, to out: inout [UInt8]) {
        switch value.kind {
        case .nan: return append("NaN", to: &out)
        case .positiveInfinity: return append("Infinity", to: &out)
        case .negativeInfinity: return append("-Infinity", to: &out)
        case .finite: break
        }
        let unscaled = value.unscaled
        if unscaled < 0 { out.append(UInt8(ascii: "-")) }
        let scale = Int(value.scale)
        var rest = unscaled.magnitude
        if rest >> 64 == 0, scale == 0 { return append(UInt64(truncatingIfNeeded: rest), minDigits: 1, to: &out) }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 48) { digits in
            var start = 48
            while rest != 0 || 48 - start <= scale {
                // 19 digits at a time: 128-bit division is a call.
                let (high, low) = rest.quotientAndRemainder(dividingBy: 10_000_000_000_000_000_000)
                var part = UInt64(truncatingIfNeeded: low)
                var left = 19
                while left > 0, part != 0 || high != 0 || 48 - start <= scale, start > 0 {
                    start -= 1
                    digits[start] = UInt8(truncatingIfNeeded: part % 10) + 48
                    part /= 10
                    left -= 1
                }
                rest = high
            }
            out.append(contentsOf: UnsafeBufferPointer(rebasing: digits[start..<(48 - scale)]))
            if scale > 0 {
                out.append(UInt8(ascii: "."))
                out.append(contentsOf: UnsafeBufferPointer(rebasing: digits[(48 - scale)..<48]))
            }
        }
    }

    package static func append(_ value: Double, to out: inout [UInt8]) {
        appendFloat(value.description, isNaN: value.isNaN, infinite: value.isInfinite, negative: value.sign == .minus, fixedDigits: 15, to: &out)
    }

    package static func append(_ value: Float, to out: inout [UInt8]) {
        appendFloat(value.description, isNaN: value.isNaN, infinite: value.isInfinite, negative: value.sign == .minus, fixedDigits: 6, to: &out)
    }

    /// Takes Swift's shortest round-trip digits and writes them in PostgreSQL's layout: an exponent below -4 or from
    /// `fixedDigits` on, two digits of it at least, no trailing `.0`.
    private static func appendFloat(
        _ description: String, isNaN: Bool, infinite: Bool, negative: Bool, fixedDigits: Int, to out: inout [UInt8]
    ) {
        if isNaN { return append("NaN", to: &out) }
        if negative { out.append(UInt8(ascii: "-")) }
        if infinite { return append("Infinity", to: &out) }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 64) { digits in
            var count = 0
            var pointAt: Int?
            var exponent = 0
            var text = description.utf8.makeIterator()
            while let byte = text.next() {
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    digits[count] = byte
                    count += 1
                case UInt8(ascii: "."): pointAt = count
                case UInt8(ascii: "e"):
                    var minus = false
                    while let byte = text.next() {
                        if byte == UInt8(ascii: "-") { minus = true } else if byte != UInt8(ascii: "+") { exponent = exponent * 10 + Int(byte - 48) }
                    }
                    if minus { exponent = -exponent }
                default: break
                }
            }
            var first = 0
            while first < count - 1, digits[first] == 48 { first += 1 }
            while count > first + 1, digits[count - 1] == 48 {
                if pointAt == nil { pointAt = count }
                count -= 1
            }
            // The value is 0.d1d2d3... times ten to this.
            let point = (pointAt ?? count) + exponent - first
            let significant = UnsafeBufferPointer(rebasing: digits[first..<count])
            if significant.count == 1, significant[0] == 48 { return out.append(48) }
            appendDigits(significant, exponent: point - 1, fixedDigits: fixedDigits, to: &out)
        }
    }

    private static func appendDigits(_ digits: UnsafeBufferPointer<UInt8>, exponent: Int, fixedDigits: Int, to out: inout [UInt8]) {
        if exponent < -4 || exponent >= fixedDigits {
            out.append(digits[0])
            if digits.count > 1 {
                out.append(UInt8(ascii: "."))
                out.append(contentsOf: digits[1...])
            }
            out.append(UInt8(ascii: "e"))
            out.append(exponent < 0 ? UInt8(ascii: "-") : UInt8(ascii: "+"))
            append(UInt64(exponent.magnitude), minDigits: 2, to: &out)
        } else if exponent < 0 {
            append("0.", to: &out)
            out.append(contentsOf: repeatElement(48, count: -exponent - 1))
            out.append(contentsOf: digits)
        } else if digits.count <= exponent + 1 {
            out.append(contentsOf: digits)
            out.append(contentsOf: repeatElement(48, count: exponent + 1 - digits.count))
        } else {
            out.append(contentsOf: digits[0...exponent])
            out.append(UInt8(ascii: "."))
            out.append(contentsOf: digits[(exponent + 1)...])
        }
    }

    package static func appendHex(_ bytes: UnsafeBufferPointer<UInt8>, to out: inout [UInt8]) {
        let digits: StaticString = "0123456789abcdef"
        for byte in bytes {
            out.append(digits.utf8Start[Int(byte >> 4)])
            out.append(digits.utf8Start[Int(byte & 15)])
        }
    }
}

extension Column {
    /// Appends the text form of a row that is present.
    package func appendText(row: Int, to out: inout [UInt8]) {
        switch type {
        case .boolean: TextOutput.append(values(UInt8.self)[row] != 0, to: &out)
        case .int16: TextOutput.append(Int64(values(Int16.self)[row]), to: &out)
        case .int32: TextOutput.append(Int64(values(Int32.self)[row]), to: &out)
        case .int64: TextOutput.append(values(Int64.self)[row], to: &out)
        case .float32: TextOutput.append(values(Float.self)[row], to: &out)
        case .float64: TextOutput.append(values(Double.self)[row], to: &out)
        case .numeric: TextOutput.append(values(Decimal.self)[row], to: &out)
        case .varchar, .jsonb, .unknown: values(StringView.self)[row].withBytes { out.append(contentsOf: $0) }
        case .bytea:
            TextOutput.append("\\x", to: &out)
            values(StringView.self)[row].withBytes { TextOutput.appendHex($0, to: &out) }
        case .date: TextOutput.appendDate(values(Int32.self)[row], to: &out)
        case .time: TextOutput.appendTime(values(Int64.self)[row], to: &out)
        case .timestamp: TextOutput.appendTimestamp(values(Int64.self)[row], to: &out)
        case .timestamptz: TextOutput.appendTimestamptz(values(Int64.self)[row], to: &out)
        case .interval: TextOutput.append(values(Interval.self)[row], to: &out)
        }
    }

    /// The text form of a row, or nil when it is missing: for tests and messages.
    package func text(_ row: Int) -> String? {
        if isNull(row) { return nil }
        var out: [UInt8] = []
        appendText(row: row, to: &out)
        return String(decoding: out, as: UTF8.self)
    }
}
