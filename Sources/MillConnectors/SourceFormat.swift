package import MillBase

/// How a source's records are written: `FORMAT PLAIN ENCODE JSON`, or Flink's `'format' = 'json'`.
package enum SourceFormat: Hashable, Sendable {
    /// Each record is one JSON object and an insertion.
    case plainJSON
    /// Files of columns, of which each row is an insertion.
    case parquet

    /// The word behind ENCODE, in lower case.
    package var encode: String { self == .parquet ? "parquet" : "json" }

    private static let hint = "Use FORMAT PLAIN ENCODE JSON."

    /// From the FORMAT and ENCODE words of a statement, in any letter case.
    package init(format: String, encode: String) throws(SQLError) {
        guard format.lowercased() == "plain" else {
            throw SQLError(.featureNotSupported, "FORMAT \(format.uppercased()) is not supported", hint: Self.hint)
        }
        switch encode.lowercased() {
        case "json": self = .plainJSON
        case "parquet": self = .parquet
        default: throw SQLError(.featureNotSupported, "ENCODE \(encode.uppercased()) is not supported", hint: Self.hint)
        }
    }

    /// From Flink's options, which are taken out; nil when there are none. Options of Flink's JSON format that only ask for
    /// what is always so are accepted.
    package init?(taking options: inout ConnectorOptions) throws(SQLError) {
        let format = try options.take("format", "value.format")
        _ = options.takeAll(prefix: "json.")
        switch format?.lowercased() {
        case nil: return nil
        case "json": self = .plainJSON
        case "parquet": self = .parquet
        default: throw SQLError(.featureNotSupported, "format \"\(format ?? "")\" is not supported", hint: "Use 'json' or 'parquet'.")
        }
    }
}
