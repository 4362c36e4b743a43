/// The fast path from ISO timestamps to microseconds: `2026-01-31 12:34:56[.fraction][Z|+00:00]`, with `T` or a space.
///
/// Used where millions of timestamps of one stream are read, most of them of the same day: the clock's digits are checked
/// eight bytes at a time, and the ten bytes of the last date are remembered with their day. Anything else gives nil, and
/// the caller takes `TextInput`. A value type: each reader keeps its own.
package struct TimestampParser {
    private var lastLow: UInt64 = 0
    private var lastHigh: UInt16 = 0
    private var lastDayMicros: Int64 = 0

    package init() {}

    /// Microseconds since 1970 UTC, or nil when the text is not of exactly this form or has another offset than zero.
    /// Without an offset the clock's time is taken as it stands.
    @inline(__always) package mutating func parse(_ text: UnsafeBufferPointer<UInt8>) -> Int64? {
        guard text.count >= 19, let base = text.baseAddress else { return nil }
        let bytes = UnsafeRawPointer(base)
        let low = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
        let high = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt16.self))
        if low != lastLow || high != lastHigh {
            guard let days = Self.days(base) else { return nil }
            lastLow = low
            lastHigh = high
            lastDayMicros = Int64(days) * TimeUnits.microsPerDay
        }
        let separator = base[10]
        guard separator == UInt8(ascii: "T") || separator == UInt8(ascii: " ") else { return nil }
        guard let clock = Self.clock(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 11, as: UInt64.self))) else { return nil }
        if text.count == 19 { return lastDayMicros &+ clock }
        guard let rest = Self.tail(base, text.count) else { return nil }
        return lastDayMicros &+ clock &+ rest
    }

    private static func days(_ base: UnsafePointer<UInt8>) -> Int? {
        guard base[4] == UInt8(ascii: "-"), base[7] == UInt8(ascii: "-") else { return nil }
        var digits: UInt8 = 0
        for index in [0, 1, 2, 3, 5, 6, 8, 9] { digits |= base[index] &- 48 > 9 ? 1 : 0 }
        guard digits == 0 else { return nil }
        func value(_ index: Int) -> Int { Int(base[index] &- 48) }
        let date = CivilDate(
            year: value(0) * 1000 + value(1) * 100 + value(2) * 10 + value(3), month: value(5) * 10 + value(6), day: value(8) * 10 + value(9))
        return date.year > 0 && date.isValid ? date.days : nil
    }

    /// `hh:mm:ss` in one word: the colons are compared, the digits are checked by adding and looking at the high nibbles.
    @inline(__always) private static func clock(_ word: UInt64) -> Int64? {
        let colons: UInt64 = 0x0000_3A00_003A_0000
        let colonMask: UInt64 = 0x0000_FF00_00FF_0000
        guard word & colonMask == colons else { return nil }
        let digits = (word & ~colonMask) ^ 0x3030_0030_3000_3030
        // A digit is 0 to 9 now: neither it nor it plus 6 reaches the high nibble.
        guard (digits | digits &+ 0x0606_0006_0600_0606) & 0xF0F0_00F0_F000_F0F0 == 0 else { return nil }
        let hours = Int64(digits & 15) * 10 + Int64(digits &>> 8 & 15)
        let minutes = Int64(digits &>> 24 & 15) * 10 + Int64(digits &>> 32 & 15)
        let seconds = Int64(digits &>> 48 & 15) * 10 + Int64(digits &>> 56 & 15)
        guard hours < 24, minutes < 60, seconds < 60 else { return nil }
        return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    }

    /// Microseconds of the fraction, when what follows is a fraction of at most six digits and a zero offset, or either.
    private static func tail(_ base: UnsafePointer<UInt8>, _ count: Int) -> Int64? {
        var index = 19
        var micros: Int64 = 0
        if base[index] == UInt8(ascii: ".") {
            index += 1
            var unit: Int64 = 100_000
            let first = index
            while index < count, base[index] &- 48 < 10 {
                guard unit > 0 else { return nil }
                micros += Int64(base[index] &- 48) * unit
                unit /= 10
                index += 1
            }
            guard index > first else { return nil }
        }
        if index == count { return micros }
        if base[index] == UInt8(ascii: "Z") { return index + 1 == count ? micros : nil }
        guard base[index] == UInt8(ascii: "+"), count - index == 6 || count - index == 3 else { return nil }
        for position in (index + 1)..<count where base[position] != 48 && !(position == index + 3 && base[position] == UInt8(ascii: ":")) { return nil }
        return micros
    }
}
