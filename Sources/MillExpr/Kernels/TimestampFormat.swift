import MillBase
import MillColumnar

/// A to_char pattern for timestamps, taken apart once.
struct TimestampFormat {
    private enum Piece {
        case text([UInt8])
        case number(Number, fill: Bool, ordinal: Bool)
        case halfDay(morning: [UInt8], afternoon: [UInt8])
        /// Its spelling for each of the twelve months.
        case month([[UInt8]])
        /// Its spelling for each day, from Sunday on.
        case weekday([[UInt8]])
        case groupedYear
    }

    /// What is written in digits; the raw value is its name in a pattern.
    private enum Number: String, CaseIterable {
        case hour24 = "HH24", hour12 = "HH12", hour = "HH", minute = "MI", second = "SS", secondOfDay = "SSSS"
        case millisecond = "MS", fraction3 = "FF3", microsecond = "US", fraction6 = "FF6"
        case year4 = "YYYY", year3 = "YYY", year2 = "YY", year1 = "Y", isoYear = "IYYY", century = "CC"
        case quarter = "Q", month = "MM", isoWeek = "IW", weekOfYear = "WW", weekOfMonth = "W"
        case dayOfMonth = "DD", dayOfYear = "DDD", isoDayOfYear = "IDDD", dayOfWeek = "D", isoDayOfWeek = "ID", julianDay = "J"

        /// Whether it depends on more than the date.
        var isOfClock: Bool {
            switch self {
            case .hour24, .hour12, .hour, .minute, .second, .secondOfDay, .millisecond, .fraction3, .microsecond, .fraction6: true
            default: false
            }
        }

        /// Digits that are filled up with zeros.
        var digits: Int {
            switch self {
            case .secondOfDay, .year1, .quarter, .weekOfMonth, .dayOfWeek, .isoDayOfWeek, .julianDay: 1
            case .millisecond, .fraction3, .year3, .dayOfYear, .isoDayOfYear: 3
            case .year4, .isoYear: 4
            case .microsecond, .fraction6: 6
            default: 2
            }
        }
    }

    private static let months = [
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
    ]
    private static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

    /// All that a pattern may name, longest first.
    private static let names = (Number.allCases.map(\.rawValue) + [
        "MONTH", "Month", "month", "MON", "Mon", "mon", "DAY", "Day", "day", "DY", "Dy", "dy", "Y,YYY",
        "A.M.", "P.M.", "a.m.", "p.m.", "AM", "PM", "am", "pm", "TZH", "TZM", "TZ", "tz", "OF",
    ]).sorted { $0.utf8.count > $1.utf8.count }.map { (name: $0, bytes: Array($0.utf8)) }

    private var pieces: [Piece] = []
    private var isOfClock = false
    /// What a pattern of the date alone gave last: rows that follow each other are mostly of one day.
    private var lastDay: (day: Int64, text: [UInt8])?

    init(_ pattern: String, isZoned: Bool) {
        var rest = Array(pattern.utf8)[...]
        var plain: [UInt8] = []
        var fill = true
        while let first = rest.first {
            if first == UInt8(ascii: "\"") {
                let quoted = rest.dropFirst().prefix { $0 != UInt8(ascii: "\"") }
                plain += quoted
                rest = rest.dropFirst(quoted.count + 2)
                continue
            }
            if rest.starts(with: "FM".utf8) {
                fill = false
                rest = rest.dropFirst(2)
                continue
            }
            // Numeric and zone patterns are known in lower case too.
            let upper = rest.prefix(6).map { (97...122).contains($0) ? $0 - 32 : $0 }
            let exact = Self.names.first { rest.starts(with: $0.bytes) }
            guard let (name, bytes) = exact ?? Self.names.first(where: { upper.starts(with: $0.bytes) }) else {
                plain.append(first)
                rest = rest.dropFirst()
                continue
            }
            rest = rest.dropFirst(bytes.count)
            let ordinal = rest.starts(with: "th".utf8) || rest.starts(with: "TH".utf8)
            if ordinal { rest = rest.dropFirst(2) }
            if !plain.isEmpty { pieces.append(.text(plain)) }
            plain = []
            pieces.append(Self.piece(name, fill: fill, ordinal: ordinal, isZoned: isZoned))
            fill = true
        }
        if !plain.isEmpty { pieces.append(.text(plain)) }
        isOfClock = pieces.contains {
            switch $0 {
            case .number(let number, _, _): number.isOfClock
            case .halfDay: true
            default: false
            }
        }
    }

    private static func piece(_ name: String, fill: Bool, ordinal: Bool, isZoned: Bool) -> Piece {
        if let number = Number(rawValue: name) { return .number(number, fill: fill, ordinal: ordinal) }
        switch name {
        case "AM", "PM": return .halfDay(morning: Array("AM".utf8), afternoon: Array("PM".utf8))
        case "am", "pm": return .halfDay(morning: Array("am".utf8), afternoon: Array("pm".utf8))
        case "A.M.", "P.M.": return .halfDay(morning: Array("A.M.".utf8), afternoon: Array("P.M.".utf8))
        case "a.m.", "p.m.": return .halfDay(morning: Array("a.m.".utf8), afternoon: Array("p.m.".utf8))
        case "TZ": return .text(Array((isZoned ? "UTC" : "").utf8))
        case "tz": return .text(Array((isZoned ? "utc" : "").utf8))
        case "OF", "TZH": return .text(Array((isZoned ? "+00" : "").utf8))
        case "TZM": return .text(Array((isZoned ? "00" : "").utf8))
        case "Y,YYY": return .groupedYear
        case "MONTH", "Month", "month", "MON", "Mon", "mon": return .month(words(months, as: name, isShort: name.utf8.count == 3, fill: fill))
        default: return .weekday(words(weekdays, as: name, isShort: name.utf8.count == 2, fill: fill))
        }
    }

    /// The words in the case of `name`; long ones filled up with blanks to the longest.
    private static func words(_ words: [String], as name: String, isShort: Bool, fill: Bool) -> [[UInt8]] {
        words.map { long in
            var word = isShort ? String(long.prefix(3)) : long
            if name == name.uppercased() { word = word.uppercased() } else if name == name.lowercased() { word = word.lowercased() }
            return Array(word.utf8) + repeatElement(UInt8(ascii: " "), count: fill && !isShort ? 9 - word.utf8.count : 0)
        }
    }

    mutating func append(_ micros: Int64, to out: inout [UInt8]) {
        let day = micros.flooredQuotient(TimeUnits.microsPerDay)
        if let lastDay, lastDay.day == day {
            out += lastDay.text
            return
        }
        let start = out.count
        write(CivilDate(days: Int(day)), clock: micros - day * TimeUnits.microsPerDay, to: &out)
        if !isOfClock { lastDay = (day, Array(out[start...])) }
    }

    private func write(_ date: CivilDate, clock: Int64, to out: inout [UInt8]) {
        for piece in pieces {
            switch piece {
            case .text(let text): out += text
            case .number(let number, let fill, let ordinal):
                append(Self.value(number, date, clock), digits: fill ? number.digits : 1, ordinal: ordinal, to: &out)
            case .halfDay(let morning, let afternoon): out += clock < 12 * TimeUnits.microsPerHour ? morning : afternoon
            case .month(let words): out += words[date.month - 1]
            case .weekday(let words): out += words[date.weekday]
            case .groupedYear:
                TextOutput.append(UInt64(date.year.magnitude) / 1000, minDigits: 1, to: &out)
                out.append(UInt8(ascii: ","))
                TextOutput.append(UInt64(date.year.magnitude) % 1000, minDigits: 3, to: &out)
            }
        }
    }

    private func append(_ value: Int64, digits: Int, ordinal: Bool, to out: inout [UInt8]) {
        if value < 0 { out.append(UInt8(ascii: "-")) }
        TextOutput.append(value.magnitude, minDigits: digits, to: &out)
        guard ordinal else { return }
        let last = value.magnitude % 10
        let isTeen = value.magnitude / 10 % 10 == 1
        out += (isTeen ? "th" : last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th").utf8
    }

    private static func value(_ number: Number, _ date: CivilDate, _ clock: Int64) -> Int64 {
        let year = Int64(date.year > 0 ? date.year : 1 - date.year)
        return switch number {
        case .hour24: clock / TimeUnits.microsPerHour
        case .hour12, .hour: (clock / TimeUnits.microsPerHour + 11) % 12 + 1
        case .minute: clock / TimeUnits.microsPerMinute % 60
        case .second: clock / TimeUnits.microsPerSecond % 60
        case .secondOfDay: clock / TimeUnits.microsPerSecond
        case .millisecond, .fraction3: clock % TimeUnits.microsPerSecond / 1000
        case .microsecond, .fraction6: clock % TimeUnits.microsPerSecond
        case .year4: year
        case .year3: year % 1000
        case .year2: year % 100
        case .year1: year % 10
        case .isoYear: Int64(date.isoWeek.year)
        case .century: Int64((date.year + 99) / 100)
        case .quarter: Int64((date.month + 2) / 3)
        case .month: Int64(date.month)
        case .isoWeek: Int64(date.isoWeek.week)
        case .weekOfYear: Int64((date.dayOfYear - 1) / 7 + 1)
        case .weekOfMonth: Int64((date.day - 1) / 7 + 1)
        case .dayOfMonth: Int64(date.day)
        case .dayOfYear: Int64(date.dayOfYear)
        case .isoDayOfYear: Int64((date.isoWeek.week - 1) * 7 + (date.weekday + 6) % 7 + 1)
        case .dayOfWeek: Int64(date.weekday + 1)
        case .isoDayOfWeek: Int64((date.weekday + 6) % 7 + 1)
        case .julianDay: Int64(date.days + 2_440_588)
        }
    }
}
