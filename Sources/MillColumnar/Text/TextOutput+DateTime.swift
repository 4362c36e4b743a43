extension TextOutput {
    package static func appendDate(_ days: Int32, to out: inout [UInt8]) {
        if days == .max { return append("infinity", to: &out) }
        if days == .min { return append("-infinity", to: &out) }
        let date = CivilDate(days: Int(days))
        appendDate(date, to: &out)
        if date.year <= 0 { append(" BC", to: &out) }
    }

    private static func appendDate(_ date: CivilDate, to out: inout [UInt8]) {
        append(UInt64((date.year > 0 ? date.year : 1 - date.year).magnitude), minDigits: 4, to: &out)
        out.append(UInt8(ascii: "-"))
        append(UInt64(date.month.magnitude), minDigits: 2, to: &out)
        out.append(UInt8(ascii: "-"))
        append(UInt64(date.day.magnitude), minDigits: 2, to: &out)
    }

    /// `hh:mm:ss` and a fraction of 0, 3 or 6 digits.
    package static func appendTime(_ micros: Int64, to out: inout [UInt8]) {
        appendClock(micros.magnitude, to: &out)
        let fraction = micros.magnitude % 1_000_000
        if fraction == 0 { return }
        out.append(UInt8(ascii: "."))
        if fraction % 1000 == 0 { append(fraction / 1000, minDigits: 3, to: &out) } else { append(fraction, minDigits: 6, to: &out) }
    }

    private static func appendClock(_ micros: UInt64, to out: inout [UInt8]) {
        append(micros / 3_600_000_000, minDigits: 2, to: &out)
        out.append(UInt8(ascii: ":"))
        append(micros / 60_000_000 % 60, minDigits: 2, to: &out)
        out.append(UInt8(ascii: ":"))
        append(micros / 1_000_000 % 60, minDigits: 2, to: &out)
    }

    package static func appendTimestamp(_ micros: Int64, to out: inout [UInt8]) { appendInstant(micros, zone: "", to: &out) }

    package static func appendTimestamptz(_ micros: Int64, to out: inout [UInt8]) { appendInstant(micros, zone: "+00:00", to: &out) }

    private static func appendInstant(_ micros: Int64, zone: StaticString, to out: inout [UInt8]) {
        if micros == .max { return append("infinity", to: &out) }
        if micros == .min { return append("-infinity", to: &out) }
        let day = micros.flooredQuotient(TimeUnits.microsPerDay)
        let date = CivilDate(days: Int(day))
        appendDate(date, to: &out)
        out.append(UInt8(ascii: " "))
        appendTime(micros - day * TimeUnits.microsPerDay, to: &out)
        append(zone, to: &out)
        if date.year <= 0 { append(" BC", to: &out) }
    }

    /// PostgreSQL's `postgres` style: `1 year 2 mons -3 days +04:05:06.7`; the sign of a part is shown when an earlier part
    /// was negative.
    package static func append(_ value: Interval, to out: inout [UInt8]) {
        let start = out.count
        var afterNegative = false
        func part(_ count: Int64, _ singular: StaticString, _ plural: StaticString, _ out: inout [UInt8]) {
            if count == 0 { return }
            if out.count > start { out.append(UInt8(ascii: " ")) }
            if afterNegative, count > 0 { out.append(UInt8(ascii: "+")) }
            append(count, to: &out)
            append(count == 1 ? singular : plural, to: &out)
            afterNegative = count < 0
        }
        part(Int64(value.months / 12), " year", " years", &out)
        part(Int64(value.months % 12), " mon", " mons", &out)
        part(Int64(value.days), " day", " days", &out)
        if value.micros == 0, out.count > start { return }
        if out.count > start { out.append(UInt8(ascii: " ")) }
        if value.micros < 0 { out.append(UInt8(ascii: "-")) } else if afterNegative { out.append(UInt8(ascii: "+")) }
        let micros = value.micros.magnitude
        appendClock(micros, to: &out)
        var fraction = micros % 1_000_000
        if fraction == 0 { return }
        out.append(UInt8(ascii: "."))
        var digits = 6
        while fraction % 10 == 0 {
            fraction /= 10
            digits -= 1
        }
        append(fraction, minDigits: digits, to: &out)
    }
}
