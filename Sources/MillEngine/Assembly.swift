package import MillBase
package import MillCatalog
package import MillColumnar
package import MillConnectorKit
package import MillConnectors
import MillHTTPClient
package import MillIO
import MillText
import Synchronization

/// The connectors and formats of this program, wired to the engine's protocols: the one place that knows them all.
package final class Assembly: SourceAssembly {
    private let environment: Environment
    private let embedded: Mutex<EmbeddedBroker?>
    private let access: FileAccess
    private let warehouses: EmbeddedWarehouses?

    /// - Parameters:
    ///   - access: which files statements may name; all, and S3 over the network, unless given.
    ///   - warehouses: of the catalog in this process, if it runs.
    package init(environment: Environment, embedded: EmbeddedBroker?, access: FileAccess? = nil, warehouses: EmbeddedWarehouses? = nil) {
        self.environment = environment
        self.access = access ?? FileAccess(environment: environment, transport: CurlTransport())
        self.embedded = Mutex(embedded)
        self.warehouses = warehouses
    }

    package func catalog(options: [CatalogOption]) throws(SQLError) -> any AttachedCatalog {
        try IcebergCatalog(options: Dictionary(options.map { ($0.name, $0.value) }) { $1 }, environment: environment)
    }

    package func embeddedCatalog(_ name: String) throws(SQLError) -> (any AttachedCatalog)? {
        guard let warehouses, try warehouses.names().contains(name) else { return nil }
        return IcebergCatalog(warehouses.source(name))
    }

    package func embeddedCatalogs() throws(SQLError) -> [String] { try warehouses?.names() ?? [] }

    package func source(
        name: String, options: [CatalogOption], fields: [Field], catalogs: @escaping IcebergSource.CatalogFinder
    ) throws(SQLError) -> AssembledSource {
        var connectorOptions: [String: String] = [:]
        var format: String?
        var encode: String?
        for option in options where !option.name.hasPrefix(SinkOptions.ownPrefix) {
            if option.name == "encode" {
                encode = option.value
            } else if option.name == "format", options.contains(where: { $0.name == "encode" }) {
                format = option.value
            } else {
                connectorOptions[option.name] = option.value
            }
        }
        var written: (format: String, encode: String)?
        if let format, let encode { written = (format, encode) }
        let made = try SourceConnectors.make(
            connectorOptions, format: written, environment: environment, embedded: embedded.withLock { $0 }, access: access,
            fields: fields, catalogs: catalogs)
        guard let records = made.format else {
            throw SQLError(.invalidParameterValue, "the format of the source's records is missing", hint: "Add FORMAT PLAIN ENCODE JSON.")
        }
        if made.connector is IcebergSource {
            return AssembledSource(connector: made.connector, makeDecoder: { TableRowDecoder(wanted: $0) }, encode: records.encode)
        }
        let decoder = { @Sendable (columns: [Int]) throws(SQLError) -> any Decoder in
            switch records {
            case .plainJSON: JSONRecordDecoder(fields: fields, wanted: columns.map { .field($0) })
            case .csv(let dialect): CSVRecordDecoder(fields: fields, wanted: columns, delimiter: dialect.delimiter)
            case .parquet: ParquetRowDecoder(fields: fields, wanted: columns)
            }
        }
        return AssembledSource(
            connector: made.connector,
            makeDecoder: { (columns) throws(SQLError) in
                guard made.connector is FileConnector else { return try decoder(columns) }
                return PartitionedDecoder(fields: fields, wanted: columns, make: decoder)
            }, notices: made.notices, encode: records.encode)
    }

    package func sink(options: [String: String], of relation: SinkConnectors.Relation) throws(SQLError) -> any SinkConnector {
        try SinkConnectors.make(options, of: relation, environment: environment, access: access)
    }
}
