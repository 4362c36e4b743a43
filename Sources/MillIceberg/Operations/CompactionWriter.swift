import MillColumnar
import MillObjectStore

/// Writes the rows of a compaction's groups into new files, in the table's sort order where it has one.
///
/// Files that are sorted by it already are merged, some at a time, so a sorted file of any size is written from a batch of each. Rows of
/// others are sorted in memory, and their files end where that is full; a later run merges those.
struct CompactionWriter {
    private let table: IcebergTable
    private let plan: ScanPlan
    private let order: RowOrder?
    private let fieldIDs: [Int]
    /// For rows that are sorted when a file ends, or that no order is asked of.
    private let writer: DataFileWriter
    /// For rows that come in order.
    private let merged: DataFileWriter
    private var files: [DataFile] = []

    /// - Throws: `unsupported` for a table with a column that cannot be written.
    init(_ table: IcebergTable, _ plan: ScanPlan, targetFileBytes: Int64) throws(IcebergError) {
        (self.table, self.plan) = (table, plan)
        let fields = table.metadata.currentSchema.fields
        fieldIDs = fields.map(\.id)
        var inputs: [DataFileWriter.Input] = []
        for field in fields {
            guard let type = field.type.sqlType, ColumnConversion(from: type, to: field.type) != nil else {
                throw .unsupported("writing column \"\(field.name)\" of type \(field.type), which compaction has to")
            }
            inputs.append(DataFileWriter.Input(field.id, type))
        }
        if case .order(let found) = RowOrder.find(table.metadata, fields) { order = found } else { order = nil }
        var settings = DataFileWriter.Settings()
        settings.take(table.metadata.properties)
        settings.targetFileBytes = Int(clamping: targetFileBytes)
        settings.namePrefix = "compacted"
        settings.rewrites = true
        writer = try DataFileWriter(table.metadata, inputs, table.store, settings, random: table.random)
        settings.comesSorted = true
        merged = try DataFileWriter(table.metadata, inputs, table.store, settings, random: table.random)
    }

    mutating func write(_ tasks: [ScanPlan.Task]) throws(IcebergError) {
        guard let order else { return try copy(tasks) }
        let sorted = tasks.filter { $0.file.sortOrderID == order.orderID }
        // Each open file has a window for each column.
        let filesMax = max(2, min(32, 512 / max(1, fieldIDs.count)))
        var start = 0
        while start < sorted.count {
            let part = Array(sorted[start..<min(start + filesMax, sorted.count)])
            try merge(part, order)
            start += part.count
        }
        try copy(tasks.filter { $0.file.sortOrderID != order.orderID })
    }

    private func copy(_ tasks: [ScanPlan.Task]) throws(IcebergError) {
        for task in tasks {
            let reader = try DataFileReader(task, plan, table, fieldIDs: fieldIDs)
            while let batch = try reader.next() { try writer.append(batch.columns, count: batch.count) }
        }
    }

    private mutating func merge(_ tasks: [ScanPlan.Task], _ order: RowOrder) throws(IcebergError) {
        let readers = try tasks.map { task throws(IcebergError) in try DataFileReader(task, plan, table, fieldIDs: fieldIDs) }
        let merge = SortedMerge(readers, order)
        while let rows = try merge.next() { try merged.append(rows.columns, count: rows.count) }
        guard merge.misplaced == nil else {
            // Whoever wrote it sorts in another way.
            merged.abandon()
            return try copy(tasks)
        }
        // Rows of the next ones are in an order of their own.
        files += try merged.finish()
    }

    /// All files written.
    mutating func finish() throws(IcebergError) -> [DataFile] {
        files += try writer.finish()
        return files
    }

    /// Takes back what was written.
    func abandon() {
        writer.abandon()
        merged.abandon()
        try? table.store.remove(files.map(\.path))  // nobody names them: what stays is an orphan
    }
}
