import MillBase
import Synchronization
import Testing

@testable import MillKafkaWire

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A record copied out of a cursor.
struct DrawnRecord: Equatable {
    var offset: Int64
    var timestamp: Int64
    var key: [UInt8]?
    var value: [UInt8]?
    var headers: [String] = []
}

func drawn(_ batch: RecordBatch, _ decoder: RecordDecoder = RecordDecoder()) throws -> [DrawnRecord] {
    var cursor = try decoder.records(of: batch)
    var found: [DrawnRecord] = []
    while let record = try cursor.next() {
        var headers: [String] = []
        record.forEachHeader { key, value in headers.append("\(String(decoding: key, as: UTF8.self))=\(value.map { String(decoding: $0, as: UTF8.self) } ?? "null")") }
        found.append(DrawnRecord(offset: record.offset, timestamp: record.timestamp, key: record.key.map(Array.init), value: record.value.map(Array.init), headers: headers))
    }
    return found
}

func sampleBatch(_ compression: Compression = .none, count: Int = 50) throws -> RecordBatch {
    var builder = RecordBatchBuilder()
    for index in 0..<count {
        builder.append(
            key: index % 3 == 0 ? nil : Array("key\(index)".utf8), value: index % 7 == 6 ? nil : Array("value \(index) \(index * index)".utf8),
            timestamp: 1_700_000_000_000 + Int64(index * (index % 2 == 0 ? 1 : -1)), headers: index % 5 == 0 ? [("a", [0x31]), ("n", nil)] : [])
    }
    return try #require(try RecordBatch(firstIn: try builder.finish(compression: compression)))
}

@Suite struct RecordBatchTests {
    @Test(arguments: Compression.allCases) func recordsComeBackFromEveryCodec(_ compression: Compression) throws {
        let batch = try sampleBatch(compression)
        let decoder = RecordDecoder()
        try decoder.validate(batch)
        #expect(try batch.compression() == compression)
        let records = try drawn(batch, decoder)
        #expect(records.count == 50)
        #expect(records[0] == DrawnRecord(offset: 0, timestamp: 1_700_000_000_000, key: nil, value: Array("value 0 0".utf8), headers: ["a=1", "n=null"]))
        #expect(records[6].value == nil && records[49].offset == 49)
        #expect(records[49].timestamp == 1_700_000_000_000 - 49)
        batch.assign(baseOffset: 1000, leaderEpoch: 0)
        try decoder.validate(batch)
        #expect(try drawn(batch, decoder)[49].offset == 1049 && batch.nextOffset == 1050)
    }

    /// A record's length is written before the record: by what its parts will take.
    @Test func lengthsThatAreKnownAheadAreThoseWritten() {
        let borders = (0..<63).flatMap { power -> [Int64] in [-1, 0, 1].flatMap { [(1 << power) + $0, -(1 << power) + $0] } }
        for value in borders + [.min, .max] {
            var bytes: [UInt8] = []
            Varint.append(value, to: &bytes)
            #expect(Varint.byteCount(value) == bytes.count, "\(value)")
        }
    }

    @Test func recordsOfEverySizeAndTimeComeBack() throws {
        var builder = RecordBatchBuilder()
        var expected: [DrawnRecord] = []
        let sizes: [Int?] = [nil, 0, 1, 62, 63, 64, 65, 8190, 8191, 8192, 8193, 1 << 20]
        for (index, size) in sizes.enumerated() {
            let value = size.map { [UInt8](repeating: UInt8(index), count: $0) }
            let timestamp: Int64 = [0, 63, 64, -64, -65, .max, .min + 1][index % 7]
            for (key, header) in [(nil, nil), (value, value)] as [([UInt8]?, [UInt8]?)] where size ?? 0 < 10_000 || key == nil {
                builder.append(key: key, value: value, timestamp: timestamp, headers: [("é", header)])
                let text = header.map { String(decoding: $0, as: UTF8.self) } ?? "null"
                expected.append(DrawnRecord(offset: Int64(expected.count), timestamp: timestamp, key: key, value: value, headers: ["é=\(text)"]))
            }
        }
        let batch = try #require(try RecordBatch(firstIn: try builder.finish()))
        let decoder = RecordDecoder()
        try batch.validateChecksum()
        try decoder.validate(batch)
        #expect(try drawn(batch, decoder) == expected)
    }

    @Test func xerialFramedSnappyIsRead() throws {
        let raw = try sampleBatch(.snappy)
        let block = raw.payload.array
        let framed: [UInt8] = [0x82, 0x53, 0x4E, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]
            + withUnsafeBytes(of: Int32(block.count).bigEndian, Array.init) + block
        var bytes = Array(raw.bytes.array.prefix(RecordBatch.headerBytes)) + framed
        let length = Int32(bytes.count - RecordBatch.lengthPrefixBytes)
        bytes.replaceSubrange(8..<12, with: withUnsafeBytes(of: length.bigEndian, Array.init))
        let batch = try #require(try RecordBatch(firstIn: WireBytes(bytes)))
        #expect(try drawn(batch) == drawn(raw))
    }

    @Test func theChecksumOfKnownBytesIsRight() {
        let check = Array("123456789".utf8)
        #expect(check.withUnsafeBytes { CRC32C.checksum($0) } == 0xE306_9283)
        var random = SeededRandom(state: 3)
        for count in 0..<200 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            bytes.withUnsafeBytes { all in
                #expect(CRC32C.checksum(all) == CRC32C.portableChecksum(all))
                let middle = count / 3
                let first = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: all[..<middle]))
                #expect(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: all[middle...]), continuing: first) == CRC32C.checksum(all))
            }
        }
    }

    @Test(arguments: Compression.allCases) func aFlippedBitIsSeen(_ compression: Compression) throws {
        let batch = try sampleBatch(compression, count: 5)
        let decoder = RecordDecoder()
        for offset in RecordBatch.crcOffset..<batch.bytes.count {
            var bytes = batch.bytes.array
            bytes[offset] ^= 0x10
            let damaged = try #require(try RecordBatch(firstIn: WireBytes(bytes)))
            #expect(throws: RecordError.self) { try decoder.validate(damaged) }
        }
    }

    @Test(arguments: Compression.allCases) func damagedRecordsNeverTrap(_ compression: Compression) throws {
        var random = SeededRandom(state: 11)
        let original = try sampleBatch(compression).bytes.array
        let decoder = RecordDecoder(decompressedBytesMax: 1 << 20)
        for _ in 0..<3000 {
            var bytes = original
            for _ in 0..<Int.random(in: 1...5, using: &random) { bytes[Int.random(in: 21..<bytes.count, using: &random)] = .random(in: 0...255, using: &random) }
            if Bool.random(using: &random) { bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random)) }
            guard let batch = try? RecordBatch(firstIn: WireBytes(bytes)) else { continue }  // cut short or refused: also an answer
            _ = try? drawn(batch, decoder)  // only that it returns matters
        }
    }

    @Test func aCutRunOfBatchesEndsAtTheLastWholeOne() throws {
        let one = try sampleBatch(count: 3).bytes.array
        for count in 0...(one.count * 2) {
            var batches = RecordBatches(WireBytes((one + one).prefix(count)))
            var found = 0
            while try batches.next() != nil { found += 1 }
            #expect(found == count / one.count)
        }
    }

    @Test(arguments: [Compression.gzip, .snappy, .lz4, .zstd]) func aBatchThatGrowsTooLargeIsRefused(_ compression: Compression) throws {
        var builder = RecordBatchBuilder()
        builder.append(value: [UInt8](repeating: 0, count: 3 << 20), timestamp: 0)
        let batch = try #require(try RecordBatch(firstIn: try builder.finish(compression: compression)))
        #expect(throws: RecordError.decompressedTooLarge(limit: 1 << 20)) { try RecordDecoder(decompressedBytesMax: 1 << 20).records(of: batch) }
        try RecordDecoder().validate(batch)
    }

    /// No memory is no damage, and what could not be opened then can be when there is some.
    @Test(arguments: [Compression.gzip, .snappy, .lz4, .zstd]) func aBatchWithoutMemoryIsNotDamaged(_ compression: Compression) throws {
        let bytesMax = Mutex(0)
        let decoder = RecordDecoder(decompressedBytesMax: 16 << 20) { memory, count in
            count <= bytesMax.withLock { $0 } ? realloc(memory, count) : nil
        }
        var builder = RecordBatchBuilder()
        builder.append(value: [UInt8](repeating: 0, count: 3 << 20), timestamp: 0)
        let batch = try #require(try RecordBatch(firstIn: try builder.finish(compression: compression)))
        for limit in [0, 100 << 10, 1 << 20] {
            bytesMax.withLock { $0 = limit }
            let error = #expect(throws: RecordError.self) { try decoder.validate(batch) }
            guard case .outOfMemory(let bytes)? = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(bytes + WireBuffer.slackBytes > limit && error?.sqlError.sqlState == .outOfMemory)
        }
        bytesMax.withLock { $0 = 16 << 20 }
        try decoder.validate(batch)
    }

    @Test func oldMessageSetsAreNamed() throws {
        var bytes = try sampleBatch(count: 1).bytes.array
        bytes[16] = 1
        #expect(throws: RecordError.unsupportedMagic(1)) { try RecordBatch(firstIn: WireBytes(bytes)) }
    }

    @Test func sequencesWrapAround() {
        #expect(RecordBatch.sequence(Int32.max, after: 1) == 0)
        #expect(RecordBatch.sequence(Int32.max - 1, after: 3) == 1)
    }
}
