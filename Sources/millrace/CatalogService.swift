import Logging
import MillBase
import MillConnectors
import MillHTTPClient
import MillHTTPServer
import MillIceberg
import MillIO
import MillLakeCatalog
import MillObjectStore

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// The embedded table catalog and its listener. State is `catalog.db` in the data directory, tables are in `warehouse` there unless a catalog
/// says otherwise.
final class CatalogService: Sendable {
    struct Options: Sendable {
        var address = ListenAddress(argument: "off")!
        /// Of requests that name none.
        var warehouse = "dev"
        /// Whether a warehouse comes into being when a client that may do so first asks for it.
        var makesWarehouses = true
    }

    let catalog: LakeCatalog
    /// `host:port`.
    let address: String
    private let server: RequestServer

    /// Open connections.
    var connectionCount: Int { server.connectionCount }

    /// Its warehouses, for queries.
    func warehouses(_ environment: Environment) -> EmbeddedWarehouses {
        EmbeddedWarehouses(
            names: { [catalog] () throws(SQLError) in try catalog.warehouseNames() },
            source: { [catalog] warehouse in
                let tables = EmbeddedTables(catalog, warehouse: warehouse)
                return IcebergCatalog.Source(
                    open: { (table) throws(IcebergError) in try tables.open(table, clock: environment.clock, random: environment.random) },
                    namespaces: { () throws(IcebergError) in try tables.namespaces() },
                    tables: { (namespace) throws(IcebergError) in try tables.tables(in: namespace) })
            })
    }

    /// Opens the catalog and listens; nil when it is off.
    /// - Throws: a database that cannot be read, credentials that cannot be understood, an address that is taken.
    static func start(_ options: Options, dataDirectory: String, environment: Environment, logger: Logger) async throws(SQLError)
        -> CatalogService?
    {
        guard !options.address.isOff else { return nil }
        let catalog = try open(options, dataDirectory, environment, logger)
        let server = RequestServer(
            RequestServerOptions(host: options.address.host, port: options.address.port), handler: CatalogDoor(catalog: catalog),
            logger: logger)
        try await server.start()
        return CatalogService(catalog, server, address: "\(options.address.host):\(server.port ?? 0)")
    }

    private static func open(_ options: Options, _ dataDirectory: String, _ environment: Environment, _ logger: Logger) throws(SQLError)
        -> LakeCatalog
    {
        guard let path = realpath(dataDirectory, nil) else { throw SQLError(.ioError, "could not find \"\(dataDirectory)\"") }
        defer { free(path) }
        let directory = String(cString: path)
        var catalogOptions = LakeCatalogOptions(path: directory + "/catalog.db", warehouseRoot: "file://" + directory + "/warehouse")
        catalogOptions.defaultWarehouse = options.warehouse
        catalogOptions.makesWarehouses = options.makesWarehouses
        if let text = environment.variable("POLARIS_BOOTSTRAP_CREDENTIALS") {
            catalogOptions.credentials = try BootstrapCredentials(environmentText: text)
        } else if !["localhost", "127.0.0.1", "::1"].contains(options.address.host) {
            logger.warning(
                "the catalog listens beyond this machine, and POLARIS_BOOTSTRAP_CREDENTIALS=realm,id,secret is not set: unless another was set before, its secret is known to everybody",
                metadata: ["address": "\(options.address.defaultValueDescription)"])
        }
        let transport = CurlTransport()
        return try LakeCatalog(catalogOptions, environment: environment) { properties in
            ObjectStores(environment: environment, transport: transport, properties: properties)
        }
    }

    private init(_ catalog: LakeCatalog, _ server: RequestServer, address: String) {
        self.catalog = catalog
        self.server = server
        self.address = address
    }

    func stop() async {
        await server.stop()
        catalog.close()
    }
}

/// Brings requests from the listener to the catalog.
private struct CatalogDoor: RequestHandler {
    let catalog: LakeCatalog

    func reply(to request: ServerRequest) -> ServerReply {
        let answer: CatalogAnswer
        do throws(CatalogFailure) {
            answer = catalog.answer(
                try CatalogRequest(method: request.method, target: request.target, headers: request.headers, body: request.body))
        } catch { answer = error.answer }
        return ServerReply(status: answer.status, contentType: answer.contentType, body: answer.body)
    }
}
