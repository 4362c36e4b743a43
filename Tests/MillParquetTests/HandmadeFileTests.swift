import MillBase
import MillColumnar
import MillIO
import MillTestKit
import Testing

@testable import MillParquet

/// Files that our writer does not make: of one column and one page, put together here, or with another footer than they had.
@Suite struct HandmadeFileTests {
    private static let magic = Array("PAR1".utf8)

    private static func file(
        _ element: SchemaElement, valueCount: Int, _ encoding: Int32, levels: Encoding = .rle, statistics: ColumnStatistics? = nil,
        _ write: (OutputBytes) -> Void
    ) throws -> ParquetFile {
        let body = OutputBytes()
        write(body)
        let out = OutputBytes()
        out.append(magic)
        PageHeader(
            kind: .data(.init(valueCount: valueCount, encoding: encoding, definitionEncoding: levels.rawValue)),
            uncompressedByteCount: body.count, byteCount: body.count, checksum: nil
        )
        .write(to: out)
        out.append(body.bytes)
        let chunk = ColumnChunkMetadata(
            type: element.type ?? .int32, encodings: [encoding], path: [element.name], codec: 0, valueCount: Int64(valueCount),
            uncompressedByteCount: Int64(out.count - 4), compressedByteCount: Int64(out.count - 4), dataPageOffset: 4,
            statistics: statistics)
        let metadata = FileMetadata(
            version: 1, schema: [SchemaElement(name: "root", childCount: 1), element], rowCount: Int64(valueCount),
            rowGroups: [RowGroupMetadata(columns: [chunk], byteCount: 1, rowCount: Int64(valueCount))], orders: [true])
        return try file(out, metadata)
    }

    /// What lies before the footer, and a footer.
    private static func file(_ out: OutputBytes, _ metadata: FileMetadata) throws -> ParquetFile {
        let start = out.count
        metadata.write(to: out)
        out.appendLittleEndian(UInt32(out.count - start))
        out.append(magic)
        let file = try MemoryFileSystem().open("handmade", .create)
        try file.write(out.bytes, at: 0)
        return try ParquetFile(file)
    }

    /// A file of ours, with something else behind its pages and in its footer.
    private static func changed(_ file: ParquetFile, _ change: (OutputBytes, inout FileMetadata) -> Void) throws -> ParquetFile {
        let out = OutputBytes()
        let before = try ParquetFile.read(file.file, at: 0, file.footerStart)
        withExtendedLifetime(before) { out.append(before.bytes) }
        var metadata = file.metadata
        change(out, &metadata)
        return try Self.file(out, metadata)
    }

    private static func values(_ file: ParquetFile, where conditions: [ParquetCondition] = []) throws -> [Scalar] {
        try ParquetScan(file, [.init(0)], where: conditions).rows().map { $0.values[0] }
    }

    private static func malformed(_ reason: Malformed) -> ParquetError {
        .malformed(file: "handmade", offset: 4, column: "x", reason)
    }

    @Test func aColumnThatIsAlwaysNullHasNoValues() throws {
        let element = SchemaElement(type: .int32, repetition: .required, name: "x", logical: .unknown)
        let file = try Self.file(element, valueCount: 3, 0, statistics: ColumnStatistics(max: [9, 9, 9, 9], min: [1, 1, 1, 1])) { body in
            for _ in 0..<3 { body.appendLittleEndian(Int32.max) }
        }
        for conditions in [[], [ParquetCondition(column: 0, .between(.string("a"), .string("b")))]] {
            #expect(throws: ParquetError.self) { try Self.values(file, where: conditions) }
        }
    }

    @Test func valuesOfOneLengthHaveIt() throws {
        let element = SchemaElement(type: .fixedBytes, typeLength: 16, repetition: .required, name: "x", logical: .uuid)
        for (length, isRight) in [(16, true), (0, false), (15, false), (5000, false)] {
            let file = try Self.file(element, valueCount: 1, Encoding.deltaByteArray.rawValue) { body in
                DeltaEncoder.encode([0] as [Int32], 1, to: body)
                DeltaEncoder.encode([Int32(length)], 1, to: body)
                body.append([UInt8](repeating: 0xAB, count: length))
            }
            if isRight {
                #expect(try Self.values(file) == [.string("abababab-abab-abab-abab-abababababab")])
            } else {
                #expect(throws: ParquetError.self, "\(length) bytes") { try Self.values(file) }
            }
        }
    }

    @Test func aPageOfNullsNeedsNeitherValuesNorADictionary() throws {
        let element = SchemaElement(type: .int32, repetition: .optional, name: "x")
        func file(_ encoding: Encoding, level: UInt32, values: [UInt8]) throws -> ParquetFile {
            try Self.file(element, valueCount: 5, encoding.rawValue) { body in
                body.appendLittleEndian(UInt32(2))
                HybridEncoder.appendRun(of: level, 5, width: 1, to: body)
                body.append(values)
            }
        }
        for encoding in [Encoding.plain, .deltaBinaryPacked, .rleDictionary, .byteStreamSplit] {
            #expect(try Self.values(file(encoding, level: 0, values: [])) == Array(repeating: .null, count: 5))
            #expect(throws: Self.malformed(.cutShort)) { try Self.values(file(encoding, level: 1, values: [])) }
        }
        #expect(try Self.values(file(.rleDictionary, level: 0, values: [32])) == Array(repeating: .null, count: 5))
        #expect(throws: ParquetError.self) { try Self.values(file(.rleDictionary, level: 1, values: [0, 10])) }
    }

    @Test func whatIsNotKnownIsNoFaultOfTheFile() throws {
        let element = SchemaElement(type: .int32, repetition: .optional, name: "x")
        for (encoding, levels) in [(77, Encoding.rle), (0, .bitPacked)] as [(Int32, Encoding)] {
            let file = try Self.file(element, valueCount: 1, encoding, levels: levels) { body in
                body.appendLittleEndian(UInt32(2))
                HybridEncoder.appendRun(of: 1, 1, width: 1, to: body)
                body.appendLittleEndian(Int32(1))
            }
            let error = #expect(throws: ParquetError.self) { try Self.values(file) }
            #expect(error?.sqlError.sqlState == .featureNotSupported)
        }
        let wide = SchemaElement(type: .int32, repetition: .required, name: "x", logical: .integer(bits: 64, signed: true))
        #expect(try Self.file(wide, valueCount: 0, 0) { _ in }.columns[0].type == nil)
    }

    @Test func timesThatSQLDoesNotHaveAreAnError() throws {
        func check<T: FixedWidthInteger & BitwiseCopyable>(_ logical: LogicalType, _ values: [T], areRight: Bool) throws {
            let type: StoredType = T.bitWidth == 32 ? .int32 : .int64
            for value in values {
                let element = SchemaElement(type: type, repetition: .required, name: "x", logical: logical)
                let file = try Self.file(element, valueCount: 1, 0) { $0.appendLittleEndian(value) }
                if areRight {
                    #expect(try Self.values(file).count == 1, "\(logical), \(value)")
                } else {
                    #expect(throws: Self.malformed(.valueOutOfRange), "\(logical), \(value)") { try Self.values(file) }
                }
            }
        }
        try check(.date, [Int32.min, .max, -2_440_588, 2_145_042_905], areRight: true)
        try check(.date, [Int32.min + 1, .max - 1, -2_440_589, 2_145_042_906], areRight: false)
        try check(.time(.millis, utc: false), [0, 86_400_000] as [Int32], areRight: true)
        try check(.time(.millis, utc: false), [-1, 86_400_001] as [Int32], areRight: false)
        try check(.time(.micros, utc: false), [0, 86_400_000_000] as [Int64], areRight: true)
        try check(.time(.micros, utc: false), [.min, -1, 86_400_000_001, .max] as [Int64], areRight: false)
        try check(.time(.nanos, utc: false), [0, 86_400_000_000_000] as [Int64], areRight: true)
        try check(.time(.nanos, utc: false), [-1, .max] as [Int64], areRight: false)
        try check(.timestamp(.micros, utc: true), [.min, .max, 0, 9_223_371_331_199_999_999] as [Int64], areRight: true)
        try check(.timestamp(.micros, utc: true), [.min + 1, .max - 1] as [Int64], areRight: false)
        try check(.timestamp(.millis, utc: true), [.min, .max, -9_223_372_036_854_775] as [Int64], areRight: false)
        try check(.timestamp(.nanos, utc: false), [.min, .max] as [Int64], areRight: true)
    }

    @Test func anOffsetIndexWithoutPagesIsAnError() throws {
        let files = MemoryFileSystem()
        var options = ParquetWriterOptions()
        options.pageRowsMax = 100
        let columns = [ParquetColumn("a", .int64), ParquetColumn("b", .int64)]
        let writer = try ParquetWriter(try files.open("f", .create), columns, options)
        for batch in 0..<10 {
            let numbers = Column.constant(.int(Int64(batch)), .int64, count: 100)
            try writer.append([numbers, numbers], count: 100)
        }
        try writer.finish()
        let condition = ParquetCondition(column: 0, .between(.int(5), .int(6)))
        let whole = try ParquetFile(try files.open("f", .read))
        #expect(try ParquetScan(whole, [.init(0), .init(1)], where: [condition]).rows().count == 200)
        for column in 0..<2 {
            let file = try Self.changed(whole) { out, metadata in
                let start = out.count
                OffsetIndex(pages: []).write(to: out)
                let range = FileRange(offset: Int64(start), length: Int32(out.count - start))
                metadata.rowGroups[0].columns[column].offsetIndex = range
            }
            #expect(throws: ParquetError.self) { try ParquetScan(file, [.init(0), .init(1)], where: [condition]).rows() }
        }
    }

    @Test func boundsOfTextsWithoutAnOrderAreNotUsed() throws {
        let files = MemoryFileSystem()
        let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn("t", .varchar)])
        try writer.append([Column.constant(.string("a"), .varchar, count: 10)], count: 10)
        try writer.finish()
        let whole = try ParquetFile(try files.open("f", .read))
        for (orders, count) in [([true], 0), ([], 10)] as [([Bool], Int)] {
            // By an order of its writer's own, "z" is below "a".
            let file = try Self.changed(whole) { _, metadata in
                metadata.orders = orders
                metadata.rowGroups[0].columns[0].columnIndex = nil
                metadata.rowGroups[0].columns[0].statistics = ColumnStatistics(max: Array("z".utf8), min: Array("z".utf8))
            }
            let rows = try Self.values(file, where: [ParquetCondition(column: 0, .between(.string("a"), .string("b")))])
            #expect(rows.count == count)
        }
    }

    /// Pages that are whole, under a schema that says something else of them: damage that flipped bytes hardly ever find.
    @Test(arguments: 1...100) func pagesOfOtherTypesAreErrorsOrFiles(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed &* 15_485_863)
        let files = MemoryFileSystem()
        let sample = SampleFile(using: &random, rows: random.pick([10, 700]), old: true)
        try sample.write("f", to: files)
        let whole = try ParquetFile(try files.open("f", .read))
        for _ in 0..<20 {
            let elements = sample.columns.indices.map { whole.metadata.schema[$0 + 1] }
                .map { random.oneIn(2) ? Self.element(&random) : $0 }
            do {
                let file = try Self.changed(whole) { _, metadata in
                    for (index, element) in elements.enumerated() {
                        metadata.schema[index + 1] = element
                        for group in metadata.rowGroups.indices {
                            metadata.rowGroups[group].columns[index].type = element.type ?? .boolean
                        }
                    }
                }
                for column in file.columns.indices where file.columns[column].type != nil {
                    for isConditional in [false, true] {
                        do { try Self.printAll(column, of: file, isConditional: isConditional) } catch is ParquetError {}
                    }
                }
            } catch is ParquetError {}
        }
    }

    private static func element(_ random: inout SeededGenerator) -> SchemaElement {
        let units: [LogicalType.TimeUnit] = [.millis, .micros, .nanos]
        let meanings: [LogicalType?] = [
            nil, .string, .enumeration, .decimal(precision: 9, scale: 2), .decimal(precision: 38, scale: 38), .date, .unknown, .json, .bson,
            .uuid, .float16, .interval, .list, .map, .other(99),
            .time(random.pick(units), utc: true), .timestamp(random.pick(units), utc: random.oneIn(2)),
            .integer(bits: random.pick([8, 16, 32, 64]), signed: random.oneIn(2)),
        ]
        var element = SchemaElement(name: "x")
        let types: [StoredType] = [.boolean, .int32, .int64, .int96, .float, .double, .byteArray, .fixedBytes]
        element.type = random.pick(types)
        if element.type == .fixedBytes { element.typeLength = random.pick([1, 2, 12, 16, 17, 1 << 30]) }
        element.logical = random.pick(meanings)
        // It has no newer name.
        if element.logical == .interval { element.converted = .interval }
        let repetitions: [Repetition] = [.required, .optional, .optional, .repeated]
        element.repetition = random.pick(repetitions)
        return element
    }

    /// Reads a column, as a whole or by a condition, and looks at all that comes.
    private static func printAll(_ column: Int, of file: ParquetFile, isConditional: Bool) throws {
        let values = file.columns[column].type.map { RandomValues.all($0) } ?? []
        let conditions = values.prefix(isConditional ? 1 : 0).map { ParquetCondition(column: column, .between($0, nil)) }
        let scan = try ParquetScan(file, [.init(column)], where: conditions)
        while let batch = try scan.next() {
            for row in 0..<batch.count { _ = batch.columns[0].text(row) }
        }
    }

    /// Some writers keep bounds in the headers of pages, of any length.
    @Test func aPagesHeaderMayBeLongerThanWhatIsReadAtFirst() throws {
        for length in [10, 8000, 9000, 100_000] {
            let out = OutputBytes()
            var writer = CompactWriter(out)
            writer.element {
                $0.field(1, PageType.data.rawValue)
                $0.field(2, Int32(4))
                $0.field(3, Int32(4))
                $0.field(5) {
                    $0.field(1, Int32(1))
                    $0.field(2, Encoding.plain.rawValue)
                    $0.field(3, Encoding.rle.rawValue)
                    $0.field(4, Encoding.rle.rawValue)
                    $0.field(5) { $0.field(6, [UInt8](repeating: 7, count: length)) }
                }
            }
            let headerByteCount = out.count
            out.appendLittleEndian(Int32(5))
            let file = try MemoryFileSystem().open("page", .create)
            try file.write(out.bytes, at: 0)
            var bytes = ChunkBytes(file, end: out.count)
            let (header, byteCount) = try bytes.header(at: 0)
            #expect(byteCount == headerByteCount)
            #expect(header.byteCount == 4)
        }
    }
}
