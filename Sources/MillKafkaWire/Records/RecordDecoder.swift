import CLZ4
import CSnappy
import CZlib
import CZstd

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Opens record batches: decompresses into memory of its own, which it keeps for the next batch.
///
/// Every reader of the log has one: the ingest path, the produce path for its check, look-ups by time. A batch may
/// decompress to at most `decompressedBytesMax` bytes, so that a small request cannot fill the memory. Snappy is accepted raw
/// and in the xerial framing that Java writes; LZ4 as frames.
///
/// Threading: one thread at a time.
package final class RecordDecoder {
    private let decompressedBytesMax: Int
    /// nil before the first compressed batch.
    private var scratch: UnsafeMutableRawPointer?
    private var scratchCapacity = 0
    private var scratchCount = 0
    private let reallocate: @Sendable (UnsafeMutableRawPointer?, Int) -> UnsafeMutableRawPointer?
    private var zstdContext: OpaquePointer?
    private var lz4Context: OpaquePointer?

    /// Scratch memory above this is given back before the next batch.
    private static let scratchBytesKept = 4 << 20

    private static let scratchBytesMin = 64 << 10

    package convenience init(decompressedBytesMax: Int = 128 << 20) {
        self.init(decompressedBytesMax: decompressedBytesMax) { realloc($0, $1) }
    }

    /// - Parameter reallocate: as C's realloc.
    init(decompressedBytesMax: Int, reallocate: @escaping @Sendable (UnsafeMutableRawPointer?, Int) -> UnsafeMutableRawPointer?) {
        self.decompressedBytesMax = decompressedBytesMax
        self.reallocate = reallocate
    }

    deinit {
        free(scratch)
        ZSTD_freeDCtx(zstdContext)
        LZ4F_freeDecompressionContext(lz4Context)
    }

    /// The records of `batch`, which the caller keeps alive; valid until the next call.
    /// - Throws: what is wrong with the compressed block, or `outOfMemory`. The checksum is the log's matter and not checked here.
    package func records(of batch: RecordBatch) throws(RecordError) -> RecordCursor {
        let compression = try batch.compression()
        return RecordCursor(batch: batch, records: try expand(batch.payload.unsafeBytes, compression))
    }

    /// What `payload` holds, decompressed into scratch memory; valid until the next call. `repairsLZ4Header` is for messages of format 0.
    func expand(
        _ payload: UnsafeRawBufferPointer, _ compression: Compression, repairsLZ4Header: Bool = false
    ) throws(RecordError) -> UnsafeRawBufferPointer {
        guard compression != .none else { return payload }
        scratchCount = 0
        if scratchCapacity > Self.scratchBytesKept {
            free(scratch)
            (scratch, scratchCapacity) = (nil, 0)
            try resize(to: Self.scratchBytesKept)
        } else if scratchCapacity == 0 {
            try resize(to: Self.scratchBytesMin)
        }
        switch compression {
        case .none: break
        case .gzip: try inflateGzip(payload)
        case .snappy: try decompressSnappy(payload)
        case .lz4: try decompressLZ4(payload, repairsLZ4Header)
        case .zstd: try decompressZstd(payload)
        }
        memset(end, 0, WireBuffer.slackBytes)
        return UnsafeRawBufferPointer(start: scratch, count: scratchCount)
    }

    /// Gives the scratch memory another size; its content stays.
    private func resize(to capacity: Int) throws(RecordError) {
        guard let memory = reallocate(scratch, capacity + WireBuffer.slackBytes) else { throw .outOfMemory(bytes: capacity) }
        (scratch, scratchCapacity) = (memory, capacity)
    }

    /// Behind what has been decompressed; there is memory.
    private var end: UnsafeMutableRawPointer { scratch.unsafelyUnwrapped + scratchCount }

    /// Makes room for `count` more bytes.
    private func reserve(_ count: Int) throws(RecordError) {
        guard count <= decompressedBytesMax - scratchCount else { throw .decompressedTooLarge(limit: decompressedBytesMax) }
        let needed = scratchCount + count
        guard needed > scratchCapacity else { return }
        try resize(to: min(max(needed, scratchCapacity * 2), max(needed, decompressedBytesMax)))
    }

    /// Room for a streaming decoder's next step.
    private func reserveStep() throws(RecordError) -> (UnsafeMutableRawPointer, Int) {
        if scratchCapacity == scratchCount { try reserve(min(max(scratchCount, 64 << 10), max(decompressedBytesMax - scratchCount, 1))) }
        return (end, min(scratchCapacity, decompressedBytesMax) - scratchCount)
    }

    /// A library has no memory for its own needs, which are about as large as that.
    private static let noContext = RecordError.outOfMemory(bytes: 128 << 10)
    /// `ZSTD_error_memory_allocation` of zstd_errors.h, whose values do not change.
    private static let zstdMemoryAllocation = 64

    private func inflateGzip(_ source: UnsafeRawBufferPointer) throws(RecordError) {
        var stream = z_stream()
        // 32 added to the window's bits: takes gzip and zlib headers alike.
        // All that can be wrong before the first byte.
        guard inflateInit2_(&stream, 15 + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else { throw Self.noContext }
        defer { inflateEnd(&stream) }
        stream.next_in = UnsafeMutablePointer(mutating: source.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.avail_in = UInt32(source.count)
        while true {
            let (target, room) = try reserveStep()
            stream.next_out = target.assumingMemoryBound(to: UInt8.self)
            stream.avail_out = UInt32(min(room, Int(UInt32.max)))
            let offered = Int(stream.avail_out)
            let status = inflate(&stream, Z_NO_FLUSH)
            scratchCount += offered - Int(stream.avail_out)
            if status == Z_STREAM_END { return }
            if status == Z_MEM_ERROR { throw Self.noContext }
            guard status == Z_OK, stream.avail_in > 0 || stream.avail_out == 0 else { throw .decompressionFailed(.gzip) }
        }
    }

    private func decompressZstd(_ source: UnsafeRawBufferPointer) throws(RecordError) {
        if zstdContext == nil { zstdContext = ZSTD_createDCtx() }
        guard let context = zstdContext else { throw Self.noContext }
        _ = ZSTD_DCtx_reset(context, ZSTD_reset_session_only)
        var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
        while true {
            let (target, room) = try reserveStep()
            var output = ZSTD_outBuffer(dst: target, size: room, pos: 0)
            let status = ZSTD_decompressStream(context, &output, &input)
            guard ZSTD_isError(status) == 0 else { throw 0 &- status == Self.zstdMemoryAllocation ? Self.noContext : .decompressionFailed(.zstd) }
            scratchCount += output.pos
            if status == 0, input.pos == input.size { return }
            guard input.pos < input.size || output.pos == output.size else { throw .decompressionFailed(.zstd) }
        }
    }

    private func decompressLZ4(_ source: UnsafeRawBufferPointer, _ repairsHeader: Bool) throws(RecordError) {
        guard repairsHeader else { return try decompressLZ4(source) }
        let repaired = LZ4Header.repaired(source)
        let result: Result<Void, RecordError> = repaired.withUnsafeBytes { bytes in
            do throws(RecordError) { return .success(try decompressLZ4(bytes)) } catch { return .failure(error) }
        }
        try result.get()
    }

    private func decompressLZ4(_ source: UnsafeRawBufferPointer) throws(RecordError) {
        if lz4Context == nil { _ = LZ4F_createDecompressionContext(&lz4Context, UInt32(LZ4F_VERSION)) }
        guard let context = lz4Context else { throw Self.noContext }
        guard var from = source.baseAddress else { throw .decompressionFailed(.lz4) }
        LZ4F_resetDecompressionContext(context)
        let end = from + source.count
        while true {
            let (target, room) = try reserveStep()
            var produced = room
            var consumed = end - from
            let status = LZ4F_decompress(context, target, &produced, from, &consumed, nil)
            guard LZ4F_isError(status) == 0 else {
                let isMemory = String(cString: LZ4F_getErrorName(status)) == "ERROR_allocation_failed"
                throw isMemory ? Self.noContext : .decompressionFailed(.lz4)
            }
            from += consumed
            scratchCount += produced
            if status == 0, from == end { return }
            guard consumed > 0 || produced > 0 else { throw .decompressionFailed(.lz4) }
        }
    }

    private func decompressSnappy(_ source: UnsafeRawBufferPointer) throws(RecordError) {
        let magic: [UInt8] = [0x82, 0x53, 0x4E, 0x41, 0x50, 0x50, 0x59, 0x00]
        guard source.count >= 16, source.prefix(8).elementsEqual(magic) else { return try decompressSnappyBlock(source) }
        var position = 16
        while position < source.count {
            guard source.count - position >= 4 else { throw .decompressionFailed(.snappy) }
            let length = Int(Int32(bigEndian: source.loadUnaligned(fromByteOffset: position, as: Int32.self)))
            position += 4
            guard length > 0, length <= source.count - position else { throw .decompressionFailed(.snappy) }
            try decompressSnappyBlock(UnsafeRawBufferPointer(rebasing: source[position..<position + length]))
            position += length
        }
    }

    private func decompressSnappyBlock(_ block: UnsafeRawBufferPointer) throws(RecordError) {
        let input = block.baseAddress?.assumingMemoryBound(to: CChar.self)
        var length = 0
        guard snappy_uncompressed_length(input, block.count, &length) == SNAPPY_OK else { throw .decompressionFailed(.snappy) }
        try reserve(length)
        let target = end.assumingMemoryBound(to: CChar.self)
        guard snappy_uncompress(input, block.count, target, &length) == SNAPPY_OK else { throw .decompressionFailed(.snappy) }
        scratchCount += length
    }
}

extension RecordDecoder {
    /// Checks everything a broker promises its readers: checksum, header, and every record's bounds and offset delta.
    package func validate(_ batch: RecordBatch, needsKeys: Bool = false) throws(RecordError) {
        try batch.validateChecksum()
        try batch.validateHeader()
        var cursor = try records(of: batch)
        var index = 0
        let base = batch.baseOffset
        while let record = try cursor.next() {
            guard record.offset == base &+ Int64(index), record.headerCount == 0 || record.forEachHeader({ _, _ in }) else {
                throw .invalidRecord(index: index)
            }
            guard record.key != nil || !needsKeys else { throw .missingKey(index: index) }
            index += 1
        }
    }
}
