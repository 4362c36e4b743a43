import GRDB
import MillBase
import MillIceberg
import MillObjectStore

/// Views: SQL of other programs, kept with versions. They are committed as tables are.
extension LakeCatalog {
    func loadView(_ name: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .read, call.warehouse, name.namespace, name.name)
        let (view, location) = try readView(name, call.warehouse)
        return Self.answer(view, location)
    }

    private func readView(_ name: TableIdentifier, _ warehouse: Warehouse) throws -> (view: ViewMetadata, location: String) {
        let entry = try database.read { try EntryRow.get(.view, name, warehouse, $0) }
        let bytes = try store(of: warehouse).get(entry.metadataLocation)
        return (try ViewMetadata(bytes, location: entry.metadataLocation), entry.metadataLocation)
    }

    private static func answer(_ view: ViewMetadata, _ location: String) -> CatalogAnswer {
        CatalogAnswer(200, ["metadata-location": .string(location), "metadata": view.json, "config": [:]])
    }

    func createView(in namespace: [String], _ call: Call) throws -> CatalogAnswer {
        let body = try call.request.json()
        let name = TableIdentifier(namespace: namespace, name: try body.requiredString("name"))
        try CatalogName.check(name.name, "view")
        try check(call.caller, .write, call.warehouse, namespace, name.name)
        let location = try database.read { database in
            let row = try NamespaceRow.get(namespace, call.warehouse, database)
            if let taken = try EntryRow.find(name, call.warehouse, database) {
                throw CatalogFailure.exists("\(taken.kind == .table ? "Table" : "View") \(name)")
            }
            return try newLocation(body["location"].string, name, row, call.warehouse, database)
        }
        let properties = try body["properties"].isNull ? [:] : body["properties"].allTexts("properties")
        var version = try ViewMetadata.Version(body.required("view-version"))
        version.schemaID = -1
        let view = try ViewMetadata(viewUUID: makeUUID(), location: location).applying(
            [.setProperties(properties), .addSchema(IcebergSchema(body.required("schema"))), .addVersion(version), .setCurrentVersion(-1)],
            nowMillis: nowMillis)
        let metadataLocation = try write(view, number: 0, call.warehouse)
        try insertOrForget(.view, name, location, metadataLocation, call.warehouse)
        return Self.answer(view, metadataLocation)
    }

    func registerView(in namespace: [String], _ call: Call) throws -> CatalogAnswer {
        let body = try call.request.json()
        let name = TableIdentifier(namespace: namespace, name: try body.requiredString("name"))
        try CatalogName.check(name.name, "view")
        try check(call.caller, .write, call.warehouse, namespace, name.name)
        let location = try body.requiredString("metadata-location")
        try checkLocation(location, call.warehouse)
        let view: ViewMetadata
        do { view = try ViewMetadata(store(of: call.warehouse).get(location), location: location) } catch let error as IcebergError {
            throw CatalogFailure.badRequest(error.sqlError.description)
        }
        try database.write { database in
            try EntryRow.insert(.view, name, location: view.location, metadataLocation: location, call.warehouse, database)
        }
        return Self.answer(view, location)
    }

    func replaceView(_ name: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        let body = try call.request.json()
        try check(call.caller, .write, call.warehouse, name.namespace, name.name)
        var updates: [ViewUpdate] = []
        for value in body["updates"].array ?? [] { updates.append(try ViewUpdate(value)) }
        for _ in 0..<options.commitTriesMax {
            let (base, before) = try readView(name, call.warehouse)
            for value in body["requirements"].array ?? [] { try Self.check(value, base) }
            let view = try base.applying(updates, nowMillis: nowMillis)
            if view == base { return Self.answer(base, before) }
            let number = before.split(separator: "/").last?.split(separator: "-").first.flatMap { Int32($0) } ?? 0
            let location = try write(view, number: Int(number) + 1, call.warehouse)
            if try swapView(name, before, view, location, call.warehouse) { return Self.answer(view, location) }
            forget([location], call.warehouse)
        }
        throw CatalogFailure.commitFailed("others changed the view \(options.commitTriesMax) times meanwhile")
    }

    private static func check(_ requirement: JSONValue, _ view: ViewMetadata) throws {
        let type = try requirement.requiredString("type")
        guard type == "assert-view-uuid" else { throw CatalogFailure.badRequest("there is no requirement \"\(type)\" of a view") }
        let uuid = try requirement.requiredString("uuid")
        guard uuid.lowercased() == view.viewUUID.lowercased() else {
            throw CatalogFailure.commitFailed("Requirement failed: the view UUID is \(view.viewUUID), not \(uuid)")
        }
    }

    /// False, and nothing is changed, when somebody else was faster.
    private func swapView(_ name: TableIdentifier, _ before: String, _ view: ViewMetadata, _ location: String, _ warehouse: Warehouse)
        throws -> Bool
    {
        do {
            return try database.write { database in
                try database.execute(
                    sql: """
                        UPDATE entries SET metadata_location = ?, location = ? WHERE metadata_location = ? AND kind = 'view' AND name = ?
                            AND namespace_id = (SELECT id FROM namespaces WHERE warehouse_id = ? AND path = ?)
                        """,
                    arguments: [
                        location, Location.trimmed(view.location), before, name.name, warehouse.id, CatalogName.path(name.namespace),
                    ])
                return database.changesCount == 1
            }
        } catch { throw CatalogFailure.commitUnknown(CatalogFailure(any: error).message) }
    }

    private func write(_ view: ViewMetadata, number: Int, _ warehouse: Warehouse) throws -> String {
        let digits = String(number)
        let name = String(repeating: "0", count: max(0, 5 - digits.count)) + digits + "-" + makeUUID() + ".metadata.json"
        let location = Location.trimmed(view.location) + "/metadata/" + name
        try checkLocation(location, warehouse)
        try store(of: warehouse).put(location, Array(view.json.text.utf8), .always)
        return location
    }

    func dropView(_ name: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .write, call.warehouse, name.namespace, name.name)
        try database.write { database in
            let entry = try EntryRow.get(.view, name, call.warehouse, database)
            try database.execute(
                sql: "DELETE FROM entries WHERE namespace_id = ? AND name = ?", arguments: [entry.namespaceID, entry.name])
        }
        return .done
    }
}
