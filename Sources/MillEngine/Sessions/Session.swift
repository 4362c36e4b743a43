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
/// One statement at a time; only `cancel` and `terminate` may come from elsewhere, at any moment. Writes wait in `writes` until the
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
        /// Inserted rows that are not committed, by table, in order.
        var writes: [ObjectID: [DeltaBatch]] = [:]
        var messages: [Message] = []
        var cancellation = CancellationHook()
        /// Nothing runs any more.
        var isTerminated = false
        var prepared: [String: Statement] = [:]
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

    func notice(_ notice: SQLError) { state.withLock { $0.messages.append(.notice(notice)) } }

    /// Ends what runs now with 57014.
    package func cancel() {
        state.withLock { $0.cancellation }.cancel()
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
                sourceTimeout: state.settings.duration("source_timeout"), uncommitted: state.writes,
                settings: state.settings.all.map { SystemSetting($0.name, $0.value) }, cancellation: state.cancellation)
        }
    }

    // MARK: Statements

    package static func parse(_ text: String) throws(SQLError) -> [ParsedStatement] { try Parser.parseStatements(text) }

    /// A statement whose parameters and result are known.
    package struct Prepared: Sendable {
        package var statement: ParsedStatement
        package var parameterTypes: [SQLType]
        /// nil when it returns no rows.
        package var schema: Schema?
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
    package func prepare(_ statement: ParsedStatement, parameterTypes: [SQLType?]) async throws(SQLError) -> Prepared {
        try refuseInFailedBlock(statement.statement)
        let context = context
        let binderContext = context.binderContext(
            .statement(now: engine.environment.clock.nowMicros), parameterTypes: parameterTypes, functions: await engine.catalogFunctions(context))
        let reader = await engine.reader
        switch statement.statement {
        case .query(let query):
            let binder = Binder(catalog: reader, context: binderContext)
            let bound = try binder.bind(query: query)
            return Prepared(statement: statement, parameterTypes: try binder.parameterTypes(), schema: bound.schema)
        case .insert(let insert):
            let binder = Binder(catalog: reader, context: binderContext)
            let bound = try binder.bind(insert: insert)
            return Prepared(statement: statement, parameterTypes: try binder.parameterTypes(), schema: bound.returning?.schema)
        case .prepared(.execute(let name, _)):
            guard let inner = state.withLock({ $0.prepared[name.name] }) else { throw Self.unknownPrepared(name.name) }
            let prepared = try await prepare(ParsedStatement(statement: inner, span: statement.span, text: statement.text), parameterTypes: [])
            return Prepared(statement: statement, parameterTypes: [], schema: prepared.schema)
        default:
            return Prepared(statement: statement, parameterTypes: [], schema: Self.schema(of: statement.statement))
        }
    }

    static func unknownPrepared(_ name: String) -> SQLError {
        SQLError(.invalidStatementName, "prepared statement \"\(name)\" does not exist")
    }

    /// - Parameter parameters: of the prepared types, one each.
    package func execute(_ prepared: Prepared, parameters: [Scalar]) async throws(SQLError) -> Outcome {
        try refuseInFailedBlock(prepared.statement.statement)
        let isTerminated = state.withLock { state in
            state.cancellation = CancellationHook()
            return state.isTerminated
        }
        if isTerminated { throw SQLError(.adminShutdown, "terminating connection due to administrator command") }
        let values = zip(parameters, prepared.parameterTypes).map { BoundExpression.literal($0, $1) }
        switch prepared.statement.statement {
        case .query(let query): return .rows(try await select(query, values), verb: "SELECT")
        case .insert(let insert): return try await self.insert(insert, values)
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
        default: return try await define(prepared.statement)
        }
    }

    private func refuseInFailedBlock(_ statement: Statement) throws(SQLError) {
        guard transaction == .failed else { return }
        switch statement {
        case .transaction(.commit), .transaction(.rollback), .transaction(.rollbackTo): return
        default: throw SQLError(.inFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
        }
    }

    // MARK: Queries

    private func select(_ query: Query, _ values: [BoundExpression]) async throws(SQLError) -> RowChannel {
        let run = try await engine.queryRun(try await bind(query, values), session: context)
        return started(run)
    }

    func bind(_ query: Query, _ values: [BoundExpression]) async throws(SQLError) -> BoundQuery {
        let context = context
        let functions = await engine.catalogFunctions(context)
        let binder = Binder(
            catalog: await engine.reader,
            context: context.binderContext(
                .statement(now: engine.environment.clock.nowMicros), parameterTypes: values.map { $0.type }, parameterValues: values,
                functions: functions))
        let bound = try binder.bind(query: query)
        for change in functions.settingChanges { try self.change(change.name, to: change.value) }
        return bound
    }

    private func started(_ run: QueryRun) -> RowChannel {
        let channel = run.start()
        // A cancel may have come while the query was planned.
        context.cancellation.onCancel { channel.cancel() }
        return channel
    }

    // MARK: Writes

    private func insert(_ statement: Insert, _ values: [BoundExpression]) async throws(SQLError) -> Outcome {
        let context = context
        let binder = Binder(
            catalog: await engine.reader,
            context: context.binderContext(
                .statement(now: engine.environment.clock.nowMicros), parameterTypes: values.map { $0.type }, parameterValues: values,
                functions: await engine.catalogFunctions(context)))
        let bound = try binder.bind(insert: statement)
        let rows = try await engine.rows(of: bound, session: context)
        state.withLock { $0.writes[bound.table.id, default: []] += rows.batches }
        let verb = "INSERT 0"
        guard let returning = bound.returning else { return .done(tag: "\(verb) \(rows.count)") }
        let reference = RelationReference(id: bound.table.id, name: bound.table.name, kind: .table)
        var plan = StreamPlan()
        let properties = StreamProperties(appendOnly: true, distribution: .single)
        let schema = bound.table.schema
        let scan = plan.add(StreamNode(.relation(reference, columns: Array(schema.indices)), inputs: [], schema: schema, properties: properties))
        let project = plan.add(StreamNode(.project(returning.expressions), inputs: [scan], schema: returning.schema, properties: properties))
        _ = plan.add(StreamNode(.result, inputs: [project], schema: returning.schema, properties: properties))
        return .rows(started(QueryRun(plan: plan, visible: returning.schema.count, relations: [bound.table.id: rows.batches])), verb: verb)
    }

    /// Ends an implicit transaction: its writes become visible. Does nothing in a block.
    package func settle() async throws(SQLError) {
        let writes: [ObjectID: [DeltaBatch]] = state.withLock { state in
            guard state.transaction == .none else { return [:] }
            defer { state.writes = [:] }
            return state.writes
        }
        if !writes.isEmpty { try await engine.commit(writes) }
    }

    /// A statement failed: an implicit transaction is rolled back, a block can only be rolled back.
    package func statementFailed() {
        state.withLock { state in
            if state.transaction == .none { state.writes = [:] } else { state.transaction = .failed }
        }
    }

    private func transact(_ statement: Transaction) async throws(SQLError) -> Outcome {
        switch statement {
        case .begin:
            let wasOpen = state.withLock { state in
                defer { state.transaction = .open }
                return state.transaction == .open
            }
            if wasOpen { notice(SQLError(SQLState("25001"), "there is already a transaction in progress")) }
            return .done(tag: "BEGIN")
        case .commit(let andChain):
            let (before, writes): (TransactionState, [ObjectID: [DeltaBatch]]) = state.withLock { state in
                let result = (state.transaction, state.writes)
                state.transaction = andChain ? .open : .none
                state.writes = [:]
                return result
            }
            if before == .none { notice(SQLError(.noActiveSQLTransaction, "there is no transaction in progress")) }
            if before == .failed { return .done(tag: "ROLLBACK") }
            if !writes.isEmpty { try await engine.commit(writes) }
            return .done(tag: "COMMIT")
        case .rollback(let andChain):
            let before = state.withLock { state in
                let before = state.transaction
                state.transaction = andChain ? .open : .none
                state.writes = [:]
                return before
            }
            if before == .none { notice(SQLError(.noActiveSQLTransaction, "there is no transaction in progress")) }
            return .done(tag: "ROLLBACK")
        case .savepoint, .rollbackTo, .release:
            throw SQLError(.featureNotSupported, "savepoints are not supported", hint: "Use a transaction block for each unit of work.")
        case .set: return .done(tag: "SET")
        }
    }
}
