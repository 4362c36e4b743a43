import Testing

@testable import MillKafkaWire

private func bytes(_ hex: String) -> [UInt8] {
    var digits = hex[...]
    var result: [UInt8] = []
    while let byte = UInt8(digits.prefix(2), radix: 16), digits.count >= 2 {
        result.append(byte)
        digits = digits.dropFirst(2)
    }
    return result
}

private struct Content: Equatable {
    var offset: Int64
    var timestamp: Int64
    var key: String?
    var value: String?

    init(_ record: Record) {
        func text(_ bytes: UnsafeRawBufferPointer?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }
        (offset, timestamp, key, value) = (record.offset, record.timestamp, text(record.key), text(record.value))
    }

    init(_ offset: Int64, _ timestamp: Int64, _ key: String?, _ value: String?) {
        (self.offset, self.timestamp, self.key, self.value) = (offset, timestamp, key, value)
    }
}

private func records(_ batches: WireBytes) throws -> [Content] {
    let decoder = RecordDecoder()
    var found: [Content] = []
    var rest = RecordBatches(batches)
    while let batch = try rest.next() {
        try decoder.validate(batch)
        var cursor = try decoder.records(of: batch)
        while let record = try cursor.next() { found.append(Content(record)) }
    }
    #expect(rest.remainingBytes == 0)
    return found
}

private func expected(_ magic: Int8) -> [Content] {
    let time: (Int64) -> Int64 = { magic == 0 ? -1 : 1_600_000_000_000 + $0 }
    return [Content(0, time(0), nil, "first first first first first"), Content(1, time(1), "k", nil), Content(2, time(2), "", "third")]
}

@Suite struct MessageSetTests {
    private func convert(_ bytes: [UInt8], limit: Int = 1 << 20) throws -> WireBytes {
        try MessageSet.batch(from: WireBytes(bytes), RecordDecoder(), bytesMax: limit)
    }

    @Test(arguments: messageSetSamples.indices) func whatAnOldClientSendsBecomesOneBatch(_ index: Int) throws {
        let sample = messageSetSamples[index]
        #expect(MessageSet.isFormat(of: WireBytes(bytes(sample.hex))))
        let batch = try convert(bytes(sample.hex))
        #expect(try records(batch) == expected(sample.magic))
        #expect(try RecordBatch(firstIn: batch)?.compression().description == sample.codec)
    }

    @Test func theHeaderChecksumOfLZ4IsRightAfterwardsWhicheverItWas() throws {
        // The content of LZ4's own example frame: flags 0x64, block size 0x40.
        #expect(UInt8(truncatingIfNeeded: LZ4Header.xxHash32([0x64, 0x40]) >> 8) == 0xA7)
        #expect(LZ4Header.xxHash32([]) == 0x02CC_5D05)
        let repaired = ([0x04, 0x22, 0x4D, 0x18, 0x64, 0x40, 0x00, 0x01] as [UInt8]).withUnsafeBytes { LZ4Header.repaired($0) }
        #expect(repaired == [0x04, 0x22, 0x4D, 0x18, 0x64, 0x40, 0xA7, 0x01])
    }

    @Test(arguments: messageSetSamples.indices) func everyTruncationAndEveryFlippedByteIsRefused(_ index: Int) throws {
        let whole = bytes(messageSetSamples[index].hex)
        // What a set is compressed to ends before its message does only if the message is cut, too.
        let messageEnds = try boundaries(whole)
        for count in 0..<whole.count where !messageEnds.contains(count) {
            #expect(throws: RecordError.self) { try convert(Array(whole.prefix(count))) }
        }
        for place in whole.indices {
            // Offsets are not under the checksum: the log gives its own.
            if messageEnds.contains(where: { (0..<8).contains(place - $0) }) { continue }
            var damaged = whole
            damaged[place] ^= 0x40
            #expect(throws: RecordError.self, "byte \(place)") { try convert(damaged) }
        }
    }

    /// Where messages begin and end.
    private func boundaries(_ set: [UInt8]) throws -> [Int] {
        var found = [0]
        while let last = found.last, last < set.count {
            found.append(last + 12 + set[(last + 8)..<(last + 12)].reduce(0) { $0 << 8 | Int($1) })
        }
        return found
    }

    @Test func whatIsPackedSmallCannotFillTheMemory() throws {
        let packed = try #require(messageSetSamples.first { $0.codec == "gzip" })
        #expect(throws: RecordError.decompressedTooLarge(limit: 20)) { try convert(bytes(packed.hex), limit: 20) }
    }

    @Test(arguments: [Int8(0), 1]) func batchesBecomeMessagesFromAnOffsetOn(_ magic: Int8) throws {
        var log: [UInt8] = []
        for (index, compression) in Compression.allCases.enumerated() {
            var builder = RecordBatchBuilder()
            for value in 0..<3 {
                builder.append(
                    key: value == 0 ? nil : Array("k\(value)".utf8), value: value == 1 ? nil : Array("v\(index).\(value)".utf8),
                    timestamp: 1000 + Int64(value))
            }
            let batch = try #require(try RecordBatch(firstIn: builder.finish(compression: compression)))
            batch.assign(baseOffset: Int64(100 + 3 * index), leaderEpoch: 0)
            log += batch.bytes.array
        }
        let all = RecordBatches(WireBytes(log))
        let decoder = RecordDecoder()
        let messages = try MessageSet.messages(of: all, from: 104, magic: magic, maxBytes: .max, decoder)
        let back = try records(try convert(messages.array))
        #expect(back.count == 11)
        #expect(back[0] == Content(0, magic == 0 ? -1 : 1001, "k1", nil))
        #expect(back[10].value == "v4.2")
        #expect(messages.integer(at: 0, as: Int64.self) == 104)
        let one = try MessageSet.messages(of: all, from: 105, magic: magic, maxBytes: 1, decoder)
        #expect(try records(try convert(one.array)).map(\.value) == ["v1.2"])
    }

    @Test func markersAreNotForOldClients() throws {
        let marker = RecordBatchBuilder.marker(producerID: 7, producerEpoch: 1, isCommit: true, timestamp: 5)
        let batch = try #require(try RecordBatch(firstIn: marker))
        #expect(batch.marker == .commit && batch.isControl && batch.isTransactional)
        #expect(try MessageSet.messages(of: RecordBatches(marker), from: 0, magic: 1, maxBytes: 1000, RecordDecoder()).count == 0)
        #expect(throws: RecordError.invalidHeader) { try RecordDecoder().validate(batch) }
    }
}
