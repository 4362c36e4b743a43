import MillBase
import MillColumnar

/// Calendar arithmetic on single values: what PostgreSQL's timestamp.c does, in UTC.
enum DateTime {
    static let timestampRange = SQLError(.datetimeFieldOverflow, "timestamp out of range")
    static let dateRange = SQLError(.datetimeFieldOverflow, "date out of range")
    static let intervalRange = SQLError(.datetimeFieldOverflow, "interval out of range")

    @inline(__always) static func isFinite(_ micros: Int64) -> Bool { micros != .max && micros != .min }

    /// Microseconds since midnight.
    @inline(__always) static func clock(_ micros: Int64) -> Int64 {
        // By the remainder: the midnight before the first representable moment is not representable.
        let rest = micros % TimeUnits.microsPerDay
        return rest < 0 ? rest + TimeUnits.microsPerDay : rest
    }

    static func timestamp(_ days: Int32) throws(SQLError) -> Int64 {
        if days == .max { return .max }
        if days == .min { return .min }
        let (micros, overflow) = Int64(days).multipliedReportingOverflow(by: TimeUnits.microsPerDay)
        guard !overflow, TimeUnits.isTimestamp(micros) else { throw SQLError(.datetimeFieldOverflow, "date out of range for timestamp") }
        return micros
    }

    static func date(_ days: Int64) throws(SQLError) -> Int32 {
        guard days >= Int64(TimeUnits.dayMin), days <= Int64(TimeUnits.dayMax) else { throw dateRange }
        return Int32(truncatingIfNeeded: days)
    }

    /// Months first, then days, then time; a day that a month does not have becomes its last.
    static func add(_ micros: Int64, _ span: Interval) throws(SQLError) -> Int64 {
        guard isFinite(micros) else { return micros }
        var total = Int128(micros)
        if span.months != 0 {
            let day = micros.flooredQuotient(TimeUnits.microsPerDay)
            let moved = CivilDate(days: Int(day)).adding(months: Int(span.months))
            guard abs(moved.year) < 400_000 else { throw timestampRange }
            total = Int128(moved.days) * Int128(TimeUnits.microsPerDay) + Int128(micros - day * TimeUnits.microsPerDay)
        }
        total += Int128(span.days) * Int128(TimeUnits.microsPerDay) + Int128(span.micros)
        guard let result = Int64(exactly: total), TimeUnits.isTimestamp(result) else { throw timestampRange }
        return result
    }

    static func negated(_ span: Interval) throws(SQLError) -> Interval {
        guard span.months != .min, span.days != .min, span.micros != .min else { throw intervalRange }
        return Interval(months: -span.months, days: -span.days, micros: -span.micros)
    }

    static func add(_ a: Interval, _ b: Interval) throws(SQLError) -> Interval {
        let months = a.months.addingReportingOverflow(b.months)
        let days = a.days.addingReportingOverflow(b.days)
        let micros = a.micros.addingReportingOverflow(b.micros)
        guard !months.overflow, !days.overflow, !micros.overflow else { throw intervalRange }
        return Interval(months: months.partialValue, days: days.partialValue, micros: micros.partialValue)
    }

    /// Whole days and the rest.
    static func difference(_ a: Int64, _ b: Int64) throws(SQLError) -> Interval {
        guard isFinite(a), isFinite(b) else { throw SQLError(.datetimeFieldOverflow, "cannot subtract infinite timestamps") }
        let (micros, overflow) = a.subtractingReportingOverflow(b)
        guard !overflow else { throw intervalRange }
        return Interval(days: Int32(truncatingIfNeeded: micros / TimeUnits.microsPerDay), micros: micros % TimeUnits.microsPerDay)
    }

    /// Fractions cascade: of a month to days (30 to a month), of a day to time.
    static func scale(_ span: Interval, _ factor: Double, dividing: Bool) throws(SQLError) -> Interval {
        if dividing, factor == 0 { throw Decimal.divisionByZero }
        func apply(_ value: Double) -> Double { dividing ? value / factor : value * factor }
        /// Rounded to microseconds of a day, against the noise of the last bits.
        func settled(_ value: Double) -> Double { (value * 1_000_000).rounded(.toNearestOrEven) / 1_000_000 }
        let months = apply(Double(span.months))
        let days = apply(Double(span.days))
        guard months.magnitude < 2_147_483_648, days.magnitude < 2_147_483_648 else { throw intervalRange }
        let wholeMonths = months.rounded(.towardZero)
        var wholeDays = days.rounded(.towardZero)
        let monthDays = settled((months - wholeMonths) * 30)
        var seconds = settled((days - wholeDays + monthDays - monthDays.rounded(.towardZero)) * 86_400)
        wholeDays += monthDays.rounded(.towardZero)
        if seconds.magnitude >= 86_400 {
            wholeDays += (seconds / 86_400).rounded(.towardZero)
            seconds -= (seconds / 86_400).rounded(.towardZero) * 86_400
        }
        let micros = (apply(Double(span.micros)) + seconds * 1_000_000).rounded(.toNearestOrEven)
        guard wholeDays.magnitude < 2_147_483_648, micros.magnitude < 9.2e18 else { throw intervalRange }
        return Interval(months: Int32(wholeMonths), days: Int32(wholeDays), micros: Int64(micros))
    }

    /// Carries full days out of the time and full months out of the days, and gives all parts one sign.
    static func justified(_ span: Interval, hours: Bool, days: Bool) throws(SQLError) -> Interval {
        var months = Int64(span.months)
        var dayCount = Int64(span.days)
        var micros = span.micros
        if hours {
            dayCount += micros / TimeUnits.microsPerDay
            micros %= TimeUnits.microsPerDay
        }
        if days {
            months += dayCount / 30
            dayCount %= 30
        }
        if hours, days {
            if months > 0, dayCount < 0 || (dayCount == 0 && micros < 0) { dayCount += 30; months -= 1 } else if months < 0,
                dayCount > 0 || (dayCount == 0 && micros > 0) { dayCount -= 30; months += 1 }
        } else if days {
            if months > 0, dayCount < 0 { dayCount += 30; months -= 1 } else if months < 0, dayCount > 0 { dayCount -= 30; months += 1 }
        }
        if hours {
            if dayCount > 0, micros < 0 { micros += TimeUnits.microsPerDay; dayCount -= 1 } else if dayCount < 0, micros > 0 {
                micros -= TimeUnits.microsPerDay
                dayCount += 1
            }
        }
        guard let m = Int32(exactly: months), let d = Int32(exactly: dayCount) else { throw intervalRange }
        return Interval(months: m, days: d, micros: micros)
    }

    /// The difference in years, months and days as a person counts them.
    static func age(_ a: Int64, _ b: Int64) throws(SQLError) -> Interval {
        guard isFinite(a), isFinite(b) else { throw timestampRange }
        if a < b { return try negated(age(b, a)) }
        let dayA = a.flooredQuotient(TimeUnits.microsPerDay)
        let dayB = b.flooredQuotient(TimeUnits.microsPerDay)
        let from = CivilDate(days: Int(dayB))
        let to = CivilDate(days: Int(dayA))
        var micros = clock(a) - clock(b)
        var days = to.day - from.day
        var months = (to.year - from.year) * 12 + to.month - from.month
        if micros < 0 {
            micros += TimeUnits.microsPerDay
            days -= 1
        }
        if days < 0 {
            // PostgreSQL borrows the length of the earlier date's month.
            days += CivilDate.daysIn(month: from.month, of: from.year)
            months -= 1
        }
        return Interval(months: Int32(truncatingIfNeeded: months), days: Int32(truncatingIfNeeded: days), micros: micros)
    }

    /// The start of the window of `size` that holds `micros`; windows are counted from 1970 plus `offset`.
    static func windowStart(_ micros: Int64, size: Int64, offset: Int64) throws(SQLError) -> Int64 {
        guard isFinite(micros) else { return micros }
        let (shifted, overflow) = micros.subtractingReportingOverflow(offset)
        guard !overflow else { throw timestampRange }
        let (start, below) = shifted.flooredQuotient(size).multipliedReportingOverflow(by: size)
        let (result, over) = start.addingReportingOverflow(offset)
        guard !below, !over, TimeUnits.isTimestamp(result) else { throw timestampRange }
        return result
    }

    /// An interval that stands for a fixed number of microseconds.
    /// - Throws: 22023 for months, which have no fixed length, and for a size that is not positive.
    static func fixedMicros(_ span: Interval, positive: Bool) throws(SQLError) -> Int64 {
        guard span.months == 0 else {
            throw SQLError(.invalidParameterValue, "a window cannot be measured in months or years", hint: "Use days, hours, minutes or seconds.")
        }
        let total = Int128(span.days) * Int128(TimeUnits.microsPerDay) + Int128(span.micros)
        guard let micros = Int64(exactly: total) else { throw intervalRange }
        guard !positive || micros > 0 else { throw SQLError(.invalidParameterValue, "a window must have a positive size") }
        return micros
    }

    /// Microseconds east of Greenwich of `UTC`, `+02`, `-05:30`.
    /// - Throws: 22023 for any other zone.
    static func zoneOffset(_ name: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Int64 {
        let text = String(decoding: name, as: UTF8.self)
        let upper = text.uppercased()
        if ["UTC", "GMT", "Z", "ZULU", "UCT", "ETC/UTC", "ETC/GMT"].contains(upper) { return 0 }
        let digits = upper.hasPrefix("UTC") || upper.hasPrefix("GMT") ? upper.dropFirst(3) : upper[...]
        let parts = digits.dropFirst().split(separator: ":", omittingEmptySubsequences: false)
        if let sign = digits.first, sign == "+" || sign == "-", (1...3).contains(parts.count) {
            let numbers = parts.compactMap { Int64($0) }
            if numbers.count == parts.count, numbers[0] <= 15, numbers.allSatisfy({ $0 >= 0 && $0 < 60 }) {
                let padded = numbers + [0, 0]
                let seconds = (padded[0] * 60 + padded[1]) * 60 + padded[2]
                // POSIX: what is written with a plus lies west.
                return (sign == "+" ? -seconds : seconds) * TimeUnits.microsPerSecond
            }
        }
        throw SQLError(.invalidParameterValue, "time zone \"\(text)\" not recognized", hint: "Use UTC or a numeric offset such as -02:00.")
    }
}
