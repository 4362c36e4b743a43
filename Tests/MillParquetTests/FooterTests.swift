import MillTestKit
import Testing

@testable import MillParquet

@Suite struct FooterTests {
    private static func footer() -> FileMetadata {
        let chunk = ColumnChunkMetadata(
            type: .int64, encodings: [0, 3, 8], path: ["a", "b"], codec: 6, valueCount: 1 << 40, uncompressedByteCount: 77,
            compressedByteCount: 55,
            dataPageOffset: 1000, dictionaryPageOffset: 4,
            statistics: ColumnStatistics(nullCount: 3, max: [1, 2], min: [0], isMaxExact: true, isMinExact: false),
            pageCounts: [PageEncodingCount(page: 2, encoding: 0, count: 1)], offsetIndex: FileRange(offset: 99, length: 12),
            columnIndex: FileRange(offset: 88, length: 11))
        var schema = [SchemaElement(name: "schema", childCount: 12)]
        let meanings: [LogicalType] = [
            .string, .decimal(precision: 10, scale: 2), .date, .time(.millis, utc: false), .timestamp(.nanos, utc: true),
            .integer(bits: 16, signed: false),
            .json, .uuid, .float16, .list, .enumeration, .unknown,
        ]
        for (index, meaning) in meanings.enumerated() {
            schema.append(
                SchemaElement(
                    type: .byteArray, typeLength: index, repetition: .optional, name: "column \(index)", converted: meaning.converted,
                    scale: 2, precision: 10,
                    fieldID: Int32(index * 1000), logical: meaning))
        }
        return FileMetadata(
            version: 2, schema: schema, rowCount: 1 << 40,
            rowGroups: [
                RowGroupMetadata(columns: Array(repeating: chunk, count: 17), byteCount: 1, rowCount: 1 << 40, fileOffset: 4, ordinal: 0)
            ],
            keyValues: [KeyValue("key", "value"), KeyValue("empty", nil)], createdBy: "somebody", orders: [true, false])
    }

    @Test func whatIsWrittenIsRead() throws {
        let out = OutputBytes()
        Self.footer().write(to: out)
        let read = try FileMetadata(out.bytes)
        let expected = Self.footer()
        #expect(read.schema == expected.schema)
        #expect(read.rowCount == expected.rowCount)
        #expect(read.keyValues == expected.keyValues)
        #expect(read.orders == expected.orders)
        #expect(read.createdBy == expected.createdBy)
        let (chunk, wanted) = (read.rowGroups[0].columns[16], expected.rowGroups[0].columns[16])
        #expect(chunk.path == wanted.path)
        #expect(chunk.statistics == wanted.statistics)
        #expect(chunk.offsetIndex == wanted.offsetIndex)
        #expect(chunk.columnIndex == wanted.columnIndex)
        #expect(chunk.valueCount == wanted.valueCount)
        #expect(chunk.dictionaryPageOffset == 4)
    }

    @Test func everyCutOfAFooterIsAnError() {
        let out = OutputBytes()
        Self.footer().write(to: out)
        for count in 0..<out.count {
            #expect(throws: Malformed.self, "cut to \(count)") { try FileMetadata(UnsafeRawBufferPointer(rebasing: out.bytes[..<count])) }
        }
    }

    @Test func damagedFootersAreErrorsOrFooters() {
        let out = OutputBytes()
        Self.footer().write(to: out)
        let seed: UInt64 = 20_261_122
        var random = SeededGenerator(seed: seed)
        for _ in 0..<20_000 {
            let damaged = OutputBytes()
            damaged.append(out.bytes)
            for _ in 0..<random.number(1...4) {
                (damaged.base + random.number(0...damaged.count - 1)).storeBytes(of: UInt8(random.number(0...255)), as: UInt8.self)
            }
            _ = try? FileMetadata(damaged.bytes)  // either is fine, a trap is not
        }
    }

    @Test func unknownFieldsArePassedOver() throws {
        let out = OutputBytes()
        var writer = CompactWriter(out)
        writer.element {
            $0.field(1, Int32(2))
            $0.field(2, list: ["root"], of: .structure) { writer, name in writer.element { $0.field(4, name) } }
            $0.field(3, Int64(0))
            $0.field(100) {
                $0.field(1, true)
                $0.field(2, list: [1, 2, 3], of: .int64) { $0.out.appendZigzag(Int64($1)) }
                $0.field(300, "text")
            }
            $0.field(101, byte: 3)
        }
        #expect(try FileMetadata(out.bytes).schema.map(\.name) == ["root"])
    }

    @Test func nestingWithoutEndIsAnError() {
        let out = OutputBytes()
        for _ in 0..<1_000_000 { out.append(0x1C) }
        #expect(throws: Malformed.nestedTooDeep) { try FileMetadata(out.bytes) }
    }

    @Test func aListLongerThanItsBytesIsAnError() {
        let out = OutputBytes()
        // Field 2, a list of two thousand million structures.
        for byte in [0x29, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x07] as [UInt8] { out.append(byte) }
        #expect(throws: Malformed.self) { try FileMetadata(out.bytes) }
    }
}
