package import MillBase
import MillCatalog
package import MillPlan
package import MillSQL

/// A statement that changes the rows of one table, with its meaning settled.
package enum BoundWrite: Hashable, Sendable {
    case insert(BoundInsert)
    case update(BoundUpdate)
    case delete(BoundDelete)

    /// The rows to insert, update or delete.
    package var query: BoundQuery {
        switch self {
        case .insert(let insert): insert.query
        case .update(let update): update.query
        case .delete(let delete): delete.query
        }
    }

    package var returning: BoundQuery? {
        switch self {
        case .insert(let insert): insert.returning
        case .update(let update): update.returning
        case .delete(let delete): delete.returning
        }
    }

    /// `Insert { t }`, as EXPLAIN shows it.
    package var title: String {
        switch self {
        case .insert(let insert): "Insert { \(insert.table.name) }"
        case .update(let update): "Update { \(update.table.name) }"
        case .delete(let delete): "Delete { \(delete.table.name) }"
        }
    }
}

extension Binder {
    /// INSERT, UPDATE and DELETE are one write each; TRUNCATE deletes all rows of each table it names; other statements are none.
    package func bind(write statement: Statement) throws(SQLError) -> [BoundWrite] {
        switch statement {
        case .insert(let insert): return [.insert(try bind(insert: insert))]
        case .update(let update): return [.update(try bind(update: update))]
        case .delete(let delete): return [.delete(try bind(delete: delete))]
        case .truncate(let truncate):
            var writes: [BoundWrite] = []
            for deletion in truncate.deletions { writes.append(.delete(try bind(delete: deletion))) }
            return writes
        default: return []
        }
    }
}
