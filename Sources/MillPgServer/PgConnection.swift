import Logging
import MillBase
import MillColumnar
import MillPgWire
import NIOCore

/// One client's connection: carries out what the connection machine asks for.
///
/// Runs in a task of its own at the server's edge. Bytes from the socket go through the decoder into the machine; its
/// actions call the session or fill the write buffer, which goes to the socket at a flush or when a chunk is full. A write
/// waits until the socket takes it, and no batch is pulled meanwhile: a slow client slows only its own statement.
///
/// Everything here belongs to that task; what others may do goes through `handle`.
final class PgConnection {
    typealias Outbound = NIOAsyncChannelOutboundWriter<ByteBuffer>

    /// A prepared statement: nil `prepared` for an empty text.
    private struct Statement {
        var text: String
        var prepared: PgPrepared?
    }

    private struct Portal {
        var statement: Statement
        var parameters: [PgParameter]
        var resultFormats: [PgFormat]
        /// Set by the first Execute.
        var run: Run?
    }

    /// A started statement with the batch that is being sent.
    private struct Run {
        let execution: any PgExecution
        let encoder: DataRowEncoder
        var batch: DeltaBatch?
        var position = DataRowEncoder.Position()
    }

    /// DEALLOCATE of a statement that only the connection knew.
    private struct Deallocated: PgExecution {
        var isLive: Bool { false }
        var tag: PgCommandTag { .fixed("DEALLOCATE") }
        func next() async throws(SQLError) -> DeltaBatch? { nil }
        func close() async {}
    }

    private let backend: any PgBackend
    private let options: PgServerOptions
    private let registry: ConnectionRegistry
    private let handle: ConnectionHandle
    private let channel: any Channel
    private let outbound: Outbound
    private let logger: Logger

    private var machine = ServerConnectionMachine()
    private var decoder: FrontendDecoder
    private var writer = MessageWriter()
    private var session: (any PgSession)?
    private var statements: [StatementID: Statement] = [:]
    private var portals: [PortalID: Portal] = [:]
    private var isOpen = true

    init(
        backend: any PgBackend, options: PgServerOptions, registry: ConnectionRegistry, handle: ConnectionHandle, channel: any Channel,
        outbound: Outbound, logger: Logger
    ) {
        self.backend = backend
        self.options = options
        self.registry = registry
        self.handle = handle
        self.channel = channel
        self.outbound = outbound
        self.logger = logger
        decoder = FrontendDecoder(messageBytesMax: options.messageBytesMax)
    }

    /// Serves until the client leaves, the machine closes, or the socket fails.
    func run(_ inbound: NIOAsyncChannelInboundStream<ByteBuffer>) async throws {
        var iterator = inbound.makeAsyncIterator()
        let startupLimit = scheduleEnd(
            after: options.startupTimeout, SQLError(.queryCanceled, "canceling authentication due to timeout"))
        defer { startupLimit.cancel() }
        while isOpen {
            if let event = nextEvent() {
                try await process(event)
            } else if handle.beginWaiting() {
                var idleLimit: Scheduled<Void>?
                if !machine.isStarting {
                    startupLimit.cancel()
                    let limit = session?.idleLimit ?? options.idleTimeout.map { .session($0) }
                    idleLimit = limit.map { scheduleEnd(after: $0.duration, $0.error) }
                }
                defer { idleLimit?.cancel() }
                guard let bytes = try await iterator.next(), handle.endWaiting() else { return }
                decoder.append(bytes.readableBytesView)
            }
        }
    }

    /// Ends what the connection holds in the engine. Called once, after `run`.
    func close() async {
        for portal in portals.values { await portal.run?.execution.close() }
        portals.removeAll()
        await session?.close()
    }

    private func scheduleEnd(after duration: Duration, _ error: SQLError) -> Scheduled<Void> {
        let handle = handle
        return channel.eventLoop.scheduleTask(in: TimeAmount(duration)) { handle.terminate(error) }
    }

    private func nextEvent() -> ServerConnectionEvent? {
        if let error = handle.termination { return .terminate(error) }
        do {
            if machine.isStarting { return try decoder.nextStartupPacket().map { .startupPacket($0) } }
            return try decoder.nextMessage().map { .message($0) }
        } catch {
            return .malformed(error)
        }
    }

    /// Feeds an event and carries out the actions that follow from it until the machine wants the client again.
    private func process(_ event: ServerConnectionEvent) async throws {
        var event: ServerConnectionEvent? = event
        while let current = event {
            event = try await perform(machine.handle(current))
            await release(machine.takeReleased())
        }
    }

    private func release(_ released: ServerConnectionMachine.Released) async {
        for id in released.portals { await portals.removeValue(forKey: id)?.run?.execution.close() }
        for id in released.statements { statements[id] = nil }
    }

    /// - Returns: the event that answers the action, if it has an answer.
    private func perform(_ action: ServerConnectionAction) async throws -> ServerConnectionEvent? {
        switch action {
        case .send(let messages): try await send(messages, atLeast: options.chunkBytes)
        case .sendAndFlush(let messages): try await send(messages, atLeast: 0)
        case .refuseEncryption:
            writer.append(UInt8(ascii: "N"))
            try await flush()
        case .flush: try await flush()
        case .close(let messages):
            isOpen = false
            try await send(messages, atLeast: 0)
        case .cancel(let key):
            isOpen = false
            registry.cancel(key)
        case .openSession(let startup, let preamble):
            try await send(preamble, atLeast: options.chunkBytes)
            return await openSession(startup)
        case .runQuery(let text):
            return try await runQuery(text) ? statusEvent() : settle()
        case .prepare(let id, let text, let types, let isKept): return await prepare(id, text, types, isKept: isKept)
        case .bind(let id, let statement, let parameters, let formats): return bind(id, statement, parameters, formats)
        case .execute(let id, let rowLimit): return try await execute(id, rowLimit: rowLimit)
        case .reject(let messages): try await reject(messages)
        case .rejectAndSettle(let messages):
            try await reject(messages)
            return try await settle()
        case .settle: return try await settle()
        }
        return nil
    }
}

// MARK: - Writing

extension PgConnection {
    private func send(_ messages: [BackendMessage], atLeast: Int) async throws {
        for message in messages { message.encode(into: &writer) }
        if writer.count >= atLeast { try await flush() }
    }

    /// Hands the buffer to the socket and waits until it may be written to again.
    private func flush() async throws {
        guard !writer.isEmpty else { return }
        let buffer = channel.allocator.buffer(bytes: writer.bytes)
        writer.removeAll()
        try await outbound.write(buffer)
    }

    /// Sends what an event of the backend amounts to, in the middle of an action.
    private func tell(_ event: ServerConnectionEvent) async throws {
        if case .send(let messages) = machine.handle(event) {
            try await send(messages, atLeast: options.chunkBytes)
        }
    }

    private func tellMessages() async throws {
        guard let session else { return }
        for message in session.takeMessages() {
            switch message {
            case .notice(let notice): try await tell(.notice(notice))
            case .parameterChanged(let name, let value): try await tell(.parameterChanged(name: name, value: value))
            }
        }
    }

    private func reject(_ messages: [BackendMessage]) async throws {
        // A statement that was stopped for the connection's end is not reported: the end itself is.
        guard handle.termination == nil else { return }
        try await tellMessages()
        try await send(messages, atLeast: options.chunkBytes)
        await session?.statementFailed()
        try await tellMessages()
    }
}

// MARK: - Session and statements

extension PgConnection {
    private func openSession(_ startup: StartupMessage) async -> ServerConnectionEvent {
        do {
            let session = try await backend.openSession(startup)
            self.session = session
            handle.attach(session)
            return .sessionOpened(parameters: session.initialParameters, key: handle.key)
        } catch {
            return .sessionRefused(error)
        }
    }

    private func openedSession() throws(SQLError) -> any PgSession {
        guard let session else { throw SQLError(.internalError, "a statement came before its session") }
        return session
    }

    /// Runs every statement of a simple query. As in PostgreSQL the last one is told complete only after its commit, so
    /// that a commit that fails takes the place of its tag.
    ///
    /// - Returns: whether the transaction was settled.
    private func runQuery(_ text: String) async throws -> Bool {
        do {
            let session = try openedSession()
            let parsed = try await session.split(text)
            if parsed.isEmpty { try await tell(.completed(tag: nil)) }
            for (index, statement) in parsed.enumerated() {
                let prepared = try await session.prepare(statement, parameterTypes: [], isKept: false)
                guard prepared.parameterTypes.isEmpty else {
                    throw SQLError(
                        .undefinedParameter, "there is no parameter $1", hint: "Send a statement with parameters by Parse and Bind.")
                }
                let tag = try await runToEnd(prepared)
                if index == parsed.count - 1 { try await session.settle() }
                try await tellMessages()
                try await tell(.completed(tag: tag))
            }
            return !parsed.isEmpty
        } catch let error where isStatementError(error) {
            if case .reject(let messages) = machine.handle(.failed(SQLError(any: error), in: text)) { try await reject(messages) }
            return false
        }
    }

    /// Sends all rows of a statement of a simple query; its tag is the caller's to send.
    private func runToEnd(_ prepared: PgPrepared) async throws -> String {
        var run = try await start(prepared, parameters: [], formats: [])
        do {
            try await tellMessages()
            if let columns = prepared.columns { try await tell(.rowsBegin(columns)) }
            let (rows, _) = try await sendRows(&run, limit: nil)
            let tag = Self.text(of: run.execution.tag, rows: rows)
            await run.execution.close()
            return tag
        } catch {
            await run.execution.close()
            throw error
        }
    }

    /// Whether an error is the statement's, to be told to the client, or the socket's, which ends the connection.
    private func isStatementError(_ error: any Error) -> Bool {
        error is SQLError || error is any SQLErrorConvertible
    }

    private static func text(of tag: PgCommandTag, rows: Int) -> String {
        switch tag {
        case .fixed(let text): text
        case .counted(let verb): "\(verb) \(rows)"
        }
    }

    private func settle() async throws -> ServerConnectionEvent {
        guard let session else { return .settled(.idle) }
        do {
            try await session.settle()
        } catch {
            if case .reject(let messages) = machine.handle(.failed(error, in: nil)) { try await reject(messages) }
        }
        try await tellMessages()
        return await statusEvent()
    }

    /// The event that a settled transaction gives.
    private func statusEvent() async -> ServerConnectionEvent {
        if let error = handle.termination { return .terminate(error) }
        return .settled(await session?.transactionStatus ?? .idle)
    }

    private func prepare(_ id: StatementID, _ text: String, _ types: [PgOID], isKept: Bool) async -> ServerConnectionEvent {
        do {
            let session = try openedSession()
            let parsed = try await session.split(text)
            guard parsed.count <= 1 else {
                throw SQLError(.syntaxError, "cannot insert multiple commands into a prepared statement", at: parsed[1].span)
            }
            guard let only = parsed.first else {
                statements[id] = Statement(text: text, prepared: nil)
                return .prepared(parameterTypes: [], columns: nil)
            }
            let prepared = try await session.prepare(only, parameterTypes: types, isKept: isKept)
            statements[id] = Statement(text: text, prepared: prepared)
            return .prepared(parameterTypes: prepared.parameterTypes, columns: prepared.columns)
        } catch {
            return .failed(SQLError(any: error), in: text)
        }
    }

    private func bind(_ id: PortalID, _ statementID: StatementID, _ bound: [BoundParameter], _ formats: [PgFormat]) -> ServerConnectionEvent
    {
        guard let statement = statements[statementID] else {
            return .failed(SQLError(.internalError, "a prepared statement was lost"), in: nil)
        }
        do throws(SQLError) {
            var parameters: [PgParameter] = []
            for parameter in bound { parameters.append(try PgParameter(parameter)) }
            portals[id] = Portal(statement: statement, parameters: parameters, resultFormats: formats)
            return .bound
        } catch {
            return .failed(error, in: nil)
        }
    }

    private func execute(_ id: PortalID, rowLimit: Int?) async throws -> ServerConnectionEvent {
        guard var portal = portals[id] else { return .failed(SQLError(.internalError, "a portal was lost"), in: nil) }
        guard let prepared = portal.statement.prepared else { return .completed(tag: nil) }
        do {
            var run: Run
            if let started = portal.run {
                run = started
            } else {
                run = try await start(prepared, parameters: portal.parameters, formats: portal.resultFormats)
                portal.run = run
                portals[id] = portal
                try await tellMessages()
            }
            let (rows, isDone) = try await sendRows(&run, limit: rowLimit)
            portal.run = run
            portals[id] = portal
            try await tellMessages()
            guard isDone else { return .suspended }
            return .completed(tag: Self.text(of: run.execution.tag, rows: rows))
        } catch let error where isStatementError(error) {
            return .failed(SQLError(any: error), in: portal.statement.text)
        }
    }

    private func start(_ prepared: PgPrepared, parameters: [PgParameter], formats: [PgFormat]) async throws -> Run {
        let session = try openedSession()
        let execution: any PgExecution
        do throws(SQLError) { execution = try await session.execute(prepared, parameters: parameters) } catch {
            // A client's library may send DEALLOCATE for what it named by Parse.
            guard error.sqlState == .invalidStatementName, case .named(let name)? = prepared.deallocation, machine.deallocate(name) else { throw error }
            execution = Deallocated()
        }
        switch prepared.deallocation {
        case .all: machine.deallocateAll()
        case .named(let name): _ = machine.deallocate(name)
        case nil: break
        }
        let encoder = DataRowEncoder(columns: prepared.columns ?? [], formats: formats, textEncoder: await session.textEncoder)
        return Run(execution: execution, encoder: encoder)
    }

    /// Sends rows until the execution ends or `limit` rows are sent.
    ///
    /// - Returns: the number of rows sent, and whether the execution ended. As in PostgreSQL, a portal whose last row is the
    ///   last that the limit allows is still suspended.
    private func sendRows(_ run: inout Run, limit: Int?) async throws -> (rows: Int, isDone: Bool) {
        let limit = limit ?? .max
        var rows = 0
        while rows < limit {
            if run.batch == nil {
                guard let batch = try await run.execution.next() else { return (rows, true) }
                run.batch = batch
                run.position = DataRowEncoder.Position()
                try await tellMessages()
            }
            guard let batch = run.batch else { continue }
            rows += try run.encoder.encode(
                batch, from: &run.position, rowLimit: limit - rows, bytesMax: options.chunkBytes, into: &writer)
            if run.position.row >= batch.count { run.batch = nil }
            if writer.count >= options.chunkBytes || (run.execution.isLive && run.batch == nil) {
                try await flush()
                if handle.termination != nil { throw SQLError(.adminShutdown, "terminating connection due to administrator command") }
            }
        }
        return (rows, false)
    }
}
