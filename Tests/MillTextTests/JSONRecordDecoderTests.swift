import MillBase
import MillColumnar
import MillConnectorKit
import Testing

@testable import MillText

@Suite struct JSONRecordDecoderTests {
    /// What each JSON value becomes in a column of the type; nil is NULL, and `refused` says whether it was refused.
    private func values(_ type: SQLType, _ texts: [String]) -> [(value: String?, refused: String?)] {
        let decoder = JSONRecordDecoder(fields: [Field("v", type)], wanted: [.field(0)])
        let decoded = decoder.decode(.records(texts.map { "{\"v\":\($0)}" }))
        let reasons = Dictionary(decoded.rejects.map { ($0.position, $0) }) { first, _ in first }
        #expect(decoded.rejects.allSatisfy { $0.column == "v" && String(decoding: $0.raw, as: UTF8.self) == texts[Int($0.position)] })
        #expect(decoded.rows.count == texts.count)
        return decoded.rows.enumerated().map { ($0.element[0], reasons[Int64($0.offset)]?.reason) }
    }

    /// Checks pairs of JSON text and value, then texts that are refused.
    private func check(_ type: SQLType, _ accepted: [(String, String?)], refused: [String] = [], _ location: SourceLocation = #_sourceLocation) {
        for ((text, value), found) in zip(accepted, values(type, accepted.map(\.0))) {
            #expect(found.value == value && found.refused == nil, "\(text): \(found)", sourceLocation: location)
        }
        for (text, found) in zip(refused, values(type, refused)) {
            #expect(found.value == nil && found.refused != nil, "\(text): \(found)", sourceLocation: location)
        }
    }

    @Test func bidsBecomeColumnsInTheOrderAskedFor() {
        let decoder = JSONRecordDecoder(
            fields: [Field("auction", .int64), Field("price", .int32), Field("channel", .varchar), Field("at", .timestamp)],
            wanted: [.field(2), .field(0), .position, .field(3), .field(1)])
        let decoded = decoder.decode(
            .records([
                #"{"auction":12345678901,"price":7,"channel":"a channel with a long name","at":"2026-01-02T03:04:05.678"}"#,
                #"{"at": "2026-01-02 03:04:05.6789125Z" , "channel" : "short", "auction": -3, "price": 1e2}"#,
            ]))
        #expect(decoded.rejects == [])
        #expect(decoded.rows == [
            ["a channel with a long name", "12345678901", "0", "1767323045678000", "7"],
            ["short", "-3", "1", "1767323045678913", "100"],
        ])
    }

    @Test func integersAreWholeNumbersInRange() {
        check(
            .int64,
            [
                ("0", "0"), ("-0", "0"), ("7", "7"), ("12345678", "12345678"), ("123456789", "123456789"), ("1234567890123456", "1234567890123456"),
                ("12345678901234567", "12345678901234567"), ("9223372036854775807", "9223372036854775807"), ("-9223372036854775808", "-9223372036854775808"),
                ("3.0", "3"), ("3e2", "300"), ("1200e-2", "12"), ("0e999999999", "0"), ("\" 42 \"", "42"), ("\"-42\"", "-42"), ("null", nil), (" 5 ", "5"),
            ],
            refused: ["9223372036854775808", "-9223372036854775809", "3.5", "1e19", "1e999999999", "1e-1", "true", "\"\"", "\"x\"", "\"1x\"", "[1]", "{}"])
        check(.int32, [("2147483647", "2147483647"), ("-2147483648", "-2147483648")], refused: ["2147483648", "-2147483649", "4294967296"])
        check(.int16, [("32767", "32767"), ("-32768.0", "-32768")], refused: ["32768", "-32769"])
    }

    @Test func brokenNumbersRefuseTheRecord() {
        for text in ["01", "-", "1.", ".5", "+1", "1e", "1e+", "0x1", "1_000", "-01", "00", "1.2.3", "NaN", "Infinity", "12a", "1 2", "١"] {
            for fields in [[Field("v", .int64)], [Field("v", .float64)], [Field("v", .varchar)], []] {
                let decoded = JSONRecordDecoder(fields: fields, wanted: [.position]).decode(.records(["{\"v\":\(text)}"]))
                #expect(decoded.rows == [] && decoded.rejects.map(\.column) == [nil], "\(text)")
            }
        }
    }

    @Test func floatsTakeNumbersAndTheirNames() {
        check(
            .float64,
            [
                ("1", "1.0"), ("-0.0", "-0.0"), ("1.5e10", "15000000000.0"), ("0.1", "0.1"), ("1e-400", "0.0"), ("\"NaN\"", "nan"), ("\"Infinity\"", "inf"),
                ("\"-infinity\"", "-inf"), ("\"1.25\"", "1.25"), ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ], refused: ["1e400", "-1e400", "\"1e400\"", "\"\"", "\"nano\"", "\"0x10\"", "true", "[]"])
        check(.float32, [("0.1", "\(Double(Float(0.1)))"), ("16777217", "16777216.0")], refused: ["1e39"])
    }

    @Test func numericsKeepEveryDigit() {
        check(
            .numeric,
            [
                ("1.50", "150e-2"), ("-0.001", "-1e-3"), ("1e3", "1000e-0"), ("1.5e-3", "15e-4"), ("\"12.34\"", "1234e-2"), ("0.000", "0e-3"),
                ("12345678901234567890123456789012345678", "12345678901234567890123456789012345678e-0"),
                ("0.12345678901234567890123456789012345678", "12345678901234567890123456789012345678e-38"), ("\"NaN\"", "nan"), ("\"Infinity\"", "positiveInfinity"),
            ], refused: ["123456789012345678901234567890123456789", "1e38", "1e-39", "\"x\"", "true"])
        check(
            .numeric(precision: 10, scale: 2), [("1.005", "101e-2"), ("-1.005", "-101e-2"), ("1", "100e-2"), ("1.004999", "100e-2"), ("99999999.99", "9999999999e-2"), ("1e-50", "0e-2")],
            refused: ["99999999.995", "100000000", "\"Infinity\""])
    }

    @Test func textsAreUnescapedAndOtherValuesKeptAsWritten() {
        check(
            .varchar,
            [
                ("\"\"", ""), ("\"exactly 12 b\"", "exactly 12 b"), ("\"exactly 13 by\"", "exactly 13 by"), (#""a\"\\\/\b\f\n\r\té""#, "a\"\\/\u{8}\u{c}\n\r\té"),
                (#""\ud83d\ude00 \u00e9""#, "😀 é"), ("12.50", "12.50"), ("true", "true"), ("null", nil), (#"{ "a" : [ 1 , "x y" ] }"#, #"{"a":[1,"x y"]}"#), ("[]", "[]"),
                ("\"\u{7f}日本\"", "\u{7f}日本"),
            ], refused: [#""\ud83d""#, #""\ude00\ud83d""#, #""a\u0000b""#])
        for text in [#""\x""#, #""\u12""#, #""\u12g4""#, "\"\t\"", "\"a\nb\"", #""abc"#, #""abc\"#, #""a"b""#, "'a'"] {
            let decoded = JSONRecordDecoder(fields: [Field("v", .varchar)], wanted: [.field(0)]).decode(.records(["{\"v\":\(text)}"]))
            #expect(decoded.rows == [] && decoded.rejects.map(\.column) == [nil], "\(text)")
        }
    }

    @Test func timestampsAreReadInEveryUsualForm() {
        let second: Int64 = 1_767_323_045_000_000
        check(
            .timestamp,
            [
                ("\"2026-01-02T03:04:05\"", "\(second)"), ("\"2026-01-02 03:04:05Z\"", "\(second)"), ("\"2026-01-02t03:04:05z\"", "\(second)"), ("\"2026-01-02T03:04:05.6\"", "\(second + 600_000)"),
                ("\"2026-01-02T03:04:05.678901+00:00\"", "\(second + 678_901)"), ("\"2026-01-02T05:34:05+02:30\"", "\(second)"), ("\"2026-01-02T05:34:05+0230\"", "\(second)"),
                ("\"2026-01-01T22:04:05-05\"", "\(second)"), ("\"2026-01-02 03:04:05.1234567890123\"", "\(second + 123_457)"), ("\"2026-01-02T03:04:05.9999996Z\"", "\(second + 1_000_000)"),
                ("\"2026-01-02\"", "1767312000000000"), ("\"2026-01-02T03:04\"", "\(second - 5_000_000)"), ("\"2024-02-29T00:00:00\"", "1709164800000000"), ("\"0001-01-01 00:00:00\"", "-62135596800000000"),
                ("\"2026-01-01T24:00:00\"", "1767312000000000"), ("\"1969-12-31T23:59:59.999999Z\"", "-1"), ("\"infinity\"", "\(Int64.max)"), ("\"2026-01-02 03:04:05 UTC\"", "\(second)"),
                ("\"294247-01-01T23:59:59.999999\"", "9223371331199999999"),
            ],
            refused: [
                "\"2026-02-30\"", "\"2026-13-01T00:00:00\"", "\"2023-02-29T00:00:00\"", "\"2026-01-02T25:00:00\"", "\"2026-01-02T03:60:00\"", "\"2026-01-02T03:04:05.\"", "\"yesterday\"", "\"\"", "\"0000-01-01\"",
                "\"294247-01-02\"", "\"294276-12-31\"", "\"294247-01-01T24:00:00\"", "\"294247-01-01T23:59:59-15:59\"", "\"294247-01-10T12:00:00\"",
                "\"2026-01-02T03:04:05+99\"", "\"2026-01-02T03:04:05Zjunk\"", "\"294277-01-01\"", "true", "\"20260102\"", "[]",
            ])
        check(.timestamptz, [("\"2026-01-02T05:34:05.000001+02:30\"", "\(second + 1)")])
    }

    @Test func epochNumbersTellTheirUnitByTheirSize() {
        check(
            .timestamptz,
            [
                ("1767323045", "1767323045000000"), ("1767323045678", "1767323045678000"), ("1767323045678901", "1767323045678901"), ("1767323045678901234", "1767323045678901"), ("1767323045.25", "1767323045250000"),
                ("99999999999", "99999999999000000"), ("100000000000", "100000000000000"), ("-1", "-1000000"), ("0", "0"), ("1.767323045e9", "1767323045000000"),
            ], refused: ["1e20", "1e400"])
    }

    @Test func datesTimesBytesAndBooleans() {
        check(.date, [("\"2026-01-02\"", "20455"), ("20455", "20455"), ("\"2026-01-02T03:04:05Z\"", "20455"), ("\"1969-12-31\"", "-1")], refused: ["\"2026-02-29\"", "\"x\"", "1.5", "9999999999", "true"])
        check(.time, [("\"00:00:00\"", "0"), ("\"23:59:59.999999\"", "86399999999"), ("\"12:30\"", "45000000000")], refused: ["\"24:00:01\"", "\"12\"", "45000", "\"12:30:00Z\""])
        check(.boolean, [("true", "true"), ("false", "false"), ("\"TRUE\"", "true"), ("\"false\"", "false")], refused: ["1", "\"yes\"", "\"\"", "[]"])
        check(.bytea, [(#""\\x0aFF""#, "[10, 255]"), ("\"aGVsbG8=\"", "\(Array("hello".utf8))"), ("\"aGVsbG8\"", "\(Array("hello".utf8))"), ("\"\"", "[]"), (#""\\x""#, "[]")], refused: [#""\\x0""#, #""\\xzz""#, "\"a\"", "\"a=b=\"", "12"])
        check(.interval, [("\"1 day 02:00:00\"", "0 1 7200000000")], refused: ["\"soon\"", "5"])
    }

    @Test func jsonbIsCanonical() {
        check(.jsonb, [(#"{"b":1,"a":[true,null],"b":2.50}"#, #"{"a": [true, null], "b": 2.50}"#), ("\"x\"", "\"x\""), ("12", "12"), ("null", nil)], refused: [#""\u0000""#])
        // The check is the same when nobody reads the column.
        let decoded = JSONRecordDecoder(fields: [Field("v", .jsonb), Field("i", .interval)], wanted: [.position]).decode(.records([#"{"v":"\u0000","i":"soon"}"#, #"{"v":[]}"#]))
        #expect(decoded.rows == [["0"], ["1"]])
        #expect(decoded.rejects.map(\.column) == ["v", "i"])
    }

    @Test func missingFieldsAreNullAndUnknownOnesIgnored() {
        let decoder = JSONRecordDecoder(fields: [Field("a", .int64), Field("b", .varchar)], wanted: [.field(0), .field(1)])
        let decoded = decoder.decode(.records(["{}", #"{"b":"x","c":{"a":[1,{"b":2}]},"d":"\u00e9"}"#, #"{"a":null}"#, #" { "a" : 1 } "#]))
        #expect(decoded.rejects == [])
        #expect(decoded.rows == [[nil, nil], [nil, "x"], [nil, nil], ["1", nil]])
    }

    @Test func keysMatchToTheLetterFirstAndTheLastOfEqualOnesCounts() {
        let decoder = JSONRecordDecoder(fields: [Field("user_id", .int64), Field("Name", .varchar), Field("name", .varchar)], wanted: [.field(0), .field(1), .field(2)])
        let decoded = decoder.decode(
            .records([
                #"{"USER_ID":1,"user_id":2,"User_Id":3}"#, #"{"user_id":1,"user_id":"x","user_id":5}"#, #"{"user_id":5,"user_id":"x"}"#, #"{"Name":"a","name":"b","NAME":"c"}"#,
                #"{"user_id":1}"#, #"{"user_id":4,"user_id":null}"#, #"{"NAME":"c"}"#,
            ]))
        #expect(decoded.rows == [["2", nil, nil], ["5", nil, nil], [nil, nil, nil], [nil, "a", "b"], ["1", nil, nil], [nil, nil, nil], [nil, "c", nil]])
        #expect(decoded.rejects.map(\.position) == [2])
    }

    @Test func recordsThatAreNoObjectsAreRefusedWhole() {
        let records: [[UInt8]?] = [
            nil, [], Array("  ".utf8), Array("[]".utf8), Array("1".utf8), Array("\"x\"".utf8), Array("null".utf8), Array("{} {}".utf8), Array("{},".utf8), Array("{\"a\":1}}".utf8),
            [0xFF], Array("{\"a\":\"".utf8) + [0xC3, 0x28] + Array("\"}".utf8), Array("{\"a\":1,}".utf8), Array("{\"a\" 1}".utf8), Array("{a:1}".utf8), Array("{\"a\":tru}".utf8),
            Array("{\"a\":[1,2}".utf8), Array(String(repeating: "{\"a\":", count: 2000).utf8), Array(("{\"a\":" + String(repeating: "[", count: 2000) + String(repeating: "]", count: 2000) + "}").utf8),
        ]
        let decoder = JSONRecordDecoder(fields: [Field("a", .int64)], wanted: [.field(0)])
        for layout in ChunkLayout.allCases {
            let decoded = decoder.decode(.records(records, layout))
            #expect(decoded.rows == [])
            #expect(decoded.rejects.map(\.column) == records.map { _ in nil })
            #expect(decoded.rejects.map(\.raw) == records.map { $0 ?? [] })
        }
        let reasons = decoder.decode(.records(records)).rejects.map(\.reason)
        #expect(reasons[0] == "the record is null")
        #expect(reasons[1] == "the record is empty")
        #expect(reasons[3] == "the record is not a JSON object")
        #expect(reasons[10] == "the record is not valid UTF-8")
        #expect(reasons[18] == "JSON nested deeper than 1024 levels")
    }

    @Test(arguments: ["{\"v\":", "{\"v\":[1,", "{\"v\":1,", "{", "{\"v\"", "{\"v\":{\"w\":"])
    func aRecordThatEndsTooEarlyIsRefusedForWhatItIs(record: String) {
        let decoder = JSONRecordDecoder(fields: [Field("v", .int64)], wanted: [.field(0)])
        let deep = String(repeating: "[", count: 2000)
        for next in ["-", "\"\\x\":1}", "\"\\x\"]}", deep] {
            #expect(decoder.decode(.records([record, next])).rejects.first == decoder.decode(.records([record])).rejects.first, "\(next)")
        }
    }

    /// What a decoder expects from the records before never decides about a record: one that has seen many reads as one that has seen none.
    @Test func recordsBeforeDoNotChangeWhatIsReadOfARecord() {
        for length in [1, 6, 7, 11, 12, 13, 14, 15, 29, 60, 61, 62, 80] {
            let key = String(repeating: "k", count: length)
            let fields = [Field(key, .int64), Field("z", .varchar)]
            let whole = "{\"\(key)\":1,\"z\":\"a\"}"
            var records = [
                whole, "{\"\(key.dropLast())j\":2,\"z\":\"b\"}", "{\"\(key.uppercased())\":3}", "{\"\(key)\" :4,\"z\":null}",
                "{\n  \"\(key)\" : 5,\n  \"z\" : \"e\"\n}", "{\"z\":\"f\",\"\(key)\":6}", "{\"\(key)k\":7}", "{\"\\u006b\(key.dropFirst())\":8,\"z\":\"h\"}",
                "{\"\(key)\":9,\"z\":\"i\",\"z\":\"j\"}", "{\"\(key)\":10,}", "{}", "{\"\(key)\",\"z\"}", "{,\"\(key)\":1}", "{\"\(key)\":1 \"z\":\"a\"}",
            ]
            records += (1..<whole.utf8.count).map { String(whole.prefix($0)) }
            records = records.flatMap { [whole, $0] } + [whole]
            for layout in ChunkLayout.allCases {
                let decoded = JSONRecordDecoder(fields: fields, wanted: [.field(0), .field(1)]).decode(.records(records, layout))
                let alone = records.map { JSONRecordDecoder(fields: fields, wanted: [.field(0), .field(1)]).decode(.records([$0], layout)) }
                #expect(decoded.rows == alone.flatMap(\.rows), "a key of \(length) letters")
                #expect(decoded.rejects.map(\.reason) == alone.flatMap(\.rejects).map(\.reason), "a key of \(length) letters")
            }
        }
    }

    /// Bytes that would be expected lie behind the record or its window, and a zero byte is no token to expect anything at.
    @Test func nothingIsExpectedBeyondARecord() {
        let fields = [Field("a", .varchar), Field("b", .varchar)]
        for records in [
            ["{\"b\":1,\n\"a\":2}", "{\"b\":1,", "\"a\":5}"], ["{\n\"a\":2}", "{", "\"a\":5}"], ["{\n\"a\":2}", "{"], ["{", "\"b\":5}", "{", "\"b\":5}"],
            ["{\"a\":1 \0::2}"], ["{\"a\":1,\"b\":2}", "{\"a\":1 \0::2}"], ["{\0::2}"], ["{\"x\":[\(String(repeating: "1,", count: 50_000))1]}", "{\"a\":1,\"a\":1,\"a\":1 \0"],
        ] {
            for layout in ChunkLayout.allCases {
                let alone = records.map { JSONRecordDecoder(fields: fields, wanted: [.field(0), .field(1)]).decode(.records([$0], layout)) }
                let decoder = JSONRecordDecoder(fields: fields, wanted: [.field(0), .field(1)])
                for _ in 0..<3 {
                    let decoded = decoder.decode(.records(records, layout))
                    #expect(decoded.rows == alone.flatMap(\.rows), "\(records)")
                    #expect(decoded.rejects.map(\.reason) == alone.flatMap(\.rejects).map(\.reason), "\(records)")
                }
            }
        }
    }

    @Test func hiddenColumnsFollowTheRecordsThatWereAccepted() {
        let decoder = JSONRecordDecoder(fields: [Field("a", .int64)], wanted: [.partition, .timestamp, .position, .field(0)])
        let decoded = decoder.decode(.records([#"{"a":1}"#, "{", #"{"a":3}"#, "[]", #"{"a":5}"#]))
        #expect(decoded.rows == [["3", "0", "0", "1"], ["3", "2000", "2", "3"], ["3", nil, "4", "5"]])
        #expect(decoded.rejects.map(\.position) == [1, 3])
    }

    @Test func batchesEndAtTheirLimitsOfRowsAndBytes() {
        let decoder = JSONRecordDecoder(fields: [Field("a", .int64), Field("s", .varchar)], wanted: [.field(0), .field(1)])
        for layout in ChunkLayout.allCases {
            let many = decoder.decode(.records((0..<10_000).map { $0 == 5000 ? "broken" : "{\"a\":\($0)}" }, layout))
            #expect(many.batches.allSatisfy { $0.count <= Limits.batchRowsMax })
            #expect(many.rows.map(\.[0]) == (0..<10_000).filter { $0 != 5000 }.map { "\($0)" })
            let long = String(repeating: "é\\n", count: 40_000)
            let wide = decoder.decode(.records((0..<40).map { "{\"a\":\($0),\"s\":\"\(long)\"}" }, layout))
            #expect(wide.batches.count > 3)
            #expect(wide.rows.map(\.[0]) == (0..<40).map { "\($0)" })
            #expect(wide.rows.allSatisfy { $0[1]?.utf8.count == 120_000 })
        }
    }

    @Test func longKeysAndManyFieldsAreFound() {
        let names = (0..<300).map { index in "column_\(index)_" + String(repeating: "x", count: index % 70) }
        let decoder = JSONRecordDecoder(fields: names.map { Field($0, .int32) }, wanted: names.indices.map { .field($0) })
        let forward = "{" + names.enumerated().map { "\"\($0.element)\":\($0.offset)" }.joined(separator: ",") + "}"
        let backward = "{" + names.enumerated().reversed().map { "\"\($0.element)\":\($0.offset)" }.joined(separator: ",") + "}"
        let decoded = decoder.decode(.records([forward, backward, forward, "{\"\(names[299])\":1}"]))
        let full = names.indices.map { Optional("\($0)") }
        #expect(decoded.rejects == [])
        #expect(decoded.rows == [full, full, full, names.indices.map { $0 == 299 ? "1" : nil }])
    }
}
