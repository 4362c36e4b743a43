package import MillBase
import MillState

/// How far the tables of a checkpoint have come back.
package struct RecoveryProgress: Sendable, Hashable {
    package struct Part: Sendable, Hashable {
        package var tables = 0
        package var tablesRead = 0
        /// Rows and ordered keys.
        package var rows: UInt64 = 0
        /// Of a table in work, in proportion to its bytes.
        package var rowsRead: UInt64 = 0
        /// Of the blocks that count; zero until they have been found.
        package var bytes = 0
        package var bytesRead = 0

        package init(
            tables: Int = 0, tablesRead: Int = 0, rows: UInt64 = 0, rowsRead: UInt64 = 0, bytes: Int = 0, bytesRead: Int = 0
        ) {
            (self.tables, self.tablesRead, self.rows, self.rowsRead) = (tables, tablesRead, rows, rowsRead)
            (self.bytes, self.bytesRead) = (bytes, bytesRead)
        }

        package static func + (left: Part, right: Part) -> Part {
            Part(
                tables: left.tables + right.tables, tablesRead: left.tablesRead + right.tablesRead, rows: left.rows + right.rows,
                rowsRead: left.rowsRead + right.rowsRead, bytes: left.bytes + right.bytes, bytesRead: left.bytesRead + right.bytesRead)
        }
    }

    /// By view or table.
    package private(set) var jobs: [ObjectID: Part] = [:]

    package init() {}

    package var total: Part { jobs.values.reduce(Part(), +) }

    init(_ record: CheckpointRecord) {
        for table in record.tables {
            jobs[table.place.job, default: Part()].tables += 1
            jobs[table.place.job, default: Part()].rows += table.shape.count
        }
    }

    mutating func expect(_ bytes: Int, of table: CheckpointRecord.Table) { jobs[table.place.job, default: Part()].bytes += bytes }

    mutating func note(_ read: Int, rows: UInt64, of table: CheckpointRecord.Table) {
        jobs[table.place.job, default: Part()].bytesRead += read
        jobs[table.place.job, default: Part()].rowsRead += rows
    }

    mutating func end(_ table: CheckpointRecord.Table) { jobs[table.place.job, default: Part()].tablesRead += 1 }
}
