package import MillBase
import MillCatalog
import MillDataflow
import MillMeta
package import MillSQL
import MillStore

/// DROP.
extension Engine {
    package func drop(_ statement: Drop, session: SessionContext, _ notices: inout [SQLError]) async throws(SQLError) {
        try await definitions.lock(unless: session.cancellation)
        defer { definitions.unlock() }
        if statement.kind == .catalog { return try await detachCatalogs(statement, &notices) }
        for name in statement.names { try await refuseForeign(name) }
        var changed = catalog
        var removed: [CatalogObject] = []
        for name in statement.names { removed += try drop(statement, name, in: &changed, &notices) }
        let ids = removed.map(\.id)
        try await store { (meta) throws(SQLError) in try meta.drop(ids) }
        catalog = changed
        await retire(removed)
        await dropUnfollowed()
    }

    /// Ends the jobs and forgets the state of objects that have left the catalog.
    func retire(_ removed: [CatalogObject]) async {
        for object in removed { abandonments.removeValue(forKey: object.id)?.abandon() }
        // Dependents come first in the list, and leave the circuit first.
        await conductor.detach(removed.filter { [.materializedView, .table, .sink].contains($0.kind) }.map(\.id))
        keeper?.store.forget(Set(removed.map(\.id)))
        for object in removed {
            plans[object.id] = nil
            planChecksums[object.id] = nil
            creating.remove(object.id)
            restoration.forget(object.id)
            paused[object.id] = nil
            if object.kind == .sink { forgetSink(object.id) }
            if object.kind == .source {
                sources.remove(object.id)
                unreadEnds[object.id] = nil
                rejects.remove(object.id)
                forgetReplays(of: object.id)
            }
        }
    }

    private func drop(_ statement: Drop, _ name: ObjectName, in catalog: inout Catalog, _ notices: inout [SQLError]) throws(SQLError) -> [CatalogObject] {
        let schema = name.parts.count >= 2 ? name.parts[name.parts.count - 2].name : nil
        guard let kind = statement.kind.catalogKind else {
            throw SQLError(.featureNotSupported, "DROP \(statement.kind.rawValue) is not supported", at: name.span.source)
        }
        if statement.ifExists, catalog.object(schema: schema, name: name.last.name) == nil {
            notices.append(SQLError(.successfulCompletion, "\(kind.rawValue) \"\(name.last.name)\" does not exist, skipping"))
            return []
        }
        do throws(SQLError) {
            let removed = try catalog.drop(kind, schema: schema, name: name.last.name, cascade: statement.cascade)
            // The object itself is the last.
            let others = removed.dropLast().map { "drop cascades to \($0.kind.rawValue) \($0.name)" }
            if let first = others.first {
                notices.append(
                    others.count == 1
                        ? SQLError(.successfulCompletion, first)
                        : SQLError(.successfulCompletion, "drop cascades to \(others.count) other objects", detail: others.reversed().joined(separator: "\n")))
            }
            return removed
        } catch {
            throw error.located(at: name.span.source)
        }
    }
}

extension ObjectKind {
    /// The catalog's kind, for those that the catalog holds.
    var catalogKind: CatalogObject.Kind? {
        switch self {
        case .table: .table
        case .source: .source
        case .view: .view
        case .materializedView: .materializedView
        case .sink: .sink
        case .index, .schema, .database, .catalog, .connection, .secret, .function, .column: nil
        }
    }
}
