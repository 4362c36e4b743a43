import CLZ4
import CSnappy
import CZlib
import CZstd

/// Makes one record batch: for what this program itself appends to a log or sends, and for what compaction leaves of a batch.
///
/// Offsets count from 0 until the log assigns them. A builder is used for one batch.
package struct RecordBatchBuilder {
    private var records: [UInt8] = []
    package private(set) var recordCount: Int32 = 0
    private var baseTimestamp: Int64 = 0
    private var maxTimestamp: Int64 = -1
    private var usesLogAppendTime = false

    package var producerID: Int64 = -1
    package var producerEpoch: Int16 = -1
    package var baseSequence: Int32 = -1
    package var isTransactional = false
    /// See `RecordBatch.deleteHorizonMillis`; set before the first record.
    package var deleteHorizonMillis: Int64?

    package init() {}

    /// A builder for what is left of `batch`, whose header it takes over.
    package init(remnantOf batch: RecordBatch, deleteHorizonMillis: Int64?) {
        (producerID, producerEpoch, baseSequence) = (batch.producerID, batch.producerEpoch, batch.baseSequence)
        isTransactional = batch.isTransactional
        usesLogAppendTime = batch.usesLogAppendTime
        self.deleteHorizonMillis = deleteHorizonMillis
    }

    /// Makes room for records of so many bytes in all.
    package mutating func reserve(_ byteCount: Int) { records.reserveCapacity(byteCount) }

    /// Uncompressed bytes so far, header left out.
    package var byteCount: Int { records.count }

    /// Adds a record; a nil key or value is null. `timestamp` in milliseconds since 1970.
    package mutating func append(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: Int64, headers: [(key: String, value: [UInt8]?)] = []
    ) {
        var headerBytes = Varint.byteCount(Int64(headers.count))
        for header in headers { headerBytes += Self.encodedBytes(header.key.utf8.count) + Self.encodedBytes(header.value?.count) }
        begin(key, value, timestamp, offsetDelta: Int64(recordCount), headerBytes: headerBytes)
        Varint.append(Int64(headers.count), to: &records)
        for header in headers {
            var name = header.key
            name.withUTF8 { Self.append(UnsafeRawBufferPointer($0), to: &records) }
            if let value = header.value {
                value.withUnsafeBytes { Self.append($0, to: &records) }
            } else {
                Self.append(nil, to: &records)
            }
        }
    }

    /// Adds a record of another batch, headers and all, at its distance from that batch's base offset.
    package mutating func append(_ record: Record, offsetDelta: Int64) {
        let headerBytes = Varint.byteCount(Int64(record.headerCount)) + record.headerBytes.count
        begin(record.key, record.value, record.timestamp, offsetDelta: offsetDelta, headerBytes: headerBytes)
        Varint.append(Int64(record.headerCount), to: &records)
        records.append(contentsOf: record.headerBytes)
    }

    /// A record up to its headers, which take `headerBytes`: its length comes first, so that all of it is written in place.
    private mutating func begin(
        _ key: UnsafeRawBufferPointer?, _ value: UnsafeRawBufferPointer?, _ timestamp: Int64, offsetDelta: Int64, headerBytes: Int
    ) {
        if recordCount == 0 { baseTimestamp = deleteHorizonMillis ?? timestamp }
        maxTimestamp = max(maxTimestamp, timestamp)
        recordCount += 1
        let timestampDelta = timestamp &- baseTimestamp
        let ahead = 1 + Varint.byteCount(timestampDelta) + Varint.byteCount(offsetDelta)
        Varint.append(Int64(ahead + Self.encodedBytes(key?.count) + Self.encodedBytes(value?.count) + headerBytes), to: &records)
        records.append(0)
        Varint.append(timestampDelta, to: &records)
        Varint.append(offsetDelta, to: &records)
        Self.append(key, to: &records)
        Self.append(value, to: &records)
    }

    package mutating func append(key: [UInt8]? = nil, value: [UInt8]?, timestamp: Int64, headers: [(key: String, value: [UInt8]?)] = []) {
        func pointer<R>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> R) -> R {
            guard let bytes else { return body(nil) }
            return bytes.withUnsafeBytes { body($0) }
        }
        pointer(key) { key in pointer(value) { value in append(key: key, value: value, timestamp: timestamp, headers: headers) } }
    }

    private static func append(_ bytes: UnsafeRawBufferPointer?, to target: inout [UInt8]) {
        guard let bytes else { return Varint.append(-1, to: &target) }
        Varint.append(Int64(bytes.count), to: &target)
        target.append(contentsOf: bytes)
    }

    /// What `append` writes for so many bytes, or for null.
    private static func encodedBytes(_ count: Int?) -> Int { Varint.byteCount(Int64(count ?? -1)) + (count ?? 0) }

    /// The batch's bytes; at least one record must have been appended. `lastOffsetDelta` is for a batch that lost records at its end.
    package func finish(compression: Compression = .none, lastOffsetDelta: Int32? = nil) throws(RecordError) -> WireBytes {
        precondition(recordCount > 0, "a batch has at least one record")
        let payload = compression == .none ? records : try Self.compress(records, compression)
        let bits = (isTransactional ? 0x10 : 0) | (usesLogAppendTime ? 0x08 : 0) | (deleteHorizonMillis == nil ? 0 : 0x40)
        return assemble(Int16(compression.rawValue | bits), lastOffsetDelta ?? recordCount - 1, payload)
    }

    /// The marker that ends a producer's transaction in a partition: a control batch of one record.
    package static func marker(producerID: Int64, producerEpoch: Int16, isCommit: Bool, timestamp: Int64) -> WireBytes {
        var builder = RecordBatchBuilder()
        (builder.producerID, builder.producerEpoch) = (producerID, producerEpoch)
        // Version 0 of both, then what ended and the coordinator's epoch.
        builder.append(key: [0, 0, 0, isCommit ? 1 : 0], value: [0, 0, 0, 0, 0, 0], timestamp: timestamp)
        return builder.assemble(0x30, 0, builder.records)
    }

    private func assemble(_ attributes: Int16, _ lastOffsetDelta: Int32, _ payload: [UInt8]) -> WireBytes {
        var header = WireWriter()
        header.int64(0)
        header.int32(Int32(RecordBatch.headerBytes - RecordBatch.lengthPrefixBytes + payload.count))
        header.int32(0)
        header.int8(2)
        header.uint32(0)
        header.int16(attributes)
        header.int32(lastOffsetDelta)
        header.int64(baseTimestamp)
        header.int64(maxTimestamp)
        header.int64(producerID)
        header.int16(producerEpoch)
        header.int32(baseSequence)
        header.int32(recordCount)
        let batch = WireBuffer(capacity: header.count + payload.count)
        header.forEachChunk { batch.append($0) }
        payload.withUnsafeBytes { batch.append($0) }
        let bytes = batch.bytes.unsafeMutableBytes
        let checksum = CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[RecordBatch.attributesOffset...]))
        bytes.storeBytes(of: checksum.bigEndian, toByteOffset: RecordBatch.crcOffset, as: UInt32.self)
        return batch.bytes
    }

    private static func compress(_ source: [UInt8], _ compression: Compression) throws(RecordError) -> [UInt8] {
        let compressed: [UInt8]? =
            switch compression {
            case .none: source
            case .gzip: gzip(source)
            case .snappy: fill(snappy_max_compressed_length(source.count)) { target, room in
                var written = room
                let status = source.withUnsafeBytes {
                    snappy_compress($0.baseAddress?.assumingMemoryBound(to: CChar.self), $0.count, target.assumingMemoryBound(to: CChar.self), &written)
                }
                return status == SNAPPY_OK ? written : nil
            }
            case .lz4: fill(LZ4F_compressFrameBound(source.count, nil)) { target, room in
                let written = source.withUnsafeBytes { LZ4F_compressFrame(target, room, $0.baseAddress, $0.count, nil) }
                return LZ4F_isError(written) == 0 ? written : nil
            }
            case .zstd: fill(ZSTD_compressBound(source.count)) { target, room in
                let written = source.withUnsafeBytes { ZSTD_compress(target, room, $0.baseAddress, $0.count, 3) }
                return ZSTD_isError(written) == 0 ? written : nil
            }
            }
        guard let compressed else { throw .compressionFailed(compression) }
        return compressed
    }

    private static func fill(_ capacity: Int, _ body: (UnsafeMutableRawPointer, Int) -> Int?) -> [UInt8]? {
        var failed = false
        let bytes = [UInt8](unsafeUninitializedCapacity: max(capacity, 1)) { buffer, count in
            guard let base = buffer.baseAddress, let written = body(UnsafeMutableRawPointer(base), buffer.count) else {
                failed = true
                return
            }
            count = written
        }
        return failed ? nil : bytes
    }

    private static func gzip(_ source: [UInt8]) -> [UInt8]? {
        var stream = z_stream()
        // 16 added to the window's bits: a gzip header.
        let version = deflateInit2_(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard version == Z_OK else { return nil }
        defer { deflateEnd(&stream) }
        return fill(Int(deflateBound(&stream, UInt(source.count)))) { target, room in
            source.withUnsafeBytes { bytes in
                stream.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
                stream.avail_in = UInt32(bytes.count)
                stream.next_out = target.assumingMemoryBound(to: UInt8.self)
                stream.avail_out = UInt32(room)
                return deflate(&stream, Z_FINISH) == Z_STREAM_END ? Int(stream.total_out) : nil
            }
        }
    }
}
