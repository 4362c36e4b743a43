import MillBase
import MillBinder
import MillColumnar
import MillExpr
import MillIO
import MillPlan
import MillSQL
import Synchronization

/// INSERT, UPDATE, DELETE and TRUNCATE.
extension Session {
    func write(_ prepared: Prepared, _ values: [BoundExpression]) async throws(SQLError) -> Outcome {
        let open = openForWriting()
        let context = context
        let statement = prepared.statement.statement
        let functions = await engine.catalogFunctions(context)
        let (reader, now) = (await engine.reader, engine.environment.clock.nowMicros)
        let writes = try await bound(context) { (context) throws(SQLError) in
            let binder = Binder(
                catalog: reader,
                context: context.binderContext(
                    .statement(now: now), parameterTypes: values.map { $0.type }, parameterValues: values, functions: functions))
            return try binder.bind(write: statement)
        }
        var answer = Engine.WriteAnswer(count: 0)
        for write in writes {
            try prepared.requireSchema(write.returning?.schema)
            switch write {
            case .insert(let insert): answer = try await engine.run(insert, session: context, in: open)
            case .update(let update): answer = try await engine.run(update, session: context, in: open)
            case .delete(let delete): answer = try await engine.run(delete, session: context, in: open)
            }
        }
        if case .truncate = statement { return .done(tag: statement.command) }
        // The number is the oid of the row, long gone from PostgreSQL, but not from its tag.
        let verb = if case .insert = statement { "INSERT 0" } else { statement.command }
        return answer.returned.map { .table($0, verb: verb) } ?? .done(tag: "\(verb) \(answer.count)")
    }

    /// A query in a block sees what the block sees.
    func openBlock() {
        state.withLock { state in
            if state.transaction == .open, state.open == nil { state.open = OpenTransaction(isBlock: true) }
        }
    }

    private func openForWriting() -> OpenTransaction {
        state.withLock { state in
            let open = state.open ?? OpenTransaction(isBlock: state.transaction == .open)
            state.open = open
            return open
        }
    }

    /// Forgets what the transaction wrote, and lets others write.
    func discardOpen() {
        let open = state.withLock { state in
            defer { state.open = nil }
            return state.open
        }
        if let open { engine.abandon(open) }
    }
}
