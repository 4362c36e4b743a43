package import MillBase
package import MillColumnar
package import MillConnectorKit
import MillHTTPClient
package import MillIO

/// Makes a target from the options of CREATE SINK: the one list of what `connector = '...'` may name.
package enum SinkConnectors {
    /// The relation whose changes are sent, and how.
    package struct Relation: Sendable {
        package var name: String
        package var fields: [Field]
        /// Columns that tell rows apart, for a sink that updates and deletes; nil for one that only adds rows.
        package var key: [Int]?

        package init(name: String, fields: [Field], key: [Int]?) {
            self.name = name
            self.fields = fields
            self.key = key
        }
    }

    /// - Parameters:
    ///   - options: all of `WITH (...)` that the engine did not take for itself, `connector` among them.
    ///   - access: where files may be; anywhere, and in S3 over the network, unless given.
    /// - Throws: 22023 for a missing, unknown or wrong option. Nothing is contacted yet.
    package static func make(
        _ options: [String: String], of relation: Relation, environment: Environment, access: FileAccess? = nil
    ) throws(SQLError) -> any SinkConnector {
        guard let name = options["connector"] else {
            throw SQLError(.invalidParameterValue, "option \"connector\" is missing", hint: "Known connectors are: fs, iceberg, s3.")
        }
        switch name.lowercased() {
        case "fs", "s3":
            return try FolderSink(
                ConnectorOptions(connector: name.lowercased(), options), of: relation,
                access ?? FileAccess(environment: environment, transport: CurlTransport()), environment)
        case "iceberg": return try IcebergSink(options, of: relation, environment: environment, transport: CurlTransport())
        default:
            throw SQLError(
                .invalidParameterValue, "there is no connector \"\(name)\" for a sink", hint: "Known connectors are: fs, iceberg, s3.")
        }
    }
}
