package import MillBase
import MillColumnar
package import MillEngine
package import MillPgWire
import MillSQL

/// The engine behind the Postgres wire: a session of the engine for each connection.
package struct EngineBackend: PgBackend {
    private let engine: Engine

    package init(engine: Engine) { self.engine = engine }

    package func openSession(_ startup: StartupMessage) async throws(SQLError) -> any PgSession {
        let session = Session(engine: engine, userName: startup.user, databaseName: startup.database)
        for setting in startup.settings {
            // As PostgreSQL does for unknown ones; but a driver's extra must not keep it out.
            do throws(SQLError) { try session.start(with: setting.name.lowercased(), setting.value) } catch {
                guard error.sqlState == .undefinedObject else { throw error }
            }
        }
        return EngineSession(session)
    }
}

/// Translates between the wire's session and the engine's; keeps nothing of its own.
private final class EngineSession: PgSession {
    private let session: Session

    init(_ session: Session) { self.session = session }

    var initialParameters: [StartupMessage.Setting] { [] }

    var transactionStatus: TransactionStatus {
        get async {
            switch session.transaction {
            case .none: .idle
            case .open: .inBlock
            case .failed: .failed
            }
        }
    }

    var idleLimit: PgIdleLimit? {
        switch session.transaction {
        case .none: session.duration("idle_session_timeout").map { .session($0) }
        case .open, .failed: session.duration("idle_in_transaction_session_timeout").map { .transaction($0) }
        }
    }

    var textEncoder: PgTextEncoder {
        get async { { column, row, out in column.appendText(row: row, to: &out) } }
    }

    func split(_ text: String) async throws(SQLError) -> [PgStatement] {
        try session.parsed(text).map { PgStatement(span: $0.span, syntax: $0) }
    }

    func prepare(_ statement: PgStatement, parameterTypes: [PgOID], isKept: Bool) async throws(SQLError) -> PgPrepared {
        guard let parsed = statement.syntax as? ParsedStatement else { preconditionFailure("a statement comes from split") }
        let prepared = try await session.prepare(parsed, parameterTypes: parameterTypes.map(\.sqlType), isKept: isKept)
        let parameters = prepared.parameterTypes.enumerated().map { index, type in
            // What the client fixed stays as it said: int8 and oid are one type here, and two on the wire.
            index < parameterTypes.count && parameterTypes[index].sqlType == type ? parameterTypes[index] : PgOID(type)
        }
        return PgPrepared(
            parameterTypes: parameters, columns: prepared.schema?.map { PgColumn($0) }, plan: prepared, deallocation: Self.deallocation(parsed.statement))
    }

    private static func deallocation(_ statement: Statement) -> PgDeallocation? {
        switch statement {
        case .prepared(.deallocate(let name)): name.map { .named($0.name) } ?? .all
        case .discard(.all): .all
        default: nil
        }
    }

    func execute(_ prepared: PgPrepared, parameters: [PgParameter]) async throws(SQLError) -> any PgExecution {
        guard let plan = prepared.plan as? Session.Prepared else { preconditionFailure("a plan comes from prepare") }
        var values: [Scalar] = []
        for (parameter, type) in zip(parameters, plan.parameterTypes) {
            switch parameter.value {
            case .null: values.append(.null)
            case .scalar(let value): values.append(value)
            case .text(let text): values.append(try TextInput.scalar(text, as: type))
            }
        }
        return EngineExecution(try await session.execute(plan, parameters: values))
    }

    func settle() async throws(SQLError) { try await session.settle() }

    func statementFailed() async { session.statementFailed() }

    func takeMessages() -> [PgSessionMessage] {
        session.takeMessages().map { message in
            switch message {
            case .notice(let notice):
                .notice(
                    ErrorResponse(
                        notice.isWarning ? .warning : .notice, notice.sqlState, notice.message, detail: notice.detail,
                        hint: notice.hint))
            case .setting(let name, let value): .parameterChanged(name: name, value: value)
            }
        }
    }

    func cancel() { session.cancel() }

    func terminate() { session.terminate() }

    func close() async { session.close() }
}

private final class EngineExecution: PgExecution {
    private let outcome: Session.Outcome
    private let remaining: Remaining

    /// Batches that are there already. Only the connection's task takes them.
    private final class Remaining: @unchecked Sendable {
        var batches: [DeltaBatch]
        init(_ batches: [DeltaBatch]) { self.batches = batches }
    }

    init(_ outcome: Session.Outcome) {
        self.outcome = outcome
        if case .table(let batches, _) = outcome { remaining = Remaining(batches.reversed()) } else { remaining = Remaining([]) }
    }

    var isLive: Bool { false }

    var tag: PgCommandTag {
        switch outcome {
        case .done(let tag): .fixed(tag)
        case .rows(_, let verb), .table(_, let verb): verb == "SHOW" || verb == "EXPLAIN" || verb == "DESCRIBE" ? .fixed(verb) : .counted(verb)
        }
    }

    func next() async throws(SQLError) -> DeltaBatch? {
        if case .rows(let channel, _) = outcome { return try await channel.next() }
        return remaining.batches.popLast()
    }

    func close() async {
        if case .rows(let channel, _) = outcome { channel.cancel() }
    }
}
