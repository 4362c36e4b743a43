import MillColumnar

/// Timestamps of old: nanoseconds of the day in eight bytes, then the Julian day in four.
enum Int96 {
    static let byteCount = 12
    private static let julianDayOfEpoch: Int64 = 2_440_588

    static func view(micros: Int64) -> StringView {
        let day = micros.flooredQuotient(TimeUnits.microsPerDay)
        let nanos = UInt64(bitPattern: (micros &- day &* TimeUnits.microsPerDay) &* 1000)
        let julian = UInt64(UInt32(truncatingIfNeeded: day &+ julianDayOfEpoch))
        // Byte 4 of a view is the first of its value.
        return StringView(low: UInt64(byteCount) | nanos << 32, high: nanos >> 32 | julian << 32)
    }

    /// Microseconds since 1970, rounded down; nil when they are beyond what a timestamp holds.
    static func micros(_ view: StringView) -> Int64? {
        let nanos = Int64(bitPattern: view.low >> 32 | view.high << 32)
        let day = Int64(Int32(truncatingIfNeeded: view.high >> 32)) - julianDayOfEpoch
        return Int64(exactly: Int128(day) * Int128(TimeUnits.microsPerDay) + Int128(nanos.flooredQuotient(1000)))
    }
}
