import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit

/// One line of SHOW SOURCES.
struct SourceLine: Sendable {
    static let schema: Schema = [
        Field("Name", .varchar), Field("Connector", .varchar), Field("Location", .varchar), Field("Format", .varchar), Field("State", .varchar),
        Field("Splits", .int64), Field("Rejects", .int64), Field("Message", .varchar), Field("Since", .timestamptz), Field("Next Try", .timestamptz),
    ]

    var name: String
    var connector: String?
    /// The topic, path or table.
    var location: String?
    var format: String
    var condition: Condition
    /// Partitions or files; nil while the source does not run.
    var splits: Int?
    /// Records and values that were refused, also those that are no longer kept; nil while state is being read.
    var rejects: Int?

    var row: [Scalar] {
        [
            .string(name), connector.map { .string($0) } ?? .null, location.map { .string($0) } ?? .null, .string(format), .string(condition.state),
            splits.map { .int(Int64($0)) } ?? .null, rejects.map { .int(Int64($0)) } ?? .null, condition.message.map { .string($0) } ?? .null,
            condition.sinceMicros.map { .int($0) } ?? .null, condition.nextTryMicros.map { .int($0) } ?? .null,
        ]
    }
}

extension Engine {
    /// The sources of a schema, oldest first, with what they do now.
    func sourceLines(in schemaName: String) -> [SourceLine] {
        noteTroubles()
        return catalog.objects.filter { $0.kind == .source && $0.schemaName == schemaName }.map { source in
            let counts = rejects.counts(of: source.id)
            return SourceLine(
                name: source.name, connector: source.connectorName, location: source.location, format: source.format, condition: condition(of: source),
                splits: sources.splitCount(of: source.id), rejects: restoration.gate.phase == nil ? counts.kept + counts.dropped : nil)
        }
    }
}

extension CatalogObject {
    /// What a source's connector reads.
    fileprivate var location: String? {
        option("topic", "kafka.topic", "path", "location") ?? option("table.name").map { "\(option("database.name") ?? "").\($0)" }
    }

    /// As CREATE SOURCE says it, also when the options say it Flink's way or the connector by itself.
    fileprivate var format: String {
        guard let encode = option("encode") else { return "PLAIN ENCODE \((option("format", "value.format") ?? "json").uppercased())" }
        return "\((option("format") ?? "plain").uppercased()) ENCODE \(encode.uppercased())"
    }

    private func option(_ names: String...) -> String? { options.first { names.contains($0.name) }?.value }
}
