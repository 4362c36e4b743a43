package import MillBase

/// How a source's records are written: `FORMAT PLAIN ENCODE JSON`, or Flink's `'format' = 'json'`.
package enum SourceFormat: Hashable, Sendable {
    /// Each record is one JSON object and an insertion.
    case plainJSON
    /// Each record is a line, or more where newlines are quoted, and an insertion.
    case csv(CSVDialect)
    /// Files of columns, of which each row is an insertion.
    case parquet

    /// The word behind ENCODE, in lower case.
    package var encode: String {
        switch self {
        case .plainJSON: "json"
        case .csv: "csv"
        case .parquet: "parquet"
        }
    }

    private static let hint = "Use FORMAT PLAIN ENCODE JSON, CSV or PARQUET."

    /// From the FORMAT and ENCODE words of a statement, in any letter case, and the options of the encoding, which are taken out.
    package init(format: String, encode: String, taking options: inout ConnectorOptions) throws(SQLError) {
        guard format.lowercased() == "plain" else {
            throw SQLError(.featureNotSupported, "FORMAT \(format.uppercased()) is not supported", hint: Self.hint)
        }
        guard let found = try Self.named(encode, &options) else {
            throw SQLError(.featureNotSupported, "ENCODE \(encode.uppercased()) is not supported", hint: Self.hint)
        }
        self = found
    }

    /// From Flink's options, which are taken out; nil when there are none. Options of Flink's JSON format that only ask for
    /// what is always so are accepted.
    package init?(taking options: inout ConnectorOptions) throws(SQLError) {
        let format = try options.take("format", "value.format")
        _ = options.takeAll(prefix: "json.")
        guard let format else { return nil }
        guard let found = try Self.named(format, &options) else {
            throw SQLError(.featureNotSupported, "format \"\(format)\" is not supported", hint: "Use 'json', 'csv' or 'parquet'.")
        }
        self = found
    }

    /// What the name of a file says; JSON lines when it says nothing.
    init(ofPath path: String, taking options: inout ConnectorOptions) throws(SQLError) {
        let path = path.lowercased()
        self = path.hasSuffix(".parquet") ? .parquet : path.hasSuffix(".csv") ? .csv(try CSVDialect(taking: &options)) : .plainJSON
    }

    private static func named(_ name: String, _ options: inout ConnectorOptions) throws(SQLError) -> SourceFormat? {
        switch name.lowercased() {
        case "json": return .plainJSON
        case "csv": return .csv(try CSVDialect(taking: &options))
        case "parquet": return .parquet
        default: return nil
        }
    }
}
