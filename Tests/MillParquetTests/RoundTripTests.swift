import MillColumnar
import MillIO
import MillTestKit
import Testing

@testable import MillParquet

@Suite struct RoundTripTests {
    /// Extreme numbers are what SQL has them as; nobody else does.
    @Test(arguments: [SQLType.date, .timestamp, .timestamptz], [false, true]) func infinityIsRefused(type: SQLType, isLegacy: Bool) throws {
        let options = isLegacy ? ParquetWriterOptions.legacy : ParquetWriterOptions()
        let writer = try ParquetWriter(try MemoryFileSystem().open("f", .create), [ParquetColumn("at", type)], options)
        let extremes: [Int64] = type == .date ? [Int64(Int32.max), Int64(Int32.min)] : [.max, .min]
        for extreme in extremes {
            let column = Column(type, capacity: 3)
            for value in [.null, .int(0), .int(extreme)] as [Scalar] { column.append(value) }
            #expect(throws: ParquetError.valueDoesNotFit(column: "at", row: 2, .infinite)) { try writer.append([column], count: 3) }
        }
        try writer.append([.constant(.int(extremes[0] / 2), type, count: 1)], count: 1)
        #expect(try writer.finish().rowCount == 1)
    }

    @Test func theEndOfADayIsRefused() throws {
        let writer = try ParquetWriter(try MemoryFileSystem().open("f", .create), [ParquetColumn("at", .time)])
        #expect(throws: ParquetError.valueDoesNotFit(column: "at", row: 0, .endOfDay)) {
            try writer.append([.constant(.int(TimeUnits.microsPerDay), .time, count: 1)], count: 1)
        }
        try writer.append([.constant(.int(TimeUnits.microsPerDay - 1), .time, count: 1)], count: 1)
    }

    @Test(arguments: 1...60) func whatIsWrittenIsRead(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let sample = SampleFile(using: &random, rows: random.pick([0, 1, 700, 9000]))
        let files = MemoryFileSystem()
        try sample.write("f", to: files)
        let file = try ParquetFile(try files.open("f", .read))
        #expect(file.columns.map(\.name) == sample.columns.map(\.name))
        #expect(file.columns.map(\.fieldID) == sample.columns.map(\.fieldID))
        let wanted = sample.rows
        #expect(file.metadata.rowCount == Int64(wanted.count))
        // Some of the columns, in another order.
        let picked = sample.columns.indices.filter { _ in !random.oneIn(3) }.shuffled(using: &random)
        let read = try ParquetScan(file, picked.map { .init($0) }).rows()
        #expect(read.map(\.position) == (0..<wanted.count).map { Int64($0) })
        for (row, expected) in zip(read, wanted) {
            for (value, column) in zip(row.values, picked) {
                let expected = stored(expected[column], sample.columns[column].type)
                try #require(isSame(value, expected), "row \(row.position), \(sample.columns[column]): \(value) for \(expected)")
            }
        }
    }

    /// Intervals come back as text.
    private func stored(_ value: Scalar, _ type: SQLType) -> Scalar {
        guard case .interval(let interval) = value else { return value }
        var text: [UInt8] = []
        TextOutput.append(interval, to: &text)
        return .string(String(decoding: text, as: UTF8.self))
    }

    @Test func oldReadersGetWhatTheyKnow() throws {
        let files = MemoryFileSystem()
        let columns = [
            ParquetColumn("price", .numeric(precision: 10, scale: 0)), ParquetColumn("at", .timestamptz), ParquetColumn("name", .varchar),
        ]
        let writer = try ParquetWriter(try files.open("f", .create), columns, .legacy)
        let prices = Column(columns[0].type, capacity: 100)
        let times = Column(.timestamptz, capacity: 100)
        let names = Column(.varchar, capacity: 100)
        for row in 0..<100 {
            prices.append(Decimal(Int64(row) - 50))
            times.append(Int64(row) * 1_000_001)
            names.append("name \(row % 3)")
        }
        try writer.append([prices, times, names], count: 100)
        let footer = try writer.finish()
        #expect(footer.version == 1)
        #expect(footer.schema[1].type == .fixedBytes)
        #expect(footer.schema[1].typeLength == 5)
        #expect(footer.schema[1].converted == .decimal)
        #expect(footer.schema[2].type == .int96)
        #expect(footer.rowGroups[0].columns[1].statistics?.min == nil)
        #expect(Set(footer.rowGroups[0].columns[2].encodings) == [Encoding.plainDictionary.rawValue, Encoding.rle.rawValue])
        let file = try ParquetFile(try files.open("f", .read))
        #expect(file.columns.map(\.type) == [.numeric(precision: 10, scale: 0), .timestamp, .varchar])
        let rows = try ParquetScan(file, [.init(0), .init(1, as: .timestamptz), .init(2)]).rows()
        #expect(rows[7].values == [.decimal(Decimal(-43)), .int(7_000_007), .string("name 1")])
    }

    @Test func aBatchWithAnUnfitValueIsRefusedAsAWhole() throws {
        let files = MemoryFileSystem()
        let columns = [ParquetColumn("a", .int32), ParquetColumn("b", .numeric(precision: 5, scale: 2), isRequired: true)]
        let writer = try ParquetWriter(try files.open("f", .create), columns)
        func batch(_ number: Int32, _ decimal: Decimal?) -> [Column] {
            let a = Column(.int32, capacity: 2)
            a.append(number)
            a.append(number)
            let b = Column(columns[1].type, capacity: 2)
            b.append(Decimal(1))
            if let decimal { b.append(decimal) } else { b.appendNull() }
            return [a, b]
        }
        let unfit: [(Decimal?, UnfitValue)] = [
            (nil, .missingInRequiredColumn), (Decimal(.nan), .notFinite), (Decimal(1000), .tooManyDigits(precision: 5, scale: 2)),
            (Decimal(unscaled: 1, scale: 3), .tooManyDigits(precision: 5, scale: 2)),
        ]
        for (value, reason) in unfit {
            #expect(throws: ParquetError.valueDoesNotFit(column: "b", row: 1, reason)) { try writer.append(batch(1, value), count: 2) }
        }
        try writer.append(batch(2, Decimal(unscaled: 9990, scale: 1)), count: 2)
        try writer.finish()
        let rows = try ParquetScan(try ParquetFile(try files.open("f", .read)), [.init(0), .init(1)]).rows()
        #expect(rows.map(\.values) == [[.int(2), .decimal(Decimal(unscaled: 100, scale: 2))], [.int(2), .decimal(Decimal(unscaled: 99900, scale: 2))]])
    }

    @Test func boundsLeaveOutNaNAndKnowBothZeros() throws {
        let files = MemoryFileSystem()
        func statistics(_ values: [Double]) throws -> ColumnChunkMetadata {
            let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn("x", .float64)])
            let column = Column(.float64, capacity: values.count)
            for value in values { column.append(value) }
            try writer.append([column], count: values.count)
            return try writer.finish().rowGroups[0].columns[0]
        }
        func bytes(_ value: Double) -> [UInt8] { withUnsafeBytes(of: value.bitPattern.littleEndian) { Array($0) } }
        let mixed = try statistics([.nan, 1, -2, .nan])
        #expect(mixed.statistics?.min == bytes(-2))
        #expect(mixed.statistics?.max == bytes(1))
        #expect(mixed.columnIndex != nil)
        let zeros = try statistics([0, 0])
        #expect(zeros.statistics?.min == bytes(-0.0))
        #expect(zeros.statistics?.max == bytes(0.0))
        let none = try statistics([.nan])
        #expect(none.statistics?.min == nil)
        #expect(none.columnIndex == nil)
        #expect(none.offsetIndex != nil)
    }

    @Test func longBoundsAreCutToBoundsOfTheSameKind() {
        #expect(BoundCut.below(Array("abcdef".utf8), 3, isText: true) == Array("abc".utf8))
        #expect(BoundCut.above(Array("abcdef".utf8), 3, isText: true) == Array("abd".utf8))
        #expect(BoundCut.above(Array("abc".utf8), 3, isText: true) == Array("abc".utf8))
        // Two bytes each: no character is cut in two.
        #expect(BoundCut.below(Array("ěěě".utf8), 3, isText: true) == Array("ě".utf8))
        #expect(BoundCut.above(Array("\u{D7FF}\u{D7FF}".utf8), 4, isText: true) == Array("\u{E000}".utf8))
        #expect(BoundCut.above(Array("a\u{10FFFF}\u{10FFFF}".utf8), 5, isText: true) == Array("b".utf8))
        #expect(BoundCut.above(Array("\u{10FFFF}\u{10FFFF}".utf8), 4, isText: true) == nil)
        #expect(BoundCut.above([1, 0xFF, 0xFF, 7], 3, isText: false) == [2])
        #expect(BoundCut.above([0xFF, 0xFF], 1, isText: false) == nil)
    }

    @Test func aFileWithoutRowsHasItsColumns() throws {
        let files = MemoryFileSystem()
        try ParquetWriter(try files.open("f", .create), [ParquetColumn("x", .varchar)]).finish()
        let file = try ParquetFile(try files.open("f", .read))
        #expect(file.columns.map(\.type) == [.varchar])
        #expect(try ParquetScan(file, [.init(0)]).rows().isEmpty)
    }
}
