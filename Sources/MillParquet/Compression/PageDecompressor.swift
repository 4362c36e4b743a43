import CLZ4
import CSnappy
import CZlib
import CZstd

/// Memory for the bytes of one page, which views may point into: it lives as long as somebody keeps it.
final class PageMemory {
    let base: UnsafeMutableRawPointer
    let count: Int

    /// What a decoder may read past the end of a page.
    static let slackBytes = 64

    init(count: Int) {
        base = .allocate(byteCount: count + Self.slackBytes, alignment: 16)
        (base + count).initializeMemory(as: UInt8.self, repeating: 0, count: Self.slackBytes)
        self.count = count
    }

    deinit { base.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }
}

/// Decompresses the pages of one reader. A page has to give exactly the bytes that its header announces.
final class PageDecompressor {
    private var zstd: OpaquePointer?

    deinit { ZSTD_freeDCtx(zstd) }

    func decompress(_ source: UnsafeRawBufferPointer, _ codec: CompressionCodec, into target: UnsafeMutableRawBufferPointer)
        throws(Malformed)
    {
        guard let to = target.baseAddress, target.count > 0 else { return }
        switch codec {
        case .none:
            guard source.count == target.count else { throw .badLength(target.count) }
            target.copyMemory(from: source)
        case .zstd:
            if zstd == nil { zstd = ZSTD_createDCtx() }
            guard ZSTD_decompressDCtx(zstd, to, target.count, source.baseAddress, source.count) == target.count else {
                throw .cannotDecompress("zstd")
            }
        case .snappy:
            let from = source.baseAddress?.assumingMemoryBound(to: CChar.self)
            var length = 0
            guard snappy_uncompressed_length(from, source.count, &length) == SNAPPY_OK, length == target.count,
                snappy_uncompress(from, source.count, to.assumingMemoryBound(to: CChar.self), &length) == SNAPPY_OK
            else { throw .cannotDecompress("snappy") }
        case .gzip: try inflateGzip(source, into: target)
        case .lz4Raw: try decompressLZ4(source, into: target)
        case .lz4Hadoop:
            // Some writers put raw LZ4 where Hadoop's framing was meant.
            do throws(Malformed) { try decompressHadoopLZ4(source, into: target) } catch { try decompressLZ4(source, into: target) }
        case .lzo, .brotli: throw .cannotDecompress(codec.name)
        }
    }

    private func inflateGzip(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) throws(Malformed) {
        var stream = z_stream()
        // 32 added to the window's bits: takes gzip and zlib headers alike.
        guard inflateInit2_(&stream, 15 + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw .cannotDecompress("gzip")
        }
        defer { inflateEnd(&stream) }
        stream.next_in = UnsafeMutablePointer(mutating: source.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.avail_in = UInt32(source.count)
        stream.next_out = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.avail_out = UInt32(target.count)
        while true {
            let status = inflate(&stream, Z_NO_FLUSH)
            if status == Z_STREAM_END {
                if stream.avail_out == 0 { return }
                // A page may be several gzip members, one after the other.
                guard stream.avail_in > 0, inflateReset(&stream) == Z_OK else { throw .cannotDecompress("gzip") }
            } else if status != Z_OK || stream.avail_in == 0 || stream.avail_out == 0 {
                guard status == Z_OK, stream.avail_out == 0 else { throw .cannotDecompress("gzip") }
                return
            }
        }
    }

    private func decompressLZ4(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) throws(Malformed) {
        let written = LZ4_decompress_safe(
            source.baseAddress?.assumingMemoryBound(to: CChar.self), target.baseAddress?.assumingMemoryBound(to: CChar.self),
            Int32(source.count),
            Int32(target.count))
        guard Int(written) == target.count else { throw .cannotDecompress("LZ4") }
    }

    /// Blocks behind two big-endian lengths each, of what comes out and of what goes in.
    private func decompressHadoopLZ4(_ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer) throws(Malformed) {
        var input = InputBytes(source)
        var done = 0
        while done < target.count {
            let length = Int(UInt32(bigEndian: try input.littleEndian(UInt32.self)))
            let block = try input.take(Int(UInt32(bigEndian: try input.littleEndian(UInt32.self))))
            guard length > 0, length <= target.count - done else { throw .badLength(length) }
            try decompressLZ4(block, into: UnsafeMutableRawBufferPointer(rebasing: target[done..<done + length]))
            done += length
        }
        guard input.remaining == 0 else { throw .cannotDecompress("LZ4") }
    }
}
