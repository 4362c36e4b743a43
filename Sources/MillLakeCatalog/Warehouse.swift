import GRDB
import MillIceberg

/// A catalog in the management interface's words: a name, where its tables lie, and what its store needs.
struct Warehouse: Sendable {
    var id: Int64
    var name: String
    var type: String
    var properties: [String: String]
    /// `storageConfigInfo` as it was given.
    var storage: JSONValue
    var createdMillis: Int64
    var changedMillis: Int64
    var version: Int64

    static let baseLocationKey = "default-base-location"
    /// Properties that only those get to see who may use them.
    static let secretKeys: Set<String> = ["s3.access-key-id", "s3.secret-access-key", "s3.session-token"]

    /// Where its tables lie, without a slash at the end.
    var baseLocation: String { Location.trimmed(properties[Self.baseLocationKey] ?? "") }

    var isS3: Bool { storage["storageType"].string?.uppercased() == "S3" }

    /// Whether the warehouse may have something there.
    func allows(_ location: String) -> Bool {
        let allowed = (storage["allowedLocations"].array ?? []).compactMap(\.string) + [baseLocation]
        // "s3://bucket/*" means what "s3://bucket" means.
        return allowed.contains { Location.isBelow(location, $0.hasSuffix("/*") ? String($0.dropLast(2)) : $0) }
    }

    /// What clients need to reach its files. Keys are given to those alone that ask to be given some.
    func fileConfiguration(withKeys: Bool) -> [String: String] {
        properties.filter { name, _ in
            (name.hasPrefix("s3.") || name == "client.region") && (withKeys || !Self.secretKeys.contains(name))
        }
    }

    var json: JSONValue {
        let shown = properties.filter { !Self.secretKeys.contains($0.key) }
        return [
            "type": .string(type), "name": .string(name), "properties": JSONValue(shown), "createTimestamp": .int(createdMillis),
            "lastUpdateTimestamp": .int(changedMillis), "entityVersion": .int(version), "storageConfigInfo": storage,
        ]
    }

    private init(_ row: Row) throws {
        id = row["id"]
        name = row["name"]
        type = row["type"]
        properties = try StoredJSON.value(row["properties"]).texts
        storage = try StoredJSON.value(row["storage"])
        createdMillis = row["created_millis"]
        changedMillis = row["changed_millis"]
        version = row["version"]
    }

    static func find(_ name: String, _ database: Database) throws -> Warehouse? {
        try Row.fetchOne(database, sql: "SELECT * FROM warehouses WHERE name = ?", arguments: [name]).map { try Warehouse($0) }
    }

    static func all(_ database: Database) throws -> [Warehouse] {
        try Row.fetchAll(database, sql: "SELECT * FROM warehouses ORDER BY name").map { try Warehouse($0) }
    }

    /// Stores a new one, with the role `catalog_admin` for those who manage the service.
    static func insert(
        _ name: String, type: String, properties: [String: String], storage: JSONValue, nowMillis: Int64, _ database: Database
    ) throws -> Warehouse {
        guard try find(name, database) == nil else { throw CatalogFailure.exists("Catalog \(name)") }
        try database.execute(
            sql:
                "INSERT INTO warehouses (name, type, properties, storage, created_millis, changed_millis, version) VALUES (?, ?, ?, ?, ?, ?, 1)",
            arguments: [name, type, JSONValue(properties).text, storage.text, nowMillis, nowMillis])
        let id = database.lastInsertedRowID
        try database.execute(
            sql:
                "INSERT INTO catalog_roles (warehouse_id, name, properties, created_millis, changed_millis, version) VALUES (?, 'catalog_admin', '{}', ?, ?, 1)",
            arguments: [id, nowMillis, nowMillis])
        let role = database.lastInsertedRowID
        for privilege in ["CATALOG_MANAGE_ACCESS", "CATALOG_MANAGE_CONTENT"] {
            let grant: JSONValue = ["type": "catalog", "privilege": .string(privilege)]
            try database.execute(sql: "INSERT INTO grants VALUES (?, ?)", arguments: [role, grant.text])
        }
        try database.execute(sql: "INSERT INTO roles_in_catalog_roles VALUES ('service_admin', ?)", arguments: [role])
        guard let made = try find(name, database) else { throw CatalogFailure.notFound("Catalog \(name)") }
        return made
    }
}

/// JSON that we stored ourselves.
enum StoredJSON {
    static func value(_ text: String) throws -> JSONValue { try JSONValue(Array(text.utf8)) }
}

/// Places of files as clients write them.
enum Location {
    static func trimmed(_ location: String) -> String {
        var result = location
        while result.hasSuffix("/") && !result.hasSuffix("://") { result.removeLast() }
        return result
    }

    /// The location and what it lies in, the nearest first, down to what follows the scheme.
    static func parents(of location: String) -> [String] {
        var found = [location]
        var rest = location[...]
        while let slash = rest.utf8.lastIndex(of: UInt8(ascii: "/")) {
            rest = rest[..<slash]
            guard !rest.hasSuffix("/"), !rest.hasSuffix(":"), !rest.isEmpty else { break }
            found.append(String(rest))
        }
        return found
    }

    /// One spelling for each place: `/x`, `file:/x` and `file:///x` are one, so are `s3://` and `s3a://`.
    static func normal(_ location: String) -> String {
        if location.hasPrefix("file:/"), !location.hasPrefix("file://") { return "file:///" + location.dropFirst("file:/".count) }
        for prefix in ["file://localhost/", "/"] where location.hasPrefix(prefix) { return "file:///" + location.dropFirst(prefix.count) }
        for scheme in ["s3a://", "s3n://"] where location.hasPrefix(scheme) { return "s3://" + location.dropFirst(scheme.count) }
        return location
    }

    static func isSame(_ one: String, _ other: String) -> Bool { trimmed(normal(one)) == trimmed(normal(other)) }

    /// Whether it is `base` or lies below it. A location with `..` in it lies nowhere.
    static func isBelow(_ location: String, _ base: String) -> Bool {
        let (location, base) = (trimmed(normal(location)), trimmed(normal(base)))
        // By bytes, as the system does: to Swift a slash before a combining mark is another character.
        let hasParent = location.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
        guard !base.isEmpty, location.contains(":/"), !hasParent else { return false }
        return (location + "/").utf8.starts(with: (base.hasSuffix("/") ? base : base + "/").utf8)
    }
}
