package import MillBase
package import MillCatalog
package import MillColumnar
package import MillConnectorKit
package import MillConnectors
package import MillIO
import MillText
import Synchronization

/// The connectors and formats of this program, wired to the engine's protocols: the one place that knows them all.
package final class Assembly: SourceAssembly {
    private let environment: Environment
    private let embedded: Mutex<EmbeddedBroker?>

    package init(environment: Environment, embedded: EmbeddedBroker?) {
        self.environment = environment
        self.embedded = Mutex(embedded)
    }

    package func source(name: String, options: [CatalogOption], fields: [Field]) throws(SQLError) -> AssembledSource {
        var connectorOptions: [String: String] = [:]
        var format: String?
        var encode: String?
        for option in options {
            if option.name == "encode" {
                encode = option.value
            } else if option.name == "format", options.contains(where: { $0.name == "encode" }) {
                format = option.value
            } else {
                connectorOptions[option.name] = option.value
            }
        }
        let written: SourceFormat? =
            if let format, let encode { try SourceFormat(format: format, encode: encode) } else { nil }
        let made = try SourceConnectors.make(
            connectorOptions, format: written, environment: environment, embedded: embedded.withLock { $0 })
        guard let records = made.format else {
            throw SQLError(.invalidParameterValue, "the format of the source's records is missing", hint: "Add FORMAT PLAIN ENCODE JSON.")
        }
        return AssembledSource(
            connector: made.connector,
            makeDecoder: { (columns) throws(SQLError) in
                switch records {
                case .plainJSON: JSONRecordDecoder(fields: fields, wanted: columns.map { .field($0) })
                case .parquet: ParquetRowDecoder(fields: fields, wanted: columns)
                }
            }, notices: made.notices, encode: records.encode)
    }

    package func sink(options: [String: String], of relation: SinkConnectors.Relation) throws(SQLError) -> any SinkConnector {
        try SinkConnectors.make(options, of: relation, environment: environment)
    }
}
