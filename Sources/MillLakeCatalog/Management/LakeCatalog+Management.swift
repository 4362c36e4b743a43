import GRDB
import MillIceberg

/// The management interface: catalogs, principals, their roles, and what roles may do. All of it takes the role `service_admin`.
///
/// Bodies come wrapped (`{"catalog": {...}}`) or bare, and answers are as Apache Polaris gives them.
extension LakeCatalog {
    func routeManagement(_ parts: [String], _ request: CatalogRequest) throws -> CatalogAnswer {
        let caller = try caller(request)
        try checkManages(caller)
        let rest = Array(parts.dropFirst())
        switch parts.first {
        case "catalogs": return try routeCatalogs(rest, request)
        case "principals": return try routePrincipals(rest, request)
        case "principal-roles": return try routePrincipalRoles(rest, request)
        default: throw Self.noSuchPath(request)
        }
    }

    /// What a body describes, wrapped under a name or not.
    static func content(_ request: CatalogRequest, _ name: String) throws -> JSONValue {
        let body = try request.json()
        return body[name].isNull ? body : body[name]
    }

    static func properties(_ body: JSONValue) throws -> [String: String] {
        try body["properties"].isNull ? [:] : body["properties"].allTexts("properties")
    }

    /// - Throws: 409 when somebody else has changed the object since the client read it.
    static func check(_ body: JSONValue, version: Int64) throws {
        guard let expected = try body.optionalInt64("currentEntityVersion"), expected != version else { return }
        throw CatalogFailure(409, "CommitFailedException", "the entity version is \(version), not \(expected)")
    }

    // MARK: Catalogs

    private func routeCatalogs(_ parts: [String], _ request: CatalogRequest) throws -> CatalogAnswer {
        switch (request.method, parts.count) {
        case ("GET", 0):
            let all = try database.read { try Warehouse.all($0) }
            return CatalogAnswer(200, ["catalogs": .array(all.map(\.json))])
        case ("POST", 0): return try createWarehouse(request)
        case (_, 0): throw Self.wrongMethod(request, "GET and POST")
        default: break
        }
        let name = parts[0]
        switch (request.method, parts.count) {
        case ("GET", 1): return CatalogAnswer(200, try database.read { try Self.warehouse(name, $0) }.json)
        case ("PUT", 1): return try updateWarehouse(name, request)
        case ("DELETE", 1): return try dropWarehouse(name)
        case (_, 1): throw Self.wrongMethod(request, "GET, PUT and DELETE")
        default:
            guard parts[1] == "catalog-roles" else { throw Self.noSuchPath(request) }
            return try routeCatalogRoles(name, Array(parts.dropFirst(2)), request)
        }
    }

    static func warehouse(_ name: String, _ database: Database) throws -> Warehouse {
        guard let found = try Warehouse.find(name, database) else { throw CatalogFailure.notFound("Catalog \(name.prefix(100)) not found") }
        return found
    }

    private func createWarehouse(_ request: CatalogRequest) throws -> CatalogAnswer {
        let body = try Self.content(request, "catalog")
        let name = try body.requiredString("name")
        try CatalogName.checkWarehouse(name)
        var properties = try Self.properties(body)
        var storage = body["storageConfigInfo"]
        if storage.isNull { storage = ["storageType": "FILE"] }
        let type = try storage.requiredString("storageType").uppercased()
        guard type == "FILE" || type == "S3" else {
            throw CatalogFailure.badRequest("storageType \(type.prefix(100)) is not supported; there are FILE and S3")
        }
        let key = Warehouse.baseLocationKey
        if properties[key] == nil {
            guard type == "FILE" else { throw CatalogFailure.badRequest("properties have no \(key), which storage of type S3 needs") }
            properties[key] = Location.trimmed(options.warehouseRoot) + "/" + name
        }
        try Self.checkBase(properties[key] ?? "", type)
        let allowed = try storage["allowedLocations"].isNull ? [] : storage["allowedLocations"].textList("allowedLocations")
        if allowed.isEmpty { storage = storage.with("allowedLocations", .array([.string(properties[key] ?? "")])) }
        for location in allowed { try Self.checkBase(location, type) }
        storage = storage.with("storageType", .string(type))
        let made = try database.write { database in
            try Warehouse.insert(
                name, type: body["type"].string ?? "INTERNAL", properties: properties, storage: storage, nowMillis: nowMillis, database)
        }
        return CatalogAnswer(201, made.json)
    }

    private static func checkBase(_ location: String, _ storageType: String) throws {
        let schemes = storageType == "S3" ? ["s3://", "s3a://"] : ["file:/", "/"]
        guard let scheme = schemes.first(where: { location.hasPrefix($0) }), location.count > scheme.count,
            Location.isBelow(location, location)
        else {
            throw CatalogFailure.badRequest("location \(location.prefix(300)) is not one of storage of type \(storageType)")
        }
    }

    private func updateWarehouse(_ name: String, _ request: CatalogRequest) throws -> CatalogAnswer {
        let body = try Self.content(request, "catalog")
        let changed = try database.write { database in
            let found = try Self.warehouse(name, database)
            try Self.check(body, version: found.version)
            var properties = found.properties
            if !body["properties"].isNull {
                let given = try Self.properties(body)
                // Keys are not shown, so who sends back what was shown does not mean to take them away.
                properties = given.merging(
                    found.properties.filter { Warehouse.secretKeys.contains($0.key) || $0.key == Warehouse.baseLocationKey }
                ) { given, _ in given }
            }
            let storage = body["storageConfigInfo"].isNull ? found.storage : body["storageConfigInfo"]
            guard storage["storageType"].string?.uppercased() == found.storage["storageType"].string else {
                throw CatalogFailure.badRequest("the storage type of a catalog cannot be changed")
            }
            try Self.checkBase(properties[Warehouse.baseLocationKey] ?? "", found.storage["storageType"].string ?? "")
            try database.execute(
                sql: "UPDATE warehouses SET properties = ?, storage = ?, changed_millis = ?, version = version + 1 WHERE id = ?",
                arguments: [JSONValue(properties).text, storage.text, nowMillis, found.id])
            return try Self.warehouse(name, database)
        }
        return CatalogAnswer(200, changed.json)
    }

    private func dropWarehouse(_ name: String) throws -> CatalogAnswer {
        try database.write { database in
            let found = try Self.warehouse(name, database)
            let isUsed = try Bool.fetchOne(
                database, sql: "SELECT EXISTS (SELECT 1 FROM namespaces WHERE warehouse_id = ?)", arguments: [found.id])
            guard isUsed != true else { throw CatalogFailure.badRequest("Catalog '\(name)' cannot be dropped, it is not empty") }
            try database.execute(sql: "DELETE FROM warehouses WHERE id = ?", arguments: [found.id])
        }
        return .done
    }
}
