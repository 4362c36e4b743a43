package import MillBase

/// Intervals: `1 year 2 mons -3 days 04:05:06.7`, `15 SECONDS`, `1-2`, `P1Y2M3DT4H5M6S`, `... ago`.
extension TextInput {
    package static func interval(_ text: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Interval {
        let body = trimmed(text)
        guard let first = body.first else { throw invalid(text, as: .interval) }
        var reader = IntervalReader(body, text)
        if first == UInt8(ascii: "P") || first == UInt8(ascii: "p") { try reader.readISO() } else { try reader.readVerbose() }
        return try reader.finish()
    }
}

/// Collects the parts of an interval in 128 bits; the range is checked once at the end.
private struct IntervalReader {
    private let text: UnsafeBufferPointer<UInt8>
    private let whole: UnsafeBufferPointer<UInt8>
    private var at = 0
    private var months: Int128 = 0
    private var days: Int128 = 0
    private var micros: Int128 = 0

    init(_ body: UnsafeBufferPointer<UInt8>, _ whole: UnsafeBufferPointer<UInt8>) {
        text = body
        self.whole = whole
    }

    private var malformed: SQLError { TextInput.invalid(whole, as: .interval) }

    func finish() throws(SQLError) -> Interval {
        guard let months = Int32(exactly: months), let days = Int32(exactly: days), let micros = Int64(exactly: micros) else {
            throw TextInput.outOfRange(whole, as: .interval)
        }
        return Interval(months: months, days: days, micros: micros)
    }

    /// A signed decimal: the whole part, and the fraction in units of 10^-9 with the same sign.
    private struct Number {
        var whole: Int128
        var fraction: Int128
        var isNegative: Bool
        static let scale: Int128 = 1_000_000_000
    }

    private func peek() -> UInt8 { at < text.count ? text[at] : 0 }

    private mutating func number() throws(SQLError) -> Number {
        var negative = false
        if peek() == UInt8(ascii: "-") || peek() == UInt8(ascii: "+") {
            negative = peek() == UInt8(ascii: "-")
            at += 1
        }
        let start = at
        var whole: Int128 = 0
        while TextInput.isDigit(peek()) {
            guard at - start < 20 else { throw TextInput.outOfRange(self.whole, as: .interval) }
            whole = whole * 10 + Int128(peek() &- 48)
            at += 1
        }
        var digits = at - start
        var fraction: Int128 = 0
        if peek() == UInt8(ascii: ".") {
            at += 1
            var unit = Number.scale / 10
            while TextInput.isDigit(peek()) {
                fraction += Int128(peek() &- 48) * unit
                unit /= 10
                digits += 1
                at += 1
            }
        }
        guard digits > 0 else { throw malformed }
        return Number(whole: negative ? -whole : whole, fraction: negative ? -fraction : fraction, isNegative: negative)
    }

    private mutating func skipSpaces() { while at < text.count, TextInput.isSpace(text[at]) { at += 1 } }

    private mutating func word() -> UnsafeBufferPointer<UInt8> {
        let start = at
        while at < text.count, text[at] | 32 >= 97, text[at] | 32 <= 122 { at += 1 }
        return UnsafeBufferPointer(rebasing: text[start..<at])
    }

    private enum Unit {
        case months(Int128)
        case days(Int128)
        case micros(Int128)
    }

    private static let units: [(names: [StaticString], unit: Unit)] = [
        (["s", "sec", "secs", "second", "seconds"], .micros(1_000_000)),
        (["m", "min", "mins", "minute", "minutes"], .micros(60_000_000)),
        (["h", "hr", "hrs", "hour", "hours"], .micros(3_600_000_000)),
        (["d", "day", "days"], .days(1)),
        (["w", "week", "weeks"], .days(7)),
        (["mon", "mons", "month", "months"], .months(1)),
        (["y", "yr", "yrs", "year", "years"], .months(12)),
        (["ms", "msec", "msecs", "millisecond", "milliseconds"], .micros(1000)),
        (["us", "usec", "usecs", "microsecond", "microseconds"], .micros(1)),
        (["decade", "decades", "dec", "decs"], .months(120)),
        (["c", "cent", "century", "centuries"], .months(1200)),
        (["mil", "mils", "millennium", "millennia"], .months(12_000)),
    ]

    private func unit(_ name: UnsafeBufferPointer<UInt8>) throws(SQLError) -> Unit {
        for entry in Self.units where entry.names.contains(where: { TextInput.equals(name, $0) }) { return entry.unit }
        throw malformed
    }

    /// A fraction of a month goes to days and of a day to microseconds, as PostgreSQL has it; a fraction of a year to months.
    private mutating func add(_ number: Number, _ unit: Unit) {
        switch unit {
        case .micros(let size):
            micros += number.whole * size + rounded(number.fraction * size)
        case .days(let size):
            days += number.whole * size
            addDays(number.fraction * size)
        case .months(let size):
            months += number.whole * size
            let more = number.fraction * size
            if size > 1 {
                months += rounded(more)
            } else {
                addDays(more * 30)
            }
        }
    }

    private mutating func addDays(_ fraction: Int128) {
        days += fraction / Number.scale
        micros += rounded(fraction % Number.scale * 86_400_000_000)
    }

    private func rounded(_ scaled: Int128) -> Int128 { Decimal.divideRounding(scaled, by: Number.scale) }

    mutating func readVerbose() throws(SQLError) {
        if peek() == UInt8(ascii: "@") { at += 1 }
        var parts = 0
        while true {
            skipSpaces()
            guard at < text.count else { break }
            if text[at] | 32 >= 97, text[at] | 32 <= 122 {
                guard parts > 0, TextInput.equals(word(), "ago") else { throw malformed }
                skipSpaces()
                guard at == text.count else { throw malformed }
                months = -months
                days = -days
                micros = -micros
                return
            }
            try readPart()
            parts += 1
        }
        guard parts > 0 else { throw malformed }
    }

    private mutating func readPart() throws(SQLError) {
        let number = try number()
        if peek() == UInt8(ascii: ":") { return try readClock(number) }
        if peek() == UInt8(ascii: "-"), number.fraction == 0 {
            at += 1
            let more = try self.number()
            guard !more.isNegative, more.fraction == 0, more.whole < 12 else { throw malformed }
            months += number.whole * 12 + (number.isNegative ? -more.whole : more.whole)
            return
        }
        skipSpaces()
        let name = word()
        if name.isEmpty {
            guard at == text.count else {
                // `1 04:05:06`: a bare number before a clock time is days.
                guard isBeforeClock else { throw malformed }
                return add(number, .days(1))
            }
            return add(number, .micros(1_000_000))
        }
        add(number, try unit(name))
    }

    /// Whether a clock time comes next: hours, with a sign or without, and a colon.
    private var isBeforeClock: Bool {
        var end = at
        if peek() == UInt8(ascii: "-") || peek() == UInt8(ascii: "+") { end += 1 }
        let start = end
        while end < text.count, TextInput.isDigit(text[end]) { end += 1 }
        return end > start && end < text.count && text[end] == UInt8(ascii: ":")
    }

    /// The rest of `hh:mm[:ss[.fraction]]`; the sign of the hours is that of all.
    private mutating func readClock(_ hours: Number) throws(SQLError) {
        guard hours.fraction == 0 else { throw malformed }
        at += 1
        let minutes = try number()
        var total = hours.whole.magnitude * 3600
        var fraction: Int128 = 0
        guard !minutes.isNegative, minutes.fraction == 0, minutes.whole < 60 else { throw TextInput.outOfRange(whole, as: .interval) }
        total += minutes.whole.magnitude * 60
        if peek() == UInt8(ascii: ":") {
            at += 1
            let seconds = try number()
            guard !seconds.isNegative, seconds.whole <= 60 else { throw TextInput.outOfRange(whole, as: .interval) }
            total += seconds.whole.magnitude
            fraction = rounded(seconds.fraction * 1_000_000)
        }
        let span = Int128(total) * 1_000_000 + fraction
        micros += hours.isNegative ? -span : span
    }

    /// `P1Y2M10DT2H30M1.5S` and `P1W`.
    mutating func readISO() throws(SQLError) {
        at = 1
        var inTime = false
        var parts = 0
        while at < text.count {
            if text[at] | 32 == UInt8(ascii: "t") {
                guard !inTime else { throw malformed }
                inTime = true
                at += 1
                continue
            }
            let number = try number()
            let letter = peek() | 32
            at += 1
            switch letter {
            case UInt8(ascii: "y") where !inTime: add(number, .months(12))
            case UInt8(ascii: "m") where !inTime: add(number, .months(1))
            case UInt8(ascii: "w") where !inTime: add(number, .days(7))
            case UInt8(ascii: "d") where !inTime: add(number, .days(1))
            case UInt8(ascii: "h") where inTime: add(number, .micros(3_600_000_000))
            case UInt8(ascii: "m") where inTime: add(number, .micros(60_000_000))
            case UInt8(ascii: "s") where inTime: add(number, .micros(1_000_000))
            default: throw malformed
            }
            parts += 1
        }
        guard parts > 0 else { throw malformed }
    }
}
