import GRDB
import MillIceberg

/// What tables and views have in common: one space of names.
extension LakeCatalog {
    func list(_ kind: EntryRow.Kind, in namespace: [String], _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .read, call.warehouse, namespace)
        let page = try CatalogPage(call.request)
        let (names, next) = try database.read { database in
            let row = try NamespaceRow.get(namespace, call.warehouse, database)
            return try page.names("SELECT name FROM entries WHERE namespace_id = ? AND kind = ?", [row.id, kind.rawValue], database)
        }
        let answer: JSONValue = ["identifiers": .array(names.map { TableIdentifier(namespace: namespace, name: $0).json })]
        return CatalogAnswer(200, answer.with("next-page-token", next.map { .string($0) }))
    }

    func lookAt(_ kind: EntryRow.Kind, _ name: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .read, call.warehouse, name.namespace, name.name)
        _ = try database.read { try EntryRow.get(kind, name, call.warehouse, $0) }
        return .done
    }

    func rename(_ kind: EntryRow.Kind, _ call: Call) throws -> CatalogAnswer {
        guard call.request.method == "POST" else { throw Self.wrongMethod(call.request, "POST") }
        let body = try call.request.json()
        let source = try TableIdentifier(body.required("source"))
        let target = try TableIdentifier(body.required("destination"))
        try CatalogName.check(target.name, kind.rawValue)
        try check(call.caller, .write, call.warehouse, source.namespace, source.name)
        try check(call.caller, .write, call.warehouse, target.namespace, target.name)
        try database.write { database in
            let entry = try EntryRow.get(kind, source, call.warehouse, database)
            let namespace = try NamespaceRow.get(target.namespace, call.warehouse, database)
            if source == target { return }
            if try EntryRow.find(target, call.warehouse, database) != nil { throw CatalogFailure.exists("Table or view \(target)") }
            try database.execute(
                sql: "UPDATE entries SET namespace_id = ?, name = ? WHERE namespace_id = ? AND name = ?",
                arguments: [namespace.id, target.name, entry.namespaceID, entry.name])
        }
        return .done
    }

    func takeMetrics(of table: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .read, call.warehouse, table.namespace, table.name)
        _ = try call.request.json()
        return .done
    }

    /// Where something new lies: where the client says, or below its namespace, beside what may lie there already (a renamed table keeps its place).
    func newLocation(
        _ asked: String?, _ name: TableIdentifier, _ namespace: NamespaceRow, _ warehouse: Warehouse, _ database: Database
    ) throws -> String {
        if let asked, !asked.isEmpty {
            try checkLocation(asked, warehouse)
            guard try !EntryRow.isTaken(asked, database) else {
                throw CatalogFailure.forbidden("location \(asked.prefix(300)) is another table's, or lies in one, or has one in it")
            }
            return Location.trimmed(asked)
        }
        let location = namespace.location(in: warehouse) + "/" + name.name
        if try !EntryRow.isTaken(location, database) { return location }
        let suffix = String(makeUUID().prefix(8))
        let other = location + "-" + suffix
        // The namespace's own place may lie in a table.
        let last = warehouse.baseLocation + "/" + suffix
        return try EntryRow.isTaken(other, database) && !EntryRow.isTaken(last, database) ? last : other
    }
}
