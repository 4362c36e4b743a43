import MillBase

/// The server's side of one Postgres connection as a pure state machine: events in, one action out.
///
/// The connection's task feeds it packets and the backend's answers and carries out its actions; it holds no bytes, no
/// socket, no engine. It knows the names of statements and portals, what may be sent when, and when to skip.
///
/// States:
///
///     startup --startup message--> opening --session opened--> ready <--> busy(what)
///        |                                                      ^  |
///        | cancel, error                                  Sync  |  | error in Parse ... Close
///        v                                                      |  v
///      closed                                                 skipping
///
/// Invariants: one action is outstanding at most, so messages are taken one at a time; every ReadyForQuery answers exactly
/// one Query, Sync or FunctionCall; after an error in the extended protocol everything up to Sync is dropped, except
/// Terminate. Portals die with the transaction: at a Sync outside a block, and at any error.
/// Source: PostgreSQL manual, chapter "Frontend/Backend Protocol", and `PostgresMain` in postgres.c.
package struct ServerConnectionMachine: Sendable {
    private enum State {
        case startup
        case opening(StartupMessage)
        case ready
        case busy(Work)
        /// An extended-protocol message failed; waiting for Sync.
        case skipping
        case closed
    }

    private enum Work {
        case query
        case prepare(name: String, StatementID)
        case bind(name: String, PortalID, Portal)
        case execute(name: String)
        case settle
    }

    private struct Statement {
        var id: StatementID
        var parameterTypes: [PgOID]
        var columns: [PgColumn]?
    }

    private struct Portal {
        var id: PortalID
        var columns: [PgColumn]?
        var resultFormats: [PgFormat]
        var isDone = false
    }

    /// What the connection keeps for these ids can go.
    package struct Released: Hashable, Sendable {
        package var statements: [StatementID] = []
        package var portals: [PortalID] = []
    }

    private var state = State.startup
    private var statements: [String: Statement] = [:]
    private var portals: [String: Portal] = [:]
    private var nextID = 1
    private var released = Released()

    package init() {}

    /// Whether the connection waits for the client, so that an idle limit or a shutdown may end it at once.
    package var isIdle: Bool {
        switch state {
        case .startup, .ready, .skipping: true
        case .opening, .busy, .closed: false
        }
    }

    /// Whether packets are startup packets still.
    package var isStarting: Bool {
        if case .startup = state { true } else { false }
    }

    /// The statements and portals that died since the last call.
    package mutating func takeReleased() -> Released {
        defer { released = Released() }
        return released
    }

    package mutating func handle(_ event: ServerConnectionEvent) -> ServerConnectionAction {
        switch event {
        case .startupPacket(let packet): return receive(packet)
        case .message(let message): return receive(message)
        case .malformed(let error): return close(error.sqlError)
        case .terminate(let error): return close(error)
        case .sessionOpened(let parameters, let key): return sessionOpened(parameters, key)
        case .sessionRefused(let error): return close(error)
        case .notice(let notice): return .send([.noticeResponse(notice)])
        case .parameterChanged(let name, let value): return .send([.parameterStatus(name: name, value: value)])
        case .rowsBegin(let columns): return .send([.rowDescription(RowDescription(columns))])
        case .completed(let tag): return completed(tag)
        case .suspended:
            state = .ready
            return .send([.portalSuspended])
        case .prepared(let types, let columns): return prepared(types, columns)
        case .bound: return bound()
        case .failed(let error, let text): return failed(error, in: text)
        case .settled(let status): return settled(status)
        }
    }

    private mutating func close(_ error: SQLError) -> ServerConnectionAction {
        if case .closed = state { return .close([]) }
        state = .closed
        return .close([.errorResponse(ErrorResponse(.fatal, error))])
    }
}

// MARK: - Startup

extension ServerConnectionMachine {
    private mutating func receive(_ packet: StartupPacket) -> ServerConnectionAction {
        guard case .startup = state else { return close(PgWireError.unexpectedMessage("startup").sqlError) }
        switch packet {
        case .ssl, .gssEncryption: return .refuseEncryption
        case .cancel(let key):
            state = .closed
            return .cancel(key)
        case .startup(let startup):
            if let refusal = Self.refusal(of: startup) { return close(refusal) }
            state = .opening(startup)
            let negotiates = startup.minorVersion > 0 || !startup.protocolExtensions.isEmpty
            return .openSession(
                startup, preamble: negotiates ? [.negotiateProtocolVersion(minor: 0, unknown: startup.protocolExtensions)] : [])
        }
    }

    /// Why no session can be opened whatever the backend says: replication, or an encoding other than UTF-8.
    ///
    /// SQL_ASCII, which psql asks for in the C locale, means "bytes as they are" and gets UTF-8.
    private static func refusal(of startup: StartupMessage) -> SQLError? {
        for setting in startup.settings {
            switch setting.name.lowercased() {
            case "client_encoding":
                let name = setting.value.uppercased().filter { $0.isLetter || $0.isNumber }
                guard ["", "UTF8", "UNICODE", "SQLASCII"].contains(name) else {
                    return SQLError(.featureNotSupported, "client_encoding \"\(setting.value)\" is not supported", hint: "Use UTF8.")
                }
            case "replication":
                guard ["false", "off", "no", "0"].contains(setting.value.lowercased()) else {
                    return SQLError(.featureNotSupported, "replication connections are not supported")
                }
            default: continue
            }
        }
        return nil
    }

    private mutating func sessionOpened(_ parameters: [StartupMessage.Setting], _ key: CancelKey) -> ServerConnectionAction {
        guard case .opening(let startup) = state else { return .close([]) }
        state = .ready
        var messages: [BackendMessage] = [.authenticationOK]
        for parameter in SessionParameters.initial(for: startup, overriding: parameters) {
            messages.append(.parameterStatus(name: parameter.name, value: parameter.value))
        }
        messages += [.backendKeyData(key), .readyForQuery(.idle)]
        return .sendAndFlush(messages)
    }
}

// MARK: - Messages

extension ServerConnectionMachine {
    private mutating func receive(_ message: FrontendMessage) -> ServerConnectionAction {
        switch state {
        case .ready: break
        case .skipping:
            switch message {
            case .sync, .terminate: break
            default: return .send([])
            }
        case .closed: return .close([])
        case .startup, .opening, .busy: return close(PgWireError.unexpectedMessage(message.name).sqlError)
        }
        switch message {
        case .query(let query): return receive(query)
        case .parse(let parse): return receive(parse)
        case .bind(let bind): return receive(bind)
        case .describe(let object): return describe(object)
        case .execute(let execute): return receive(execute)
        case .close(let object): return closeObject(object)
        case .flush: return .flush
        case .sync:
            state = .busy(.settle)
            return .settle
        case .terminate:
            state = .closed
            return .close([])
        case .functionCall:
            state = .busy(.settle)
            let error = SQLError(
                .featureNotSupported, "function calls by the fast path are not supported", hint: "Call the function in a SELECT.")
            return .rejectAndSettle([.errorResponse(ErrorResponse(.error, error))])
        case .copy:
            // A client may still be sending the rows of a COPY that was refused: they are dropped, as PostgreSQL does.
            return .send([])
        case .password: return close(PgWireError.unexpectedMessage(message.name).sqlError)
        }
    }

    private mutating func receive(_ query: QueryMessage) -> ServerConnectionAction {
        removeStatement("")
        removePortal("")
        do {
            let text = try PgBinary.text(query.text[...])
            state = .busy(.query)
            return .runQuery(text)
        } catch {
            state = .busy(.settle)
            return .rejectAndSettle([.errorResponse(ErrorResponse(.error, error))])
        }
    }

    private mutating func receive(_ parse: ParseMessage) -> ServerConnectionAction {
        if parse.name.isEmpty {
            removeStatement("")
        } else if statements[parse.name] != nil {
            return reject(SQLError(.duplicatePreparedStatement, "prepared statement \"\(parse.name)\" already exists"))
        }
        do {
            let text = try PgBinary.text(parse.text[...])
            let id = StatementID(takeID())
            state = .busy(.prepare(name: parse.name, id))
            return .prepare(id, text: text, parameterTypes: parse.parameterTypes, isKept: !parse.name.isEmpty)
        } catch {
            return reject(error)
        }
    }

    private mutating func receive(_ bind: BindMessage) -> ServerConnectionAction {
        guard let statement = statements[bind.statement] else { return reject(Self.unknownStatement(bind.statement)) }
        let count = bind.values.count
        guard bind.parameterFormats.count <= 1 || bind.parameterFormats.count == count else {
            return reject(
                SQLError(.protocolViolation, "bind message has \(bind.parameterFormats.count) parameter formats but \(count) parameters"))
        }
        guard count == statement.parameterTypes.count else {
            return reject(
                SQLError(
                    .protocolViolation,
                    "bind message supplies \(count) parameters, but prepared statement \"\(bind.statement)\" requires "
                        + "\(statement.parameterTypes.count)"))
        }
        let columnCount = statement.columns?.count ?? 0
        guard bind.resultFormats.count <= 1 || bind.resultFormats.count == columnCount else {
            return reject(
                SQLError(
                    .protocolViolation, "bind message has \(bind.resultFormats.count) result formats but query has \(columnCount) columns"))
        }
        if bind.portal.isEmpty {
            removePortal("")
        } else if portals[bind.portal] != nil {
            return reject(SQLError(.duplicateCursor, "cursor \"\(bind.portal)\" already exists"))
        }
        let id = PortalID(takeID())
        let portal = Portal(id: id, columns: statement.columns, resultFormats: bind.resultFormats)
        state = .busy(.bind(name: bind.portal, id, portal))
        let parameters = bind.values.enumerated().map { index, bytes in
            BoundParameter(statement.parameterTypes[index], PgFormat.resolve(bind.parameterFormats, at: index), bytes)
        }
        return .bind(id, statement.id, parameters: parameters, resultFormats: bind.resultFormats)
    }

    private mutating func describe(_ object: PgObject) -> ServerConnectionAction {
        switch object {
        case .statement(let name):
            guard let statement = statements[name] else { return reject(Self.unknownStatement(name)) }
            return .send([
                .parameterDescription(statement.parameterTypes), statement.columns.map { .rowDescription(RowDescription($0)) } ?? .noData,
            ])
        case .portal(let name):
            guard let portal = portals[name] else { return reject(Self.unknownPortal(name)) }
            return .send([portal.columns.map { .rowDescription(RowDescription($0, formats: portal.resultFormats)) } ?? .noData])
        }
    }

    private mutating func receive(_ execute: ExecuteMessage) -> ServerConnectionAction {
        guard let portal = portals[execute.portal] else { return reject(Self.unknownPortal(execute.portal)) }
        guard !portal.isDone else {
            if portal.columns != nil { return .send([.commandComplete("SELECT 0")]) }
            return reject(SQLError(.objectNotInPrerequisiteState, "portal \"\(execute.portal)\" cannot be run"))
        }
        state = .busy(.execute(name: execute.portal))
        return .execute(portal.id, rowLimit: execute.rowLimit)
    }

    private mutating func closeObject(_ object: PgObject) -> ServerConnectionAction {
        switch object {
        case .statement(let name): removeStatement(name)
        case .portal(let name): removePortal(name)
        }
        return .send([.closeComplete])
    }

    /// Refuses an extended-protocol message that never reached the backend.
    private mutating func reject(_ error: SQLError) -> ServerConnectionAction {
        state = .skipping
        removeAllPortals()
        return .reject([.errorResponse(ErrorResponse(.error, error))])
    }

    private static func unknownStatement(_ name: String) -> SQLError {
        if name.isEmpty { return SQLError(.invalidStatementName, "unnamed prepared statement does not exist") }
        return SQLError(.invalidStatementName, "prepared statement \"\(name)\" does not exist")
    }

    private static func unknownPortal(_ name: String) -> SQLError {
        SQLError(.invalidCursorName, "portal \"\(name)\" does not exist")
    }
}

// MARK: - Answers of the backend

extension ServerConnectionMachine {
    private mutating func completed(_ tag: String?) -> ServerConnectionAction {
        if case .busy(.execute(let name)) = state {
            portals[name]?.isDone = true
            state = .ready
        }
        return .send([tag.map { .commandComplete($0) } ?? .emptyQueryResponse])
    }

    private mutating func prepared(_ types: [PgOID], _ columns: [PgColumn]?) -> ServerConnectionAction {
        guard case .busy(.prepare(let name, let id)) = state else { return .send([]) }
        state = .ready
        statements[name] = Statement(id: id, parameterTypes: types, columns: columns)
        return .send([.parseComplete])
    }

    private mutating func bound() -> ServerConnectionAction {
        guard case .busy(.bind(let name, _, let portal)) = state else { return .send([]) }
        state = .ready
        portals[name] = portal
        return .send([.bindComplete])
    }

    private mutating func failed(_ error: SQLError, in text: String?) -> ServerConnectionAction {
        let message = BackendMessage.errorResponse(ErrorResponse(.error, error, in: text))
        switch state {
        case .busy(.query), .busy(.settle):
            removeAllPortals()
            return .reject([message])
        case .busy(.prepare(_, let id)): released.statements.append(id)
        case .busy(.bind(_, let id, _)): released.portals.append(id)
        case .busy(.execute), .ready, .skipping: break
        case .startup, .opening, .closed: return close(error)
        }
        removeAllPortals()
        state = .skipping
        return .reject([message])
    }

    private mutating func settled(_ status: TransactionStatus) -> ServerConnectionAction {
        if status != .inBlock { removeAllPortals() }
        state = .ready
        return .sendAndFlush([.readyForQuery(status)])
    }

    private mutating func takeID() -> Int {
        defer { nextID += 1 }
        return nextID
    }

    /// Ends a statement that Parse named; portals of it go on. False when there is none.
    package mutating func deallocate(_ name: String) -> Bool {
        guard !name.isEmpty, statements[name] != nil else { return false }
        removeStatement(name)
        return true
    }

    /// Ends all statements with names.
    package mutating func deallocateAll() {
        for name in statements.keys.sorted() where !name.isEmpty { removeStatement(name) }
    }

    private mutating func removeStatement(_ name: String) {
        if let statement = statements.removeValue(forKey: name) { released.statements.append(statement.id) }
    }

    private mutating func removePortal(_ name: String) {
        if let portal = portals.removeValue(forKey: name) { released.portals.append(portal.id) }
    }

    private mutating func removeAllPortals() {
        guard !portals.isEmpty else { return }
        released.portals += portals.values.map(\.id).sorted { $0.number < $1.number }
        portals.removeAll()
    }
}
