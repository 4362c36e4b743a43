import MillBase
import MillColumnar
import MillConnectorKit
import MillTestKit
import Testing

@testable import MillText

/// Records of CSV, from bytes to columns.
@Suite struct CSVRecordDecoderTests {
    /// All records of a text, cut as a reader does.
    private func chunk(_ bytes: [UInt8], _ header: [String]?, delimiter: UInt8, isLast: Bool = true) -> RawChunk {
        let owner = ChunkBytes(bytes, slack: "\"")
        let cut = CSVRecordDecoder.cut(
            UnsafeRawBufferPointer(start: owner.start, count: bytes.count), delimiter: delimiter, isLast: isLast, countMax: 10_000,
            bytesMax: .max)
        return RawChunk(
            bytes: UnsafeRawPointer(owner.start), byteCount: cut.byteCount, starts: cut.starts, lengths: cut.lengths,
            positions: cut.starts.map(Int64.init), timestamps: nil, nextOffset: SplitOffset(Int64(cut.byteCount)),
            file: SplitFile(location: "f.csv", header: header), owner: owner)
    }

    private func decode(
        _ text: String, _ fields: [Field], wanted: [Int]? = nil, header: [String]? = nil, delimiter: Character = ","
    ) throws -> DecodedChunk {
        let delimiter = try #require(delimiter.asciiValue)
        let decoder = CSVRecordDecoder(fields: fields, wanted: wanted ?? Array(fields.indices), delimiter: delimiter)
        return try decoder.decode(chunk(Array(text.utf8), header, delimiter: delimiter))
    }

    private let texts = [Field("a", .varchar), Field("b", .varchar)]

    @Test func quotedValuesKeepDelimitersQuotesAndNewlines() throws {
        let found = try decode("\"x,y\",\"say \"\"hi\"\"\"\r\n\"two\r\nlines\",plain \n", texts)
        #expect(found.rows == [["x,y", "say \"hi\""], ["two\r\nlines", "plain "]])
        #expect(found.rejects.isEmpty)
    }

    @Test func nothingIsNullAndQuotedNothingIsAnEmptyText() throws {
        let fields = texts + [Field("c", .int32)]
        #expect(try decode(",\"\",\"\"\n\"\",,1\n", fields).rows == [[nil, "", nil], ["", nil, "1"]])
    }

    @Test func aQuoteInsideAValueWithoutQuotesIsAByteLikeOthers() throws {
        #expect(try decode("a\"b,\"c\"\n5\" pipe,x\n", texts).rows == [["a\"b", "c"], ["5\" pipe", "x"]])
    }

    @Test func valuesFindTheirColumnsByTheHeaderInAnyOrder() throws {
        let fields = [Field("id", .int64), Field("user_agent", .varchar), Field("missing", .int32)]
        let found = try decode("curl,x,7\n", fields, header: ["User-Agent", "other", "ID"])
        #expect(found.rows == [["7", "curl", nil]])
        #expect(throws: SQLError.self) { try decode("1\n", fields, header: ["nothing"]) }
    }

    @Test func everyTypeIsRead() throws {
        let fields = [
            Field("a", .boolean), Field("b", .int16), Field("c", .float64), Field("d", .numeric(precision: 6, scale: 2)), Field("e", .date),
            Field("f", .time), Field("g", .timestamp), Field("h", .timestamptz), Field("i", .interval), Field("j", .jsonb),
            Field("k", .bytea),
        ]
        let record = #"T;-12;1e3;12.345;2026-01-31;12:30;2026-01-31 12:00:00.5;2026-01-31T12:00:00+01:00;1 day;"{""b"":1}";\x00ff"#
        #expect(
            try decode(record + "\n", fields, delimiter: ";").rows == [
                [
                    "true", "-12", "1000.0", "1235e-2", "20484", "45000000000", "1769860800500000", "1769857200000000", "0 1 0",
                    #"{"b": 1}"#, "[0, 255]",
                ]
            ])
    }

    @Test func whatCannotBeAcceptedIsRefusedWithItsPositionAndReason() throws {
        let fields = [Field("a", .int64), Field("b", .varchar)]
        let found = try decode("1,x\n1\n1,2,3\nzero,y\n\"1\"x,y\n9223372036854775808,z\n2,\"open\n", fields)
        #expect(found.rows == [["1", "x"], [nil, "y"], [nil, "z"]])
        #expect(found.rejects.map(\.position) == [4, 6, 12, 19, 26, 48])
        #expect(found.rejects.map(\.column) == [nil, nil, "a", nil, "a", nil])
        #expect(found.rejects[2].raw == Array("zero".utf8))
        #expect(found.rejects.map(\.reason).last == "malformed CSV: a quote is not closed")
    }

    @Test func badUTF8AndZeroBytesRefuseTheirRecordAlone() throws {
        let bytes: [UInt8] = Array("1,a\n2,".utf8) + [0xFF, 10] + Array("3,".utf8) + [0, 10] + Array("4,é\n".utf8)
        let decoder = CSVRecordDecoder(fields: [Field("a", .int64), Field("b", .varchar)], wanted: [0, 1], delimiter: 44)
        let found = try decoder.decode(chunk(bytes, nil, delimiter: 44))
        #expect(found.rows == [["1", "a"], ["4", "é"]])
        #expect(found.rejects.map(\.position) == [4, 8])
    }

    @Test func refusedRecordsOfABatchLeaveTheNextOneNothingUnchecked() throws {
        let good = Limits.batchRowsMax - 1
        let bytes = Array("1\n".utf8) + Array(repeatElement(Array("1,a\n".utf8), count: good).joined()) + Array("2,".utf8) + [0xFF, 10]
        let decoder = CSVRecordDecoder(fields: [Field("a", .int64), Field("b", .varchar)], wanted: [0, 1], delimiter: 44)
        let found = try decoder.decode(chunk(bytes, nil, delimiter: 44))
        #expect(found.rows.count == good)
        #expect(found.rejects.map(\.position) == [0, Int64(bytes.count - 4)])
    }

    @Test func whatIsNotWantedIsCheckedAllTheSame() throws {
        let fields = [Field("a", .int64), Field("b", .varchar)]
        let text = "x,1\n2,3\n"
        #expect(try decode(text, fields, wanted: [1]).rejects == decode(text, fields).rejects)
        #expect(try decode(text, fields, wanted: []).batches.map(\.count) == [2])
    }

    @Test func aRecordThatHasNoEndYetWaits() {
        for (text, whole) in [("a,b\nc,", 4), ("a,\"x\ny", 0), ("a,\"x\"\n\"", 6), ("\n\na,b", 2), ("", 0)] {
            let cut = Array(text.utf8).withUnsafeBytes {
                CSVRecordDecoder.cut($0, delimiter: 44, isLast: false, countMax: 10, bytesMax: .max)
            }
            #expect(cut.byteCount == whole, "\(text)")
        }
    }

    /// The fast decoder says what `values`, which goes byte by byte, says of each record, of any bytes.
    @Test(arguments: 0..<200) func hostileBytesAreReadAsTheSlowReaderReadsThem(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let alphabet: [UInt8] = Array("\"\",,\n\n\r;ab1 ".utf8) + [0xC3, 0xA9, 0xFF, 0]
        let places = Int(random.next() % 4) + 1
        let bytes = (0..<Int(random.next() % 400)).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
        let fields = (0..<places).map { Field("c\($0)", .varchar) }
        let chunk = chunk(bytes, nil, delimiter: 44)
        #expect(chunk.byteCount == bytes.count, "seed \(seed)")
        let found = try CSVRecordDecoder(fields: fields, wanted: Array(fields.indices), delimiter: 44).decode(chunk)
        var expected: [[String]] = []
        var refused: [Int64] = []
        for (index, start) in chunk.starts.enumerated() {
            let record = Array(bytes[Int(start)..<Int(start) + Int(chunk.lengths[index])])
            let values = record.withUnsafeBytes { CSVRecordDecoder.values($0, delimiter: 44) }
            if let values, values.count == places, !record.contains(0) { expected.append(values) } else { refused.append(Int64(start)) }
        }
        #expect(found.rows.map { $0.map { $0 ?? "" } } == expected, "seed \(seed)")
        #expect(found.rejects.map(\.position) == refused, "seed \(seed)")
        // Cut anywhere, what comes of the parts is what comes of the whole.
        let middle = bytes.isEmpty ? 0 : Int(random.next() % UInt64(bytes.count))
        let first = Array(bytes[..<middle]).withUnsafeBytes {
            CSVRecordDecoder.cut($0, delimiter: 44, isLast: false, countMax: 1000, bytesMax: .max)
        }
        let rest = Array(bytes[first.byteCount...]).withUnsafeBytes {
            CSVRecordDecoder.cut($0, delimiter: 44, isLast: true, countMax: 1000, bytesMax: .max)
        }
        #expect(first.starts + rest.starts.map { $0 + UInt32(first.byteCount) } == chunk.starts, "seed \(seed), cut at \(middle)")
        #expect(first.lengths + rest.lengths == chunk.lengths, "seed \(seed), cut at \(middle)")
    }
}
