import GRDB
import MillIceberg

/// Namespaces: nested, with properties.
extension LakeCatalog {
    private static func json(_ levels: [String]) -> JSONValue { .array(levels.map { .string($0) }) }

    /// The children of `parent`, or the top.
    func listNamespaces(_ call: Call) throws -> CatalogAnswer {
        let parent = call.request.query["parent"].flatMap { $0.isEmpty ? nil : CatalogName.levels($0) } ?? []
        try check(call.caller, .read, call.warehouse, parent)
        let page = try CatalogPage(call.request)
        let (paths, next) = try database.read { database in
            if !parent.isEmpty { _ = try NamespaceRow.get(parent, call.warehouse, database) }
            return try page.names(
                "SELECT path AS name FROM namespaces WHERE warehouse_id = ? AND parent = ?", [call.warehouse.id, CatalogName.path(parent)],
                database)
        }
        let answer: JSONValue = ["namespaces": .array(paths.map { Self.json(CatalogName.levels($0)) })]
        return CatalogAnswer(200, answer.with("next-page-token", next.map { .string($0) }))
    }

    func createNamespace(_ call: Call) throws -> CatalogAnswer {
        let body = try call.request.json()
        let levels = try body.required("namespace").textList("namespace")
        try check(call.caller, .write, call.warehouse, levels)
        let properties = try body["properties"].isNull ? [:] : body["properties"].allTexts("properties")
        try makeNamespace(levels, properties, call.warehouse)
        return CatalogAnswer(200, ["namespace": Self.json(levels), "properties": JSONValue(properties)])
    }

    /// - Throws: 404 without the parent, 409 when it is there.
    func makeNamespace(_ levels: [String], _ properties: [String: String], _ warehouse: Warehouse) throws {
        try CatalogName.check(levels)
        try checkLocation(properties["location"], warehouse)
        try database.write { database in
            let parent = Array(levels.dropLast())
            if !parent.isEmpty { _ = try NamespaceRow.get(parent, warehouse, database) }
            guard try NamespaceRow.find(levels, warehouse, database) == nil else {
                throw CatalogFailure.exists("Namespace \(levels.joined(separator: "."))")
            }
            try database.execute(
                sql: "INSERT INTO namespaces (warehouse_id, path, parent, properties) VALUES (?, ?, ?, ?)",
                arguments: [warehouse.id, CatalogName.path(levels), CatalogName.path(parent), JSONValue(properties).text])
        }
    }

    func checkLocation(_ location: String?, _ warehouse: Warehouse) throws {
        guard let location, !warehouse.allows(location) else { return }
        throw CatalogFailure.forbidden(
            "location \(location.prefix(300)) is not one of catalog \(warehouse.name), whose base is \(warehouse.baseLocation)")
    }

    func loadNamespace(_ levels: [String], _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .read, call.warehouse, levels)
        let row = try database.read { try NamespaceRow.get(levels, call.warehouse, $0) }
        var properties = row.properties
        properties["location"] = row.location(in: call.warehouse)
        return CatalogAnswer(200, ["namespace": Self.json(levels), "properties": JSONValue(properties)])
    }

    func dropNamespace(_ levels: [String], _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .write, call.warehouse, levels)
        try database.write { database in
            let row = try NamespaceRow.get(levels, call.warehouse, database)
            let isUsed = try Bool.fetchOne(
                database,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM entries WHERE namespace_id = ?)
                        OR EXISTS (SELECT 1 FROM namespaces WHERE warehouse_id = ? AND parent = ?)
                    """, arguments: [row.id, call.warehouse.id, CatalogName.path(levels)])
            guard isUsed != true else {
                throw CatalogFailure(409, "NamespaceNotEmptyException", "Namespace \(levels.joined(separator: ".")) is not empty")
            }
            try database.execute(sql: "DELETE FROM namespaces WHERE id = ?", arguments: [row.id])
        }
        return .done
    }

    func changeProperties(of levels: [String], _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .write, call.warehouse, levels)
        let body = try call.request.json()
        let updates = try body["updates"].isNull ? [:] : body["updates"].allTexts("updates")
        let removals = Set(try body["removals"].isNull ? [] : body["removals"].textList("removals"))
        if let both = removals.first(where: { updates[$0] != nil }) {
            throw CatalogFailure(422, "UnprocessableEntityException", "property \(both) is both set and removed")
        }
        try checkLocation(updates["location"], call.warehouse)
        let missing = try database.write { database in
            let row = try NamespaceRow.get(levels, call.warehouse, database)
            let changed = row.properties.filter { !removals.contains($0.key) }.merging(updates) { $1 }
            try database.execute(sql: "UPDATE namespaces SET properties = ? WHERE id = ?", arguments: [JSONValue(changed).text, row.id])
            return removals.filter { row.properties[$0] == nil }
        }
        return CatalogAnswer(
            200,
            [
                "updated": Self.sorted(Set(updates.keys)), "removed": Self.sorted(removals.subtracting(missing)),
                "missing": Self.sorted(missing),
            ])
    }

    private static func sorted(_ names: Set<String>) -> JSONValue { .array(names.sorted().map { .string($0) }) }
}
