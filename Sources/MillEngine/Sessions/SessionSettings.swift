package import MillBase

/// A session's run-time parameters: what SET stores and SHOW gives back.
package struct SessionSettings: Sendable {
    /// A parameter that Millrace knows: its default, and what SET accepts, in the form that SHOW gives it.
    private struct Known {
        let standard: String
        let accepted: @Sendable (String) -> String?

        init(_ standard: String, _ accepted: @escaping @Sendable (String) -> String? = { $0 }) {
            self.standard = standard
            self.accepted = accepted
        }

        static func oneOf(_ standard: String, _ values: String...) -> Known {
            Known(standard) { values.contains($0.lowercased()) ? $0.lowercased() : nil }
        }
        static func flag(_ standard: String) -> Known {
            Known(standard) { text in
                switch text.lowercased() {
                case "on", "true", "yes", "1": "on"
                case "off", "false", "no", "0": "off"
                default: nil
                }
            }
        }
        static func matching(_ standard: String, _ accepts: @escaping @Sendable (String) -> Bool) -> Known {
            Known(standard) { accepts($0) ? $0 : nil }
        }
        static func duration(_ standard: String) -> Known { Known(standard) { SettingDuration($0)?.description } }
        /// Shown, never changed.
        static func fixed(_ value: String) -> Known { Known(value) { $0.lowercased() == value.lowercased() ? value : nil } }
        static var isolation: Known {
            .oneOf("read committed", "read uncommitted", "read committed", "repeatable read", "serializable")
        }
    }

    private static let known: [String: Known] = [
        "application_name": Known(""),
        "client_encoding": .matching("UTF8") { ["utf8", "utf-8", "unicode", "sql_ascii"].contains($0.lowercased()) },
        "client_min_messages": .oneOf(
            "notice", "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"),
        "datestyle": .matching("ISO, MDY") { $0.lowercased().hasPrefix("iso") },
        "timezone": .matching("UTC") { ["utc", "gmt", "etc/utc", "zulu", "0", "+00:00", "default", "universal"].contains($0.lowercased()) },
        "intervalstyle": .oneOf("postgres", "postgres"),
        "extra_float_digits": Known("1"),
        "bytea_output": .oneOf("hex", "hex"),
        // Names without a schema are looked for in public, and made there.
        "search_path": .matching("\"$user\", public") { path in
            path.split(separator: ",").allSatisfy { name in
                ["", "$user", "public", "pg_catalog"].contains(String(name.filter { !" \"'".contains($0) }))
            }
        },
        "standard_conforming_strings": .fixed("on"),
        "statement_timeout": .duration("0"),
        "lock_timeout": .duration("0"),
        "idle_in_transaction_session_timeout": .duration("0"),
        "idle_session_timeout": .duration("0"),
        "transaction_isolation": .isolation,
        "default_transaction_isolation": .isolation,
        "transaction_read_only": .flag("off"),
        "default_transaction_read_only": .flag("off"),
        "synchronous_commit": Known("on"),
        "row_security": .flag("on"),
        "jit": .flag("off"),
        "enable_seqscan": .flag("on"),
        "max_identifier_length": .fixed(String(Limits.identifierBytesMax)),
        "integer_datetimes": .fixed("on"),
        "server_encoding": .fixed("UTF8"),
        "server_version": .fixed("14.0 (Millrace)"),
        "server_version_num": .fixed("140000"),
        "is_superuser": .fixed("on"),
        "sql_dialect": .oneOf("postgres", "postgres", "risingwave"),
        "on_error": .oneOf("raise", "raise", "null"),
        "source_timeout": .duration("30s"),
        "implicit_flush": .flag("on"),
        "background_ddl": .flag("off"),
        "query_mode": Known("auto"),
        "streaming_parallelism": Known("default"),
        "execution.checkpointing.interval": Known("1s"),
    ]

    /// What drivers are told of when it changes, with the spelling they expect.
    private static let reported: [String: String] = [
        "application_name": "application_name", "client_encoding": "client_encoding", "datestyle": "DateStyle", "timezone": "TimeZone",
        "intervalstyle": "IntervalStyle", "standard_conforming_strings": "standard_conforming_strings",
    ]

    private var values: [String: String] = [:]
    /// What RESET goes back to, beside the defaults.
    private var initial: [String: String] = [:]

    package init() {}

    package subscript(name: String) -> String? { values[name] ?? Self.known[name]?.standard }

    package var all: [(name: String, value: String)] {
        Set(Self.known.keys).union(values.keys).sorted().map { ($0, self[$0] ?? "") }
    }

    /// - Returns: the name and value to report to the client, if it is told of this one.
    /// - Throws: 42704 for an unknown name without a dot, 22023 for a value that it cannot take.
    package mutating func set(_ name: String, to value: String?, at span: SourceSpan? = nil) throws(SQLError) -> (name: String, value: String)? {
        guard let known = Self.known[name] else {
            // As in PostgreSQL, a dotted name belongs to somebody else and takes any value; so do RisingWave's own.
            guard name.contains(".") || name.hasPrefix("rw_") || name.hasPrefix("streaming_") || name.hasPrefix("batch_") else {
                throw SQLError(.undefinedObject, "unrecognized configuration parameter \"\(name)\"", at: span)
            }
            values[name] = value ?? initial[name]
            return nil
        }
        if let value {
            guard let accepted = known.accepted(value) else {
                throw SQLError(
                    .invalidParameterValue, "invalid value for parameter \"\(name)\": \"\(value)\"", hint: Self.hints[name], at: span)
            }
            values[name] = accepted
        } else {
            values[name] = initial[name]
        }
        return Self.reported[name].map { ($0, self[name] ?? "") }
    }

    private static let hints = [
        "timezone": "Only UTC is there so far.",
        "search_path": "Write the schema before the names of objects that are not in public.",
        "source_timeout": SettingDuration.unitsHint, "statement_timeout": SettingDuration.unitsHint,
        "idle_in_transaction_session_timeout": SettingDuration.unitsHint, "idle_session_timeout": SettingDuration.unitsHint,
        "lock_timeout": SettingDuration.unitsHint,
    ]

    /// All but what belongs to the transaction: a read-only one stays so.
    package mutating func resetAll() {
        let kept = values.filter { Self.ofTransaction.contains($0.key) }
        values = initial.filter { !Self.ofTransaction.contains($0.key) }.merging(kept) { $1 }
    }

    private static let ofTransaction: Set = ["transaction_read_only", "transaction_isolation"]

    /// The settings as they are now are what the session began with.
    package mutating func makeInitial() { initial = values }

    /// Those that the client is told of and that differ.
    func reported(differingFrom others: SessionSettings) -> [(name: String, value: String)] {
        Self.reported.sorted { $0.key < $1.key }.compactMap { name, spelling in
            guard let value = self[name], value != others[name] else { return nil }
            return (spelling, value)
        }
    }
}

// MARK: - What the engine reads of them

extension SessionSettings {
    /// A parameter that is a length of time; nil for 0, which is no limit.
    package func duration(_ name: String) -> Duration? {
        guard let setting = self[name].flatMap(SettingDuration.init), setting.milliseconds > 0 else { return nil }
        return .milliseconds(setting.milliseconds)
    }

    func isReadOnly(inBlock: Bool) -> Bool { self[inBlock ? "transaction_read_only" : "default_transaction_read_only"] == "on" }

    /// A block's own modes begin as the session's defaults.
    mutating func beginTransaction() {
        for name in ["transaction_read_only", "transaction_isolation"] { values[name] = self["default_" + name] }
    }

    /// Whether `client_min_messages` lets it through.
    func shows(_ notice: SQLError) -> Bool {
        switch self["client_min_messages"] {
        case "error": false
        case "warning": notice.isWarning
        default: true
        }
    }

    /// What setting a parameter does not do, though its value is accepted.
    func warning(about name: String) -> SQLError? {
        guard name.hasSuffix("transaction_isolation"), self[name] == "serializable" else { return nil }
        return SQLError(
            .successfulCompletion, "a transaction block is REPEATABLE READ, also at isolation level serializable",
            hint: "Two blocks that each read what the other one writes can both commit.")
    }
}

extension SQLError {
    /// Whether a notice is one of severity WARNING.
    package var isWarning: Bool { sqlState.code.hasPrefix("25") || sqlState.code.hasPrefix("01") }
}
