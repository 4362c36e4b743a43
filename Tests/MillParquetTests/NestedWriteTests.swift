import MillColumnar
import MillIO
import MillTestKit
import Testing

@testable import MillParquet

/// Nested columns from JSON to a file and back.
@Suite struct NestedWriteTests {
    private static let shape = ParquetShape.group([
        ParquetMember("name", .value(.varchar)),
        ParquetMember("sizes", .list(ParquetMember("element", .value(.int32), isRequired: true)), isRequired: true),
        ParquetMember(
            "parts",
            .list(
                ParquetMember(
                    "element",
                    .group([
                        ParquetMember("price", .value(.numeric(precision: 9, scale: 2))), ParquetMember("on", .list(ParquetMember("element", .value(.boolean)))),
                    ])))),
        ParquetMember("seen", .map(key: ParquetMember("key", .value(.date), isRequired: true), value: ParquetMember("value", .value(.float64)))),
    ])

    private static func json(_ random: inout SeededGenerator) -> String {
        func list(_ count: Int, _ one: () -> String) -> String { "[" + (0..<count).map { _ in one() }.joined(separator: ",") + "]" }
        let names = ["null", #""""#, #""a\"b\\c\n""#, #""é\ud83e\udd80""#, #""plain and long enough to be on the heap""#]
        let sizes = list(random.number(0...9)) { "\(random.number(-5...5))" }
        let parts = random.oneIn(4) ? "null" : list(random.number(0...3)) {
            guard !random.oneIn(5) else { return "null" }
            let on = random.oneIn(3) ? "null" : list(random.number(0...3)) { random.pick(["true", "false", "null"]) }
            return #"{"price":\#(random.pick(["null", "1.25", "-3", "0.5"])),"on":\#(on)}"#
        }
        let days = (1...9).filter { _ in random.oneIn(3) }
        let seen = random.oneIn(4) ? "null" : "{" + days.map { #""2026-01-0\#($0)":\#(random.pick(["null", "0.5", "-7", "\"NaN\""]))"# }.joined(separator: ",") + "}"
        return #"{"parts":\#(parts),"name":\#(random.pick(names)),"sizes":\#(sizes),"seen":\#(seen)}"#
    }

    @Test(arguments: [false, true], 1...6) func whatIsWrittenIsRead(isV2: Bool, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var options = ParquetWriterOptions()
        options.usesDataPagesV2 = isV2
        options.pageRowsMax = random.pick([7, 100, 20_000])
        options.rowGroupRowsMax = random.pick([150, 1 << 20])
        options.compression = random.pick([.none, .zstd(level: 1)])
        let files = MemoryFileSystem()
        let columns = [ParquetColumn("number", .int64), ParquetColumn(ParquetMember("nested", Self.shape))]
        let writer = try ParquetWriter(try files.open("f", .create), columns, options)
        var expected: [Scalar] = []
        for batch in 0..<5 {
            let count = random.number(1...120)
            let (numbers, nested) = (Column(.int64, capacity: count), Column(.jsonb, capacity: count))
            for row in 0..<count {
                numbers.append(Int64(batch * 1000 + row))
                guard !random.oneIn(6) else {
                    nested.appendNull()
                    expected.append(.null)
                    continue
                }
                var canonical: [UInt8] = []
                try Array(Self.json(&random).utf8).withUnsafeBufferPointer { try JSONCanonicalizer.canonicalize($0, to: &canonical) }
                canonical.withUnsafeBufferPointer { nested.append(bytes: $0) }
                expected.append(.string(String(decoding: canonical, as: UTF8.self)))
            }
            try writer.append([numbers, nested], count: count)
        }
        try writer.finish()
        let file = try ParquetFile(try files.open("f", .read))
        #expect(file.columns.map(\.type) == [.int64, .jsonb])
        let read = try ParquetScan(file, [.init(1)]).rows().map { $0.values[0] }
        // Two decimals are two decimals.
        let wanted = expected.map { value -> Scalar in
            guard case .string(let text) = value else { return value }
            return .string(text.replacing(#""price": -3"#, with: #""price": -3.00"#).replacing(#""price": 0.5"#, with: #""price": 0.50"#))
        }
        try #require(read.count == wanted.count)
        for (row, (found, wanted)) in zip(read, wanted).enumerated() { try #require(found == wanted, "row \(row), seed \(seed)") }
    }

    @Test func aBatchWithOneUnfitValueIsRefusedAsAWhole() throws {
        let files = MemoryFileSystem()
        let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn(ParquetMember("nested", Self.shape))])
        func batch(_ rows: [String]) -> Column {
            let column = Column(.jsonb, capacity: rows.count)
            for row in rows { column.append(row) }
            return column
        }
        let whole = #"{"name": "a", "sizes": [1]}"#
        try writer.append([batch([whole])], count: 1)
        #expect(throws: ParquetError.valueDoesNotFit(column: "nested", row: 1, .notOfType("element"))) {
            try writer.append([batch([whole, #"{"sizes": ["x"]}"#])], count: 2)
        }
        #expect(throws: ParquetError.valueDoesNotFit(column: "nested", row: 0, .missingMember("sizes"))) {
            try writer.append([batch(["{}"])], count: 1)
        }
        try writer.append([batch([whole])], count: 1)
        try writer.finish()
        #expect(try ParquetScan(try ParquetFile(try files.open("f", .read)), [.init(0)]).rows().count == 2)
    }

    /// Leaves have more values than the batch has rows, or fewer.
    @Test func aLeafThatDoesNotFitIsOfTheRowThatHasIt() throws {
        let shape = ParquetShape.group([
            ParquetMember("days", .list(ParquetMember("element", .value(.date)))), ParquetMember("uid", .value(.varchar, .uuid)),
        ])
        let column = ParquetColumn(ParquetMember("nested", shape))
        let writer = try ParquetWriter(try MemoryFileSystem().open("f", .create), [column])
        let batch = Column(.jsonb, capacity: 5)
        for text in [
            #"{"days": ["2026-01-01", null, "2026-01-02", "2026-01-03"]}"#, "null", #"{"days": []}"#, #"{"days": ["2026-01-04", "infinity"]}"#,
        ] { batch.append(text) }
        batch.append(#"{"uid": "none"}"#)
        batch.setNull(1)
        #expect(throws: ParquetError.valueDoesNotFit(column: "nested", row: 3, .infinite)) { try writer.append([batch], count: 5) }
        let found = ColumnParts(of: column).unfit(batch, 5)
        #expect(found.map(\.row) == [3, 4] && found.map(\.reason) == [.infinite, .notOfType("uuid")])
    }
}
