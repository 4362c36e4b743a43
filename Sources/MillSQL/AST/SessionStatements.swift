/// A run-time parameter by its dotted name, folded.
package struct SettingName: Hashable, Sendable {
    package var name: String
    package var span: NodeSpan

    package init(_ name: String, _ span: NodeSpan = NodeSpan(0, 0)) {
        self.name = name
        self.span = span
    }
}

package enum SettingValue: Hashable, Sendable {
    case standard
    /// `'a', b, 3`: one item or more.
    case list([WithOption.Value])
}

package struct SetParameter: Hashable, Sendable {
    package enum Scope: Hashable, Sendable {
        case session, local
    }

    package var scope: Scope
    /// `SET TIME ZONE x` sets `timezone`.
    package var name: SettingName
    package var value: SettingValue
}

package enum Show: Hashable, Sendable {
    /// SHOW SOURCES, SHOW TABLES ... with FROM schema and LIKE pattern.
    case objects(ObjectList, from: ObjectName?, like: String?)
    case columns(of: ObjectName, like: String?)
    case create(ObjectKind, ObjectName)
    case parameter(SettingName)
    /// SHOW ALL and SHOW PARAMETERS.
    case allParameters(like: String?)

    package enum ObjectList: String, Hashable, Sendable, CaseIterable {
        case sources = "SOURCES"
        case tables = "TABLES"
        case internalTables = "INTERNAL TABLES"
        case materializedViews = "MATERIALIZED VIEWS"
        case views = "VIEWS"
        case sinks = "SINKS"
        case indexes = "INDEXES"
        case jobs = "JOBS"
        case schemas = "SCHEMAS"
        case databases = "DATABASES"
        case catalogs = "CATALOGS"
        case connections = "CONNECTIONS"
        case functions = "FUNCTIONS"
        case secrets = "SECRETS"
        case cluster = "CLUSTER"
        case processList = "PROCESSLIST"
        case subscriptions = "SUBSCRIPTIONS"
        case cursors = "CURSORS"
    }
}

package struct Explain: Hashable, Sendable {
    package struct Option: Hashable, Sendable {
        /// Upper case: `VERBOSE`, `AST`, `LOGICAL`, ...
        package var name: Identifier
        package var value: WithOption.Value?
    }

    package enum Subject: Hashable, Sendable {
        case statement(Statement)
        /// One that is there: EXPLAIN MATERIALIZED VIEW name.
        case materializedView(ObjectName)
    }

    package var isAnalyze: Bool
    package var options: [Option]
    package var subject: Subject
}

package enum TransactionMode: Hashable, Sendable {
    /// `SERIALIZABLE`, `READ COMMITTED`, ...: upper case.
    case isolation(String)
    case readOnly
    case readWrite
    case deferrable(Bool)
}

package enum Transaction: Hashable, Sendable {
    case begin([TransactionMode])
    case commit(andChain: Bool)
    case rollback(andChain: Bool)
    case savepoint(Identifier)
    case rollbackTo(Identifier)
    case release(Identifier)
    /// SET TRANSACTION, and with `isSession` SET SESSION CHARACTERISTICS AS TRANSACTION.
    case set([TransactionMode], isSession: Bool)
}

package enum CursorStatement: Hashable, Sendable {
    case declare(Identifier, options: [String], withHold: Bool?, CursorInput)
    /// FETCH and MOVE.
    case fetch(FetchDirection, cursor: Identifier, isMove: Bool)
    /// nil for CLOSE ALL.
    case close(Identifier?)
}

package enum CursorInput: Hashable, Sendable {
    case query(Query)
    /// RisingWave's `SUBSCRIPTION CURSOR FOR name [SINCE expr | FULL]`.
    case subscription(ObjectName, since: Expression?, isFull: Bool)
}

package enum FetchDirection: Hashable, Sendable {
    case next, prior, first, last
    case absolute(Int)
    case relative(Int)
    /// nil for ALL.
    case forward(Int?)
    case backward(Int?)
}

package enum PreparedStatement: Hashable, Sendable {
    case prepare(Identifier, types: [TypeName], Statement)
    case execute(Identifier, [Expression])
    /// nil for ALL.
    case deallocate(Identifier?)
}

package enum Discard: String, Hashable, Sendable, CaseIterable {
    case all = "ALL"
    case plans = "PLANS"
    case sequences = "SEQUENCES"
    case temporary = "TEMPORARY"
}

/// PAUSE, RESUME and REBUILD of a running object.
package struct JobControl: Hashable, Sendable {
    package enum Verb: String, Hashable, Sendable, CaseIterable {
        case pause = "PAUSE"
        case resume = "RESUME"
        case rebuild = "REBUILD"
    }

    package var verb: Verb
    package var kind: ObjectKind
    package var name: ObjectName
}

/// REPLAY REJECTS FROM source [WHERE condition] [USING record]: records that were refused are read again.
package struct ReplayRejects: Hashable, Sendable {
    package var source: ObjectName
    /// Which of them, by the columns of the source's rejects; nil is all.
    package var condition: Expression?
    /// The corrected record, of the same columns; nil for the record as it is.
    package var record: Expression?
}
