import MillColumnar
import MillIO
import MillTestKit
import Testing

@testable import MillParquet

/// Lists as different writers have them. Their files are put together here by hand: one leaf of INT32, its levels and values.
@Suite struct NestedTests {
    private static func file(
        _ schema: [SchemaElement], path: [String], definitionMax: Int, repetitionMax: Int,
        _ entries: [(repetition: UInt32, definition: UInt32)],
        values: [Int32], rowCount: Int
    ) throws -> ParquetFile {
        let body = OutputBytes()
        for (largest, levels) in [(repetitionMax, entries.map(\.repetition)), (definitionMax, entries.map(\.definition))] where largest > 0
        {
            let runs = OutputBytes()
            HybridEncoder.encode(levels, levels.count, width: BitPacking.width(UInt64(largest)), to: runs)
            body.appendLittleEndian(UInt32(runs.count))
            body.append(runs.bytes)
        }
        for value in values { body.appendLittleEndian(value) }
        let out = OutputBytes()
        out.append(Array("PAR1".utf8))
        PageHeader(
            kind: .data(.init(valueCount: entries.count, encoding: 0)), uncompressedByteCount: body.count, byteCount: body.count,
            checksum: nil
        )
        .write(to: out)
        out.append(body.bytes)
        let chunk = ColumnChunkMetadata(
            type: .int32, encodings: [0, 3], path: path, codec: 0, valueCount: Int64(entries.count),
            uncompressedByteCount: Int64(out.count - 4),
            compressedByteCount: Int64(out.count - 4), dataPageOffset: 4)
        let start = out.count
        FileMetadata(
            version: 1, schema: [SchemaElement(name: "root", childCount: 1)] + schema, rowCount: Int64(rowCount),
            rowGroups: [RowGroupMetadata(columns: [chunk], byteCount: 1, rowCount: Int64(rowCount))]
        ).write(to: out)
        out.appendLittleEndian(UInt32(out.count - start))
        out.append(Array("PAR1".utf8))
        let file = try MemoryFileSystem().open("nested", .create)
        try file.write(out.bytes, at: 0)
        return try ParquetFile(file)
    }

    private static func rows(_ file: ParquetFile, _ projection: NestedProjection = .asStored) throws -> [Scalar] {
        #expect(file.columns.map(\.type) == [.jsonb])
        return try ParquetScan(file, [.init(0, as: nil, projection)]).rows().map { $0.values[0] }
    }

    private static let list = SchemaElement(repetition: .optional, name: "l", childCount: 1, converted: .list, logical: .list)
    private static let repeatedGroup = SchemaElement(repetition: .repeated, name: "list", childCount: 1)

    @Test func listsOfThreeLevels() throws {
        let schema = [Self.list, Self.repeatedGroup, SchemaElement(type: .int32, repetition: .optional, name: "element")]
        // [1, null, 2], null, [], [3]
        let file = try Self.file(
            schema, path: ["l", "list", "element"], definitionMax: 3, repetitionMax: 1, [(0, 3), (1, 2), (1, 3), (0, 0), (0, 1), (0, 3)],
            values: [1, 2, 3], rowCount: 4)
        #expect(try Self.rows(file) == [.string("[1, null, 2]"), .null, .string("[]"), .string("[3]")])
    }

    @Test func listsOfTwoLevels() throws {
        let schema = [Self.list, SchemaElement(type: .int32, repetition: .repeated, name: "element")]
        let file = try Self.file(
            schema, path: ["l", "element"], definitionMax: 2, repetitionMax: 1, [(0, 2), (1, 2), (0, 0), (0, 1), (0, 2)],
            values: [1, 2, 3], rowCount: 4)
        #expect(try Self.rows(file) == [.string("[1, 2]"), .null, .string("[]"), .string("[3]")])
    }

    @Test func listsOfTwoLevelsWhoseElementsAreGroups() throws {
        let group = SchemaElement(repetition: .repeated, name: "array", childCount: 1)
        let schema = [Self.list, group, SchemaElement(type: .int32, repetition: .optional, name: "x")]
        let file = try Self.file(
            schema, path: ["l", "array", "x"], definitionMax: 3, repetitionMax: 1, [(0, 3), (1, 2)], values: [7], rowCount: 1)
        #expect(try Self.rows(file) == [.string("[{\"x\": 7}, {\"x\": null}]")])
    }

    @Test func membersOfANewerSchemaGoByIdentifiers() throws {
        // A list of groups with one member, whose identifier is 7.
        var leaf = SchemaElement(type: .int32, repetition: .optional, name: "x")
        leaf.fieldID = 7
        let schema = [Self.list, Self.repeatedGroup, SchemaElement(repetition: .required, name: "element", childCount: 1), leaf]
        let file = try Self.file(
            schema, path: ["l", "list", "element", "x"], definitionMax: 3, repetitionMax: 1, [(0, 3), (1, 2), (0, 0), (0, 1)], values: [5],
            rowCount: 3)
        func rows(_ members: [NestedProjection.Member]) throws -> [Scalar] { try Self.rows(file, .elements(.members(members))) }
        #expect(try Self.rows(file) == [.string(#"[{"x": 5}, {"x": null}]"#), .null, .string("[]")])
        #expect(
            try rows([.init(8, "late", .asStored), .init(7, "renamed", .asStored), .init(9, "given", .asStored, missing: "1.5")])
                == [
                    .string(#"[{"late": null, "given": 1.5, "renamed": 5}, {"late": null, "given": 1.5, "renamed": null}]"#), .null,
                    .string("[]"),
                ])
        #expect(try rows([.init(8, "x", .asStored)]) == [.string(#"[{"x": null}, {"x": null}]"#), .null, .string("[]")])
        #expect(try rows([]) == [.string("[{}, {}]"), .null, .string("[]")])
    }

    @Test func fieldsThatRepeatAlone() throws {
        let schema = [SchemaElement(type: .int32, repetition: .repeated, name: "r")]
        let file = try Self.file(
            schema, path: ["r"], definitionMax: 1, repetitionMax: 1, [(0, 1), (1, 1), (0, 0)], values: [1, 2], rowCount: 2)
        #expect(try Self.rows(file) == [.string("[1, 2]"), .string("[]")])
    }

    @Test func damagedListsAreErrorsOrLists() throws {
        let schema = [Self.list, Self.repeatedGroup, SchemaElement(type: .int32, repetition: .optional, name: "element")]
        let entries = (0..<300).map { ($0 % 3 == 0 ? 0 : 1, $0 % 7 == 0 ? 2 : 3) as (UInt32, UInt32) }
        let values = (0..<Int32(entries.filter { $0.1 == 3 }.count)).map { $0 }
        let whole = try Self.file(
            schema, path: ["l", "list", "element"], definitionMax: 3, repetitionMax: 1, entries, values: values, rowCount: 100)
        #expect(try Self.rows(whole).count == 100)
        let bytes = OutputBytes()
        _ = bytes.room(try whole.file.size())
        bytes.advance(try whole.file.read(at: 0, into: UnsafeMutableRawBufferPointer(start: bytes.base, count: try whole.file.size())))
        var random = SeededGenerator(seed: 11)
        for _ in 0..<3000 {
            let file = try MemoryFileSystem().open("damaged", .create)
            try file.write(bytes.bytes, at: 0)
            for _ in 0..<random.number(1...3) {
                var byte = UInt8(random.number(0...255))
                let place = random.number(0...bytes.count - 1)
                try withUnsafeBytes(of: &byte) { try file.write($0, at: place) }
            }
            do {
                let damaged = try ParquetFile(file)
                _ = try ParquetScan(damaged, damaged.columns.indices.filter { damaged.columns[$0].type != nil }.map { .init($0) }).rows()
            } catch is ParquetError {}
        }
    }

    /// Two bits hold a three as well: an element that is there by its level, and has no value.
    @Test func levelsBeyondTheColumnsAreAnError() throws {
        let schema = [Self.list, SchemaElement(type: .int32, repetition: .repeated, name: "element")]
        let file = try Self.file(
            schema, path: ["l", "element"], definitionMax: 2, repetitionMax: 1, [(0, 2), (1, 3), (1, 3)], values: [1], rowCount: 1)
        #expect(throws: ParquetError.self) { try Self.rows(file) }
    }

    @Test func levelsThatBeginNoRowAreAnError() throws {
        let schema = [SchemaElement(type: .int32, repetition: .repeated, name: "r")]
        let file = try Self.file(schema, path: ["r"], definitionMax: 1, repetitionMax: 1, [(1, 1), (1, 1)], values: [1, 2], rowCount: 1)
        #expect(throws: ParquetError.self) { try Self.rows(file) }
        let short = try Self.file(schema, path: ["r"], definitionMax: 1, repetitionMax: 1, [(0, 1), (1, 1)], values: [1, 2], rowCount: 2)
        #expect(throws: ParquetError.self) { try Self.rows(short) }
        for repetition in [0, 1] as [UInt32] {
            let long = try Self.file(
                schema, path: ["r"], definitionMax: 1, repetitionMax: 1, [(0, 1), (0, 1), (repetition, 1)], values: [1, 2, 3],
                rowCount: repetition == 0 ? 2 : 1)
            #expect(throws: ParquetError.self) { try Self.rows(long) }
        }
    }
}
