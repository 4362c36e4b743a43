import GRDB
import MillBase
import MillIO
import MillIceberg
import MillObjectStore

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Tables: create, stage, load, register, drop.
extension LakeCatalog {
    // MARK: Loading

    func loadTable(_ name: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .read, call.warehouse, name.namespace, name.name)
        let (table, location) = try load(name, call.warehouse)
        let shown = call.request.query["snapshots"] == "refs" ? Self.referencedOnly(table) : table
        return answer(shown, location, call)
    }

    func load(_ name: TableIdentifier, _ warehouse: Warehouse) throws -> (table: TableMetadata, location: String) {
        var last = ""
        while true {
            let entry = try database.read { try EntryRow.get(.table, name, warehouse, $0) }
            do { return (try readMetadata(entry.metadataLocation, warehouse), entry.metadataLocation) } catch {
                // Cleaned up by commits since the row was read: then the row names another by now.
                guard let failure = error as? IOFailure, failure.errorNumber == ENOENT, entry.metadataLocation != last else { throw error }
                last = entry.metadataLocation
            }
        }
    }

    func readMetadata(_ location: String, _ warehouse: Warehouse) throws -> TableMetadata {
        if let known = metadataCache[location] { return known }
        let bytes = try store(of: warehouse).get(location)
        let table = try TableMetadata(bytes, location: location)
        metadataCache.put(table, location, byteCount: bytes.count)
        return table
    }

    func writeMetadata(_ table: TableMetadata, _ location: String, _ warehouse: Warehouse) throws {
        let bytes = Array(table.json.text.utf8)
        try store(of: warehouse).put(location, bytes, .always)
        metadataCache.put(table, location, byteCount: bytes.count)
    }

    private static func referencedOnly(_ table: TableMetadata) -> TableMetadata {
        var table = table
        let kept = Set(table.references.values.map(\.snapshotID))
        table.snapshots.removeAll { !kept.contains($0.id) }
        return table
    }

    /// - Parameter location: nil for a table that is only staged.
    func answer(_ table: TableMetadata, _ location: String?, _ call: Call) -> CatalogAnswer {
        let configuration = call.warehouse.fileConfiguration(withKeys: call.wantsKeys)
        let result: JSONValue = ["metadata": table.json, "config": JSONValue(configuration)]
        let keys = call.wantsKeys ? storageCredentials(call.warehouse) : []
        return CatalogAnswer(
            200,
            result.with("metadata-location", location.map { .string($0) }).with("storage-credentials", keys.isEmpty ? nil : .array(keys)))
    }

    private func storageCredentials(_ warehouse: Warehouse) -> [JSONValue] {
        let configuration = warehouse.fileConfiguration(withKeys: true)
        guard configuration.keys.contains(where: { Warehouse.secretKeys.contains($0) }) else { return [] }
        return [["prefix": .string(warehouse.baseLocation), "config": JSONValue(configuration)]]
    }

    func credentials(of name: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .read, call.warehouse, name.namespace, name.name)
        _ = try database.read { try EntryRow.get(.table, name, call.warehouse, $0) }
        return CatalogAnswer(200, ["storage-credentials": .array(storageCredentials(call.warehouse))])
    }

    // MARK: Creating

    func createTable(in namespace: [String], _ call: Call) throws -> CatalogAnswer {
        let body = try call.request.json()
        let new = try NewTable(body, in: namespace)
        try check(call.caller, .write, call.warehouse, namespace, new.name.name)
        let (table, location) = try create(new, in: call.warehouse, isStaged: body["stage-create"].boolean == true)
        return answer(table, location, call)
    }

    /// - Returns: the table, and where its metadata lies: nowhere if it is only staged.
    /// - Throws: 404 without the namespace, 409 when the name is taken.
    func create(_ new: NewTable, in warehouse: Warehouse, isStaged: Bool) throws -> (table: TableMetadata, location: String?) {
        try CatalogName.check(new.name.name, "table")
        let location = try database.read { database in
            let namespace = try NamespaceRow.get(new.name.namespace, warehouse, database)
            if let taken = try EntryRow.find(new.name, warehouse, database) {
                throw CatalogFailure.exists("\(taken.kind == .table ? "Table" : "View") \(new.name)")
            }
            return try newLocation(new.location, new.name, namespace, warehouse, database)
        }
        let table = try new.metadata(tableUUID: makeUUID(), location: location, nowMillis: nowMillis)
        if isStaged { return (table, nil) }
        let metadataLocation = try newMetadataLocation(table, after: nil, warehouse)
        try writeMetadata(table, metadataLocation, warehouse)
        try insertOrForget(.table, new.name, table.location, metadataLocation, warehouse)
        return (table, metadataLocation)
    }

    func registerTable(in namespace: [String], _ call: Call) throws -> CatalogAnswer {
        let body = try call.request.json()
        let name = TableIdentifier(namespace: namespace, name: try body.requiredString("name"))
        try CatalogName.check(name.name, "table")
        try check(call.caller, .write, call.warehouse, namespace, name.name)
        let location = try body.requiredString("metadata-location")
        try checkLocation(location, call.warehouse)
        let table: TableMetadata
        do { table = try readMetadata(location, call.warehouse) } catch let failure as IOFailure where failure.errorNumber == ENOENT {
            throw CatalogFailure.badRequest("there is no metadata file at \(location.prefix(300))")
        } catch let error as IcebergError { throw CatalogFailure.badRequest(error.sqlError.description) }
        let replaces = body["overwrite"].boolean == true
        try database.write { database in
            if replaces, let entry = try EntryRow.find(name, call.warehouse, database), entry.kind == .table {
                try database.execute(
                    sql: "DELETE FROM entries WHERE namespace_id = ? AND name = ?", arguments: [entry.namespaceID, entry.name])
            }
            try EntryRow.insert(.table, name, location: table.location, metadataLocation: location, call.warehouse, database)
        }
        return answer(table, location, call)
    }

    /// Makes the row of something new whose metadata file is written; removes that file when the name was taken meanwhile.
    func insertOrForget(
        _ kind: EntryRow.Kind, _ name: TableIdentifier, _ location: String, _ metadataLocation: String, _ warehouse: Warehouse
    ) throws {
        do {
            try database.write { database in
                try EntryRow.insert(kind, name, location: location, metadataLocation: metadataLocation, warehouse, database)
            }
        } catch let failure as CatalogFailure {
            forget([metadataLocation], warehouse)
            throw failure
        } catch { throw CatalogFailure.commitUnknown(CatalogFailure(any: error).message) }
    }

    /// Of the files that metadata names those that may go with a table. Metadata that somebody wrote and registered may name anything: nothing
    /// outside of the warehouse is touched, and nothing that lies in another table.
    func own(_ locations: [String], of table: String, _ warehouse: Warehouse) throws -> [String] {
        let table = Location.trimmed(Location.normal(table))
        return try database.read { database in
            try locations.filter { file in
                guard warehouse.allows(file) else { return false }
                for place in Location.parents(of: Location.normal(file)) {
                    if place == table { return true }
                    if try EntryRow.isThere(place, database) { return false }
                }
                return true
            }
        }
    }

    /// Removes files that nobody names; what cannot be removed is found as an orphan.
    func forget(_ locations: [String], _ warehouse: Warehouse) {
        guard !locations.isEmpty, let store = try? store(of: warehouse) else { return }
        try? store.remove(locations)
    }

    /// Where the next metadata file goes: a number higher than that of the last one's name, and a UUID.
    func newMetadataLocation(_ table: TableMetadata, after last: String?, _ warehouse: Warehouse) throws -> String {
        let lastNumber = last?.split(separator: "/").last?.split(separator: "-").first.flatMap { Int($0) } ?? -1
        let digits = String(min(lastNumber, Int(Int32.max)) + 1)
        let name = String(repeating: "0", count: max(0, 5 - digits.count)) + digits + "-" + makeUUID() + ".metadata.json"
        let location = table.metadataDirectory + "/" + name
        try checkLocation(table.location, warehouse)
        try checkLocation(location, warehouse)
        return location
    }

    // MARK: Dropping

    func dropTable(_ name: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        try check(call.caller, .write, call.warehouse, name.namespace, name.name)
        let purges = call.request.query["purgeRequested"]?.lowercased() == "true"
        let entry = try database.write { database in
            let entry = try EntryRow.get(.table, name, call.warehouse, database)
            try database.execute(
                sql: "DELETE FROM entries WHERE namespace_id = ? AND name = ?", arguments: [entry.namespaceID, entry.name])
            return entry
        }
        if purges { try? purge(entry.metadataLocation, call.warehouse) }  // the table is gone; what stays is found as orphans
        return .done
    }

    /// Removes the files that a table's metadata names, and no others: another table may lie beside them.
    private func purge(_ metadataLocation: String, _ warehouse: Warehouse) throws {
        let table = try readMetadata(metadataLocation, warehouse)
        let store = try store(of: warehouse)
        let files = IcebergTable(
            TableIdentifier(namespace: [], name: ""), metadata: table, catalog: NoCatalog(), store: store, clock: environment.clock,
            random: environment.random)
        var locations: Set<String> = Set(table.metadataLog.map(\.metadataFile) + table.statisticsFiles + [metadataLocation])
        for snapshot in table.snapshots {
            guard let list = snapshot.manifestList, let manifests = try? files.manifests(of: snapshot) else { continue }
            for manifest in manifests where !locations.contains(manifest.path) {
                if table.properties["gc.enabled"] != "false", let entries = try? files.entries(of: manifest) {
                    locations.formUnion(entries.map(\.file.path))
                }
                locations.insert(manifest.path)
            }
            locations.insert(list)
        }
        try store.remove(own(locations.sorted(), of: table.location, warehouse))
    }
}

/// Stands for the catalog of a table that is in none any more.
private struct NoCatalog: TableCatalog {
    func load(_ table: TableIdentifier) throws(IcebergError) -> LoadedTable { throw .missing("table \(table)") }
    func commit(_ table: TableIdentifier, requirements: [TableRequirement], updates: [TableUpdate]) throws(IcebergError) -> LoadedTable {
        throw .missing("table \(table)")
    }
}
