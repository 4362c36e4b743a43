package import MillColumnar

/// A column of a file to be written.
package struct ParquetColumn: Hashable, Sendable {
    package var name: String
    package var type: SQLType
    package var form: ParquetValueForm
    /// Of a nested column, whose values come as jsonb; nil for one of plain values.
    package var members: ParquetShape?
    /// NULL is refused, and the column has no place for it.
    package var isRequired: Bool
    /// By which Iceberg knows a column whatever its name.
    package var fieldID: Int32?
    package var encoding: ParquetColumnEncoding

    package init(
        _ name: String, _ type: SQLType, form: ParquetValueForm = .plain, isRequired: Bool = false, fieldID: Int32? = nil,
        encoding: ParquetColumnEncoding = .automatic
    ) {
        self.name = name
        self.type = type
        self.form = form
        self.isRequired = isRequired
        self.fieldID = fieldID
        self.encoding = encoding
    }

    /// A nested column.
    package init(_ member: ParquetMember) {
        self.init(member.name, .jsonb, isRequired: member.isRequired, fieldID: member.fieldID)
        members = member.shape
    }
}

/// How a column's values are written.
package enum ParquetColumnEncoding: Hashable, Sendable {
    /// A dictionary while it makes the column smaller, then `delta` where the type has it.
    case automatic
    /// Values as they are.
    case plain
    /// Integers by differences; bytes by their lengths' differences.
    case delta
    /// Bytes by what they share with the value before: for sorted columns, and addresses that begin alike.
    case deltaBytes
}

package enum ParquetCompression: Hashable, Sendable {
    case none
    case snappy
    case gzip(level: Int)
    case zstd(level: Int)
    /// Blocks without framing, LZ4_RAW.
    case lz4
}

package struct ParquetWriterOptions: Sendable {
    package var compression = ParquetCompression.zstd(level: 1)
    /// Pages with levels outside the compressed part. Readers of today take both; version 1 is what old ones know.
    package var usesDataPagesV2 = false
    /// Fall back to PLAIN only, and call dictionary pages by their old name: for readers from before 2015.
    package var usesOldEncodingsOnly = false
    /// Decimals of any precision as bytes of fixed length, as `spark.sql.parquet.writeLegacyFormat` has it.
    package var writesDecimalsAsBytes = false
    /// Timestamps as INT96, in UTC: what Hive and Impala read.
    package var writesTimestampsAsInt96 = false
    /// Infinite dates and timestamps, and 24:00:00, as the extreme numbers that they are here: of rows that were in files like that.
    package var keepsExtremeTimes = false
    /// What a numeric without precision and scale is in the file.
    package var unconstrainedNumeric = (precision: 28, scale: 10)
    /// Rows after which a row group ends.
    package var rowGroupRowsMax = 1 << 20
    /// Compressed bytes after which it ends, looked at after every page.
    package var rowGroupBytesMax = 128 << 20
    package var pageRowsMax = 20_000
    /// Bytes of values after which a page ends, looked at after every batch.
    package var pageBytesMax = 1 << 20
    /// A column whose dictionary outgrows this goes on without one.
    package var dictionaryBytesMax = 1 << 20
    /// Bounds of texts and bytes are cut to this, and marked as not exact.
    package var boundBytesMax = 64
    /// A CRC-32 for each page.
    package var writesChecksums = true
    /// `key_value_metadata` of the footer.
    package var keyValues: [KeyValue] = []
    package var createdBy = "millrace"

    package init() {}

    /// For readers of the days of Hive: old encodings and names, decimals as bytes, INT96.
    package static var legacy: ParquetWriterOptions {
        var options = ParquetWriterOptions()
        options.usesOldEncodingsOnly = true
        options.writesDecimalsAsBytes = true
        options.writesTimestampsAsInt96 = true
        options.compression = .snappy
        return options
    }
}
