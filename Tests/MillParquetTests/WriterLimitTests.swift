import MillColumnar
import MillIO
import Testing

@testable import MillParquet

/// What a writer does at its limits, and when its file fails.
@Suite struct WriterLimitTests {
    @Test func afterAFailureOfTheFileNothingMakesItLookWhole() throws {
        let files = MemoryFileSystem()
        var options = ParquetWriterOptions()
        options.rowGroupRowsMax = 100
        let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn("n", .int64)], options)
        let batch = [Column.constant(.int(1), .int64, count: 100)]
        try writer.append(batch, count: 100)
        files.setFault { operation, _ in operation == .write ? 28 : nil }
        let failure = ParquetError.io(IOFailure("write", path: "f", errorNumber: 28))
        #expect(throws: failure) { try writer.append(batch, count: 100) }
        files.setFault(nil)
        #expect(throws: failure) { try writer.append(batch, count: 100) }
        #expect(throws: failure) { try writer.finish() }
        #expect(throws: ParquetError.self) { try ParquetFile(try files.open("f", .read)) }
    }

    /// Else a page of a few long values would be made without its dictionary as well, many times as large as all that was handed over.
    @Test func longValuesEndThePageThatProvesTheDictionary() throws {
        let files = MemoryFileSystem()
        let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn("t", .varchar)])
        var expected: [Scalar] = []
        func append(_ texts: [String]) throws {
            let column = Column(.varchar, capacity: texts.count)
            for text in texts { column.append(text) }
            try writer.append([column], count: texts.count)
            expected += texts.map { .string($0) }
        }
        let long = String(repeating: "long ", count: 2000)
        // The first batch is more than a page; the next two are a page's numbers.
        for _ in 0..<3 { try append(Array(repeating: long, count: 300)) }
        // More than a dictionary may have: these end the page with it, and what follows goes without.
        try append((0..<150).map { "\($0) " + long })
        try append(Array(repeating: long, count: 10))
        let chunk = try writer.finish().rowGroups[0].columns[0]
        #expect(
            Set(chunk.pageCounts) == [
                PageEncodingCount(page: PageType.data.rawValue, encoding: Encoding.rleDictionary.rawValue, count: 2),
                PageEncodingCount(page: PageType.data.rawValue, encoding: Encoding.deltaLengthByteArray.rawValue, count: 1),
                PageEncodingCount(page: PageType.dictionary.rawValue, encoding: Encoding.plain.rawValue, count: 1),
            ])
        let rows = try ParquetScan(try ParquetFile(try files.open("f", .read)), [.init(0)]).rows()
        #expect(rows.map { $0.values[0] } == expected)
    }

    @Test func aBatchOfMoreThanAPageIsRefusedAsAWhole() throws {
        let files = MemoryFileSystem()
        let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn("t", .varchar)])
        let text = String(repeating: "x", count: 300 << 10)
        let batch = [Column.constant(.string(text), .varchar, count: 4096)]
        #expect(throws: ParquetError.batchTooLarge(column: "t", bytes: 4096 * 300 << 10)) { try writer.append(batch, count: 4096) }
        try writer.append(batch, count: 4)
        try writer.finish()
        let rows = try ParquetScan(try ParquetFile(try files.open("f", .read)), [.init(0)]).rows()
        #expect(rows.map { $0.values[0] } == Array(repeating: .string(text), count: 4))
    }

    /// The beginnings of texts that are in order need not be, as they end between characters.
    @Test func theOrderOfPagesIsThatOfTheirBoundsAsWritten() throws {
        let files = MemoryFileSystem()
        var options = ParquetWriterOptions()
        options.pageRowsMax = 1
        options.boundBytesMax = 4
        func order(_ texts: [String]) throws -> BoundaryOrder {
            let writer = try ParquetWriter(try files.open("f", .create), [ParquetColumn("t", .varchar)], options)
            for text in texts { try writer.append([Column.constant(.string(text), .varchar, count: 1)], count: 1) }
            let chunk = try writer.finish().rowGroups[0].columns[0]
            let file = try ParquetFile(try files.open("f", .read))
            let memory = try file.indexBytes(try #require(chunk.columnIndex), file.nodes[0].leaves[0])
            return try withExtendedLifetime(memory) { try ColumnIndex(memory.bytes).order }
        }
        #expect(try order(["a", "b", "c"]) == .ascending)
        #expect(try order(["c", "b", "a"]) == .descending)
        // "aaab" and "aaa".
        #expect(try order(["aaabbb", "aaaéé"]) == .unordered)
    }
}
