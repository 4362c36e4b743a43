package import MillBase
package import MillColumnar

/// What one transaction does to tables.
package struct DMLTransaction: Sendable {
    package struct TableChange: Sendable {
        package var table: ObjectID
        /// All columns of the table in its order; weight 1 for a row added, -1 for a row taken away.
        package var batches: [DeltaBatch]

        package init(table: ObjectID, batches: [DeltaBatch]) {
            self.table = table
            self.batches = batches
        }
    }

    /// Ascending by table.
    package var changes: [TableChange]
    /// The first row number that neither this nor an earlier transaction has given out.
    package var nextRowID: Int64

    package init(changes: [TableChange], nextRowID: Int64) {
        self.changes = changes
        self.nextRowID = nextRowID
    }
}
