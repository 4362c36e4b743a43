/// Months, days and microseconds kept apart, as PostgreSQL does: a month has no fixed number of days.
package struct Interval: Hashable, Sendable, Codable, BitwiseCopyable {
    package var months: Int32
    package var days: Int32
    package var micros: Int64

    package init(months: Int32 = 0, days: Int32 = 0, micros: Int64 = 0) {
        self.months = months
        self.days = days
        self.micros = micros
    }

    /// What comparison uses: a month counts 30 days, a day 24 hours.
    package var comparable: Int128 {
        (Int128(months) * 30 + Int128(days)) * 86_400_000_000 + Int128(micros)
    }
}
