import MillBase
import MillCatalog
import MillBinder
import MillSQL

/// What CREATE SINK's options say to the engine; the others are the connector's.
struct SinkOptions: Sendable {
    /// Rows are told apart by a key: what is taken back is deleted. Otherwise rows are only added.
    var isUpsert: Bool
    /// What is taken back is passed over.
    var forcesAppendOnly = false
    /// Names of the columns of the key; nil: those that the plan knows.
    var primaryKey: [String]?
    /// The rows that are there at CREATE SINK go first.
    var takesRows = true
    /// Time between commits; nil: every checkpoint.
    var commitMilliseconds: Int?
    /// A number of checkpoints.
    var commitCheckpoints: Int?
    var commitRows: Int64?
    var commitBytes: Int64?
    /// With `connector`.
    var rest: [String: String] = [:]

    static let names = [
        "type", "force_append_only", "primary_key", "snapshot", "commit_checkpoint_interval", "commit_interval", "commit_rows",
        "commit_bytes",
    ]

    /// Files of a folder stay as they are.
    var takesUpserts: Bool { !["fs", "s3"].contains(rest["connector"]?.lowercased()) }

    /// Options that the engine adds to those of the statement, for itself.
    static let ownPrefix = "millrace."
    static let sinkName = ownPrefix + "sink"
    static let incarnation = ownPrefix + "incarnation"
    static let commitInterval = ownPrefix + "commit_interval_ms"

    /// - Throws: 22023 for a value that is none, 0A000 for a type that is not there.
    init(_ options: [CatalogOption]) throws(SQLError) {
        var values: [String: String] = [:]
        for option in options where !option.name.hasPrefix(Self.ownPrefix) {
            guard values.updateValue(option.value, forKey: option.name) == nil else {
                throw SQLError(.invalidParameterValue, "option \"\(option.name)\" is given twice", hint: "Give it once.")
            }
        }
        func take(_ name: String) -> String? { values.removeValue(forKey: name) }
        switch take("type")?.lowercased() {
        case "append-only": isUpsert = false
        case "upsert": isUpsert = true
        case "debezium":
            throw SQLError(.featureNotSupported, "a sink of type debezium is not supported", hint: "Types are: append-only, upsert.")
        case nil:
            let close = values.keys.sorted().first { editDistance($0.lowercased(), "type", atMost: 2) <= 2 }
            throw SQLError(
                .invalidParameterValue, "option \"type\" is missing",
                hint: close.map { "Perhaps you meant \"type\" by \"\($0)\". " }.map { $0 + "Types are: append-only, upsert." }
                    ?? "Types are: append-only, upsert.")
        case let type?:
            throw SQLError(.invalidParameterValue, "there is no type \"\(type)\" of sinks", hint: "Types are: append-only, upsert.")
        }
        forcesAppendOnly =
            try take("force_append_only").map { (text) throws(SQLError) in try Self.flag("force_append_only", text) } ?? false
        takesRows = try take("snapshot").map { (text) throws(SQLError) in try Self.flag("snapshot", text) } ?? true
        primaryKey = take("primary_key").map { text in text.split(separator: ",").map { Self.trimmed($0) }.filter { !$0.isEmpty } }
        commitCheckpoints = try take("commit_checkpoint_interval").map { (text) throws(SQLError) in
            Int(try Self.number("commit_checkpoint_interval", text, max: 1_000_000))
        }
        commitMilliseconds = try take("commit_interval").map { (text) throws(SQLError) in
            guard let time = SettingDuration(text), time.milliseconds > 0 else {
                throw Self.invalid("commit_interval", text, "a time such as '10s'")
            }
            return time.milliseconds
        }
        commitRows = try take("commit_rows").map { (text) throws(SQLError) in try Self.number("commit_rows", text, max: .max) }
        commitBytes = try take("commit_bytes").map { (text) throws(SQLError) in try Self.number("commit_bytes", text, max: .max) }
        if forcesAppendOnly, isUpsert {
            throw SQLError(
                .invalidParameterValue, "a sink of type upsert cannot force append-only",
                hint: "Leave out force_append_only, or say type = 'append-only'.")
        }
        if let primaryKey, primaryKey.isEmpty { throw Self.invalid("primary_key", "", "names of columns, with commas between") }
        if commitCheckpoints != nil, commitMilliseconds != nil {
            throw SQLError(
                .invalidParameterValue, "options \"commit_checkpoint_interval\" and \"commit_interval\" say the same",
                hint: "Give one of them.")
        }
        rest = values
    }

    private static func trimmed(_ text: Substring) -> String {
        let end = text.lastIndex { $0 != " " }
        return String(text[..<(end.map { text.index(after: $0) } ?? text.startIndex)].drop { $0 == " " })
    }

    private static func flag(_ name: String, _ text: String) throws(SQLError) -> Bool {
        switch text.lowercased() {
        case "true", "on", "1": return true
        case "false", "off", "0": return false
        default: throw invalid(name, text, "true or false")
        }
    }

    private static func number(_ name: String, _ text: String, max: Int64) throws(SQLError) -> Int64 {
        guard let number = Int64(text), number > 0, number <= max else { throw invalid(name, text, "a whole number above 0") }
        return number
    }

    private static func invalid(_ name: String, _ text: String, _ expected: String) -> SQLError {
        SQLError(.invalidParameterValue, "invalid value \"\(text)\" for option \"\(name)\"", hint: "Expected \(expected).")
    }

    /// An error of the connector's about an option, with what its writer may have meant.
    func explained(_ error: SQLError) -> SQLError {
        guard error.sqlState == .invalidParameterValue else { return error }
        for key in rest.keys.sorted() where error.message.contains("\"\(key)\"") {
            guard let close = Self.names.first(where: { editDistance(key.lowercased(), $0, atMost: 2) <= 2 }) else { continue }
            var explained = error
            explained.hint = "Perhaps you meant \"\(close)\"."
            return explained
        }
        return error
    }

    /// How often commits are due, when checkpoints are made this often.
    /// - Parameter sessionMilliseconds: `execution.checkpointing.interval` at CREATE SINK.
    func commitEvery(checkpoints: Duration, sessionMilliseconds: Int?) -> Duration {
        if let commitCheckpoints { return commitCheckpoints == 1 ? .zero : checkpoints * commitCheckpoints }
        guard let wanted = commitMilliseconds ?? sessionMilliseconds else { return .zero }
        let interval = Duration.milliseconds(wanted)
        return interval <= checkpoints ? .zero : interval
    }
}

extension CatalogObject {
    /// The value of a WITH option.
    func option(named name: String) -> String? { options.first { $0.name == name }?.value }
}
