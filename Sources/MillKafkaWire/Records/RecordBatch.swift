/// One record batch of format 2: the unit that producers send, the log stores and consumers fetch, unchanged but for its
/// base offset and leader epoch.
///
/// Byte layout (big-endian; https://kafka.apache.org/documentation/#recordbatch):
///
///     offset  size  field
///          0     8  base offset                     the log's, written on append
///          8     4  batch length                    bytes after this field
///         12     4  partition leader epoch          the log's, written on append
///         16     1  magic = 2
///         17     4  CRC-32C of everything from 21 on
///         21     2  attributes                      bits 0-2 codec, 3 log append time, 4 transactional, 5 control,
///                                                  6 base timestamp is a delete horizon
///         23     4  last offset delta
///         27     8  base timestamp, milliseconds
///         35     8  max timestamp, milliseconds
///         43     8  producer id, -1 for none
///         51     2  producer epoch
///         53     4  base sequence
///         57     4  record count
///         61        records, compressed as one block when a codec is set
package struct RecordBatch: Sendable {
    package static let headerBytes = 61
    /// Bytes before the ones that the length field counts.
    package static let lengthPrefixBytes = 12
    static let magicOffset = 16
    static let crcOffset = 17
    static let attributesOffset = 21

    /// The whole batch, header included.
    package let bytes: WireBytes

    /// The first batch in `bytes`, whose length and format are checked and nothing else; nil when `bytes` ends before the
    /// batch does, as the last one of a fetch may.
    /// - Throws: `invalidHeader`, `unsupportedMagic`.
    package init?(firstIn bytes: WireBytes) throws(RecordError) {
        guard bytes.count >= Self.lengthPrefixBytes else { return nil }
        let length = Int(bytes.integer(at: 8, as: Int32.self))
        if bytes.count > Self.magicOffset {
            let magic = bytes.integer(at: Self.magicOffset, as: Int8.self)
            guard magic == 2 else { throw .unsupportedMagic(magic) }
        }
        guard length >= Self.headerBytes - Self.lengthPrefixBytes else { throw .invalidHeader }
        guard bytes.count >= Self.lengthPrefixBytes + length else { return nil }
        self.bytes = bytes.slice(offset: 0, count: Self.lengthPrefixBytes + length)
    }

    package var baseOffset: Int64 { bytes.integer(at: 0) }
    package var partitionLeaderEpoch: Int32 { bytes.integer(at: 12) }
    package var crc: UInt32 { bytes.integer(at: Self.crcOffset) }
    package var attributes: Int16 { bytes.integer(at: Self.attributesOffset) }
    package var lastOffsetDelta: Int32 { bytes.integer(at: 23) }
    /// Milliseconds since 1970, or -1.
    package var baseTimestamp: Int64 { bytes.integer(at: 27) }
    package var maxTimestamp: Int64 { bytes.integer(at: 35) }
    package var producerID: Int64 { bytes.integer(at: 43) }
    package var producerEpoch: Int16 { bytes.integer(at: 51) }
    package var baseSequence: Int32 { bytes.integer(at: 53) }
    package var recordCount: Int32 { bytes.integer(at: 57) }

    /// The offset after the batch's last one. Wraps for a hostile header: check `validateHeader` first.
    package var nextOffset: Int64 { baseOffset &+ Int64(lastOffsetDelta) &+ 1 }
    package var lastSequence: Int32 { RecordBatch.sequence(baseSequence, after: lastOffsetDelta) }
    package var hasProducer: Bool { producerID >= 0 }
    package var usesLogAppendTime: Bool { attributes & 0x08 != 0 }
    package var isTransactional: Bool { attributes & 0x10 != 0 }
    /// A transaction's marker, which is never given to applications.
    package var isControl: Bool { attributes & 0x20 != 0 }
    /// When compaction may take the tombstones of the batch away; nil until it has met them once.
    package var deleteHorizonMillis: Int64? { attributes & 0x40 != 0 ? baseTimestamp : nil }
    /// Of a control batch that is not compressed: whether it is a transaction's end, and which; nil for any other.
    package var marker: TransactionMarker? {
        guard isControl, attributes & 0x07 == 0 else { return nil }
        var cursor = RecordCursor(batch: self, records: payload.unsafeBytes)
        guard let record = try? cursor.next(), let key = record.key, key.count >= 4 else { return nil }  // other control records have other keys
        return switch Int16(bigEndian: key.loadUnaligned(fromByteOffset: 2, as: Int16.self)) {
        case 0: .abort
        case 1: .commit
        default: nil
        }
    }

    /// The records as they were sent, perhaps compressed.
    package var payload: WireBytes { bytes.slice(offset: Self.headerBytes, count: bytes.count - Self.headerBytes) }

    package func compression() throws(RecordError) -> Compression {
        let code = Int(attributes & 0x07)
        guard let compression = Compression(rawValue: code) else { throw .unknownCompression(code) }
        return compression
    }

    /// `sequence` advanced by `delta`; sequences go from 0 to 2^31 - 1 and around.
    package static func sequence(_ sequence: Int32, after delta: Int32) -> Int32 {
        Int32(truncatingIfNeeded: (Int64(sequence) + Int64(delta)) & 0x7FFF_FFFF)
    }

    /// - Throws: `checksumMismatch`.
    package func validateChecksum() throws(RecordError) {
        let found = bytes.withUnsafeBytes { CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0[Self.attributesOffset...])) }
        guard found == crc else { throw .checksumMismatch(expected: crc, found: found) }
    }

    /// Checks what can be seen without reading records: counts and deltas that agree. A producer's batch is whole and no control batch;
    /// a stored one may have lost records to compaction.
    /// - Throws: `invalidHeader`.
    package func validateHeader(isStored: Bool = false) throws(RecordError) {
        let count = recordCount
        guard count > 0, lastOffsetDelta >= count - 1, baseOffset >= 0, baseOffset < Int64.max - Int64(Int32.max) else { throw .invalidHeader }
        guard isStored || lastOffsetDelta == count - 1 && !isControl && attributes & 0x40 == 0 else { throw .invalidHeader }
        if hasProducer, producerEpoch < 0 || (baseSequence < 0 && !isControl) { throw .invalidHeader }
        if isTransactional, !hasProducer { throw .invalidHeader }
    }

    /// Writes the log's own fields, which the checksum does not cover.
    package func assign(baseOffset: Int64, leaderEpoch: Int32) {
        let memory = bytes.unsafeMutableBytes
        memory.storeBytes(of: baseOffset.bigEndian, toByteOffset: 0, as: Int64.self)
        memory.storeBytes(of: leaderEpoch.bigEndian, toByteOffset: 12, as: Int32.self)
    }

    /// Gives all records the time at which the log took them, and the batch the checksum that follows.
    package func stamp(appendedAtMillis: Int64) {
        let memory = bytes.unsafeMutableBytes
        memory.storeBytes(of: (attributes | 0x08).bigEndian, toByteOffset: Self.attributesOffset, as: Int16.self)
        memory.storeBytes(of: appendedAtMillis.bigEndian, toByteOffset: 35, as: Int64.self)
        let checksum = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory)[Self.attributesOffset...]))
        memory.storeBytes(of: checksum.bigEndian, toByteOffset: Self.crcOffset, as: UInt32.self)
    }
}

/// How a transaction ended in a partition.
package enum TransactionMarker: Sendable, Hashable {
    case abort
    case commit
}

extension WireBytes {
    /// A big-endian integer; the caller has checked the length.
    func integer<T: FixedWidthInteger>(at offset: Int, as _: T.Type = T.self) -> T {
        withUnsafeBytes { T(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: T.self)) }
    }
}

/// The whole batches at the start of a run of bytes, such as a slice of the log; an incomplete last one is left out.
package struct RecordBatches {
    private var rest: WireBytes

    package init(_ bytes: WireBytes) { rest = bytes }

    /// - Throws: `RecordError` when what follows is not a batch.
    package mutating func next() throws(RecordError) -> RecordBatch? {
        guard let batch = try RecordBatch(firstIn: rest) else { return nil }
        rest = rest.slice(offset: batch.bytes.count, count: rest.count - batch.bytes.count)
        return batch
    }

    /// Bytes after the last batch that was given out.
    package var remainingBytes: Int { rest.count }
}
