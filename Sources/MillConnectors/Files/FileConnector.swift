package import MillBase
package import MillColumnar
package import MillConnectorKit
package import MillIO
import MillObjectStore
import MillParquet
import Synchronization

/// `connector = 'file'` and `'s3'`: records of text files, or rows of Parquet files; bounded. Each file is a split; a record's position is the
/// byte where it begins, or the row's number.
///
/// Options: `path` (a file, a directory, or a pattern, see `FilePattern`), also in S3; or RisingWave's `s3.bucket_name` and `match_pattern`.
/// Without a format the path's ending says whether it has Parquet files or CSV, otherwise it has JSON lines.
///
/// Objects are opened and text of them is read on threads of the connector's own; the pages of Parquet files are read when they are decoded.
package final class FileConnector: SourceConnector {
    package let isBounded = true
    package func recordCount(_ split: SourceSplit, from start: SplitOffset, to end: SplitOffset) -> Int64? {
        end <= start ? 0 : format == .parquet ? end.position - start.position : nil
    }
    package var status: String? { place.status }
    package let format: SourceFormat
    private let place: any FilePlace
    private let blockBytes: Int
    private let pool = BlockPool()
    private let gate = FetchGate()
    /// Of Parquet files far away, by split: to ask again costs three requests.
    private let rowCounts = Mutex<[String: Int64]>([:])

    package convenience init(options: ConnectorOptions, format: SourceFormat?, files: any FileSystem, access: FileAccess?) throws(SQLError)
    {
        var options = options
        let path = try Self.path(&options)
        let found = if let format { format } else { try SourceFormat(ofPath: path, taking: &options) }
        var place: any FilePlace = LocalPlace(pattern: path, files: files, access: access)
        if S3Properties.isLocation(path) {
            let properties = try S3Properties.take(from: &options)
            guard let access else { throw SQLError(.featureNotSupported, "there is no way to S3 here") }
            do throws(IOFailure) { place = StoredPlace(pattern: path, store: try access.openS3(properties)) } catch {
                throw SQLError(.invalidParameterValue, error.detail ?? error.description)
            }
        }
        try options.finish()
        self.init(place, format: found)
    }

    private static func path(_ options: inout ConnectorOptions) throws(SQLError) -> String {
        let isS3 = options.connector == "s3"
        let bucket = isS3 ? try options.take("s3.bucket_name", "s3.bucket") : nil
        guard let bucket else {
            let path = try options.require(
                "path", or: "location",
                hint: isS3 ? "Or say s3.bucket_name." : "Set it to a file, a directory or a pattern such as 'bids/*.jsonl'.")
            guard isS3, !S3Properties.isLocation(path) else { return path }
            throw options.invalid("path", path, expected: "s3://bucket/key, or s3.bucket_name and match_pattern")
        }
        let pattern = try options.take("match_pattern", "path") ?? "**"
        return "s3://\(bucket)/\(pattern)"
    }

    package convenience init(path: String, format: SourceFormat = .plainJSON, files: any FileSystem, blockBytes: Int = 1 << 20) {
        self.init(LocalPlace(pattern: path, files: files, access: nil), format: format, blockBytes: blockBytes)
    }

    init(_ place: any FilePlace, format: SourceFormat, blockBytes: Int = 1 << 20) {
        self.place = place
        self.format = format
        self.blockBytes = max(blockBytes, 1)
    }

    package func expect(_ splits: [SourceSplit]) { place.expect(splits) }

    package func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] {
        Dictionary(uniqueKeysWithValues: try found().map { ($0, SplitOffset(0)) })
    }

    /// - Throws: 42704 when there is no file.
    func found() throws(SQLError) -> [SourceSplit] {
        let splits = try currentSplits()
        guard !splits.isEmpty else {
            throw SQLError(
                .undefinedObject, "no file matches \"\(place.pattern)\"",
                hint: "Names that begin with a point or an underscore match no pattern.")
        }
        return splits
    }

    package func currentSplits() throws(SQLError) -> [SourceSplit] { try place.splits() }

    package func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] {
        var ends: [SourceSplit: SplitOffset] = [:]
        for split in splits {
            guard let byteCount = try place.byteCount(split) else { continue }
            ends[split] = SplitOffset(format == .parquet ? try rowCount(split) : Int64(byteCount))
        }
        return ends
    }

    private func rowCount(_ split: SourceSplit) throws(SQLError) -> Int64 {
        if place.isRemote, let known = rowCounts.withLock({ $0[split.name] }) { return known }
        let count = try open(split).rowCount
        if place.isRemote { rowCounts.withLock { $0[split.name] = count } }
        return count
    }

    private func open(_ split: SourceSplit) throws(SQLError) -> OpenParquetFile { try OpenParquetFile(place.open(split)) }

    package func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError)
        -> any SplitReader
    {
        guard place.isRemote else { return try reader(split, at: offset, onData) }
        return OpeningReader(at: offset, gate: gate, onData: onData) { () throws(SQLError) in try self.reader(split, at: offset, onData) }
    }

    private func reader(_ split: SourceSplit, at offset: SplitOffset, _ onData: @escaping @Sendable () -> Void) throws(SQLError)
        -> any SplitReader
    {
        let partition = HivePath.values(in: split.topic)
        guard format != .parquet else {
            return try ParquetSplitReader(split, at: offset, open(split), SplitFile(location: split.topic, partition: partition))
        }
        let opened = try TextFile(place.open(split), format)
        let ahead = { [gate] (file: any File, start: Int, end: Int) in ReadAhead(file, from: start, to: end, gate: gate, onData: onData) }
        return try FileSplitReader(
            split, at: offset, opened, SplitFile(location: split.topic, partition: partition, header: opened.header), format: format,
            blockBytes: blockBytes, pool: pool, ahead: place.isRemote ? ahead : nil)
    }

    /// Those of the first file, which of text is looked at in part, then those of the paths.
    package func columns() throws(SQLError) -> [Field]? {
        let splits = try found()
        guard let first = splits.first else { return nil }
        var fields = format == .parquet ? try parquetColumns(first) : try SampledColumns.fields(of: place.open(first), format)
        for field in PartitionColumns.fields(of: splits.map(\.topic))
        where ColumnNames.place(of: field.name, among: fields.map(\.name)) == nil {
            fields.append(field)
        }
        return fields
    }

    private func parquetColumns(_ split: SourceSplit) throws(SQLError) -> [Field] {
        var fields: [Field] = []
        for column in try open(split).file.columns {
            guard let type = column.type else {
                throw SQLError(
                    .featureNotSupported, "column \"\(column.name)\" of \"\(split.topic)\" has a type without a counterpart in SQL",
                    hint: "List the columns that you want.")
            }
            fields.append(Field(column.name, type))
        }
        return fields
    }
}
