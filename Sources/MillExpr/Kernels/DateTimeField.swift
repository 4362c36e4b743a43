import MillBase
import MillColumnar

/// The fields of EXTRACT, DATE_PART and DATE_TRUNC.
enum DateTimeField: String {
    case microseconds, milliseconds, second, minute, hour, day, week, month, quarter, year, decade, century, millennium
    case epoch, dow, isodow, doy, isoyear, timezone, timezone_hour, timezone_minute, julian

    /// By any of PostgreSQL's spellings.
    init?(_ name: UnsafeBufferPointer<UInt8>) {
        let word = String(decoding: name, as: UTF8.self).lowercased()
        if let exact = Self(rawValue: word) {
            self = exact
            return
        }
        switch word {
        case "us", "usec", "usecs", "microsecond", "usecond", "useconds": self = .microseconds
        case "ms", "msec", "msecs", "millisecond", "msecond", "mseconds": self = .milliseconds
        case "s", "sec", "secs", "seconds": self = .second
        case "m", "min", "mins", "minutes": self = .minute
        case "h", "hr", "hrs", "hours": self = .hour
        case "d", "days": self = .day
        case "w", "weeks": self = .week
        case "mon", "mons", "months": self = .month
        case "qtr", "quarters": self = .quarter
        case "y", "yr", "yrs", "years": self = .year
        case "decades", "dec", "decs": self = .decade
        case "c", "cent", "centuries": self = .century
        case "mil", "mils", "millennia", "millenniums": self = .millennium
        default: return nil
        }
    }

    static func unknown(_ name: UnsafeBufferPointer<UInt8>, _ type: SQLType) -> SQLError {
        SQLError(.invalidParameterValue, "unit \"\(String(decoding: name, as: UTF8.self).lowercased())\" not recognized for type \(type.name)")
    }

    private func unrecognized(_ type: SQLType) -> SQLError { SQLError(.invalidParameterValue, "unit \"\(rawValue)\" not recognized for type \(type.name)") }

    private func unsupported(_ type: SQLType) -> SQLError { SQLError(.featureNotSupported, "unit \"\(rawValue)\" not supported for type \(type.name)") }

    private static func micros(_ value: Int64, scale: Int32) -> Decimal { Decimal(unscaled: Int128(value), scale: scale) }

    /// The field of a time of day; nil when it is not one.
    private func ofClock(_ clock: Int64) -> Decimal? {
        let inMinute = clock % TimeUnits.microsPerMinute
        switch self {
        case .microseconds: return Decimal(inMinute)
        case .milliseconds: return Self.micros(inMinute, scale: 3)
        case .second: return Self.micros(inMinute, scale: 6)
        case .minute: return Decimal(clock / TimeUnits.microsPerMinute % 60)
        case .hour: return Decimal(clock / TimeUnits.microsPerHour)
        default: return nil
        }
    }

    private func ofDate(_ date: CivilDate) -> Int? {
        // There is no year 0: 1 BC is -1 where years are named, 0 where they are counted.
        let named = date.year > 0 ? date.year : date.year - 1
        switch self {
        case .day: return date.day
        case .month: return date.month
        case .quarter: return (date.month + 2) / 3
        case .year: return named
        case .decade: return date.year.flooredQuotient(10)
        case .century: return date.year > 0 ? (date.year + 99) / 100 : -((99 - (date.year - 1)) / 100)
        case .millennium: return date.year > 0 ? (date.year + 999) / 1000 : -((999 - (date.year - 1)) / 1000)
        case .week: return date.isoWeek.week
        case .isoyear: return date.isoWeek.year > 0 ? date.isoWeek.year : date.isoWeek.year - 1
        case .dow: return date.weekday
        case .isodow: return (date.weekday + 6) % 7 + 1
        case .doy: return date.dayOfYear
        default: return nil
        }
    }

    /// Fields that grow with time are infinite for an infinite time, the others are NULL.
    private func ofInfinity(negative: Bool) -> Decimal? {
        switch self {
        case .year, .decade, .century, .millennium, .epoch, .isoyear, .julian: Decimal.infinity(negative: negative)
        default: nil
        }
    }

    func extract(fromTimestamp micros: Int64, _ type: SQLType) throws(SQLError) -> Decimal? {
        if !DateTime.isFinite(micros) { return ofInfinity(negative: micros < 0) }
        if self == .epoch { return Self.micros(micros, scale: 6) }
        let day = micros.flooredQuotient(TimeUnits.microsPerDay)
        let clock = micros - day * TimeUnits.microsPerDay
        if let value = ofClock(clock) { return value }
        if let value = ofDate(CivilDate(days: Int(day))) { return Decimal(Int64(value)) }
        if self == .julian {
            if clock == 0 { return Decimal(day + 2_440_588) }
            return try Decimal.adding(Decimal(day + 2_440_588), Decimal.dividing(Decimal(clock), Decimal(TimeUnits.microsPerDay)))
        }
        guard type == .timestamptz else { throw unsupported(type) }
        return .zero
    }

    func extract(fromDate days: Int32) throws(SQLError) -> Decimal? {
        let isInfinite = days == .max || days == .min
        if self == .epoch { return isInfinite ? ofInfinity(negative: days < 0) : Decimal(Int64(days) * 86_400) }
        if self == .julian { return isInfinite ? ofInfinity(negative: days < 0) : Decimal(Int64(days) + 2_440_588) }
        guard let value = ofDate(CivilDate(days: isInfinite ? 0 : Int(days))) else { throw unsupported(.date) }
        return isInfinite ? ofInfinity(negative: days < 0) : Decimal(Int64(value))
    }

    func extract(fromTime micros: Int64) throws(SQLError) -> Decimal? {
        if self == .epoch { return Self.micros(micros, scale: 6) }
        guard let value = ofClock(micros) else { throw unsupported(.time) }
        return value
    }

    func extract(fromInterval span: Interval) throws(SQLError) -> Decimal? {
        let years = Int64(span.months / 12)
        switch self {
        case .epoch:
            // A year counts 365.25 days, a month 30.
            let seconds = Int128(years) * 31_557_600 + Int128(span.months % 12) * 2_592_000 + Int128(span.days) * 86_400
            return Decimal(unscaled: seconds * 1_000_000 + Int128(span.micros), scale: 6)
        case .day: return Decimal(Int64(span.days))
        case .month: return Decimal(Int64(span.months % 12))
        case .quarter: return Decimal(Int64(span.months % 12 / 3 + 1))
        case .year: return Decimal(years)
        case .decade: return Decimal(years / 10)
        case .century: return Decimal(years / 100)
        case .millennium: return Decimal(years / 1000)
        default:
            guard let value = ofClock(span.micros) else { throw unsupported(.interval) }
            return value
        }
    }

    func truncate(timestamp micros: Int64, _ type: SQLType) throws(SQLError) -> Int64 {
        guard DateTime.isFinite(micros) else { return micros }
        func floor(_ unit: Int64) -> Int64 { micros.flooredQuotient(unit) * unit }
        let unit: Int64
        switch self {
        case .microseconds: return micros
        case .milliseconds: unit = 1000
        case .second: unit = TimeUnits.microsPerSecond
        case .minute: unit = TimeUnits.microsPerMinute
        case .hour: unit = TimeUnits.microsPerHour
        case .day: unit = TimeUnits.microsPerDay
        default: unit = 0
        }
        if unit > 0 { return floor(unit) }
        var date = CivilDate(days: Int(micros.flooredQuotient(TimeUnits.microsPerDay)))
        date.day = 1
        switch self {
        case .week:
            let day = Int(micros.flooredQuotient(TimeUnits.microsPerDay))
            date = CivilDate(days: day - (CivilDate(days: day).weekday + 6) % 7)
        case .month: break
        case .quarter: date.month = (date.month - 1) / 3 * 3 + 1
        case .year: date.month = 1
        case .decade: (date.month, date.year) = (1, date.year.flooredQuotient(10) * 10)
        case .century: (date.month, date.year) = (1, (date.year - 1).flooredQuotient(100) * 100 + 1)
        case .millennium: (date.month, date.year) = (1, (date.year - 1).flooredQuotient(1000) * 1000 + 1)
        case .dow, .isodow, .doy, .epoch: throw unrecognized(type)
        default: throw unsupported(type)
        }
        let result = Int64(date.days) * TimeUnits.microsPerDay
        guard TimeUnits.isTimestamp(result) else { throw DateTime.timestampRange }
        return result
    }

    func truncate(_ span: Interval) throws(SQLError) -> Interval {
        func months(_ count: Int32) -> Interval { Interval(months: span.months / count * count) }
        func micros(_ unit: Int64) -> Interval { Interval(months: span.months, days: span.days, micros: span.micros / unit * unit) }
        switch self {
        case .microseconds: return span
        case .milliseconds: return micros(1000)
        case .second: return micros(TimeUnits.microsPerSecond)
        case .minute: return micros(TimeUnits.microsPerMinute)
        case .hour: return micros(TimeUnits.microsPerHour)
        case .day: return Interval(months: span.months, days: span.days)
        case .month: return months(1)
        case .quarter: return months(3)
        case .year: return months(12)
        case .decade: return months(120)
        case .century: return months(1200)
        case .millennium: return months(12_000)
        case .dow, .isodow, .doy, .epoch: throw unrecognized(.interval)
        default: throw unsupported(.interval)
        }
    }
}
