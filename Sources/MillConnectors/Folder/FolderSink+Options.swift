import MillBase
import MillColumnar
import MillIO
import MillObjectStore
import MillParquet

extension FolderSink {
    /// - Throws: 22023 for a missing, unknown or wrong option, 42703 for a column that is not there, 0A000 for what a folder cannot be, 42501 for
    ///   one outside of the directories that statements may name.
    convenience init(_ options: ConnectorOptions, of relation: SinkConnectors.Relation, _ access: FileAccess, _ environment: Environment)
        throws(SQLError)
    {
        var left = options
        try Self.checkKind(&left, relation)
        let path = try Self.path(&left)
        let properties = S3Properties.isLocation(path) ? try S3Properties.take(from: &left) : [:]
        var parsed = Options(folder: path, partition: try Self.partition(&left, relation.fields))
        // Spark's name. What it stands for beside the encodings is said by `compression`.
        if try left.flag("parquet.writeLegacyFormat") ?? false { parsed.parquet = .legacy }
        if let text = try left.take("compression") { parsed.parquet.compression = try Self.compression(text, left) }
        parsed.fileRowsMax = Int64(try Self.positive("max_row_count", &left) ?? .max)
        parsed.fileBytesMax = try Self.positive("max_file_bytes", &left) ?? parsed.fileBytesMax
        // Many files are open at once.
        if !parsed.partition.isEmpty { parsed.parquet.rowGroupBytesMax = 32 << 20 }
        try left.finish()
        guard relation.fields.count > parsed.partition.count else {
            throw SQLError(
                .invalidParameterValue, "all columns of \"\(relation.name)\" are in partition_by", hint: "Files need a column of their own."
            )
        }
        let store: any ObjectStore
        if S3Properties.isLocation(path) {
            do throws(IOFailure) { store = try access.openS3(properties) } catch {
                throw SQLError(.invalidParameterValue, error.detail ?? error.description)
            }
        } else {
            try access.check(path)
            parsed.folder = access.absolute(path)
            store = LocalObjectStore(environment: environment)
        }
        self.init(parsed, fields: relation.fields, store: store, random: environment.random)
    }

    /// What CREATE SINK says of how rows are sent.
    private static func checkKind(_ options: inout ConnectorOptions, _ relation: SinkConnectors.Relation) throws(SQLError) {
        let type = try options.take("type")?.lowercased() ?? "append-only"
        _ = try options.take("force_append_only")
        _ = try options.take("primary_key")
        guard type == "append-only", relation.key == nil else {
            throw SQLError(
                .featureNotSupported, "a folder of files takes no updates and deletes",
                hint: "Use connector = 'iceberg' with type = 'upsert', or type = 'append-only' and force_append_only = 'true'.")
        }
        let format = try options.take("format")?.lowercased() ?? "plain"
        let encode = try options.take("encode")?.lowercased() ?? "parquet"
        guard format == "plain" || format == "append_only", encode == "parquet" else {
            throw SQLError(
                .featureNotSupported, "FORMAT \(format.uppercased()) ENCODE \(encode.uppercased()) is not supported for files",
                hint: "Use FORMAT PLAIN ENCODE PARQUET.")
        }
    }

    /// The folder's location without slashes at its end.
    private static func path(_ options: inout ConnectorOptions) throws(SQLError) -> String {
        var path = ""
        if options.connector == "s3", let bucket = try options.take("s3.bucket_name", "s3.bucket") {
            path = "s3://\(bucket)/" + (try options.take("s3.path", "path") ?? "")
        } else {
            let given = try options.take("path", options.connector == "s3" ? "s3.path" : "fs.path", "location")
            guard let given, !given.isEmpty else {
                throw SQLError(
                    .invalidParameterValue, "option \"path\" of connector \"\(options.connector)\" is missing",
                    hint: "Set it to a folder, such as '/data/orders' or 's3://bucket/orders'.")
            }
            path = given
        }
        let isS3 = S3Properties.isLocation(path)
        guard isS3 || options.connector != "s3", !path.contains(where: { "*?[".contains($0) }),
            isS3 || !path.contains("://") || path.hasPrefix("file://")
        else {
            throw options.invalid("path", path, expected: options.connector == "s3" ? "s3://bucket/folder" : "a folder, without a pattern")
        }
        while path.hasSuffix("/"), path.count > 1, !path.hasSuffix("://") { path.removeLast() }
        if path.hasPrefix("file://") { path.removeFirst("file://".count) }
        return path
    }

    private static func partition(_ options: inout ConnectorOptions, _ fields: [Field]) throws(SQLError) -> [Int] {
        guard let text = try options.take("partition_by") else { return [] }
        var places: [Int] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            var name = part.drop { $0 == " " }
            while name.hasSuffix(" ") { name.removeLast() }
            guard let place = fields.firstIndex(where: { $0.name == name }) else {
                throw SQLError(
                    .undefinedColumn, "column \"\(name)\" of option \"partition_by\" does not exist",
                    hint: "The columns are: \(fields.map(\.name).joined(separator: ", ")).")
            }
            guard !places.contains(place) else {
                throw SQLError(.duplicateColumn, "column \"\(name)\" is in option \"partition_by\" twice")
            }
            switch fields[place].type {
            case .boolean, .int16, .int32, .int64, .numeric, .varchar, .date, .time, .timestamp, .timestamptz: places.append(place)
            default:
                throw SQLError(
                    .featureNotSupported, "column \"\(name)\" is \(fields[place].type.name), whose values cannot name directories",
                    hint: "Partition by numbers, texts, dates or times.")
            }
        }
        return places
    }

    private static func compression(_ text: String, _ options: ConnectorOptions) throws(SQLError) -> ParquetCompression {
        switch text.lowercased() {
        case "zstd": return .zstd(level: 1)
        case "snappy": return .snappy
        case "gzip": return .gzip(level: 6)
        case "lz4", "lz4_raw": return .lz4
        case "none", "uncompressed": return .none
        default: throw options.invalid("compression", text, expected: "zstd, snappy, gzip, lz4 or none")
        }
    }

    private static func positive(_ name: String, _ options: inout ConnectorOptions) throws(SQLError) -> Int? {
        guard let text = try options.take(name) else { return nil }
        guard let value = Int(text), value > 0 else { throw options.invalid(name, text, expected: "a whole number above 0") }
        return value
    }
}
