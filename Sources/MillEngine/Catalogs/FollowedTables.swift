import MillBase
import MillBinder
import MillColumnar
import MillConnectorKit
import Synchronization

/// Stands for attached catalogs while a view or sink is bound, which never waits: notes the table that there is no source of yet, and ends
/// the binding. With a source of it made, the definition is bound again.
final class FollowedTables: CatalogTables {
    struct Wanted: Sendable {
        var table: CatalogTable
        var span: SourceSpan?
    }

    private struct State {
        var wanted: Wanted?
        /// Names that turned out to be none of a catalog.
        var others: Set<String> = []
    }
    private let state = Mutex(State())

    /// What the last binding ended with, once.
    func takeWanted() -> Wanted? {
        state.withLock { state in
            defer { state.wanted = nil }
            return state.wanted
        }
    }

    /// No catalog is attached under the name.
    func note(noCatalog name: String) { state.withLock { _ = $0.others.insert(name) } }

    func isAttached(_ catalog: String) throws(SQLError) -> Bool { state.withLock { !$0.others.contains(catalog) } }
    func describe(_ table: CatalogTable, _ version: TableState?) throws(SQLError) -> (table: CatalogTable, columns: [Field])? { nil }
    let parts: [String] = []

    func follow(_ table: CatalogTable, at span: SourceSpan?) throws(SQLError) {
        state.withLock { $0.wanted = Wanted(table: table, span: span) }
        throw SQLError(.internalError, "this definition is bound again with a source of table \"\(table)\"")
    }
}
