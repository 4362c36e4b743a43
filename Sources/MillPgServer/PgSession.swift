package import MillBase
package import MillColumnar
package import MillPgWire

/// One connection's session in the engine.
///
/// Called by the connection's task, one call at a time; only `cancel` and `terminate` may come from elsewhere, at any moment. Spans of
/// thrown errors count bytes of the text given to `split`.
package protocol PgSession: Sendable {
    /// Settings to report at the start in place of the defaults, such as `TimeZone` or a `server_version` of the engine's own.
    var initialParameters: [StartupMessage.Setting] { get }

    /// What the session now is in; asked after each `settle`.
    var transactionStatus: TransactionStatus { get async }

    /// How long the client may be silent in the state the session is in; nil for as long as the server allows.
    var idleLimit: PgIdleLimit? { get }

    /// The text form of values by the session's settings (time zone, bytea form). Asked once per execution.
    var textEncoder: PgTextEncoder { get async }

    /// Parses a text into its statements. An empty text gives none.
    ///
    /// - Throws: a syntax error anywhere in the text; then none of it runs.
    func split(_ text: String) async throws(SQLError) -> [PgStatement]

    /// Binds and plans a statement.
    ///
    /// - Parameters:
    ///   - parameterTypes: what the client fixed; `.unspecified` or missing ones are inferred. Empty in a simple query.
    ///   - isKept: for as long as the client likes; otherwise until the next one, and as long as it has portals.
    /// - Throws: 25P02 in a failed block for all but its end, the binder's errors otherwise.
    func prepare(_ statement: PgStatement, parameterTypes: [PgOID], isKept: Bool) async throws(SQLError) -> PgPrepared

    /// Starts a statement. In a block, or implicitly in the transaction that the next `settle` ends.
    ///
    /// - Parameter parameters: as many as `prepared.parameterTypes`.
    func execute(_ prepared: PgPrepared, parameters: [PgParameter]) async throws(SQLError) -> any PgExecution

    /// Ends the implicit transaction, if one is open and no block is: after a whole simple query, at Sync.
    ///
    /// - Throws: why it could not be committed.
    func settle() async throws(SQLError)

    /// An error was told to the client, possibly one that `PgSession` never saw: an open block is now failed, an implicit
    /// transaction rolled back.
    func statementFailed() async

    /// Notices and setting changes since the last call, in order. Asked between batches and after each statement.
    func takeMessages() -> [PgSessionMessage]

    /// Stops what runs now, which then throws 57014. Does nothing when nothing runs.
    func cancel()

    /// The connection is about to end: stops what runs now, and refuses whatever is executed later. From elsewhere, as `cancel`.
    func terminate()

    /// The connection is gone.
    func close() async
}

/// Appends the text form of a value that is present.
package typealias PgTextEncoder = @Sendable (_ column: Column, _ row: Int, _ out: inout [UInt8]) -> Void

extension PgSession {
    package var idleLimit: PgIdleLimit? { nil }

    /// The text forms that do not depend on settings.
    package var textEncoder: PgTextEncoder {
        get async { { column, row, out in column.appendText(row: row, to: &out) } }
    }
}

/// A client's longest silence, and how its connection ends after it.
package struct PgIdleLimit: Sendable {
    package var duration: Duration
    package var error: SQLError

    package init(_ duration: Duration, _ error: SQLError) {
        self.duration = duration
        self.error = error
    }

    package static func session(_ duration: Duration) -> PgIdleLimit {
        PgIdleLimit(duration, SQLError(SQLState("57P05"), "terminating connection due to idle-session timeout"))
    }

    package static func transaction(_ duration: Duration) -> PgIdleLimit {
        PgIdleLimit(duration, SQLError(SQLState("25P03"), "terminating connection due to idle-in-transaction timeout"))
    }
}

/// One statement of a query text.
package struct PgStatement: Sendable {
    /// Its bytes in the text.
    package var span: SourceSpan
    /// The engine's own form of it.
    package var syntax: any Sendable

    package init(span: SourceSpan, syntax: any Sendable) {
        self.span = span
        self.syntax = syntax
    }
}

/// A planned statement.
package struct PgPrepared: Sendable {
    package var parameterTypes: [PgOID]
    /// Nil when the statement returns no rows; empty for a SELECT without columns.
    package var columns: [PgColumn]?
    /// The engine's own form of it.
    package var plan: any Sendable
    /// What it ends of what Parse has named, which the session knows nothing of.
    package var deallocation: PgDeallocation?

    package init(parameterTypes: [PgOID] = [], columns: [PgColumn]?, plan: any Sendable, deallocation: PgDeallocation? = nil) {
        self.parameterTypes = parameterTypes
        self.columns = columns
        self.plan = plan
        self.deallocation = deallocation
    }
}

/// Which prepared statements a DEALLOCATE or DISCARD ends.
package enum PgDeallocation: Hashable, Sendable {
    case named(String)
    case all
}

/// A running statement, pulled batch by batch.
package protocol PgExecution: Sendable {
    /// Whether rows come as they happen and each batch must reach the client at once.
    var isLive: Bool { get }

    /// The tag of CommandComplete. Asked after `next` gave nil.
    var tag: PgCommandTag { get }

    /// The next rows, their columns in the order of `PgPrepared.columns`, each row as often as its weight says; nil at the end.
    /// A statement without rows does its work here or in `execute` and gives nil.
    func next() async throws(SQLError) -> DeltaBatch?

    /// No more rows will be asked for. Called once, also after an error.
    func close() async
}

/// The text of CommandComplete.
package enum PgCommandTag: Hashable, Sendable {
    case fixed(String)
    /// The verb, to which the server adds a space and the number of rows sent: `SELECT`, `INSERT 0`.
    case counted(String)
}

/// What a session tells the client beside its answers.
package enum PgSessionMessage: Hashable, Sendable {
    case notice(ErrorResponse)
    case parameterChanged(name: String, value: String)
}
