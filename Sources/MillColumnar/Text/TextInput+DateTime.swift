package import MillBase

/// Dates and times: ISO 8601 and its relatives (`20260131`, `2026/1/31`, `31 Jan 2026`, `Jan 31, 2026`, `BC`), clock times
/// with a fraction, AM and PM, and numeric offsets or UTC by name.
extension TextInput {
    package static func date(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Int32 {
        let body = trimmed(text)
        if let special = special(body) {
            switch special {
            case .epoch: return 0
            case .infinity: return .max
            case .minusInfinity: return .min
            }
        }
        let fields = try DateTimeFields(body, text, as: .date)
        guard let date = fields.date else { throw invalid(text, as: .date) }
        guard date.isValid, date.year < 6_000_000, date.year > -5000 else { throw fieldOutOfRange(text) }
        let days = date.days
        guard days >= TimeUnits.dayMin, days <= TimeUnits.dayMax else { throw outOfRange(text, as: .date) }
        return Int32(truncatingIfNeeded: days)
    }

    package static func time(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Int64 {
        let fields = try DateTimeFields(trimmed(text), text, as: .time)
        guard let clock = fields.clockMicros else { throw invalid(text, as: .time) }
        guard clock <= TimeUnits.microsPerDay else { throw fieldOutOfRange(text) }
        return clock
    }

    /// An offset in the text is read and ignored, as PostgreSQL does.
    package static func timestamp(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Int64 { try instant(text, as: .timestamp) }

    /// Without an offset the text is in UTC, the session's zone.
    package static func timestamptz(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Int64 { try instant(text, as: .timestamptz) }

    private static func instant(_ text: UnsafeBufferPointer<UInt8>, as type: SQLType) throws(SQLError) -> Int64 {
        var fast = TimestampParser()
        if let micros = fast.parse(text) { return micros }
        let body = trimmed(text)
        if let special = special(body) {
            switch special {
            case .epoch: return 0
            case .infinity: return .max
            case .minusInfinity: return .min
            }
        }
        let fields = try DateTimeFields(body, text, as: type)
        guard let date = fields.date else { throw invalid(text, as: type) }
        guard date.isValid else { throw fieldOutOfRange(text) }
        guard date.year < 400_000, date.year > -5000 else { throw outOfRange(text, as: type) }
        let clock = fields.clockMicros ?? 0
        guard clock <= TimeUnits.microsPerDay else { throw fieldOutOfRange(text) }
        let offset = type == .timestamptz ? Int64(fields.offsetSeconds ?? 0) * TimeUnits.microsPerSecond : 0
        let (dayMicros, overflow) = Int64(date.days).multipliedReportingOverflow(by: TimeUnits.microsPerDay)
        let (micros, second) = dayMicros.addingReportingOverflow(clock - offset)
        guard !overflow, !second, TimeUnits.isTimestamp(micros) else { throw outOfRange(text, as: type) }
        return micros
    }

    private enum Special { case epoch, infinity, minusInfinity }

    private static func special(_ body: UnsafeBufferPointer<UInt8>) -> Special? {
        guard let first = body.first, !isDigit(first) else { return nil }
        if equals(body, "epoch") { return .epoch }
        if equals(body, "infinity") || equals(body, "+infinity") { return .infinity }
        return equals(body, "-infinity") ? .minusInfinity : nil
    }
}

/// The parts that a date or time text is made of, before they are checked against the calendar.
struct DateTimeFields {
    var date: CivilDate?
    var clockMicros: Int64?
    /// East of Greenwich.
    var offsetSeconds: Int?

    private let text: UnsafeBufferPointer<UInt8>
    private let whole: UnsafeBufferPointer<UInt8>
    private let type: SQLType
    private var at = 0

    init(_ body: UnsafeBufferPointer<UInt8>, _ whole: UnsafeBufferPointer<UInt8>, as type: SQLType) throws(SQLError) {
        text = body
        self.whole = whole
        self.type = type
        guard !body.isEmpty else { throw TextInput.invalid(whole, as: type) }
        if type != .time || looksLikeDate { try readDate() }
        skipSeparator()
        if at < text.count, TextInput.isDigit(text[at]) { try readClock() }
        try readSuffixes()
    }

    private var malformed: SQLError { TextInput.invalid(whole, as: type) }

    /// A time may carry a date, which is ignored: digits and a hyphen before any colon.
    private var looksLikeDate: Bool {
        for index in 0..<text.count {
            if text[index] == UInt8(ascii: ":") { return false }
            if text[index] == UInt8(ascii: "-"), index >= 4 { return text[0..<index].allSatisfy { TextInput.isDigit($0) } }
        }
        return false
    }

    private func peek(_ offset: Int = 0) -> UInt8 { at + offset < text.count ? text[at + offset] : 0 }

    private mutating func number(maxDigits: Int) throws(SQLError) -> (value: Int, digits: Int) {
        let start = at
        var value = 0
        while at < text.count, TextInput.isDigit(text[at]) {
            guard at - start < maxDigits else { throw at - start < 18 ? TextInput.fieldOutOfRange(whole) : malformed }
            value = value * 10 + Int(text[at] &- 48)
            at += 1
        }
        guard at > start else { throw malformed }
        return (value, at - start)
    }

    private mutating func skipSpaces() { while at < text.count, TextInput.isSpace(text[at]) { at += 1 } }

    private mutating func skipSeparator() {
        if peek() | 32 == UInt8(ascii: "t"), TextInput.isDigit(peek(1)) { at += 1 } else { skipSpaces() }
    }

    private mutating func word() -> UnsafeBufferPointer<UInt8> {
        let start = at
        while at < text.count, text[at] | 32 >= 97, text[at] | 32 <= 122 { at += 1 }
        return UnsafeBufferPointer(rebasing: text[start..<at])
    }

    private static let months: [StaticString] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

    private mutating func monthName() throws(SQLError) -> Int {
        let name = word()
        guard name.count >= 3 else { throw malformed }
        let start = UnsafeBufferPointer(rebasing: name[0..<3])
        guard let index = Self.months.firstIndex(where: { TextInput.equals(start, $0) }) else { throw malformed }
        return index + 1
    }

    private mutating func readDate() throws(SQLError) {
        if !TextInput.isDigit(peek()) {
            // Jan 31, 2026
            let month = try monthName()
            skipSpaces()
            let day = try number(maxDigits: 2).value
            if peek() == UInt8(ascii: ",") { at += 1 }
            skipSpaces()
            date = CivilDate(year: try number(maxDigits: 7).value, month: month, day: day)
            return
        }
        let (first, digits) = try number(maxDigits: 8)
        let separator = peek()
        if digits == 8, separator != UInt8(ascii: "-") {
            date = CivilDate(year: first / 10_000, month: first / 100 % 100, day: first % 100)
        } else if digits >= 3, separator == UInt8(ascii: "-") || separator == UInt8(ascii: "/") {
            at += 1
            let month = TextInput.isDigit(peek()) ? try number(maxDigits: 2).value : try monthName()
            guard peek() == separator else { throw malformed }
            at += 1
            date = CivilDate(year: first, month: month, day: try number(maxDigits: 2).value)
        } else if digits <= 2, separator == UInt8(ascii: "/") || separator == UInt8(ascii: "-"), TextInput.isDigit(peek(1)) {
            // The month first, as PostgreSQL's default DateStyle has it.
            at += 1
            let day = try number(maxDigits: 2).value
            guard peek() == separator else { throw malformed }
            at += 1
            date = CivilDate(year: try number(maxDigits: 7).value, month: first, day: day)
        } else if digits <= 2, separator == UInt8(ascii: " ") || separator == UInt8(ascii: "-") {
            at += 1
            let month = try monthName()
            if peek() == UInt8(ascii: "-") { at += 1 } else { skipSpaces() }
            date = CivilDate(year: try number(maxDigits: 7).value, month: month, day: first)
        } else {
            throw malformed
        }
        if date?.year == 0 { throw TextInput.fieldOutOfRange(whole) }
    }

    private mutating func readClock() throws(SQLError) {
        let (first, digits) = try number(maxDigits: 6)
        var hours = first
        var minutes = 0
        var seconds = 0
        if digits == 6 || (digits == 4 && peek() != UInt8(ascii: ":")) {
            hours = digits == 6 ? first / 10_000 : first / 100
            minutes = digits == 6 ? first / 100 % 100 : first % 100
            seconds = digits == 6 ? first % 100 : 0
        } else {
            guard peek() == UInt8(ascii: ":") else { throw malformed }
            at += 1
            minutes = try number(maxDigits: 2).value
            if peek() == UInt8(ascii: ":") {
                at += 1
                seconds = try number(maxDigits: 2).value
            }
        }
        let fraction = readFraction()
        skipSpaces()
        if peek() | 32 == UInt8(ascii: "a") || peek() | 32 == UInt8(ascii: "p"), peek(1) | 32 == UInt8(ascii: "m") {
            guard (1...12).contains(hours) else { throw TextInput.fieldOutOfRange(whole) }
            hours = hours % 12 + (peek() | 32 == UInt8(ascii: "p") ? 12 : 0)
            at += 2
        }
        guard hours <= 24, minutes < 60, seconds <= 60 else { throw TextInput.fieldOutOfRange(whole) }
        clockMicros = Int64((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction
        if clockMicros ?? 0 > TimeUnits.microsPerDay { throw TextInput.fieldOutOfRange(whole) }
    }

    /// Microseconds, rounded.
    private mutating func readFraction() -> Int64 {
        guard peek() == UInt8(ascii: ".") else { return 0 }
        at += 1
        var micros: Int64 = 0
        var unit: Int64 = 100_000
        var isFirstDropped = true
        while at < text.count, TextInput.isDigit(text[at]) {
            let digit = Int64(text[at] &- 48)
            if unit > 0 {
                micros += digit * unit
                unit /= 10
            } else {
                if isFirstDropped, digit >= 5 { micros += 1 }
                isFirstDropped = false
            }
            at += 1
        }
        return micros
    }

    /// Offsets, zone names and the era, in any order, to the end of the text.
    private mutating func readSuffixes() throws(SQLError) {
        while true {
            skipSpaces()
            guard at < text.count else { return }
            switch text[at] {
            case UInt8(ascii: "+"), UInt8(ascii: "-"):
                guard offsetSeconds == nil, clockMicros != nil else { throw malformed }
                offsetSeconds = try readOffset()
            default:
                let start = at
                let name = word()
                if TextInput.equals(name, "bc"), let civil = date, civil.year > 0 {
                    date = CivilDate(year: 1 - civil.year, month: civil.month, day: civil.day)
                } else if TextInput.equals(name, "ad") {
                    continue
                } else if TextInput.equals(name, "z") || TextInput.equals(name, "utc") || TextInput.equals(name, "gmt") || TextInput.equals(name, "zulu") {
                    guard offsetSeconds == nil else { throw malformed }
                    offsetSeconds = 0
                } else if name.count >= 3, clockMicros != nil, date != nil {
                    let zone = String(decoding: text[start...], as: UTF8.self)
                    throw SQLError(.invalidParameterValue, "time zone \"\(zone)\" not recognized", hint: "Use UTC or a numeric offset such as +02:00.")
                } else {
                    throw malformed
                }
            }
        }
    }

    private mutating func readOffset() throws(SQLError) -> Int {
        let negative = peek() == UInt8(ascii: "-")
        at += 1
        var (hours, digits) = try number(maxDigits: 4)
        var minutes = 0
        var seconds = 0
        if digits > 2 {
            minutes = hours % 100
            hours /= 100
        } else if peek() == UInt8(ascii: ":") {
            at += 1
            minutes = try number(maxDigits: 2).value
            if peek() == UInt8(ascii: ":") {
                at += 1
                seconds = try number(maxDigits: 2).value
            }
        }
        digits = (hours * 60 + minutes) * 60 + seconds
        guard hours <= 15, minutes < 60, seconds < 60 else {
            throw SQLError(SQLState("22009"), "time zone displacement out of range: \"\(String(decoding: whole, as: UTF8.self))\"")
        }
        return negative ? -digits : digits
    }
}
