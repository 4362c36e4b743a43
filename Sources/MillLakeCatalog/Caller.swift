import GRDB
import MillIceberg

/// Who asks, and by which of their roles.
struct Caller: Sendable {
    var principal: String
    /// Principal roles that the token's scope lets count.
    var roles: Set<String>

    /// May manage warehouses, principals and roles, and everything in every warehouse.
    var managesService: Bool { roles.contains(LakeCatalog.adminRole) }
}

/// What somebody wants to do with a namespace, a table or a view.
enum Access {
    case read
    case write

    /// Whether a privilege of the management interface lets it happen. Privileges are told apart as far as reading and writing.
    func isGiven(by privilege: String) -> Bool {
        let writes = ["CREATE", "DROP", "WRITE", "FULL_METADATA", "MANAGE_CONTENT", "MANAGE_METADATA"].contains { privilege.contains($0) }
        switch self {
        case .write: return writes
        case .read: return writes || privilege.contains("READ") || privilege.contains("LIST")
        }
    }
}

/// A right that a catalog role has: for the whole catalog, or for what lies in a namespace, or for one table or view.
struct Grant: Sendable {
    var privilege: String
    /// Nil: the whole catalog.
    var namespace: [String]?
    var object: String?
    /// In one spelling, by which it is known again.
    var json: JSONValue

    init(_ json: JSONValue) throws {
        privilege = try json.requiredString("privilege")
        let type = try json.requiredString("type")
        var stored: JSONValue = ["type": .string(type), "privilege": .string(privilege)]
        if type != "catalog" {
            let levels = try json.required("namespace").textList("namespace")
            namespace = levels
            stored = stored.with("namespace", .array(levels.map { .string($0) }))
        }
        switch type {
        case "catalog", "namespace": break
        case "table", "view":
            let name = try json[type + "Name"].isNull ? json.requiredString(type) : json.requiredString(type + "Name")
            object = name
            stored = stored.with(type + "Name", .string(name))
        default: throw CatalogFailure.badRequest("there are no grants of type \"\(type)\"; there are catalog, namespace, table and view")
        }
        self.json = stored
    }

    func isAbout(_ wanted: [String], _ name: String?) -> Bool {
        guard let namespace else { return true }
        guard wanted.starts(with: namespace) else { return false }
        guard let object else { return true }
        return wanted == namespace && name == object
    }
}

extension LakeCatalog {
    /// - Throws: 401 without a token that we gave, 419 with one that is too old.
    func caller(_ request: CatalogRequest) throws -> Caller {
        guard let header = request.headers["authorization"] else { throw CatalogFailure.unauthorized("there is no Authorization header") }
        let parts = header.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else {
            throw CatalogFailure.unauthorized("the Authorization header has no bearer token; POST /api/catalog/v1/oauth/tokens gives one")
        }
        return try caller(token: String(parts[1]))
    }

    func caller(token: String) throws -> Caller {
        let digest = Secret.digest(token)
        return try database.read { database in
            guard let row = try Row.fetchOne(database, sql: "SELECT * FROM tokens WHERE digest = ?", arguments: [digest]) else {
                throw CatalogFailure.unauthorized("the token is not one of this catalog's; POST /api/catalog/v1/oauth/tokens gives one")
            }
            guard row["expires_millis"] > nowMillis else {
                throw CatalogFailure(
                    419, "AuthenticationTimeoutException", "the token has expired; POST /api/catalog/v1/oauth/tokens gives another")
            }
            let principal: String = row["principal"]
            return Caller(principal: principal, roles: try Self.roles(of: principal, scope: row["scope"], database))
        }
    }

    /// The roles of a principal that a scope lets count: all, or those it names as `PRINCIPAL_ROLE:name`.
    static func roles(of principal: String, scope: String, _ database: Database) throws -> Set<String> {
        let all = try String.fetchSet(database, sql: "SELECT role FROM principals_in_roles WHERE principal = ?", arguments: [principal])
        let named = scope.split(separator: " ").filter { $0.hasPrefix("PRINCIPAL_ROLE:") }.map {
            String($0.dropFirst("PRINCIPAL_ROLE:".count))
        }
        guard !named.isEmpty, !named.contains("ALL") else { return all }
        return all.intersection(named)
    }

    /// - Throws: 403 when none of the caller's roles gives the right.
    func check(_ caller: Caller, _ access: Access, _ warehouse: Warehouse, _ namespace: [String] = [], _ name: String? = nil) throws {
        if caller.managesService { return }
        let grants = try database.read { database in
            try Row.fetchAll(
                database,
                sql: """
                    SELECT r.role, g.what FROM grants g JOIN catalog_roles c ON c.id = g.catalog_role_id JOIN roles_in_catalog_roles r USING (catalog_role_id)
                    WHERE c.warehouse_id = ?
                    """, arguments: [warehouse.id])
        }
        let isGiven = try grants.contains { row in
            guard caller.roles.contains(row["role"]) else { return false }
            let grant = try Grant(StoredJSON.value(row["what"]))
            // Whoever may see a part of the catalog may look at the way to it: at namespaces, not at what else lies in them.
            let isOnTheWay = access == .read && name == nil && (grant.namespace ?? []).starts(with: namespace)
            let isAbout = grant.isAbout(namespace, name) || isOnTheWay
            return isAbout && access.isGiven(by: grant.privilege)
        }
        guard isGiven else {
            throw CatalogFailure.forbidden(
                "Principal '\(caller.principal)' with activated PrincipalRoles '\(caller.roles.sorted())' is not authorized to "
                    + "\(access == .read ? "read" : "change") \(namespace.isEmpty ? "catalog \(warehouse.name)" : (namespace + [name].compactMap { $0 }).joined(separator: "."))"
            )
        }
    }

    func checkManages(_ caller: Caller) throws {
        guard caller.managesService else {
            throw CatalogFailure.forbidden("Principal '\(caller.principal)' does not have the role \(Self.adminRole), which managing takes")
        }
    }
}
