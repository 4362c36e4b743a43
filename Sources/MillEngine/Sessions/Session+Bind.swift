import MillBase
import MillBinder
import MillColumnar
import MillConnectorKit
import MillPlan
import Synchronization

extension Session {
    /// Binds a statement: here, or on a thread that may wait when it names files or tables that lie elsewhere.
    /// - Parameter bind: called with the context to bind in, twice at most.
    func bound<Bound: Sendable>(
        _ context: SessionContext, _ bind: @escaping @Sendable (SessionContext) throws(SQLError) -> Bound
    ) async throws(SQLError) -> Bound {
        let probe = ForeignProbe()
        var near = context
        near.files = probe
        near.catalogTables = probe
        do throws(SQLError) { return try bind(near) } catch {
            guard probe.wasAsked else { throw error }
        }
        return try await engine.offActor { () throws(SQLError) in try bind(context) }
    }
}

/// Stands in the place of files and catalogs elsewhere, and ends the binding of a statement that asks for them: threads of statements never wait.
private final class ForeignProbe: FileColumns, CatalogTables {
    private let asked = Mutex(false)

    var wasAsked: Bool { asked.withLock { $0 } }

    private func stop() -> SQLError {
        asked.withLock { $0 = true }
        return SQLError(.internalError, "this statement is bound again where it may wait")
    }

    func columns(of files: FileCall) throws(SQLError) -> [Field] { throw stop() }
    func isAttached(_ catalog: String) throws(SQLError) -> Bool { throw stop() }
    func describe(_ table: CatalogTable, _ state: TableState?) throws(SQLError) -> (table: CatalogTable, columns: [Field])? { throw stop() }
    let parts: [String] = []
}
