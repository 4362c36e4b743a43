package import MillBase
import MillCatalogClient
package import MillColumnar
package import MillConnectorKit
import MillHTTPClient
package import MillIceberg
package import MillIO
import MillObjectStore
import MillParquet

/// Tables of an Iceberg catalog for queries that name them: any that speaks REST, or the one in this process.
///
/// A table is asked for anew with each query, and read as of the snapshot that it had when the query was bound, whoever commits meanwhile.
package struct IcebergCatalog: AttachedCatalog {
    /// Where tables come from.
    package struct Source: Sendable {
        /// - Throws: `missing` when there is no such table.
        package var open: @Sendable (TableIdentifier) throws(IcebergError) -> IcebergTable
        package var namespaces: @Sendable () throws(IcebergError) -> [[String]]
        /// - Throws: `missing` when there is no such namespace.
        package var tables: @Sendable (_ namespace: [String]) throws(IcebergError) -> [TableIdentifier]

        package init(
            open: @escaping @Sendable (TableIdentifier) throws(IcebergError) -> IcebergTable,
            namespaces: @escaping @Sendable () throws(IcebergError) -> [[String]],
            tables: @escaping @Sendable (_ namespace: [String]) throws(IcebergError) -> [TableIdentifier]
        ) {
            self.open = open
            self.namespaces = namespaces
            self.tables = tables
        }
    }

    let source: Source

    package init(_ source: Source) { self.source = source }

    package func describe(_ table: CatalogTable, _ state: TableState?) throws(SQLError) -> (table: CatalogTable, columns: [Field])? {
        do throws(IcebergError) {
            let opened: IcebergTable
            do throws(IcebergError) { opened = try source.open(table.identifier) } catch {
                if case .missing = error { return nil }
                throw error
            }
            var table = table
            if let part = table.part.flatMap(TablePart.init(rawValue:)) {
                if state != nil, !part.isOfSnapshot {
                    throw .badRequest("\"\(table)\" is of all snapshots of the table, not of one")
                }
                table.snapshotID = try ScanPlan.state(opened.metadata, ScanPlan.Version(state)).snapshot?.id
                return (table, part.columns)
            }
            let (snapshot, schema) = try ScanPlan.state(opened.metadata, ScanPlan.Version(state))
            table.snapshotID = snapshot?.id
            table.schemaID = schema.schemaID
            return (table, try schema.sqlFields)
        } catch { throw error.remoteError(of: "table \"\(table)\"") }
    }

    package func scan(_ table: CatalogTable, columns: [Int], where bounds: [ScanBound]) throws(SQLError) -> any TableScan {
        do throws(IcebergError) {
            let opened = try source.open(table.identifier)
            if let part = table.part.flatMap(TablePart.init(rawValue:)) {
                return BatchScan(try part.rows(of: opened, snapshotID: table.snapshotID), part.columns, wanted: columns)
            }
            return try SnapshotScan(opened, table, columns: columns, where: bounds)
        } catch { throw error.remoteError(of: "table \"\(table)\"") }
    }

    package func namespaces() throws(SQLError) -> [String] {
        do throws(IcebergError) { return try source.namespaces().map { $0.joined(separator: ".") }.sorted() } catch {
            throw error.remoteError(of: "the catalog")
        }
    }

    package func tables(in namespace: [String]) throws(SQLError) -> [String]? {
        do throws(IcebergError) { return try source.tables(namespace).map(\.name).sorted() } catch {
            if case .missing = error { return nil }
            throw error.remoteError(of: "the catalog")
        }
    }
}

extension IcebergCatalog {
    /// A catalog that speaks REST, by the options of CREATE CATALOG: Iceberg's properties, or RisingWave's names for them.
    /// - Throws: 22023 for an option that is missing or makes no sense. Nothing is contacted yet.
    package init(options: [String: String], environment: Environment) throws(SQLError) {
        var given = ConnectorOptions(connector: "iceberg", options)
        for name in RESTCatalogOptions.names.union(["type", "catalog-type", "catalog.type"]) { _ = try given.take(name) }
        for prefix in RESTCatalogOptions.prefixes { _ = given.takeAll(prefix: prefix) }
        try given.finish()
        var options = options
        if let type = options.removeValue(forKey: "type"), type.lowercased() != "iceberg" {
            throw SQLError(.invalidParameterValue, "there is no catalog of type \"\(type)\"", hint: "Catalogs are of type iceberg.")
        }
        for name in ["catalog-type", "catalog.type"] {
            guard let kind = options.removeValue(forKey: name), kind.lowercased() != "rest" else { continue }
            throw SQLError(
                .featureNotSupported, "an Iceberg catalog of type \"\(kind)\" is not supported", hint: "Catalogs that speak Iceberg's REST protocol are.")
        }
        let restOptions: RESTCatalogOptions
        do throws(IOFailure) { restOptions = try RESTCatalogOptions(properties: options) } catch {
            throw SQLError(
                .invalidParameterValue, error.detail ?? "the catalog's options make no sense",
                hint: "Such as WITH ('type' = 'iceberg', 'uri' = 'http://localhost:8181/api/catalog', 'warehouse' = 'dev', 'credential' = 'root:secret').")
        }
        self.init(.rest(restOptions, environment))
    }
}

extension IcebergCatalog.Source {
    /// A catalog that speaks REST.
    static func rest(_ options: RESTCatalogOptions, _ environment: Environment) -> Self {
        let catalog = RESTCatalog(options, transport: CurlTransport(), environment: environment)
        let local = options.isOnThisMachine ? LocalObjectStore(environment: environment) : nil
        return Self(
            open: { (identifier) throws(IcebergError) in
                let loaded = try catalog.load(identifier)
                return IcebergTable(
                    identifier, metadata: loaded.metadata, catalog: catalog, store: try catalog.store(for: identifier, loaded, local: local),
                    clock: environment.clock, random: environment.random)
            },
            namespaces: { () throws(IcebergError) in try catalog.allNamespaces() },
            tables: { (namespace) throws(IcebergError) in try catalog.tables(in: namespace) })
    }
}

extension IcebergError {
    /// As users see it: what may pass by itself is of a class that is tried again.
    func remoteError(of what: String) -> SQLError {
        switch self {
        case .io(let failure), .parquet(.io(let failure)): failure.remoteError(of: what)
        default: sqlError
        }
    }
}

extension CatalogTable {
    fileprivate var identifier: TableIdentifier { TableIdentifier(namespace: namespace, name: name) }
}

extension ScanPlan.Version {
    fileprivate init(_ state: TableState?) {
        switch state {
        case nil: self = .current
        case .time(let micros): self = .asOf(millis: micros.flooredQuotient(1000))
        case .snapshot(let id): self = .snapshot(id)
        case .reference(let name): self = .reference(name)
        }
    }
}

extension IcebergSchema {
    /// - Throws: `unsupported` for a type that has no counterpart.
    var sqlFields: [Field] {
        get throws(IcebergError) {
            var result: [Field] = []
            for field in fields {
                guard let type = field.type.sqlType else { throw .unsupported("column \"\(field.name)\" of type \(field.type)") }
                result.append(Field(field.name, type))
            }
            return result
        }
    }
}
