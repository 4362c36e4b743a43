package import MillBase

/// Why bytes are not the record batch they claim to be.
package enum RecordError: Error, Hashable, Sendable, SQLErrorConvertible {
    /// Fewer bytes than the header or its length says.
    case truncated(needed: Int, available: Int)
    /// A format other than 2 in a batch, or than 0 and 1 in a message set.
    case unsupportedMagic(Int8)
    case checksumMismatch(expected: UInt32, found: UInt32)
    /// A header field that contradicts another: lengths, counts, offset deltas.
    case invalidHeader
    /// The record with this index is malformed.
    case invalidRecord(index: Int)
    /// The record with this index has no key, where compaction goes by keys.
    case missingKey(index: Int)
    case unknownCompression(Int)
    case decompressionFailed(Compression)
    /// More than the limit came out of a compressed batch.
    case decompressedTooLarge(limit: Int)
    case compressionFailed(Compression)
    /// So much memory was not to be had; the batch may be as good as any.
    case outOfMemory(bytes: Int)

    package var sqlError: SQLError {
        let text =
            switch self {
            case .truncated(let needed, let available): "record batch ends early: \(needed) bytes needed, \(available) there"
            case .unsupportedMagic(let magic): "record batch has the unsupported format \(magic)"
            case .checksumMismatch(let expected, let found): "record batch has checksum \(found), its header says \(expected)"
            case .invalidHeader: "record batch has an impossible header"
            case .invalidRecord(let index): "record \(index) of a batch is malformed"
            case .missingKey(let index): "record \(index) of a batch has no key, and its topic is compacted"
            case .unknownCompression(let code): "record batch has the unknown compression \(code)"
            case .decompressionFailed(let codec): "record batch does not decompress with \(codec)"
            case .decompressedTooLarge(let limit): "record batch decompresses to more than \(limit) bytes"
            case .compressionFailed(let codec): "record batch does not compress with \(codec)"
            case .outOfMemory(let bytes): "no memory for \(bytes) bytes of a decompressed record batch"
            }
        if case .outOfMemory = self { return SQLError(.outOfMemory, text) }
        return SQLError(.dataCorrupted, text)
    }
}
