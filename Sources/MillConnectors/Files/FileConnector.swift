package import MillBase
package import MillColumnar
package import MillConnectorKit
package import MillIO
import MillParquet

/// `connector = 'file'`: lines of files as records, or rows of Parquet files; bounded. Each file is a split; a record's position is the
/// byte where its line begins, or the row's number.
///
/// Options: `path` (a file, a directory, or a pattern with `*`, `?` and `[a-z]`). Files of a directory are taken in order of name,
/// those whose name begins with `.` or `_` and subdirectories are not. Without a format a path that ends in `.parquet` has Parquet files,
/// another has JSON lines.
package final class FileConnector: SourceConnector {
    package let isBounded = true
    package var numbersRecords: Bool { format == .parquet }
    package let format: SourceFormat
    private let path: String
    private let files: any FileSystem
    private let blockBytes: Int
    private let pool = BlockPool()

    package convenience init(options: ConnectorOptions, format: SourceFormat?, files: any FileSystem) throws(SQLError) {
        var options = options
        let path = try options.require("path", or: "location", hint: "Set it to a file, a directory or a pattern such as 'bids/*.jsonl'.")
        try options.finish()
        self.init(path: path, format: format ?? (path.lowercased().hasSuffix(".parquet") ? .parquet : .plainJSON), files: files)
    }

    package init(path: String, format: SourceFormat = .plainJSON, files: any FileSystem, blockBytes: Int = 1 << 20) {
        self.path = path
        self.format = format
        self.files = files
        self.blockBytes = max(blockBytes, 1)
    }

    package func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] {
        let splits = try currentSplits()
        guard !splits.isEmpty else { throw SQLError(.undefinedObject, "no file matches \"\(path)\"") }
        return Dictionary(uniqueKeysWithValues: splits.map { ($0, SplitOffset(0)) })
    }

    package func currentSplits() throws(SQLError) -> [SourceSplit] {
        try FilePattern(path).matches(in: files).map { SourceSplit(name: $0, topic: $0, partition: 0) }
    }

    package func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] {
        var ends: [SourceSplit: SplitOffset] = [:]
        for split in splits {
            if format == .parquet {
                ends[split] = SplitOffset(try OpenParquetFile(split.name, in: files).rowCount)
                continue
            }
            do throws(IOFailure) { ends[split] = SplitOffset(Int64(try files.open(split.name, .read).size())) } catch { throw error.sqlError }
        }
        return ends
    }

    package func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) -> any SplitReader {
        if format == .parquet { return try ParquetSplitReader(split, at: offset, OpenParquetFile(split.name, in: files)) }
        return try FileSplitReader(split, at: offset, files: files, blockBytes: blockBytes, pool: pool)
    }

    /// Those of the first Parquet file; nil for lines.
    package func columns() throws(SQLError) -> [Field]? {
        guard format == .parquet, let first = try currentSplits().first else { return nil }
        let file = try OpenParquetFile(first.name, in: files).file
        var fields: [Field] = []
        for column in file.columns {
            guard let type = column.type else {
                throw SQLError(
                    .featureNotSupported, "column \"\(column.name)\" of \"\(first.name)\" has a type without a counterpart in SQL",
                    hint: "List the columns that you want.")
            }
            fields.append(Field(column.name, type))
        }
        return fields
    }
}
