/// The structures of a file's footer, with the names of parquet.thrift in our spelling. The number after a member is its field's id.
///
/// Only what we write or read is here; a reader skips the rest.
package struct FileMetadata: Sendable {
    var version: Int32  // 1
    var schema: [SchemaElement]  // 2
    package var rowCount: Int64  // 3
    package var rowGroups: [RowGroupMetadata]  // 4
    package var keyValues: [KeyValue] = []  // 5
    package var createdBy: String?  // 6
    /// For each leaf, whether its bounds are ordered as its type says: only then do bounds mean anything.
    var orders: [Bool] = []  // 7
}

package struct KeyValue: Hashable, Sendable {
    package var key: String  // 1
    package var value: String?  // 2

    package init(_ key: String, _ value: String?) {
        self.key = key
        self.value = value
    }
}

/// A node of the schema; nodes come in depth-first order.
struct SchemaElement: Hashable, Sendable {
    var type: StoredType?  // 1, leaves only
    var typeLength: Int?  // 2
    var repetition: Repetition?  // 3
    var name: String  // 4
    var childCount: Int?  // 5
    var converted: ConvertedType?  // 6
    var scale: Int?  // 7
    var precision: Int?  // 8
    var fieldID: Int32?  // 9
    var logical: LogicalType?  // 10
}

package struct RowGroupMetadata: Sendable {
    var columns: [ColumnChunkMetadata]  // 1
    var byteCount: Int64  // 2, uncompressed
    package var rowCount: Int64  // 3
    var fileOffset: Int64?  // 5
    var compressedByteCount: Int64?  // 6
    var ordinal: Int16?  // 7
}

/// One column of one row group, and where its parts lie in the file.
struct ColumnChunkMetadata: Sendable {
    var filePath: String?  // 1: the values are in another file
    var type: StoredType  // 3.1
    var encodings: [Int32]  // 3.2
    var path: [String]  // 3.3
    /// A codec that nobody has named yet is one we cannot read, not an error of the file.
    var codec: Int32  // 3.4
    var valueCount: Int64  // 3.5, NULLs among them
    var uncompressedByteCount: Int64  // 3.6
    var compressedByteCount: Int64  // 3.7
    var dataPageOffset: Int64  // 3.9
    var dictionaryPageOffset: Int64?  // 3.11
    var statistics: ColumnStatistics?  // 3.12
    var pageCounts: [PageEncodingCount] = []  // 3.13
    var offsetIndex: FileRange?  // 4, 5
    var columnIndex: FileRange?  // 6, 7
    var isEncrypted = false  // 8
}

/// How many pages of a chunk have an encoding.
struct PageEncodingCount: Hashable, Sendable {
    var page: Int32  // 1
    var encoding: Int32  // 2
    var count: Int32  // 3
}

struct FileRange: Hashable, Sendable {
    var offset: Int64
    var length: Int32
}

/// Bounds of the values of a chunk or a page, as plain bytes. Bounds may lie outside the values, never inside.
struct ColumnStatistics: Hashable, Sendable {
    var nullCount: Int64?  // 3
    var max: [UInt8]?  // 5
    var min: [UInt8]?  // 6
    var isMaxExact: Bool?  // 7
    var isMinExact: Bool?  // 8
    /// The older bounds, by signed comparison whatever the type: good for numbers only.
    var signedMax: [UInt8]?  // 1
    var signedMin: [UInt8]?  // 2
}
