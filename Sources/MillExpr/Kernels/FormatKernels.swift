import MillBase
import MillColumnar

/// `to_char` of timestamps and numbers.
enum FormatKernels {
    static func make(_ name: String, _ types: [SQLType]) -> Kernel? {
        guard name == "to_char" else { return nil }
        if types[0].isNumeric {
            return { columns, count, frame in
                let input = UnsafePointer(columns[0].values(Decimal.self))
                return Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                    try NumberFormat(String(StringKernels.view(columns, 1, row))).append(input[row], to: &out)
                    return true
                }
            }
        }
        let isZoned = types[0] == .timestamptz
        return { columns, count, frame in
            let input = UnsafePointer(columns[0].values(Int64.self))
            var last: (view: StringView, format: TimestampFormat)?
            return Loops.text(columns, count, .varchar, frame) { row, out in
                guard DateTime.isFinite(input[row]) else { return false }
                let view = StringKernels.view(columns, 1, row)
                let format: TimestampFormat
                if let last, last.view == view { format = last.format } else { format = TimestampFormat(String(view), isZoned: isZoned) }
                last = (view, format)
                format.append(input[row], to: &out)
                return true
            }
        }
    }
}

/// A to_char pattern for timestamps, taken apart once.
struct TimestampFormat {
    private enum Piece {
        case text(String)
        case field(String, fill: Bool, ordinal: Bool)
    }

    private let pieces: [Piece]
    private let isZoned: Bool

    /// Longest names first.
    private static let names = [
        "HH24", "HH12", "MONTH", "Month", "month", "YYYY", "IYYY", "Y,YYY", "A.M.", "P.M.", "a.m.", "p.m.", "SSSS", "YYY", "DAY", "Day", "day", "MON", "Mon", "mon", "DDD",
        "IDDD", "TZH", "TZM", "FF3", "FF6", "HH", "MI", "SS", "MS", "US", "AM", "PM", "am", "pm", "YY", "MM", "DD", "DY", "Dy", "dy", "ID", "IW", "WW", "CC", "TZ", "tz", "OF", "Q", "D", "W",
        "Y", "J",
    ].sorted { $0.utf8.count > $1.utf8.count }.map { (name: $0, bytes: Array($0.utf8)) }

    init(_ pattern: String, isZoned: Bool) {
        self.isZoned = isZoned
        var rest = Array(pattern.utf8)[...]
        var pieces: [Piece] = []
        var plain: [UInt8] = []
        var fill = true
        func endText() {
            if !plain.isEmpty { pieces.append(.text(String(decoding: plain, as: UTF8.self))) }
            plain = []
        }
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
            if let (name, bytes) = Self.names.first(where: { rest.starts(with: $0.bytes) }) ?? Self.names.first(where: { upper.starts(with: $0.bytes) }) {
                rest = rest.dropFirst(bytes.count)
                let ordinal = rest.starts(with: "th".utf8) || rest.starts(with: "TH".utf8)
                if ordinal { rest = rest.dropFirst(2) }
                endText()
                pieces.append(.field(name, fill: fill, ordinal: ordinal))
                fill = true
            } else {
                plain.append(first)
                rest = rest.dropFirst()
            }
        }
        endText()
        self.pieces = pieces
    }

    private static let months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
    private static let days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

    func append(_ micros: Int64, to out: inout [UInt8]) {
        let day = micros.flooredQuotient(TimeUnits.microsPerDay)
        let date = CivilDate(days: Int(day))
        let clock = micros - day * TimeUnits.microsPerDay
        for piece in pieces {
            switch piece {
            case .text(let text): out += text.utf8
            case .field(let name, let fill, let ordinal):
                if let (value, digits) = number(name, date, clock) {
                    append(value, digits: fill ? digits : 1, ordinal: ordinal, to: &out)
                } else {
                    appendWord(name, date, clock, fill: fill, to: &out)
                }
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

    private func number(_ name: String, _ date: CivilDate, _ clock: Int64) -> (Int64, Int)? {
        let hour = clock / TimeUnits.microsPerHour
        let micros = clock % TimeUnits.microsPerSecond
        let year = Int64(date.year > 0 ? date.year : 1 - date.year)
        switch name {
        case "HH24": return (hour, 2)
        case "HH12", "HH": return ((hour + 11) % 12 + 1, 2)
        case "MI": return (clock / TimeUnits.microsPerMinute % 60, 2)
        case "SS": return (clock / TimeUnits.microsPerSecond % 60, 2)
        case "SSSS": return (clock / TimeUnits.microsPerSecond, 1)
        case "MS", "FF3": return (micros / 1000, 3)
        case "US", "FF6": return (micros, 6)
        case "YYYY": return (year, 4)
        case "YYY": return (year % 1000, 3)
        case "YY": return (year % 100, 2)
        case "Y": return (year % 10, 1)
        case "IYYY": return (Int64(date.isoWeek.year), 4)
        case "MM": return (Int64(date.month), 2)
        case "DD": return (Int64(date.day), 2)
        case "DDD": return (Int64(date.dayOfYear), 3)
        case "IDDD": return (Int64((date.isoWeek.week - 1) * 7 + (date.weekday + 6) % 7 + 1), 3)
        case "D": return (Int64(date.weekday + 1), 1)
        case "ID": return (Int64((date.weekday + 6) % 7 + 1), 1)
        case "IW": return (Int64(date.isoWeek.week), 2)
        case "WW": return (Int64((date.dayOfYear - 1) / 7 + 1), 2)
        case "W": return (Int64((date.day - 1) / 7 + 1), 1)
        case "Q": return (Int64((date.month + 2) / 3), 1)
        case "CC": return (Int64((date.year + 99) / 100), 2)
        case "J": return (Int64(date.days + 2_440_588), 1)
        default: return nil
        }
    }

    private func appendWord(_ name: String, _ date: CivilDate, _ clock: Int64, fill: Bool, to out: inout [UInt8]) {
        let isMorning = clock < 12 * TimeUnits.microsPerHour
        switch name {
        case "AM", "PM": out += (isMorning ? "AM" : "PM").utf8
        case "am", "pm": out += (isMorning ? "am" : "pm").utf8
        case "A.M.", "P.M.": out += (isMorning ? "A.M." : "P.M.").utf8
        case "a.m.", "p.m.": out += (isMorning ? "a.m." : "p.m.").utf8
        case "TZ": out += (isZoned ? "UTC" : "").utf8
        case "tz": out += (isZoned ? "utc" : "").utf8
        case "OF", "TZH": out += (isZoned ? "+00" : "").utf8
        case "TZM": out += (isZoned ? "00" : "").utf8
        case "Y,YYY":
            TextOutput.append(UInt64(date.year.magnitude) / 1000, minDigits: 1, to: &out)
            out.append(UInt8(ascii: ","))
            TextOutput.append(UInt64(date.year.magnitude) % 1000, minDigits: 3, to: &out)
        default:
            let isDay = name.uppercased().hasPrefix("D")
            let long = isDay ? Self.days[date.weekday] : Self.months[date.month - 1]
            let isShort = name.count == 3 && name.uppercased() == "MON" || name.count == 2
            var word = isShort ? String(long.prefix(3)) : long
            if name == name.uppercased() { word = word.uppercased() } else if name == name.lowercased() { word = word.lowercased() }
            out += word.utf8
            if fill, !isShort { out.append(contentsOf: repeatElement(32, count: 9 - word.utf8.count)) }
        }
    }
}

/// A to_char pattern for numbers: 9 0 . , D G S MI PL FM L $.
struct NumberFormat {
    private var whole: [Character] = []
    private var fraction: [Character] = []
    private var hasPoint = false
    private var fillsBlanks = true
    private var signFirst = false
    private var signLast = false
    private var minusLast = false
    private var prefix = ""

    /// - Throws: 0A000 for a pattern outside this set.
    init(_ pattern: String) throws(SQLError) {
        var rest = Substring(pattern)
        while let character = rest.first {
            let upper = character.uppercased()
            if rest.uppercased().hasPrefix("FM") {
                fillsBlanks = false
                rest = rest.dropFirst(2)
                continue
            }
            if rest.uppercased().hasPrefix("MI") {
                minusLast = true
                rest = rest.dropFirst(2)
                continue
            }
            rest = rest.dropFirst()
            switch upper {
            case "9", "0": if hasPoint { fraction.append(character) } else { whole.append(character) }
            case ".", "D": hasPoint = true
            case ",", "G": whole.append(",")
            case "S": if whole.isEmpty { signFirst = true } else { signLast = true }
            case "$", "L": prefix += upper == "$" ? "$" : " "
            case " ": prefix += " "
            default: throw SQLError(.featureNotSupported, "the number format \"\(pattern)\" is not supported")
            }
        }
    }

    func append(_ value: Decimal, to out: inout [UInt8]) throws(SQLError) {
        let rounded = try value.rounded(to: fraction.count)
        var text: [UInt8] = []
        TextOutput.append(rounded.magnitude, to: &text)
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        var digits = Array(parts.first ?? [])
        let isNegative = Decimal.order(rounded, .zero) < 0
        if digits == [48], !fraction.isEmpty || !whole.contains("9") { digits = [] }
        let slots = whole.count { $0 != "," }
        let isFull = !rounded.isFinite || digits.count > slots
        var body: [UInt8] = []
        var left = slots
        var started = false
        for character in whole {
            if character == "," {
                body.append(started ? UInt8(ascii: ",") : 32)
                continue
            }
            defer { left -= 1 }
            if isFull { body.append(UInt8(ascii: "#")); started = true; continue }
            if left <= digits.count {
                body.append(digits[digits.count - left])
                started = true
            } else if character == "0" || started {
                body.append(48)
                started = true
            } else {
                body.append(32)
            }
        }
        if hasPoint {
            body.append(UInt8(ascii: "."))
            body += isFull ? fraction.map { _ in UInt8(ascii: "#") } : Array(parts.count > 1 ? parts[1] : [])
            if !fillsBlanks, !isFull {
                let fixed = fraction.lastIndex(of: "0").map { $0 + 1 } ?? 0
                var extra = fraction.count - fixed
                while extra > 0, body.last == 48 {
                    body.removeLast()
                    extra -= 1
                }
            }
        }
        place(body, isNegative, &out)
    }

    /// The sign stands right before the first digit unless the pattern puts it elsewhere.
    private func place(_ body: [UInt8], _ isNegative: Bool, _ out: inout [UInt8]) {
        let blanks = body.prefix { $0 == 32 }.count
        if fillsBlanks { out.append(contentsOf: repeatElement(32, count: blanks)) }
        if signFirst {
            out.append(isNegative ? UInt8(ascii: "-") : UInt8(ascii: "+"))
        } else if !signLast, !minusLast {
            if isNegative { out.append(UInt8(ascii: "-")) } else if fillsBlanks { out.append(32) }
        }
        out += prefix.utf8
        out += body[blanks...]
        if signLast { out.append(isNegative ? UInt8(ascii: "-") : UInt8(ascii: "+")) }
        if minusLast { if isNegative { out.append(UInt8(ascii: "-")) } else if fillsBlanks { out.append(32) } }
    }
}
