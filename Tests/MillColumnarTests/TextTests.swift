import MillBase
import MillColumnar
import Testing

/// What comes out when a text is read as a type, or `!` and the code it is refused with.
private func roundTrip(_ text: String, _ type: SQLType) -> String {
    do throws(SQLError) {
        let scalar = try TextInput.scalar(text, as: type)
        return Column.constant(scalar, type, count: 1).text(0) ?? "NULL"
    } catch {
        return "!\(error.sqlState)"
    }
}

struct TextTests {
    @Test(arguments: [
        ("t", "t"), (" TRUE ", "t"), ("yEs", "t"), ("on", "t"), ("1", "t"), ("o", "!22P02"), ("of", "f"), ("no", "f"), ("0", "f"), ("", "!22P02"),
        ("truely", "!22P02"),
    ]) func booleans(_ text: String, _ expected: String) { #expect(roundTrip(text, .boolean) == expected) }

    @Test func integersKeepTheirRange() {
        #expect(roundTrip(" -2147483648 ", .int32) == "-2147483648")
        #expect(roundTrip("2147483648", .int32) == "!22003")
        #expect(roundTrip("+9223372036854775807", .int64) == "9223372036854775807")
        #expect(roundTrip("-9223372036854775808", .int64) == "-9223372036854775808")
        #expect(roundTrip("9223372036854775808", .int64) == "!22003")
        #expect(roundTrip("99999999999999999999999999999999", .int64) == "!22003")
        #expect(roundTrip("32768", .int16) == "!22003")
        for text in ["", "-", "1.0", "1 2", "0x10", "a"] { #expect(roundTrip(text, .int32) == "!22P02", "\(text)") }
    }

    @Test(arguments: [
        ("0", "0"), ("-0", "-0"), ("1.0", "1"), ("0.1", "0.1"), ("1e15", "1e+15"), ("123456789012345", "123456789012345"), ("1e14", "100000000000000"),
        ("0.0001", "0.0001"), ("0.00001", "1e-05"), ("-1.5e300", "-1.5e+300"), ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("5e-324", "5e-324"), ("1e400", "!22003"), ("1e-400", "!22003"), ("0e400", "0"), ("nan", "NaN"), ("-Infinity", "-Infinity"), ("inf", "Infinity"),
        ("123456.789", "123456.789"), ("12345678901234567890", "1.2345678901234567e+19"), ("0x1p3", "!22P02"), ("1e", "!22P02"), (".", "!22P02"), (".5", "0.5"),
    ]) func doublesPrintAsPostgreSQLPrintsThem(_ text: String, _ expected: String) { #expect(roundTrip(text, .float64) == expected) }

    @Test(arguments: [("1000000", "1e+06"), ("123456", "123456"), ("1234567", "1.234567e+06"), ("0.1", "0.1"), ("1e39", "!22003"), ("3.4028235e38", "3.4028235e+38")])
    func realsPrintAsPostgreSQLPrintsThem(_ text: String, _ expected: String) { #expect(roundTrip(text, .float32) == expected) }

    @Test(arguments: [
        ("0", "0"), ("-0.00", "0.00"), ("1.500", "1.500"), ("1e3", "1000"), ("1.5e-3", "0.0015"), ("-.5", "-0.5"), ("5.", "5"), ("NaN", "NaN"), ("inf", "Infinity"),
        ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"), ("100000000000000000000000000000000000000", "!22003"),
        ("0.99999999999999999999999999999999999999", "0.99999999999999999999999999999999999999"),
        ("12345678901234567890.123456789012345678", "12345678901234567890.123456789012345678"), ("1e38", "!22003"), ("1e37", "1" + String(repeating: "0", count: 37)),
        ("1e-40", "0." + String(repeating: "0", count: 38)), ("1 2", "!22P02"), ("1e", "!22P02"), ("", "!22P02"), ("e1", "!22P02"),
    ]) func numericsKeepTheirScale(_ text: String, _ expected: String) { #expect(roundTrip(text, .numeric) == expected) }

    @Test func numericTypesRoundAndRefuse() {
        #expect(roundTrip("1.005", .numeric(precision: 5, scale: 2)) == "1.01")
        #expect(roundTrip("999.995", .numeric(precision: 5, scale: 2)) == "!22003")
        #expect(roundTrip("-1", .numeric(precision: 38, scale: 37)) == "-1." + String(repeating: "0", count: 37))
        #expect(roundTrip("NaN", .numeric(precision: 5, scale: 2)) == "NaN")
        #expect(roundTrip("inf", .numeric(precision: 5, scale: 2)) == "!22003")
    }

    @Test(arguments: [
        ("2026-01-31", "2026-01-31"), ("20260131", "2026-01-31"), ("2026-2-3", "2026-02-03"), ("0001-01-01", "0001-01-01"), ("0001-01-01 BC", "0001-01-01 BC"),
        ("9999-12-31", "9999-12-31"), ("10000-01-01", "10000-01-01"), ("5874897-12-31", "5874897-12-31"), ("5874898-01-01", "!22008"), ("4714-11-24 BC", "4714-11-24 BC"),
        ("4714-11-23 BC", "!22008"), ("2024-02-29", "2024-02-29"), ("2023-02-29", "!22008"), ("1900-02-29", "!22008"), ("2000-02-29", "2000-02-29"), ("2026-13-01", "!22008"),
        ("infinity", "infinity"), ("-infinity", "-infinity"), ("epoch", "1970-01-01"), ("1969-12-31", "1969-12-31"), ("31 Jan 2026", "2026-01-31"),
        ("January 31, 2026", "2026-01-31"), ("1/31/2026", "2026-01-31"), ("2026-01-31 23:59:59+02", "2026-01-31"), ("0000-01-01", "!22008"), ("now", "!22007"), ("", "!22007"),
        ("2026-01", "!22007"), ("hello", "!22007"), ("2026-01-31x", "!22007"),
    ]) func dates(_ text: String, _ expected: String) { #expect(roundTrip(text, .date) == expected) }

    @Test(arguments: [
        ("2026-01-31 12:34:56", "2026-01-31 12:34:56+00:00"), ("2026-01-31T12:34:56Z", "2026-01-31 12:34:56+00:00"),
        ("2026-01-31T12:34:56.5Z", "2026-01-31 12:34:56.500+00:00"), ("2026-01-31 12:34:56.123456+00", "2026-01-31 12:34:56.123456+00:00"),
        ("2026-01-31 12:34:56.1234567", "2026-01-31 12:34:56.123457+00:00"), ("2026-01-31 12:34:56+02:30", "2026-01-31 10:04:56+00:00"),
        ("2026-01-31 12:34:56-0800", "2026-01-31 20:34:56+00:00"), ("2026-01-31 24:00:00", "2026-02-01 00:00:00+00:00"),
        ("2026-01-31 23:59:60", "2026-02-01 00:00:00+00:00"), ("2026-01-31 24:00:01", "!22008"), ("2026-01-31 12:60:00", "!22008"), ("2026-01-31 12:34 PM", "2026-01-31 12:34:00+00:00"),
        ("2026-01-31 1:05am UTC", "2026-01-31 01:05:00+00:00"), ("2026-01-31", "2026-01-31 00:00:00+00:00"), ("1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999+00:00"),
        ("infinity", "infinity"), ("2026-01-31 12:34:56 Europe/Nowhere", "!22023"), ("2026-01-31 12", "!22007"), ("294277-01-01", "!22008"), ("0044-03-15 12:00:00 BC", "0044-03-15 12:00:00+00:00 BC"),
        ("2026-01-31 12:34:56 x", "!22007"), ("2026-01-31 1a:34:56", "!22007"),
    ]) func timestampsWithZone(_ text: String, _ expected: String) { #expect(roundTrip(text, .timestamptz) == expected) }

    @Test func timestampsIgnoreAnOffset() {
        #expect(roundTrip("2026-01-31 12:34:56+02:30", .timestamp) == "2026-01-31 12:34:56")
        #expect(roundTrip("2026-01-31 12:34:56.100", .timestamp) == "2026-01-31 12:34:56.100")
    }

    @Test(arguments: [("12:34", "12:34:00"), ("24:00", "24:00:00"), ("123456.25", "12:34:56.250"), ("2026-01-31 04:05:06", "04:05:06"), ("12:34pm", "12:34:00"), ("25:00", "!22008"), ("x", "!22007")])
    func times(_ text: String, _ expected: String) { #expect(roundTrip(text, .time) == expected) }

    @Test(arguments: [
        ("15 SECONDS", "00:00:15"), ("1 month 2 days 15 s", "1 mon 2 days 00:00:15"), ("1.5 days", "1 day 12:00:00"), ("1.5 months", "1 mon 15 days"), ("1.5 years", "1 year 6 mons"),
        ("P1Y2M3DT4H5M6.7S", "1 year 2 mons 3 days 04:05:06.7"), ("P2W", "14 days"), ("1-2", "1 year 2 mons"), ("-1 day +2:03:04", "-1 days +02:03:04"), ("1 day ago", "-1 days"),
        ("04:05:06.789", "04:05:06.789"), ("-00:00:01", "-00:00:01"), ("1 12:00", "1 day 12:00:00"), ("90", "00:01:30"), ("2 weeks", "14 days"), ("1 century", "100 years"),
        ("@ 1 minute", "00:01:00"), ("500 ms", "00:00:00.5"), ("1 year -2 mons", "10 mons"), ("0", "00:00:00"), ("", "!22007"), ("1 fortnight", "!22007"), ("day", "!22007"), ("P", "!22007"),
        ("200000000000 days", "!22008"), ("1 1 12:00", "!22007"), ("1 -12:00", "1 day -12:00:00"), ("1 mon -1 days", "1 mon -1 days"), ("-1 year 1 day", "-1 years +1 day"),
    ]) func intervals(_ text: String, _ expected: String) { #expect(roundTrip(text, .interval) == expected) }

    @Test(.timeLimit(.minutes(1))) func anIntervalCostsWhatItsTextIsLong() {
        #expect(roundTrip(String(repeating: "1 ", count: 500_000) + "1:00", .interval) == "!22007")
    }

    @Test(arguments: [
        (#"{"b": 1, "a": [1,2 , {"z":null}], "aa": "x"}"#, #"{"a": [1, 2, {"z": null}], "b": 1, "aa": "x"}"#), (#"{"a":1,"a":2}"#, #"{"a": 2}"#), ("[]", "[]"), (" { } ", "{}"),
        ("1.50", "1.50"), ("1e2", "100"), ("-1.5e-3", "-0.0015"), ("-0", "0"), ("-0.0", "0.0"), ("12.34e1", "123.4"), ("100e-1", "10.0"), (#""\u00e9\n\/""#, "\"é\\n/\""),
        (#""\ud83d\ude00""#, "\"😀\""), (#""\u0000""#, "!22P05"), (#""\ud83d""#, "!22P02"), ("01", "!22P02"), ("{", "!22P02"), ("[1,]", "!22P02"), ("nul", "!22P02"), ("1 2", "!22P02"),
        (#"{"a" 1}"#, "!22P02"), ("\"\t\"", "!22P02"), (String(repeating: "[", count: 10_000), "!54001"), ("1e99999", "!22003"), (#""\u001f""#, #""\u001f""#),
    ]) func jsonBecomesCanonical(_ text: String, _ expected: String) { #expect(roundTrip(text, .jsonb) == expected) }

    @Test(arguments: [(#"\xDEADbeef"#, #"\xdeadbeef"#), (#"a\\b\001"#, #"\x615c6201"#), (#"\xabc"#, "!22023"), (#"\xzz"#, "!22023"), (#"\9"#, "!22P02"), ("", #"\x"#)])
    func bytes(_ text: String, _ expected: String) { #expect(roundTrip(text, .bytea) == expected) }

    @Test func everyDayOfEightCenturiesSurvivesTheCalendar() {
        var expected = CivilDate(year: 1599, month: 12, day: 31)
        var days = expected.days
        for _ in 0..<300_000 {
            days += 1
            expected.day += 1
            if expected.day > CivilDate.daysIn(month: expected.month, of: expected.year) { expected = CivilDate(year: expected.year, month: expected.month + 1, day: 1) }
            if expected.month > 12 { expected = CivilDate(year: expected.year + 1, month: 1, day: 1) }
            guard CivilDate(days: days) == expected, expected.days == days else {
                Issue.record("day \(days) is not \(expected)")
                return
            }
        }
    }

    @Test func theFastTimestampPathAgreesWithTheFullOne() {
        var random = SystemRandomNumberGenerator()
        var fast = TimestampParser()
        let seed = UInt64.random(in: 0...UInt64.max, using: &random)
        var state = seed
        for _ in 0..<2000 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let micros = Int64(state >> 12) % 200_000_000_000_000_000
            var text: [UInt8] = []
            TextOutput.appendTimestamptz(micros, to: &text)
            if state & 1 == 0 { text[10] = UInt8(ascii: "T") }
            if state & 2 == 0 { text[Int(state >> 8 & 0xFFFF) % text.count] = UInt8(ascii: "x") }
            text.withUnsafeBufferPointer { bytes in
                let full = try? TextInput.timestamptz(bytes)
                if let quick = fast.parse(bytes) { #expect(quick == full, "seed \(seed): \(String(decoding: bytes, as: UTF8.self))") }
                if state & 2 != 0, micros < 253_402_300_800_000_000 { #expect(fast.parse(bytes) == micros) }
            }
        }
    }
}
