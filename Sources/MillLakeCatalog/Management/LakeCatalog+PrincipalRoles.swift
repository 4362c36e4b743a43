import GRDB
import MillIceberg

/// Principal roles: groups of principals, which have catalog roles.
extension LakeCatalog {
    func routePrincipalRoles(_ parts: [String], _ request: CatalogRequest) throws -> CatalogAnswer {
        switch (request.method, parts.count) {
        case ("GET", 0):
            return try database.read { try RoleRow.answer(Row.fetchAll($0, sql: "SELECT * FROM principal_roles ORDER BY name")) }
        case ("POST", 0): return try createPrincipalRole(request)
        case (_, 0): throw Self.wrongMethod(request, "GET and POST")
        default: break
        }
        let name = parts[0]
        switch (request.method, parts.count, parts.dropFirst().first) {
        case ("GET", 1, _): return CatalogAnswer(200, try database.read { try RoleRow.principalRole(name, $0) }.json)
        case ("PUT", 1, _): return try updatePrincipalRole(name, request)
        case ("DELETE", 1, _): return try dropPrincipalRole(name)
        case ("GET", 2, "principals"):
            let rows = try database.read { database in
                _ = try RoleRow.principalRole(name, database)
                return try Row.fetchAll(
                    database,
                    sql: "SELECT p.* FROM principals p JOIN principals_in_roles m ON m.principal = p.name WHERE m.role = ? ORDER BY p.name",
                    arguments: [name])
            }
            return CatalogAnswer(200, ["principals": .array(try rows.map { try Self.json($0) })])
        case ("GET", 3, "catalog-roles"): return try catalogRoles(of: name, in: parts[2])
        case ("PUT", 3, "catalog-roles"):
            try setAssignment(name, parts[2], Self.content(request, "catalogRole").requiredString("name"), true)
            return CatalogAnswer(201, [:])
        case ("DELETE", 4, "catalog-roles"):
            try setAssignment(name, parts[2], parts[3], false)
            return .done
        case (_, 1, _): throw Self.wrongMethod(request, "GET, PUT and DELETE")
        default: throw Self.noSuchPath(request)
        }
    }

    private func createPrincipalRole(_ request: CatalogRequest) throws -> CatalogAnswer {
        let body = try Self.content(request, "principalRole")
        let name = try body.requiredString("name")
        try CatalogName.check(name, "principal role")
        let properties = try Self.properties(body)
        let made = try database.write { database in
            try database.execute(
                sql: "INSERT OR IGNORE INTO principal_roles VALUES (?, ?, ?, ?, 1)",
                arguments: [name, JSONValue(properties).text, nowMillis, nowMillis])
            guard database.changesCount == 1 else { throw CatalogFailure.exists("PrincipalRole \(name)") }
            return try RoleRow.principalRole(name, database)
        }
        return CatalogAnswer(201, made.json)
    }

    private func updatePrincipalRole(_ name: String, _ request: CatalogRequest) throws -> CatalogAnswer {
        let body = try Self.content(request, "principalRole")
        let properties = try Self.properties(body)
        let changed = try database.write { database in
            try Self.check(body, version: RoleRow.principalRole(name, database).version)
            try database.execute(
                sql: "UPDATE principal_roles SET properties = ?, changed_millis = ?, version = version + 1 WHERE name = ?",
                arguments: [JSONValue(properties).text, nowMillis, name])
            return try RoleRow.principalRole(name, database)
        }
        return CatalogAnswer(200, changed.json)
    }

    private func dropPrincipalRole(_ name: String) throws -> CatalogAnswer {
        guard name != Self.adminRole else { throw CatalogFailure.badRequest("the principal role \(name) cannot be dropped") }
        try database.write { database in
            _ = try RoleRow.principalRole(name, database)
            try database.execute(sql: "DELETE FROM principal_roles WHERE name = ?", arguments: [name])
        }
        return .done
    }

    private func catalogRoles(of name: String, in catalog: String) throws -> CatalogAnswer {
        try database.read { database in
            _ = try RoleRow.principalRole(name, database)
            let warehouse = try Self.warehouse(catalog, database)
            let sql = """
                SELECT c.* FROM catalog_roles c JOIN roles_in_catalog_roles m ON m.catalog_role_id = c.id
                WHERE m.role = ? AND c.warehouse_id = ? ORDER BY c.name
                """
            return try RoleRow.answer(Row.fetchAll(database, sql: sql, arguments: [name, warehouse.id]))
        }
    }

    private func setAssignment(_ role: String, _ catalog: String, _ catalogRole: String, _ isAssigned: Bool) throws {
        try database.write { database in
            _ = try RoleRow.principalRole(role, database)
            let (_, id) = try RoleRow.catalogRole(catalogRole, of: Self.warehouse(catalog, database), database)
            let sql =
                isAssigned
                ? "INSERT OR IGNORE INTO roles_in_catalog_roles (role, catalog_role_id) VALUES (?, ?)"
                : "DELETE FROM roles_in_catalog_roles WHERE role = ? AND catalog_role_id = ?"
            try database.execute(sql: sql, arguments: [role, id])
        }
    }
}
