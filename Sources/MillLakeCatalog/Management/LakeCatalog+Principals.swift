import GRDB
import MillIceberg

/// Principals: who can get tokens. Their secrets are told once, when they are made or rotated.
extension LakeCatalog {
    func routePrincipals(_ parts: [String], _ request: CatalogRequest) throws -> CatalogAnswer {
        switch (request.method, parts.count) {
        case ("GET", 0):
            let all = try database.read { try Row.fetchAll($0, sql: "SELECT * FROM principals ORDER BY name") }
            return CatalogAnswer(200, ["principals": .array(try all.map { try Self.json($0) })])
        case ("POST", 0): return try createPrincipal(request)
        case (_, 0): throw Self.wrongMethod(request, "GET and POST")
        default: break
        }
        let name = parts[0]
        switch (request.method, parts.count, parts.dropFirst().first) {
        case ("GET", 1, _): return CatalogAnswer(200, try database.read { try Self.json(Self.principal(name, $0)) })
        case ("PUT", 1, _): return try updatePrincipal(name, request)
        case ("DELETE", 1, _): return try dropPrincipal(name)
        case ("POST", 2, "rotate"), ("POST", 2, "reset"): return try rotate(name)
        case ("GET", 2, "principal-roles"):
            return try database.read { database in
                _ = try Self.principal(name, database)
                let sql =
                    "SELECT p.* FROM principal_roles p JOIN principals_in_roles m ON m.role = p.name WHERE m.principal = ? ORDER BY p.name"
                return try RoleRow.answer(Row.fetchAll(database, sql: sql, arguments: [name]))
            }
        case ("PUT", 2, "principal-roles"):
            let role = try Self.content(request, "principalRole").requiredString("name")
            try setMembership(name, role, true)
            return CatalogAnswer(201, [:])
        case ("DELETE", 3, "principal-roles"):
            try setMembership(name, parts[2], false)
            return .done
        case (_, 1, _): throw Self.wrongMethod(request, "GET, PUT and DELETE")
        default: throw Self.noSuchPath(request)
        }
    }

    private static func principal(_ name: String, _ database: Database) throws -> Row {
        guard let row = try Row.fetchOne(database, sql: "SELECT * FROM principals WHERE name = ?", arguments: [name]) else {
            throw CatalogFailure.notFound("Principal \(name.prefix(100)) not found")
        }
        return row
    }

    static func json(_ row: Row) throws -> JSONValue {
        [
            "name": .string(row["name"]), "clientId": .string(row["client_id"]), "federated": false,
            "properties": JSONValue(try StoredJSON.value(row["properties"]).texts), "createTimestamp": .int(row["created_millis"]),
            "lastUpdateTimestamp": .int(row["changed_millis"]), "entityVersion": .int(row["version"]),
        ]
    }

    private static func answer(_ status: Int, _ row: Row, secret: String) throws -> CatalogAnswer {
        CatalogAnswer(
            status,
            ["principal": try json(row), "credentials": ["clientId": .string(row["client_id"]), "clientSecret": .string(secret)]])
    }

    private func createPrincipal(_ request: CatalogRequest) throws -> CatalogAnswer {
        let body = try Self.content(request, "principal")
        let name = try body.requiredString("name")
        try CatalogName.check(name, "principal")
        let properties = try Self.properties(body)
        let (id, secret) = (Secret.random(byteCount: 8), Secret.random(byteCount: 16))
        let hash = Secret.hash(secret)
        let row = try database.write { database in
            let isTaken = try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM principals WHERE name = ?)", arguments: [name])
            guard isTaken != true else { throw CatalogFailure.exists("Principal \(name)") }
            try database.execute(
                sql: "INSERT INTO principals VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
                arguments: [name, id, hash.salt, hash.digest, JSONValue(properties).text, nowMillis, nowMillis])
            return try Self.principal(name, database)
        }
        return try Self.answer(201, row, secret: secret)
    }

    private func updatePrincipal(_ name: String, _ request: CatalogRequest) throws -> CatalogAnswer {
        let body = try Self.content(request, "principal")
        let properties = try Self.properties(body)
        let row = try database.write { database in
            try Self.check(body, version: Self.principal(name, database)["version"])
            try database.execute(
                sql: "UPDATE principals SET properties = ?, changed_millis = ?, version = version + 1 WHERE name = ?",
                arguments: [JSONValue(properties).text, nowMillis, name])
            return try Self.principal(name, database)
        }
        return CatalogAnswer(200, try Self.json(row))
    }

    private func rotate(_ name: String) throws -> CatalogAnswer {
        let secret = Secret.random(byteCount: 16)
        let hash = Secret.hash(secret)
        let row = try database.write { database in
            _ = try Self.principal(name, database)
            try database.execute(
                sql: "UPDATE principals SET salt = ?, digest = ?, changed_millis = ?, version = version + 1 WHERE name = ?",
                arguments: [hash.salt, hash.digest, nowMillis, name])
            // Tokens of the old secret go with it.
            try database.execute(sql: "DELETE FROM tokens WHERE principal = ?", arguments: [name])
            return try Self.principal(name, database)
        }
        return try Self.answer(200, row, secret: secret)
    }

    private func dropPrincipal(_ name: String) throws -> CatalogAnswer {
        guard name != Self.rootPrincipal else { throw CatalogFailure.badRequest("the principal \(name) cannot be dropped") }
        try database.write { database in
            _ = try Self.principal(name, database)
            try database.execute(sql: "DELETE FROM principals WHERE name = ?", arguments: [name])
        }
        return .done
    }

    private func setMembership(_ principal: String, _ role: String, _ isMember: Bool) throws {
        guard isMember || principal != Self.rootPrincipal || role != Self.adminRole else {
            throw CatalogFailure.badRequest("the principal \(principal) keeps the role \(role)")
        }
        try database.write { database in
            _ = try Self.principal(principal, database)
            _ = try RoleRow.principalRole(role, database)
            let sql =
                isMember
                ? "INSERT OR IGNORE INTO principals_in_roles (principal, role) VALUES (?, ?)"
                : "DELETE FROM principals_in_roles WHERE principal = ? AND role = ?"
            try database.execute(sql: sql, arguments: [principal, role])
        }
    }
}
