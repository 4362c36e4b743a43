import MillColumnar

/// From values as a file stores them to values as columns have them: a loop over a part of a page.
///
/// Dates and times that SQL does not have are refused here: what computes with them and prints them relies on their range.
enum ValueConversion: Hashable {
    /// They are the same.
    case none
    /// There are none.
    case onlyNull
    case int32To16
    case int32To64
    case unsigned32
    case unsigned64
    case floatToDouble
    case float16
    case decimal32(scale: Int32)
    case decimal64(scale: Int32)
    /// Two's complement, highest byte first.
    case decimalBytes(scale: Int32)
    case date
    /// In 32 bits; the others have 64.
    case timeMillis
    case timeMicros
    /// Rounded down: our times have no nanoseconds.
    case timeNanos
    case timestampMillis
    case timestampMicros
    case timestampNanos
    case int96
    /// The same bytes, which have to be UTF-8.
    case text
    case json
    case uuid
    case interval

    /// Converts `count` values; new bytes go to `heap`.
    func convert(_ source: UnsafeRawPointer, _ count: Int, into target: UnsafeMutableRawPointer, stride: Int, _ heap: StringHeap)
        throws(Malformed)
    {
        switch self {
        case .none: target.copyMemory(from: source, byteCount: count * stride)
        case .onlyNull: guard count == 0 else { throw .badPage("a column that is always NULL has a value") }
        case .int32To16: try checked(source, count, target) { (value: Int32) in Int16(exactly: value) }
        case .int32To64: each(source, count, target) { (value: Int32) in Int64(value) }
        case .unsigned32: each(source, count, target) { (value: UInt32) in Int64(value) }
        case .unsigned64: each(source, count, target) { (value: UInt64) in Decimal(unscaled: Int128(value), scale: 0) }
        case .floatToDouble: each(source, count, target) { (value: Float) in Double(value) }
        case .float16: each(source, count, target) { (value: StringView) in Self.float(half: UInt16(truncatingIfNeeded: value.low >> 32)) }
        case .decimal32(let scale): each(source, count, target) { (value: Int32) in Decimal(unscaled: Int128(value), scale: scale) }
        case .decimal64(let scale): each(source, count, target) { (value: Int64) in Decimal(unscaled: Int128(value), scale: scale) }
        case .decimalBytes(let scale): try checked(source, count, target) { (value: StringView) in Self.decimal(value, scale) }
        case .date: try checked(source, count, target) { (value: Int32) in Self.isDate(value) ? value : nil }
        case .timeMillis: try checked(source, count, target) { (value: Int32) in Self.time(Int64(value) &* 1000) }
        case .timeMicros: try checked(source, count, target) { (value: Int64) in Self.time(value) }
        case .timeNanos: try checked(source, count, target) { (value: Int64) in Self.time(value.flooredQuotient(1000)) }
        case .timestampMillis:
            try checked(source, count, target) { (value: Int64) -> Int64? in
                let (product, overflow) = value.multipliedReportingOverflow(by: 1000)
                return overflow ? nil : Self.timestamp(product)
            }
        case .timestampMicros: try checked(source, count, target) { (value: Int64) in Self.timestamp(value) }
        case .timestampNanos: try checked(source, count, target) { (value: Int64) in Self.timestamp(value.flooredQuotient(1000)) }
        case .int96: try checked(source, count, target) { (value: StringView) in Int96.micros(value).flatMap { Self.timestamp($0) } }
        case .text:
            let views = source.assumingMemoryBound(to: StringView.self)
            for index in 0..<count { guard UTF8Check.isValid(views[index]) else { throw .invalidUTF8 } }
            target.copyMemory(from: source, byteCount: count * stride)
        case .json: try json(source, count, target, heap)
        case .uuid: each(source, count, target) { (value: StringView) in Self.text(ofUUID: value, heap) }
        case .interval:
            each(source, count, target) { (value: StringView) in
                // Months, days and milliseconds, four bytes each from the view's fourth on.
                Interval(
                    months: Int32(truncatingIfNeeded: value.low >> 32), days: Int32(truncatingIfNeeded: value.high),
                    micros: Int64(value.high >> 32) * 1000)
            }
        }
    }

    @inline(__always)
    private func each<From: BitwiseCopyable, To: BitwiseCopyable>(
        _ source: UnsafeRawPointer, _ count: Int, _ target: UnsafeMutableRawPointer, _ one: (From) -> To
    ) {
        let (from, to) = (source.assumingMemoryBound(to: From.self), target.assumingMemoryBound(to: To.self))
        for index in 0..<count { to[index] = one(from[index]) }
    }

    @inline(__always)
    private func checked<From: BitwiseCopyable, To: BitwiseCopyable>(
        _ source: UnsafeRawPointer, _ count: Int, _ target: UnsafeMutableRawPointer, _ one: (From) -> To?
    ) throws(Malformed) {
        let (from, to) = (source.assumingMemoryBound(to: From.self), target.assumingMemoryBound(to: To.self))
        for index in 0..<count {
            guard let value = one(from[index]) else { throw .valueOutOfRange }
            to[index] = value
        }
    }

    /// The extreme numbers are the infinite dates, and timestamps.
    @inline(__always) private static func isDate(_ days: Int32) -> Bool {
        Int(days) >= TimeUnits.dayMin && Int(days) <= TimeUnits.dayMax || days == .max || days == .min
    }

    @inline(__always) private static func timestamp(_ micros: Int64) -> Int64? {
        TimeUnits.isTimestamp(micros) || micros == .max || micros == .min ? micros : nil
    }

    /// 24:00:00 is one.
    @inline(__always) private static func time(_ micros: Int64) -> Int64? {
        micros >= 0 && micros <= TimeUnits.microsPerDay ? micros : nil
    }

    private func json(_ source: UnsafeRawPointer, _ count: Int, _ target: UnsafeMutableRawPointer, _ heap: StringHeap) throws(Malformed) {
        let (from, to) = (source.assumingMemoryBound(to: StringView.self), target.assumingMemoryBound(to: StringView.self))
        var text: [UInt8] = []
        for index in 0..<count {
            text.removeAll(keepingCapacity: true)
            guard UTF8Check.isValid(from[index]) else { throw .invalidUTF8 }
            let isJSON = from[index].withBytes { bytes in
                do {
                    try JSONCanonicalizer.canonicalize(bytes, to: &text)
                    return true
                } catch { return false }
            }
            guard isJSON else { throw .invalidJSON }
            to[index] = text.withUnsafeBufferPointer { heap.view(copying: $0) }
        }
    }

    @inline(__always) private static func decimal(_ view: StringView, _ scale: Int32) -> Decimal? {
        view.withBytes { bytes in
            guard let first = bytes.first else { return nil }
            var value: Int128 = Int8(bitPattern: first) < 0 ? -1 : 0
            // Longer than 16 bytes is fine as long as the rest only repeats the sign.
            let extra = max(bytes.count - 16, 0)
            for index in 0..<extra where bytes[index] != UInt8(truncatingIfNeeded: value) { return nil }
            if extra > 0, (Int8(bitPattern: bytes[extra]) < 0) != (value < 0) { return nil }
            for index in extra..<bytes.count { value = value << 8 | Int128(bytes[index]) }
            return value < Decimal.unscaledLimit && value > -Decimal.unscaledLimit ? Decimal(unscaled: value, scale: scale) : nil
        }
    }

    private static func text(ofUUID view: StringView, _ heap: StringHeap) -> StringView {
        let digits: StaticString = "0123456789abcdef"
        let room = heap.allocate(36)
        var at = 0
        view.withBytes { bytes in
            for (index, byte) in bytes.enumerated() {
                if index == 4 || index == 6 || index == 8 || index == 10 {
                    room.storeBytes(of: UInt8(ascii: "-"), toByteOffset: at, as: UInt8.self)
                    at += 1
                }
                room.storeBytes(of: digits.utf8Start[Int(byte >> 4)], toByteOffset: at, as: UInt8.self)
                room.storeBytes(of: digits.utf8Start[Int(byte & 15)], toByteOffset: at + 1, as: UInt8.self)
                at += 2
            }
        }
        return StringView(padded: room, count: 36)
    }

    private static func float(half bits: UInt16) -> Float {
        let sign: Float = bits >> 15 == 0 ? 1 : -1
        let (exponent, fraction) = (Int(bits >> 10 & 31), Float(bits & 1023))
        switch exponent {
        case 0: return sign * fraction * 0x1p-24
        case 31: return fraction == 0 ? sign * .infinity : .nan
        default: return sign * Float(sign: .plus, exponent: exponent - 25, significand: fraction + 1024)
        }
    }
}

/// Whether bytes are UTF-8, most of them seen to be ASCII eight at a time.
enum UTF8Check {
    @inline(__always) static func isValid(_ view: StringView) -> Bool {
        if view.isInline {
            // The length's bytes have no high bit either: a short view is ASCII when no byte of it has one.
            if (view.low | view.high) & 0x8080_8080_8080_8080 == 0 { return true }
        } else {
            let bytes = UnsafeRawPointer(view.pointer)
            var bits = bytes.loadUnaligned(fromByteOffset: view.count &- 8, as: UInt64.self)
            var offset = 0
            while offset &+ 8 < view.count {
                bits |= bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                offset &+= 8
            }
            if bits & 0x8080_8080_8080_8080 == 0 { return true }
        }
        return view.withBytes { isValid($0) }
    }

    private static func isValid(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        while true {
            switch decoder.decode(&iterator) {
            case .scalarValue: continue
            case .emptyInput: return true
            case .error: return false
            }
        }
    }
}
