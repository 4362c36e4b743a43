import GRDB
import MillIceberg

/// Which request means what. Source: Iceberg REST catalog specification; management calls as Apache Polaris has them.
extension LakeCatalog {
    static let catalogPath = "/api/catalog/v1"

    /// What `GET /v1/config` says that we do.
    static let endpoints = [
        "GET /v1/{prefix}/namespaces", "POST /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}",
        "HEAD /v1/{prefix}/namespaces/{namespace}", "DELETE /v1/{prefix}/namespaces/{namespace}",
        "POST /v1/{prefix}/namespaces/{namespace}/properties", "GET /v1/{prefix}/namespaces/{namespace}/tables",
        "POST /v1/{prefix}/namespaces/{namespace}/tables", "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}", "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}", "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
        "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics", "POST /v1/{prefix}/namespaces/{namespace}/register",
        "POST /v1/{prefix}/tables/rename", "POST /v1/{prefix}/transactions/commit", "GET /v1/{prefix}/namespaces/{namespace}/views",
        "POST /v1/{prefix}/namespaces/{namespace}/views", "GET /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}", "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
        "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}", "POST /v1/{prefix}/namespaces/{namespace}/register-view",
        "POST /v1/{prefix}/views/rename",
    ]

    func route(_ request: CatalogRequest) throws -> CatalogAnswer {
        let parts = request.segments
        // Tutorials write the path wrong; what they want to know is whether the catalog is there.
        if parts.suffix(3) == ["api", "v1", "config"] { return try misplacedConfiguration(request) }
        switch (parts.first, parts.dropFirst().first, parts.dropFirst(2).first) {
        case ("api", "catalog", "v1"): return try routeCatalog(Array(parts.dropFirst(3)), request)
        case ("api", "management", "v1"): return try routeManagement(Array(parts.dropFirst(3)), request)
        default: throw Self.noSuchPath(request)
        }
    }

    static func noSuchPath(_ request: CatalogRequest) -> CatalogFailure {
        .notFound(
            "there is nothing at \(request.method) \(request.path.prefix(200)); tables are at \(catalogPath), which is what clients want as uri "
                + "without the /v1, and management calls at /api/management/v1")
    }

    static func wrongMethod(_ request: CatalogRequest, _ methods: String) -> CatalogFailure {
        CatalogFailure(405, "UnsupportedOperationException", "\(request.path.prefix(200)) takes \(methods), not \(request.method)")
    }

    private func routeCatalog(_ parts: [String], _ request: CatalogRequest) throws -> CatalogAnswer {
        switch parts {
        case ["config"]: return try configuration(request)
        case ["oauth", "tokens"]: return try issueToken(request)
        case []: throw Self.noSuchPath(request)
        default: break
        }
        let caller = try caller(request)
        let isWithoutPrefix = CatalogName.pathWords.contains(parts[0])
        let name = isWithoutPrefix ? options.defaultWarehouse : parts[0]
        guard let warehouse = try database.read({ try Warehouse.find(name, $0) }) else {
            throw CatalogFailure.notFound("Unable to find warehouse \(name.prefix(100))")
        }
        let call = Call(request: request, caller: caller, warehouse: warehouse)
        let rest = isWithoutPrefix ? parts : Array(parts.dropFirst())
        switch rest.first {
        case "namespaces": return try routeNamespaces(Array(rest.dropFirst()), call)
        case "tables" where rest == ["tables", "rename"]: return try rename(.table, call)
        case "views" where rest == ["views", "rename"]: return try rename(.view, call)
        case "transactions" where rest == ["transactions", "commit"]: return try commitTransaction(call)
        default: throw Self.noSuchPath(request)
        }
    }

    private func routeNamespaces(_ parts: [String], _ call: Call) throws -> CatalogAnswer {
        guard let first = parts.first else {
            switch call.request.method {
            case "GET": return try listNamespaces(call)
            case "POST": return try createNamespace(call)
            default: throw Self.wrongMethod(call.request, "GET and POST")
            }
        }
        let namespace = CatalogName.levels(first)
        switch (call.request.method, parts.count, parts.dropFirst().first) {
        case ("GET", 1, _): return try loadNamespace(namespace, call)
        case ("HEAD", 1, _):
            _ = try loadNamespace(namespace, call)
            return .done
        case ("DELETE", 1, _): return try dropNamespace(namespace, call)
        case (_, 1, _): throw Self.wrongMethod(call.request, "GET, HEAD and DELETE")
        case ("POST", 2, "properties"): return try changeProperties(of: namespace, call)
        case ("POST", 2, "register"): return try registerTable(in: namespace, call)
        case ("POST", 2, "register-view"): return try registerView(in: namespace, call)
        case ("GET", 2, "tables"): return try list(.table, in: namespace, call)
        case ("GET", 2, "views"): return try list(.view, in: namespace, call)
        case ("POST", 2, "tables"): return try createTable(in: namespace, call)
        case ("POST", 2, "views"): return try createView(in: namespace, call)
        case (_, 2, "tables"), (_, 2, "views"): throw Self.wrongMethod(call.request, "GET and POST")
        case (_, 3..., "tables"):
            return try routeTable(TableIdentifier(namespace: namespace, name: parts[2]), Array(parts.dropFirst(3)), call)
        case (_, 3, "views"): return try routeView(TableIdentifier(namespace: namespace, name: parts[2]), call)
        default: throw Self.noSuchPath(call.request)
        }
    }

    private func routeTable(_ table: TableIdentifier, _ parts: [String], _ call: Call) throws -> CatalogAnswer {
        switch (call.request.method, parts) {
        case ("GET", []): return try loadTable(table, call)
        case ("HEAD", []): return try lookAt(.table, table, call)
        case ("POST", []): return try commitTable(table, call)
        case ("DELETE", []): return try dropTable(table, call)
        case ("GET", ["credentials"]): return try credentials(of: table, call)
        case ("POST", ["metrics"]): return try takeMetrics(of: table, call)
        case (_, []): throw Self.wrongMethod(call.request, "GET, HEAD, POST and DELETE")
        default: throw Self.noSuchPath(call.request)
        }
    }

    private func routeView(_ view: TableIdentifier, _ call: Call) throws -> CatalogAnswer {
        switch call.request.method {
        case "GET": return try loadView(view, call)
        case "HEAD": return try lookAt(.view, view, call)
        case "POST": return try replaceView(view, call)
        case "DELETE": return try dropView(view, call)
        default: throw Self.wrongMethod(call.request, "GET, HEAD, POST and DELETE")
        }
    }

    // MARK: Configuration

    /// Without a warehouse it is for everybody; with one it tells whether that is there.
    private func configuration(_ request: CatalogRequest) throws -> CatalogAnswer {
        guard request.method == "GET" || request.method == "HEAD" else { throw Self.wrongMethod(request, "GET") }
        guard let name = request.query["warehouse"], !name.isEmpty else { return Self.configuration(prefix: options.defaultWarehouse) }
        let caller = try caller(request)
        if let found = try database.read({ try Warehouse.find(name, $0) }) { return Self.configuration(prefix: found.name) }
        guard options.makesWarehouses, caller.managesService else {
            throw CatalogFailure.notFound("Unable to find warehouse \(name.prefix(100))")
        }
        let made = try database.write { database in
            // Another client may have been faster.
            try Warehouse.find(name, database) ?? insertLocalWarehouse(name, database)
        }
        return Self.configuration(prefix: made.name)
    }

    private static func configuration(prefix: String) -> CatalogAnswer {
        CatalogAnswer(
            200,
            [
                "defaults": [:], "overrides": ["prefix": .string(prefix)], "endpoints": .array(endpoints.map { .string($0) }),
            ])
    }

    private func misplacedConfiguration(_ request: CatalogRequest) throws -> CatalogAnswer {
        guard request.method == "GET" || request.method == "HEAD" else { throw Self.wrongMethod(request, "GET") }
        return CatalogAnswer(
            200,
            [
                "message": .string(
                    "the catalog is up; clients want the uri http://HOST:PORT/api/catalog, and its configuration is at \(Self.catalogPath)/config"
                ),
                "defaults": [:], "overrides": [:], "endpoints": .array(Self.endpoints.map { .string($0) }),
            ])
    }
}

/// A request to one warehouse by somebody known.
struct Call: Sendable {
    let request: CatalogRequest
    let caller: Caller
    let warehouse: Warehouse

    /// Whether the client asks to be given keys for the files.
    var wantsKeys: Bool {
        (request.headers["x-iceberg-access-delegation"] ?? "").split(separator: ",").contains {
            $0.filter { $0 != " " } == "vended-credentials"
        }
    }
}
