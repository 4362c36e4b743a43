import MillBase
import MillCatalog
import MillColumnar
import MillDataflow
import MillState

/// What a transaction that has not ended sees and has written.
///
/// A block sees one epoch and its own changes; only COMMIT finds out whether others changed the same rows. What is not in a block
/// (a statement, or several sent as one) sees the newest state of tables and its own changes, and holds the write locks of the tables it
/// changes, so nobody else can.
///
/// Threading: used by the statements of one session, one at a time.
package final class OpenTransaction: @unchecked Sendable {
    /// One epoch as a block sees it.
    struct Pin {
        var record: EpochRecord
        var tables: [ObjectID: [TableSnapshot]]
    }

    let isBlock: Bool
    /// Taken when a block first reads something.
    var pin: Pin?
    private(set) var changes: [ObjectID: TableChanges] = [:]
    /// What was added to `changes`, in order: a savepoint is a place in it. Only in a block.
    private var journal: [(table: CatalogObject, batches: [DeltaBatch])] = []

    package init(isBlock: Bool) { self.isBlock = isBlock }

    /// What a savepoint remembers.
    var mark: Int { journal.count }

    func add(_ batches: [DeltaBatch], to table: CatalogObject) {
        guard !batches.isEmpty else { return }
        if isBlock { journal.append((table, batches)) }
        apply(batches, to: table)
    }

    private func apply(_ batches: [DeltaBatch], to table: CatalogObject) {
        let known = changes[table.id] ?? TableChanges(table)
        changes[table.id] = known
        known.add(batches)
    }

    /// Forgets what was written since a savepoint.
    func rollBack(to mark: Int) {
        guard mark < journal.count else { return }
        journal.removeSubrange(mark...)
        changes = [:]
        for (table, batches) in journal { apply(batches, to: table) }
    }
}
