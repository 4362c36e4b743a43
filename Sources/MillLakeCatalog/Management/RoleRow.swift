import GRDB
import MillIceberg

/// A principal role or a catalog role as it is stored.
struct RoleRow: Sendable {
    /// Of catalog roles.
    var id: Int64?
    var name: String
    var properties: [String: String]
    var createdMillis: Int64
    var changedMillis: Int64
    var version: Int64

    init(_ row: Row) throws {
        id = row.hasColumn("id") ? row["id"] : nil
        name = row["name"]
        properties = try StoredJSON.value(row["properties"]).texts
        createdMillis = row["created_millis"]
        changedMillis = row["changed_millis"]
        version = row["version"]
    }

    var json: JSONValue {
        [
            "name": .string(name), "federated": false, "properties": JSONValue(properties), "createTimestamp": .int(createdMillis),
            "lastUpdateTimestamp": .int(changedMillis), "entityVersion": .int(version),
        ]
    }

    static func answer(_ rows: [Row]) throws -> CatalogAnswer {
        CatalogAnswer(200, ["roles": .array(try rows.map { try RoleRow($0).json })])
    }

    /// - Throws: 404 when there is none.
    static func principalRole(_ name: String, _ database: Database) throws -> RoleRow {
        guard let row = try Row.fetchOne(database, sql: "SELECT * FROM principal_roles WHERE name = ?", arguments: [name]) else {
            throw CatalogFailure.notFound("PrincipalRole \(name.prefix(100)) not found")
        }
        return try RoleRow(row)
    }

    /// - Returns: also its number.
    /// - Throws: 404 when there is none.
    static func catalogRole(_ name: String, of warehouse: Warehouse, _ database: Database) throws -> (role: RoleRow, id: Int64) {
        let row = try Row.fetchOne(
            database, sql: "SELECT * FROM catalog_roles WHERE warehouse_id = ? AND name = ?", arguments: [warehouse.id, name])
        guard let row else { throw CatalogFailure.notFound("CatalogRole \(name.prefix(100)) not found in catalog \(warehouse.name)") }
        return (try RoleRow(row), row["id"])
    }
}
