/// The numbers of the format's enumerations, by parquet.thrift.

/// How values lie in a page.
package enum StoredType: Int32, Sendable {
    case boolean = 0
    case int32 = 1
    case int64 = 2
    /// Twelve bytes: nanoseconds of the day, then the Julian day.
    case int96 = 3
    case float = 4
    case double = 5
    case byteArray = 6
    case fixedBytes = 7
}

package enum Repetition: Int32, Sendable {
    case required = 0
    case optional = 1
    case repeated = 2
}

/// The older names of logical types; written beside the newer ones for readers that know no others.
package enum ConvertedType: Int32, Sendable {
    case utf8 = 0
    case map = 1
    case mapKeyValue = 2
    case list = 3
    case enumeration = 4
    case decimal = 5
    case date = 6
    case timeMillis = 7
    case timeMicros = 8
    case timestampMillis = 9
    case timestampMicros = 10
    case uint8 = 11
    case uint16 = 12
    case uint32 = 13
    case uint64 = 14
    case int8 = 15
    case int16 = 16
    case int32 = 17
    case int64 = 18
    case json = 19
    case bson = 20
    case interval = 21
}

package enum Encoding: Int32, Sendable {
    case plain = 0
    /// Before version 2: the dictionary itself, and indices into it.
    case plainDictionary = 2
    case rle = 3
    /// Levels of very old files, highest bit first.
    case bitPacked = 4
    case deltaBinaryPacked = 5
    case deltaLengthByteArray = 6
    case deltaByteArray = 7
    case rleDictionary = 8
    case byteStreamSplit = 9
}

package enum CompressionCodec: Int32, Sendable {
    case none = 0
    case snappy = 1
    case gzip = 2
    case lzo = 3
    case brotli = 4
    /// Hadoop's framing of LZ4 blocks, or what some writers took it for.
    case lz4Hadoop = 5
    case zstd = 6
    case lz4Raw = 7

    package var name: String {
        switch self {
        case .none: "none"
        case .snappy: "snappy"
        case .gzip: "gzip"
        case .lzo: "LZO"
        case .brotli: "Brotli"
        case .lz4Hadoop: "LZ4 in Hadoop's framing"
        case .zstd: "zstd"
        case .lz4Raw: "LZ4"
        }
    }
}

enum PageType: Int32 {
    case data = 0
    case index = 1
    case dictionary = 2
    case dataV2 = 3
}

/// Whether the bounds of a chunk's pages go up or down from page to page.
enum BoundaryOrder: Int32 {
    case unordered = 0
    case ascending = 1
    case descending = 2
}
