/// A day of the proleptic Gregorian calendar, and the arithmetic between it and a day count.
///
/// Years are astronomical: 0 is 1 BC. The conversions count in 400-year eras that begin on 1 March, so that the leap day
/// is the last of its year (Hinnant, "chrono-compatible low-level date algorithms").
package struct CivilDate: Hashable, Sendable {
    package var year: Int
    /// 1 to 12.
    package var month: Int
    /// 1 to 31.
    package var day: Int

    package init(year: Int, month: Int, day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// The date `days` after 1970-01-01.
    package init(days: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// Days since 1970-01-01, negative before. The year must be within ten million, which every parser checks.
    package var days: Int {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    package static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    package static func daysIn(month: Int, of year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Whether there is such a day.
    package var isValid: Bool { (1...12).contains(month) && day >= 1 && day <= Self.daysIn(month: month, of: year) }

    /// 0 is Sunday.
    package var weekday: Int { ((days + 4) % 7 + 7) % 7 }

    /// 1 is 1 January.
    package var dayOfYear: Int { days - CivilDate(year: year, month: 1, day: 1).days + 1 }

    /// The ISO 8601 year and week: week 1 has the year's first Thursday, weeks begin on Monday.
    package var isoWeek: (year: Int, week: Int) {
        let thursday = CivilDate(days: days - (weekday + 6) % 7 + 3)
        return (thursday.year, (thursday.dayOfYear - 1) / 7 + 1)
    }

    /// The date some months later; a day that the month does not have becomes its last.
    package func adding(months: Int) -> CivilDate {
        let total = year * 12 + (month - 1) + months
        let newYear = total.flooredQuotient(12)
        let newMonth = total - newYear * 12 + 1
        return CivilDate(year: newYear, month: newMonth, day: min(day, Self.daysIn(month: newMonth, of: newYear)))
    }
}

/// The units of the time types and what values they hold.
package enum TimeUnits {
    package static let microsPerSecond: Int64 = 1_000_000
    package static let microsPerMinute: Int64 = 60_000_000
    package static let microsPerHour: Int64 = 3_600_000_000
    package static let microsPerDay: Int64 = 86_400_000_000
    /// 4714-11-24 BC, the first day of the Julian count, where PostgreSQL's dates begin.
    package static let dayMin = -2_440_588
    /// 5874897-12-31.
    package static let dayMax = 2_145_042_905
    package static let timestampMin = Int64(dayMin) * microsPerDay
    /// The last whole year that microseconds since 1970 hold is 294246.
    package static let timestampEnd: Int64 = 9_223_371_331_200_000_000

    package static func isTimestamp(_ micros: Int64) -> Bool { micros >= timestampMin && micros < timestampEnd }
}

extension FixedWidthInteger {
    /// Division that rounds down, unlike `/`, which rounds to zero. The divisor must be positive.
    @inlinable @inline(__always) package func flooredQuotient(_ divisor: Self) -> Self {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
