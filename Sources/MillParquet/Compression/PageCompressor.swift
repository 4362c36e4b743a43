import CLZ4
import CSnappy
import CZlib
import CZstd

/// Compresses the pages of one writer, with contexts that it keeps from page to page.
final class PageCompressor {
    let codec: CompressionCodec
    private let level: Int32
    private var zstd: OpaquePointer?

    /// - Throws: `badRequest` for a codec that is only read.
    init(_ compression: ParquetCompression) throws(ParquetError) {
        switch compression {
        case .none: (codec, level) = (.none, 0)
        case .snappy: (codec, level) = (.snappy, 0)
        case .gzip(let level):
            guard (1...9).contains(level) else { throw .badRequest("gzip has the levels 1 to 9") }
            (codec, self.level) = (.gzip, Int32(level))
        case .zstd(let level):
            guard (1...22).contains(level) else { throw .badRequest("zstd has the levels 1 to 22") }
            (codec, self.level) = (.zstd, Int32(level))
            zstd = ZSTD_createCCtx()
        case .lz4: (codec, level) = (.lz4Raw, 0)
        }
    }

    deinit { ZSTD_freeCCtx(zstd) }

    /// Appends `source` compressed.
    func compress(_ source: UnsafeRawBufferPointer, to out: OutputBytes) {
        switch codec {
        case .zstd:
            let bound = ZSTD_compressBound(source.count)
            let written = ZSTD_compressCCtx(zstd, out.room(bound), bound, source.baseAddress, source.count, level)
            precondition(ZSTD_isError(written) == 0, "there is room for what zstd makes at most")
            out.advance(written)
        case .snappy:
            var written = snappy_max_compressed_length(source.count)
            let status = snappy_compress(
                source.baseAddress?.assumingMemoryBound(to: CChar.self), source.count,
                out.room(written).assumingMemoryBound(to: CChar.self), &written)
            precondition(status == SNAPPY_OK, "there is room for what snappy makes at most")
            out.advance(written)
        case .gzip: deflateGzip(source, to: out)
        case .lz4Raw:
            let bound = LZ4_compressBound(Int32(source.count))
            let written = LZ4_compress_default(
                source.baseAddress?.assumingMemoryBound(to: CChar.self), out.room(Int(bound)).assumingMemoryBound(to: CChar.self),
                Int32(source.count), bound)
            precondition(written > 0, "there is room for what LZ4 makes at most")
            out.advance(Int(written))
        default: out.append(source)
        }
    }

    private func deflateGzip(_ source: UnsafeRawBufferPointer, to out: OutputBytes) {
        var stream = z_stream()
        // 16 added to the window's bits: a gzip header and trailer.
        let status = deflateInit2_(
            &stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(status == Z_OK, "there is memory for zlib's window")
        defer { deflateEnd(&stream) }
        let bound = Int(deflateBound(&stream, UInt(source.count)))
        stream.next_in = UnsafeMutablePointer(mutating: source.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.avail_in = UInt32(source.count)
        stream.next_out = out.room(bound).assumingMemoryBound(to: UInt8.self)
        stream.avail_out = UInt32(bound)
        let end = deflate(&stream, Z_FINISH)
        precondition(end == Z_STREAM_END, "there is room for what zlib makes at most")
        out.advance(bound - Int(stream.avail_out))
    }

    /// CRC-32 as gzip has it, which is what the format asks of pages.
    static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        UInt32(truncatingIfNeeded: crc32(0, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(bytes.count)))
    }
}
