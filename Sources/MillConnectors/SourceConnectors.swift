package import MillBase
package import MillColumnar
package import MillConnectorKit
package import MillIO
package import MillLog

/// Makes a connector from the options of CREATE SOURCE: the one list of what `connector = '...'` may name.
package enum SourceConnectors {
    /// What CREATE SOURCE got from its options.
    package struct Made: Sendable {
        package var connector: any SourceConnector
        /// nil when nobody says it and the connector does not know.
        package var format: SourceFormat?
        /// For the client: what was understood but has no effect.
        package var notices: [String]
    }

    /// - Parameters:
    ///   - options: all of `WITH (...)`, `connector` among them.
    ///   - format: the words behind FORMAT and ENCODE; nil when the statement has none, then Flink's option does, or the names of files.
    ///   - access: which files may be read; nil for all of this machine, and none in S3.
    ///   - fields: the declared columns, where the connector has to know them.
    ///   - catalogs: of tables.
    ///   - embedded: our own broker, if it runs; a Kafka source whose brokers are all its listeners reads the log directly.
    /// - Throws: 22023 for a missing, unknown or wrong option. Nothing is contacted yet.
    package static func make(
        _ options: [String: String], format written: (format: String, encode: String)? = nil, environment: Environment,
        embedded: EmbeddedBroker?,
        access: FileAccess? = nil, fields: [Field] = [], catalogs: @escaping IcebergSource.CatalogFinder = { _ in nil }
    ) throws(SQLError) -> Made {
        guard let name = options["connector"] else {
            throw SQLError(.invalidParameterValue, "option \"connector\" is missing", hint: "Known connectors are: file, iceberg, kafka, s3.")
        }
        var left = ConnectorOptions(connector: name.lowercased(), options)
        var asked = try SourceFormat(taking: &left)
        if let written {
            let said = try SourceFormat(format: written.format, encode: written.encode, taking: &left)
            asked = asked ?? said
        }
        switch left.connector {
        case "kafka":
            let connector = try KafkaConnector(options: left, embedded: embedded)
            guard asked == nil || asked == .plainJSON else {
                let what = asked == .parquet ? "Parquet files" : "CSV"
                throw SQLError(.featureNotSupported, "records of Kafka cannot be \(what)", hint: "Use FORMAT PLAIN ENCODE JSON.")
            }
            return Made(connector: connector, format: asked, notices: connector.notices)
        case "file", "filesystem", "s3":
            let connector = try FileConnector(options: left, format: asked, files: environment.files, access: access)
            return Made(connector: connector, format: connector.format, notices: [])
        case "iceberg":
            guard asked == nil || asked == .parquet else {
                throw SQLError(.featureNotSupported, "rows of an Iceberg table have no other format", hint: "Leave FORMAT and ENCODE out.")
            }
            let connector = try IcebergSource(options: left, fields: fields, environment: environment, catalogs: catalogs)
            return Made(connector: connector, format: .parquet, notices: [])
        default: throw SQLError(.invalidParameterValue, "there is no connector \"\(name)\"", hint: "Known connectors are: file, iceberg, kafka, s3.")
        }
    }
}

/// The broker in this process, as sources see it.
package struct EmbeddedBroker: Sendable {
    package var log: Log
    /// Addresses (`host:port`) that its listeners are known by.
    package var addresses: [String]

    package init(log: Log, addresses: [String]) {
        self.log = log
        self.addresses = addresses
    }
}
