import MillBase
import MillConnectorKit
import MillIceberg

/// The rows of a table, or those that one snapshot added, file after file.
///
/// Between the reader that gives ranges of them and the decoders that read those, each the columns that it needs. A row's number counts the
/// files' rows one after the other, so that it means the same row whenever it is read.
final class SnapshotRows: Sendable {
    struct Part: Sendable {
        var task: ScanPlan.Task
        /// Rows of the files before it.
        var start: Int64
        var end: Int64 { start + task.file.recordCount }
    }

    let table: IcebergTable
    let plan: ScanPlan
    let parts: [Part]
    /// For each column of the source, the table's.
    let fieldIDs: [Int]
    /// The first of the rows.
    let position: TablePosition
    let rowCount: Int64
    /// Of a row in the files, on average.
    let bytesPerRow: Int64

    /// - Throws: XX001 for a manifest with a number of rows below 0, 54000 for too many rows.
    init(_ table: IcebergTable, _ plan: ScanPlan, at position: TablePosition, fieldIDs: [Int]) throws(SQLError) {
        self.table = table
        self.plan = plan
        self.position = position
        self.fieldIDs = fieldIDs
        var (parts, rows, bytes): ([Part], Int64, Int64) = ([], 0, 0)
        for task in plan.tasks {
            guard task.file.recordCount >= 0 else {
                throw SQLError(.dataCorrupted, "a manifest of table \"\(table.identifier)\" says that \"\(task.file.path)\" has \(task.file.recordCount) rows")
            }
            parts.append(Part(task: task, start: rows))
            rows = try TablePosition(position.sequenceNumber, position.phase, row: rows.addingReportingOverflow(task.file.recordCount).partialValue).row
            bytes = bytes.addingReportingOverflow(max(task.file.fileByteCount, 0)).partialValue
        }
        self.parts = parts
        rowCount = rows
        bytesPerRow = max(bytes / max(rows, 1), 1)
    }

    /// The part that a row is in.
    func part(of row: Int64) -> Int? {
        var (low, high) = (0, parts.count)
        while low < high {
            let middle = (low + high) / 2
            if parts[middle].end <= row { low = middle + 1 } else { high = middle }
        }
        return low < parts.count ? low : nil
    }
}
