import GRDB
import MillIceberg

/// A namespace as it is stored.
struct NamespaceRow: Sendable {
    var id: Int64
    var levels: [String]
    var properties: [String: String]

    private init(_ row: Row) throws {
        id = row["id"]
        levels = CatalogName.levels(row["path"])
        properties = try StoredJSON.value(row["properties"]).texts
    }

    static func find(_ levels: [String], _ warehouse: Warehouse, _ database: Database) throws -> NamespaceRow? {
        try Row.fetchOne(
            database, sql: "SELECT id, path, properties FROM namespaces WHERE warehouse_id = ? AND path = ?",
            arguments: [warehouse.id, CatalogName.path(levels)]
        ).map { try NamespaceRow($0) }
    }

    /// - Throws: 404 when there is none.
    static func get(_ levels: [String], _ warehouse: Warehouse, _ database: Database) throws -> NamespaceRow {
        guard let found = try find(levels, warehouse, database) else { throw CatalogFailure.noSuchNamespace(levels) }
        return found
    }

    /// Where its tables lie: its own property, or below the warehouse.
    func location(in warehouse: Warehouse) -> String {
        properties["location"].map(Location.trimmed) ?? ([warehouse.baseLocation] + levels).joined(separator: "/")
    }
}

/// A table or a view as it is stored: what its newest metadata file is.
struct EntryRow: Sendable {
    enum Kind: String {
        case table
        case view

        func missing(_ name: TableIdentifier) -> CatalogFailure { self == .table ? .noSuchTable(name) : .noSuchView(name) }
    }

    var namespaceID: Int64
    var name: String
    var kind: Kind
    var metadataLocation: String

    static func find(_ name: TableIdentifier, _ warehouse: Warehouse, _ database: Database) throws -> EntryRow? {
        let row = try Row.fetchOne(
            database,
            sql: """
                SELECT e.* FROM entries e JOIN namespaces n ON n.id = e.namespace_id
                WHERE n.warehouse_id = ? AND n.path = ? AND e.name = ?
                """, arguments: [warehouse.id, CatalogName.path(name.namespace), name.name])
        return row.map { row in
            EntryRow(
                namespaceID: row["namespace_id"], name: row["name"], kind: Kind(rawValue: row["kind"]) ?? .table,
                metadataLocation: row["metadata_location"])
        }
    }

    /// - Throws: 404 when there is none of the kind.
    static func get(_ kind: Kind, _ name: TableIdentifier, _ warehouse: Warehouse, _ database: Database) throws -> EntryRow {
        guard let found = try find(name, warehouse, database), found.kind == kind else { throw kind.missing(name) }
        return found
    }

    /// - Throws: 404 without the namespace, 409 when the name is taken.
    static func insert(
        _ kind: Kind, _ name: TableIdentifier, location: String, metadataLocation: String, _ warehouse: Warehouse, _ database: Database
    ) throws {
        let namespace = try NamespaceRow.get(name.namespace, warehouse, database)
        if let taken = try find(name, warehouse, database) {
            throw CatalogFailure.exists("\(taken.kind == .table ? "Table" : "View") \(name)")
        }
        try database.execute(
            sql: "INSERT INTO entries (namespace_id, name, kind, location, metadata_location) VALUES (?, ?, ?, ?, ?)",
            arguments: [namespace.id, name.name, kind.rawValue, Location.trimmed(location), metadataLocation])
    }

    /// Whether some table or view lies exactly there.
    static func isThere(_ location: String, _ database: Database) throws -> Bool {
        try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM entries WHERE location = ?)", arguments: [location]) ?? false
    }

    /// Whether some table or view lies there, further up or further down: of two that lie in each other whoever cleans up one finds files of
    /// the other.
    /// - Parameter own: a location that does not count.
    static func isTaken(_ location: String, besides own: String = "", _ database: Database) throws -> Bool {
        let place = Location.trimmed(location)
        guard try !Location.parents(of: place).contains(where: { try $0 != own && isThere($0, database) }) else { return true }
        // The character after the slash ends what lies below.
        return try Bool.fetchOne(
            database, sql: "SELECT EXISTS (SELECT 1 FROM entries WHERE location > ? AND location < ? AND location <> ?)",
            arguments: [place + "/", place + "0", own]) ?? false
    }
}
