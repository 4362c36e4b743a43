import CSnappy
import CZlib
import CZstd

/// How the blocks of an object file are compressed.
package enum AvroCodec: Hashable, Sendable {
    case none
    case deflate(level: Int)
    case snappy
    case zstandard(level: Int)

    /// As a file's metadata has it.
    package var name: String {
        switch self {
        case .none: "null"
        case .deflate: "deflate"
        case .snappy: "snappy"
        case .zstandard: "zstandard"
        }
    }

    /// The codec of that name, with a level for writing; nil for those that we do not read (bzip2, xz).
    package init?(name: String) {
        switch name {
        case "null", "": self = .none
        case "deflate": self = .deflate(level: 6)
        case "snappy": self = .snappy
        case "zstandard": self = .zstandard(level: 3)
        default: return nil
        }
    }

    func compress(_ source: [UInt8]) -> [UInt8] {
        switch self {
        case .none: return source
        case .deflate(let level): return Self.deflated(source, level: Int32(level))
        case .snappy:
            var count = snappy_max_compressed_length(source.count)
            var result = [UInt8](repeating: 0, count: count + 4)
            let status = source.withUnsafeBytes { from in
                result.withUnsafeMutableBytes { to in
                    snappy_compress(
                        from.baseAddress?.assumingMemoryBound(to: CChar.self), from.count,
                        to.baseAddress?.assumingMemoryBound(to: CChar.self),
                        &count)
                }
            }
            precondition(status == SNAPPY_OK, "there is room for what snappy makes at most")
            result.removeSubrange(count...)
            // Behind the block, and highest byte first, which is the format's own idea.
            withUnsafeBytes(of: Self.checksum(source).bigEndian) { result += $0 }
            return result
        case .zstandard(let level):
            var result = [UInt8](repeating: 0, count: ZSTD_compressBound(source.count))
            let count = source.withUnsafeBytes { from in
                result.withUnsafeMutableBytes { to in ZSTD_compress(to.baseAddress, to.count, from.baseAddress, from.count, Int32(level)) }
            }
            precondition(ZSTD_isError(count) == 0, "there is room for what zstd makes at most")
            result.removeSubrange(count...)
            return result
        }
    }

    /// - Throws: also for more than `AvroLimits.blockBytesMax`.
    func decompress(_ source: ArraySlice<UInt8>) throws(AvroFlaw) -> [UInt8] {
        switch self {
        case .none:
            guard source.count <= AvroLimits.blockBytesMax else { throw .badLength(Int64(source.count)) }
            return Array(source)
        case .deflate: return try Self.inflated(Array(source))
        case .snappy: return try Self.unsnapped(source)
        case .zstandard: return try Self.unzstd(Array(source))
        }
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        bytes.withUnsafeBufferPointer { UInt32(truncatingIfNeeded: crc32(0, $0.baseAddress, UInt32($0.count))) }
    }

    /// No header and no trailer: windows of zlib with negative bits.
    private static func deflated(_ source: [UInt8], level: Int32) -> [UInt8] {
        var stream = z_stream()
        let status = deflateInit2_(&stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(status == Z_OK, "there is memory for zlib's window")
        defer { deflateEnd(&stream) }
        var result = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(source.count))))
        source.withUnsafeBufferPointer { from in
            result.withUnsafeMutableBufferPointer { to in
                stream.next_in = UnsafeMutablePointer(mutating: from.baseAddress)
                stream.avail_in = UInt32(from.count)
                stream.next_out = to.baseAddress
                stream.avail_out = UInt32(to.count)
                let end = CZlib.deflate(&stream, Z_FINISH)
                precondition(end == Z_STREAM_END, "there is room for what zlib makes at most")
            }
        }
        result.removeSubrange((result.count - Int(stream.avail_out))...)
        return result
    }

    private static func inflated(_ source: [UInt8]) throws(AvroFlaw) -> [UInt8] {
        var stream = z_stream()
        guard inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw .cannotDecompress("deflate")
        }
        defer { inflateEnd(&stream) }
        var result: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        let ended = source.withUnsafeBufferPointer { from in
            stream.next_in = UnsafeMutablePointer(mutating: from.baseAddress)
            stream.avail_in = UInt32(from.count)
            while true {
                let (status, left) = chunk.withUnsafeMutableBufferPointer { to in
                    stream.next_out = to.baseAddress
                    stream.avail_out = UInt32(to.count)
                    return (inflate(&stream, Z_NO_FLUSH), Int(stream.avail_out))
                }
                result += chunk[..<(chunk.count - left)]
                if status == Z_STREAM_END { return true }
                guard status == Z_OK, result.count <= AvroLimits.blockBytesMax else { return false }
            }
        }
        guard ended, result.count <= AvroLimits.blockBytesMax else { throw .cannotDecompress("deflate") }
        return result
    }

    private static func unsnapped(_ source: ArraySlice<UInt8>) throws(AvroFlaw) -> [UInt8] {
        guard source.count >= 4 else { throw .cutShort }
        let result: [UInt8]? = source.dropLast(4).withUnsafeBytes { from in
            let bytes = from.baseAddress?.assumingMemoryBound(to: CChar.self)
            var count = 0
            guard snappy_uncompressed_length(bytes, from.count, &count) == SNAPPY_OK, count <= AvroLimits.blockBytesMax else { return nil }
            var result = [UInt8](repeating: 0, count: count)
            let status = result.withUnsafeMutableBytes { to in
                snappy_uncompress(bytes, from.count, to.baseAddress?.assumingMemoryBound(to: CChar.self), &count)
            }
            return status == SNAPPY_OK && count == result.count ? result : nil
        }
        let expected = source.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        guard let result, checksum(result) == expected else { throw .cannotDecompress("snappy") }
        return result
    }

    /// Piece by piece: a frame need not say how long its content is, nor tell the truth about it.
    private static func unzstd(_ source: [UInt8]) throws(AvroFlaw) -> [UInt8] {
        guard let context = ZSTD_createDCtx() else { throw .cannotDecompress("zstandard") }
        defer { ZSTD_freeDCtx(context) }
        var result: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: max(ZSTD_DStreamOutSize(), 64 << 10))
        let ended = source.withUnsafeBytes { from in
            var input = ZSTD_inBuffer(src: from.baseAddress, size: from.count, pos: 0)
            while true {
                let (status, count) = chunk.withUnsafeMutableBytes { to in
                    var output = ZSTD_outBuffer(dst: to.baseAddress, size: to.count, pos: 0)
                    let status = ZSTD_decompressStream(context, &output, &input)
                    return (status, output.pos)
                }
                guard ZSTD_isError(status) == 0 else { return false }
                result += chunk[..<count]
                guard result.count <= AvroLimits.blockBytesMax else { return false }
                if input.pos == input.size, count < chunk.count { return status == 0 }
            }
        }
        guard ended else { throw .cannotDecompress("zstandard") }
        return result
    }
}
