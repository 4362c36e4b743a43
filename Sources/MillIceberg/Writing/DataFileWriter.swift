package import MillColumnar
package import MillIO
package import MillObjectStore
package import MillParquet

/// Writes rows into a table's data files: Parquet, one open file to a partition, rolled at a target size.
///
/// Fed by sinks and by compaction. Files are complete objects once they are closed, and part of the table only when a commit names them;
/// until then `abandon` takes them back.
///
/// Rows of a table with a sort order are kept in memory until their file ends, and are written in that order; others go to the file in the
/// order in which they come. Only a file whose rows are in order says so in the manifest.
///
/// A batch with a value that a column cannot hold is refused as a whole, before anything of it is written. After an error of the store the
/// writer is of no use; `abandon` it. Threading: one thread at a time.
package final class DataFileWriter {
    package struct Settings: Sendable {
        /// Compressed bytes after which a file ends, looked at after every batch.
        package var targetFileBytes = 512 << 20
        /// Files open at once; beyond, the one that waited longest for a row is closed, so that memory is bounded and files may be small.
        package var openFilesMax = 64
        package var parquet = ParquetWriterOptions()
        /// What file names begin with.
        package var namePrefix = "data"
        /// Bytes in memory, of all open files, of rows that are to be sorted; beyond, the file that has most of them ends.
        package var sortBytesMax = 256 << 20
        /// Rows come in the table's sort order: they are written as they come, and files say that they are sorted.
        package var comesSorted = false
        /// Rows come from the table's own files, and are written as they are. What has no place is not looked for beforehand: after any
        /// error the writer is of no use.
        package var rewrites = false
        /// Keeps what `takeReorderings` gives.
        package var tellsReorderings = false

        package init() {
            parquet.boundBytesMax = 24
            // Spark reads Iceberg's tables in batches unless told otherwise, and its batches know plain values and dictionaries only.
            parquet.usesOldEncodingsOnly = true
        }

        /// What the table's properties say, where they do and where it is something that we know.
        package mutating func take(_ properties: [String: String]) {
            if let bytes = properties["write.target-file-size-bytes"].flatMap({ Int($0) }), bytes > 0 { targetFileBytes = bytes }
            let level = properties["write.parquet.compression-level"].flatMap { Int($0) }
            switch properties["write.parquet.compression-codec"]?.lowercased() {
            case "uncompressed", "none": parquet.compression = .none
            case "snappy": parquet.compression = .snappy
            case "gzip": parquet.compression = .gzip(level: level.map { min(max($0, 1), 9) } ?? 6)
            case "zstd": parquet.compression = .zstd(level: level.map { min(max($0, 1), 22) } ?? 1)
            case "lz4", "lz4_raw": parquet.compression = .lz4
            default: break
            }
        }
    }

    /// A column that batches have: which one of the table's, and its type in SQL.
    package struct Input: Sendable {
        package var fieldID: Int
        package var type: SQLType

        package init(_ fieldID: Int, _ type: SQLType) { (self.fieldID, self.type) = (fieldID, type) }
    }

    /// Where rows of a batch went: the first of `rows` is at `firstPosition` of the file, the others follow it. Of a file that is sorted
    /// when it ends, positions are those of coming until then.
    package struct Placement: Sendable {
        package var path: String
        package var firstPosition: Int64
        package var rows: [UInt32]
    }

    /// What became of the positions of a file that was sorted.
    package struct Reordering: Sendable {
        package var path: String
        /// By the position of coming.
        package var positions: [UInt32]
    }

    private let layout: FileLayout
    private let partitioner: Partitioner
    private let order: RowOrder?
    /// Why rows are not sorted though the table has an order; nil when they are, or it has none.
    package let unsortedReason: String?
    private let store: any ObjectStore
    private let settings: Settings
    private let random: any RandomSource
    private let prefix: String

    private var open: [PartitionKey: OpenDataFile] = [:]
    private var closed: [DataFile] = []
    private var reorderings: [Reordering] = []
    private var appendCount = 0
    private var fileCount = 0

    /// - Throws: `unsupported` or `badRequest` for columns that do not fit the table's.
    package init(
        _ table: TableMetadata, _ inputs: [Input], _ store: any ObjectStore, _ settings: Settings = Settings(), random: any RandomSource
    ) throws(IcebergError) {
        layout = try FileLayout(table, inputs)
        partitioner = try Partitioner(table, inputs, layout)
        switch RowOrder.find(table, layout.fields) {
        case .unsorted: (order, unsortedReason) = (nil, nil)
        case .order(let found): (order, unsortedReason) = (found, nil)
        case .impossible(let reason): (order, unsortedReason) = (nil, reason)
        }
        self.store = store
        var settings = settings
        if settings.rewrites { settings.parquet.keepsExtremeTimes = true }
        self.settings = settings
        self.random = random
        prefix = table.dataLocation
    }

    /// Compressed bytes of the files that are still open; those in memory of rows that are to be sorted.
    package var openByteCount: Int { open.values.reduce(0) { $0 + $1.byteCount } }
    /// What is closed, in the order of closing.
    package var closedFiles: [DataFile] { closed }

    /// Appends the first `count` rows.
    /// - Returns: where they went; the files may be closed by then.
    /// - Throws: `parquet(.valueDoesNotFit)` with the column and the row of the batch.
    @discardableResult
    package func append(_ batch: [Column], count: Int) throws(IcebergError) -> [Placement] {
        guard count > 0 else { return [] }
        let columns = try layout.converted(batch, count: count)
        // A single file's own writer refuses a batch before it takes anything of it.
        let mayBeHalfWritten = sortsRows || !partitioner.spec.fields.isEmpty
        if mayBeHalfWritten, !settings.rewrites { try layout.check(columns, count: count) }
        var placements: [Placement] = []
        for part in try partitioner.split(columns, count: count) {
            appendCount += 1
            let file = try openFile(part.key, part.values)
            placements.append(Placement(path: file.path, firstPosition: file.rowCount, rows: part.rows))
            try file.append(columns, part, at: appendCount)
            if file.byteCount >= settings.targetFileBytes { try close(part.key) }
        }
        try boundSorting()
        return placements
    }

    private func boundSorting() throws(IcebergError) {
        guard order != nil else { return }
        while open.values.reduce(0, { $0 + $1.sortByteCount }) > settings.sortBytesMax {
            guard let largest = open.max(by: { $0.value.sortByteCount < $1.value.sortByteCount })?.key else { return }
            try close(largest)
        }
    }

    /// Whether files are sorted when they end.
    package var sortsRows: Bool { order != nil && !settings.comesSorted }

    /// Of files that ended since the last call, while the settings ask for it.
    package func takeReorderings() -> [Reordering] {
        defer { reorderings = [] }
        return reorderings
    }

    private func openFile(_ key: PartitionKey, _ values: [Scalar]) throws(IcebergError) -> OpenDataFile {
        if let found = open[key] { return found }
        if open.count >= settings.openFilesMax, let oldest = open.min(by: { $0.value.lastAppend < $1.value.lastAppend })?.key {
            try close(oldest)
        }
        fileCount += 1
        let name = FileNames.name(settings.namePrefix, fileCount, random) + ".parquet"
        let directory = partitioner.spec.path(values, partitioner.types)
        let path = prefix + "/" + (directory.isEmpty ? "" : directory + "/") + name
        let rows: OpenDataFile.Rows =
            switch order {
            case nil: .unsorted
            case let order? where settings.comesSorted: .sorted(order.orderID)
            case let order?: .toBeSorted(SortBuffer(order))
            }
        let file = try OpenDataFile(path, layout, values, specID: partitioner.spec.specID, rows, store, settings.parquet)
        open[key] = file
        return file
    }

    private func close(_ key: PartitionKey) throws(IcebergError) {
        guard let file = open[key] else { return }
        guard file.rowCount > 0 else {
            // Its first batch was refused.
            file.abandon()
            open[key] = nil
            return
        }
        closed.append(try file.finish())
        open[key] = nil
        if settings.tellsReorderings, let positions = file.positions {
            reorderings.append(Reordering(path: file.path, positions: positions))
        }
    }

    /// Closes all files. More rows may follow, into new ones.
    /// - Returns: all files since the last call.
    package func finish() throws(IcebergError) -> [DataFile] {
        for key in open.sorted(by: { $0.value.path < $1.value.path }).map(\.key) { try close(key) }
        defer { closed = [] }
        return closed
    }

    /// Takes back what was written since the last `finish`. Objects that cannot be removed stay behind as orphans.
    package func abandon() {
        for file in open.values { file.abandon() }
        open = [:]
        try? store.remove(closed.map(\.path))  // nobody knows them: what remains is found as an orphan
        closed = []
    }
}
