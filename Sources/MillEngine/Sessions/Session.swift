package import MillBase
import MillBinder
import MillCatalog
package import MillColumnar
import MillExpr
import MillIO
import MillOptimizer
import MillPlan
package import MillSQL
import Synchronization

/// One user's conversation with the engine: settings, the open transaction, prepared statements, and what statements do.
///
/// One statement at a time; only `cancel` and `terminate` may come from elsewhere, at any moment. Writes wait in `open` until the
/// transaction ends: an implicit one at `settle`, a block at COMMIT, all in one epoch. Definitions take effect at once, also in a block.
package final class Session: Sendable {
    package enum TransactionState: Hashable, Sendable {
        case none
        case open
        case failed
    }

    struct State {
        var settings = SessionSettings()
        var transaction = TransactionState.none
        /// What the open block leaves of the settings.
        var blockSettings: BlockSettings?
        /// Innermost last.
        var savepoints: [Savepoint] = []
        /// What the transaction sees and has written, once it has done either.
        var open: OpenTransaction?
        var messages: [Message] = []
        var cancellation = CancellationHook()
        /// Nothing runs any more.
        var isTerminated = false
        /// Cancels the running statement at its `statement_timeout`.
        var timer: Task<Void, Never>?
        var prepared: [String: Prepared] = [:]
    }

    /// What the client is told beside answers.
    package enum Message: Sendable {
        case notice(SQLError)
        case setting(name: String, value: String)
    }

    let engine: Engine
    package let userName: String
    package let databaseName: String
    let state = Mutex(State())

    package init(engine: Engine, userName: String, databaseName: String) {
        self.engine = engine
        self.userName = userName
        self.databaseName = databaseName
    }

    package var transaction: TransactionState { state.withLock { $0.transaction } }

    package func takeMessages() -> [Message] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    func notice(_ notice: SQLError) {
        state.withLock { state in
            if state.settings.shows(notice) { state.messages.append(.notice(notice)) }
        }
    }

    /// Ends what runs now with 57014.
    package func cancel() {
        state.withLock { $0.cancellation }.cancel()
    }

    /// The client is gone: nothing of an open transaction stays, and its locks are free.
    package func close() {
        terminate()
        discardOpen()
    }

    /// Ends what runs now, and whatever would run later: the client is gone, or the server is about to be.
    package func terminate() {
        let running = state.withLock { state in
            state.isTerminated = true
            return state.cancellation
        }
        running.cancel()
    }

    var context: SessionContext {
        state.withLock { state in
            SessionContext(
                userName: userName, databaseName: databaseName, raisesErrors: state.settings["on_error"] != "null",
                sourceTimeout: state.settings.duration("source_timeout"), transaction: state.open,
                settings: state.settings, cancellation: state.cancellation, files: NamedFiles(engine.assembly),
                catalogTables: engine.attached)
        }
    }

    // MARK: Statements

    package static func parse(_ text: String) throws(SQLError) -> [ParsedStatement] { try Parser.parseStatements(text) }

    /// The same for a text that a client sends, perhaps again.
    package func parsed(_ text: String) throws(SQLError) -> [ParsedStatement] {
        if let known = engine.planCache.statement(sentAs: text) { return [known] }
        let statements = try Self.parse(text)
        if statements.count == 1 { engine.planCache.keep(statements[0], sentAs: text) }
        return statements
    }

    /// A statement whose parameters and result are known.
    package struct Prepared: Sendable {
        package var statement: ParsedStatement
        package var parameterTypes: [SQLType]
        /// nil when it returns no rows.
        package var schema: Schema?
        /// Of a query that means the same whenever it runs.
        var known: KnownPlan?

        /// The client was told of the columns once; rows of others would be taken for something else.
        func requireSchema(_ current: Schema?) throws(SQLError) {
            if current != schema { throw SQLError(.featureNotSupported, "cached plan must not change result type") }
        }
    }

    /// A statement's answer.
    package enum Outcome: Sendable {
        case done(tag: String)
        /// Rows to come, and the verb that their number is appended to.
        case rows(RowChannel, verb: String)
        /// Rows that are there.
        case table([DeltaBatch], verb: String)
    }

    /// Binds a statement, for its parameters and the columns of its result.
    /// - Parameter isKept: for as long as the client likes. Nobody counts what sessions keep, so a large plan is then made for each execution.
    package func prepare(_ statement: ParsedStatement, parameterTypes: [SQLType?], isKept: Bool = false) async throws(SQLError) -> Prepared {
        try refuseInFailedBlock(statement.statement)
        if case .query = statement.statement, parameterTypes.isEmpty, let known = engine.planCache.plan(of: statement.text) {
            return Prepared(statement: statement, parameterTypes: [], schema: known.current.plan.schema, known: known)
        }
        let generation = engine.planCache.generation
        let context = context
        let functions = await engine.catalogFunctions(context)
        let (reader, now) = (await engine.reader, engine.environment.clock.nowMicros)
        switch statement.statement {
        case .query(let query):
            let (types, bound, isLasting) = try await bound(context) { (context) throws(SQLError) in
                let binder = Binder(
                    catalog: reader, context: context.binderContext(.statement(now: now), parameterTypes: parameterTypes, functions: functions))
                let bound = try binder.bind(query: query)
                return (try binder.parameterTypes(), bound, binder.isLasting)
            }
            var prepared = Prepared(statement: statement, parameterTypes: types, schema: bound.schema)
            if isLasting {
                let plan = await engine.plan(bound)
                let isSmall = plan.isSmall
                if isSmall { engine.planCache.keep(plan, of: statement.text, generation) }
                if isSmall || !isKept { prepared.known = KnownPlan(plan, generation) }
            }
            return prepared
        case .insert, .update, .delete, .truncate:
            return try await bound(context) { (context) throws(SQLError) in
                let binder = Binder(
                    catalog: reader, context: context.binderContext(.statement(now: now), parameterTypes: parameterTypes, functions: functions))
                let schema = try binder.bind(write: statement.statement).last?.returning?.schema
                return Prepared(statement: statement, parameterTypes: try binder.parameterTypes(), schema: schema)
            }
        case .prepared(.execute(let name, _)):
            guard let inner = state.withLock({ $0.prepared[name.name] }) else { throw Self.unknownPrepared(name.name) }
            return Prepared(statement: statement, parameterTypes: [], schema: inner.schema)
        default:
            return Prepared(statement: statement, parameterTypes: [], schema: Self.schema(of: statement.statement))
        }
    }

    static func unknownPrepared(_ name: String) -> SQLError {
        SQLError(.invalidStatementName, "prepared statement \"\(name)\" does not exist")
    }

    /// Runs a statement, planned as the catalog is now.
    /// - Parameter parameters: of the prepared types, one each.
    /// - Throws: 0A000 when its result has other columns by now than when it was prepared.
    package func execute(_ prepared: Prepared, parameters: [Scalar]) async throws(SQLError) -> Outcome {
        try refuseInFailedBlock(prepared.statement.statement)
        try refuseInReadOnlyTransaction(prepared.statement.statement)
        try beginStatement()
        let values = zip(parameters, prepared.parameterTypes).map { BoundExpression.literal($0, $1) }
        switch prepared.statement.statement {
        case .query(let query):
            let run: QueryRun
            if let plan = try await knownPlan(prepared) {
                openBlock()
                run = try await engine.queryRun(plan, session: context)
            } else {
                let bound = try await bind(query, values)
                openBlock()
                try prepared.requireSchema(bound.schema)
                run = try await engine.queryRun(bound, session: context)
            }
            for warning in run.warnings { notice(warning) }
            return .rows(started(run), verb: "SELECT")
        case .insert, .update, .delete, .truncate: return try await write(prepared, values)
        case .transaction(let statement): return try await transact(statement)
        case .set, .reset, .discard: return try setParameter(prepared.statement.statement)
        case .show, .describe: return try await show(prepared.statement.statement)
        case .explain(let statement): return try await explain(statement)
        case .prepared(let statement): return try await executePrepared(statement, span: prepared.statement.span)
        case .flush:
            for warning in try await engine.flush(context.cancellation) { notice(warning) }
            return .done(tag: "FLUSH")
        case .wait:
            for warning in try await engine.flush(context.cancellation) { notice(warning) }
            return .done(tag: "WAIT")
        case .replayRejects(let statement): return try await replay(statement)
        default: return try await define(prepared.statement)
        }
    }

    /// A plan of a query that means the same whenever it runs: the one it was prepared with, or of the catalog as it is now.
    private func knownPlan(_ prepared: Prepared) async throws(SQLError) -> QueryPlan? {
        guard let known = prepared.known else { return nil }
        let (plan, generation) = known.current
        if generation == engine.planCache.generation { return plan }
        let again = try await prepare(prepared.statement, parameterTypes: [])
        try prepared.requireSchema(again.schema)
        guard let fresh = again.known else { return nil }
        let current = fresh.current.plan
        if current.isSmall { known.renew(by: fresh) }
        return current
    }

    /// What runs from here on can be cancelled, and is when it takes longer than `statement_timeout`.
    private func beginStatement() throws(SQLError) {
        let cancellation = CancellationHook()
        let (isTerminated, timeout) = state.withLock { state in
            state.timer?.cancel()
            state.timer = nil
            state.cancellation = cancellation
            return (state.isTerminated, state.settings.duration("statement_timeout"))
        }
        if isTerminated { throw SQLError(.adminShutdown, "terminating connection due to administrator command") }
        guard let timeout else { return }
        let clock = engine.environment.clock
        let timer = Task {
            // It throws when the statement has ended before.
            guard (try? await clock.sleep(for: timeout)) != nil else { return }
            cancellation.cancel(.statementTimeout)
        }
        state.withLock { $0.timer = timer }
    }

    // MARK: Queries

    func bind(_ query: Query, _ values: [BoundExpression]) async throws(SQLError) -> BoundQuery {
        let context = context
        let functions = await engine.catalogFunctions(context)
        let (reader, now) = (await engine.reader, engine.environment.clock.nowMicros)
        let bound = try await bound(context) { (context) throws(SQLError) in
            let binder = Binder(
                catalog: reader,
                context: context.binderContext(
                    .statement(now: now), parameterTypes: values.map { $0.type }, parameterValues: values, functions: functions))
            return try binder.bind(query: query)
        }
        for change in functions.settingChanges { try self.change(change.name, to: change.value) }
        return bound
    }

    private func started(_ run: QueryRun) -> RowChannel {
        let channel = run.start(mayRunHere: true)
        // A cancel may have come while the query was planned, or ran here.
        context.cancellation.onCancel { channel.cancel($0) }
        return channel
    }
}
