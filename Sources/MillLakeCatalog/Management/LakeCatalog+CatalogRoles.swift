import GRDB
import MillIceberg

/// Catalog roles: what may be done in one catalog.
extension LakeCatalog {
    func routeCatalogRoles(_ catalog: String, _ parts: [String], _ request: CatalogRequest) throws -> CatalogAnswer {
        let warehouse = try database.read { try Self.warehouse(catalog, $0) }
        switch (request.method, parts.count) {
        case ("GET", 0):
            let sql = "SELECT * FROM catalog_roles WHERE warehouse_id = ? ORDER BY name"
            return try database.read { try RoleRow.answer(Row.fetchAll($0, sql: sql, arguments: [warehouse.id])) }
        case ("POST", 0): return try createCatalogRole(warehouse, request)
        case (_, 0): throw Self.wrongMethod(request, "GET and POST")
        default: break
        }
        let name = parts[0]
        switch (request.method, parts.count, parts.dropFirst().first) {
        case ("GET", 1, _): return CatalogAnswer(200, try database.read { try RoleRow.catalogRole(name, of: warehouse, $0) }.role.json)
        case ("PUT", 1, _): return try updateCatalogRole(name, warehouse, request)
        case ("DELETE", 1, _): return try dropCatalogRole(name, warehouse)
        case ("GET", 2, "principal-roles"):
            return try database.read { database in
                let (_, id) = try RoleRow.catalogRole(name, of: warehouse, database)
                let sql =
                    "SELECT p.* FROM principal_roles p JOIN roles_in_catalog_roles m ON m.role = p.name WHERE m.catalog_role_id = ? ORDER BY p.name"
                return try RoleRow.answer(Row.fetchAll(database, sql: sql, arguments: [id]))
            }
        case ("GET", 2, "grants"): return try grants(of: name, warehouse)
        case ("PUT", 2, "grants"):
            try setGrant(Grant(Self.content(request, "grant")), name, warehouse, isGiven: true)
            return CatalogAnswer(201, [:])
        case ("POST", 2, "grants"):
            try setGrant(Grant(Self.content(request, "grant")), name, warehouse, isGiven: false)
            return CatalogAnswer(201, [:])
        case (_, 1, _): throw Self.wrongMethod(request, "GET, PUT and DELETE")
        default: throw Self.noSuchPath(request)
        }
    }

    private func createCatalogRole(_ warehouse: Warehouse, _ request: CatalogRequest) throws -> CatalogAnswer {
        let body = try Self.content(request, "catalogRole")
        let name = try body.requiredString("name")
        try CatalogName.check(name, "catalog role")
        let properties = try Self.properties(body)
        let made = try database.write { database in
            try database.execute(
                sql: """
                    INSERT OR IGNORE INTO catalog_roles (warehouse_id, name, properties, created_millis, changed_millis, version)
                    VALUES (?, ?, ?, ?, ?, 1)
                    """, arguments: [warehouse.id, name, JSONValue(properties).text, nowMillis, nowMillis])
            guard database.changesCount == 1 else { throw CatalogFailure.exists("CatalogRole \(name)") }
            return try RoleRow.catalogRole(name, of: warehouse, database).role
        }
        return CatalogAnswer(201, made.json)
    }

    private func updateCatalogRole(_ name: String, _ warehouse: Warehouse, _ request: CatalogRequest) throws -> CatalogAnswer {
        let body = try Self.content(request, "catalogRole")
        let properties = try Self.properties(body)
        let changed = try database.write { database in
            let (role, id) = try RoleRow.catalogRole(name, of: warehouse, database)
            try Self.check(body, version: role.version)
            try database.execute(
                sql: "UPDATE catalog_roles SET properties = ?, changed_millis = ?, version = version + 1 WHERE id = ?",
                arguments: [JSONValue(properties).text, nowMillis, id])
            return try RoleRow.catalogRole(name, of: warehouse, database).role
        }
        return CatalogAnswer(200, changed.json)
    }

    private func dropCatalogRole(_ name: String, _ warehouse: Warehouse) throws -> CatalogAnswer {
        guard name != "catalog_admin" else { throw CatalogFailure.badRequest("the catalog role \(name) cannot be dropped") }
        try database.write { database in
            let (_, id) = try RoleRow.catalogRole(name, of: warehouse, database)
            try database.execute(sql: "DELETE FROM catalog_roles WHERE id = ?", arguments: [id])
        }
        return .done
    }

    private func grants(of name: String, _ warehouse: Warehouse) throws -> CatalogAnswer {
        let texts = try database.read { database in
            let (_, id) = try RoleRow.catalogRole(name, of: warehouse, database)
            return try String.fetchAll(database, sql: "SELECT what FROM grants WHERE catalog_role_id = ? ORDER BY what", arguments: [id])
        }
        return CatalogAnswer(200, ["grants": .array(try texts.map { try StoredJSON.value($0) })])
    }

    private func setGrant(_ grant: Grant, _ name: String, _ warehouse: Warehouse, isGiven: Bool) throws {
        try database.write { database in
            let (_, id) = try RoleRow.catalogRole(name, of: warehouse, database)
            let sql =
                isGiven
                ? "INSERT OR IGNORE INTO grants (catalog_role_id, what) VALUES (?, ?)"
                : "DELETE FROM grants WHERE catalog_role_id = ? AND what = ?"
            try database.execute(sql: sql, arguments: [id, grant.json.text])
        }
    }
}
