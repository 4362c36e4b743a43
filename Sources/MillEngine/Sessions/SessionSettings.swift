package import MillBase

/// A session's run-time parameters: what SET stores and SHOW gives back.
package struct SessionSettings: Sendable {
    /// A parameter that Millrace knows: its default, and what SET accepts.
    private struct Known {
        let standard: String
        let accepts: @Sendable (String) -> Bool

        init(_ standard: String, _ accepts: @escaping @Sendable (String) -> Bool = { _ in true }) {
            self.standard = standard
            self.accepts = accepts
        }

        static func oneOf(_ standard: String, _ values: String...) -> Known { Known(standard) { values.contains($0.lowercased()) } }
        static func flag(_ standard: String) -> Known {
            Known(standard) { ["on", "off", "true", "false", "yes", "no", "1", "0"].contains($0.lowercased()) }
        }
        static func duration(_ standard: String) -> Known { Known(standard) { SessionSettings.milliseconds($0) != nil } }
        /// Shown, never changed.
        static func fixed(_ value: String) -> Known { Known(value) { $0.lowercased() == value.lowercased() } }
    }

    private static let known: [String: Known] = [
        "application_name": Known(""),
        "client_encoding": Known("UTF8") { ["utf8", "utf-8", "unicode", "sql_ascii"].contains($0.lowercased()) },
        "client_min_messages": Known("notice"),
        "datestyle": Known("ISO, MDY") { $0.lowercased().hasPrefix("iso") },
        "timezone": Known("UTC") { ["utc", "gmt", "etc/utc", "zulu", "0", "+00:00", "default", "universal"].contains($0.lowercased()) },
        "intervalstyle": .oneOf("postgres", "postgres"),
        "extra_float_digits": Known("1"),
        "bytea_output": .oneOf("hex", "hex"),
        "search_path": Known("\"$user\", public"),
        "standard_conforming_strings": .fixed("on"),
        "statement_timeout": Known("0"),
        "lock_timeout": Known("0"),
        "idle_in_transaction_session_timeout": Known("0"),
        "idle_session_timeout": Known("0"),
        "transaction_isolation": Known("read committed"),
        "default_transaction_isolation": Known("read committed"),
        "transaction_read_only": .flag("off"),
        "default_transaction_read_only": .flag("off"),
        "session_characteristics": Known(""),
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

    private static let hints = [
        "timezone": "Only UTC is there so far.",
        "source_timeout": "Give milliseconds, or a number and one of ms, s, min, h, d; 0 is no limit.",
    ]

    /// What drivers are told of when it changes, with the spelling they expect.
    private static let reported: [String: String] = [
        "application_name": "application_name", "client_encoding": "client_encoding", "datestyle": "DateStyle", "timezone": "TimeZone",
        "intervalstyle": "IntervalStyle", "standard_conforming_strings": "standard_conforming_strings",
    ]

    private var values: [String: String] = [:]

    package init() {}

    package subscript(name: String) -> String? { values[name] ?? Self.known[name]?.standard }

    /// A parameter that is a length of time; nil for 0, which is no limit.
    package func duration(_ name: String) -> Duration? {
        guard let millis = self[name].flatMap(Self.milliseconds), millis > 0 else { return nil }
        return .milliseconds(millis)
    }

    /// A length of time as PostgreSQL writes it: a whole number of milliseconds, or of the unit that follows it.
    private static func milliseconds(_ text: String) -> Int64? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let unit = text.dropFirst(digits.count).drop { $0 == " " }
        let factors: [Substring: Int64] = ["": 1, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000]
        guard let number = Int64(digits), let factor = factors[unit] else { return nil }
        let (millis, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow || millis > Int32.max ? nil : millis
    }

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
            values[name] = value
            return nil
        }
        if let value, !known.accepts(value) {
            throw SQLError(
                .invalidParameterValue, "invalid value for parameter \"\(name)\": \"\(value)\"",
                hint: Self.hints[name], at: span)
        }
        values[name] = value
        return Self.reported[name].map { ($0, value ?? known.standard) }
    }

    package mutating func resetAll() { values = [:] }
}
