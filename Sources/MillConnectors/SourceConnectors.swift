package import MillBase
package import MillConnectorKit
package import MillIO
package import MillLog

/// Makes a connector from the options of CREATE SOURCE: the one list of what `connector = '...'` may name.
package enum SourceConnectors {
    /// What CREATE SOURCE got from its options.
    package struct Made: Sendable {
        package var connector: any SourceConnector
        /// The format that the options name, Flink's way; nil when the statement says FORMAT.
        package var format: SourceFormat?
        /// For the client: what was understood but has no effect.
        package var notices: [String]
    }

    /// - Parameters:
    ///   - options: all of `WITH (...)`, `connector` among them.
    ///   - embedded: our own broker, if it runs; a Kafka source whose brokers are all its listeners reads the log directly.
    /// - Throws: 22023 for a missing, unknown or wrong option. Nothing is contacted yet.
    package static func make(_ options: [String: String], environment: Environment, embedded: EmbeddedBroker?) throws(SQLError) -> Made {
        guard let name = options["connector"] else {
            throw SQLError(.invalidParameterValue, "option \"connector\" is missing", hint: "Known connectors are: file, kafka.")
        }
        var left = ConnectorOptions(connector: name.lowercased(), options)
        let format = try SourceFormat(taking: &left)
        switch left.connector {
        case "kafka":
            let connector = try KafkaConnector(options: left, embedded: embedded)
            return Made(connector: connector, format: format, notices: connector.notices)
        case "file", "filesystem":
            return Made(connector: try FileConnector(options: left, files: environment.files), format: format, notices: [])
        default: throw SQLError(.invalidParameterValue, "there is no connector \"\(name)\"", hint: "Known connectors are: file, kafka.")
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
