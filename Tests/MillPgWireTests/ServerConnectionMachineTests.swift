import MillBase
import Testing

@testable import MillPgWire

/// Each test is a list of events and the action that each must give.
struct ServerConnectionMachineTests {
    private static let columns = [PgColumn("n", .int4)]
    private static let key = CancelKey(processID: 7, secret: 8)

    /// A machine whose session is open.
    private func opened() -> ServerConnectionMachine {
        var machine = ServerConnectionMachine()
        _ = machine.handle(.startupPacket(.startup(StartupMessage())))
        _ = machine.handle(.sessionOpened(parameters: [], key: Self.key))
        return machine
    }

    /// The same with statement `name` prepared, with one int4 parameter and one column.
    private func prepared(_ name: String = "") -> ServerConnectionMachine {
        var machine = opened()
        _ = machine.handle(.message(.parse(ParseMessage(name: name, "select $1"))))
        _ = machine.handle(.prepared(parameterTypes: [.int4], columns: Self.columns))
        return machine
    }

    /// The same with portal `name` made of it.
    private func bound(_ name: String = "") -> ServerConnectionMachine {
        var machine = prepared()
        _ = machine.handle(.message(.bind(BindMessage(portal: name, values: [nil]))))
        _ = machine.handle(.bound)
        return machine
    }

    private func error(_ state: SQLState, _ message: String, _ severity: ErrorResponse.Severity = .error, position: Int? = nil)
        -> BackendMessage
    {
        .errorResponse(ErrorResponse(severity, state, message, position: position))
    }

    private func name(_ action: ServerConnectionAction) -> String {
        switch action {
        case .send(let messages), .sendAndFlush(let messages), .reject(let messages), .close(let messages), .rejectAndSettle(let messages):
            if case .errorResponse(let error)? = messages.first { return error.sqlState.code }
            return "\(messages)"
        default: return "\(action)"
        }
    }

    // MARK: Startup

    @Test func encryptionIsRefusedAndStartupGoesOn() {
        var machine = ServerConnectionMachine()
        #expect(machine.handle(.startupPacket(.ssl)) == .refuseEncryption)
        #expect(machine.handle(.startupPacket(.gssEncryption)) == .refuseEncryption)
        let startup = StartupMessage(user: "root", database: "anything")
        #expect(machine.handle(.startupPacket(.startup(startup))) == .openSession(startup, preamble: []))
        #expect(!machine.isIdle)
    }

    @Test func openSessionReportsParametersKeyAndReadiness() {
        var machine = ServerConnectionMachine()
        _ = machine.handle(.startupPacket(.startup(StartupMessage(user: "u", settings: [.init("application_name", "psql")]))))
        guard
            case .sendAndFlush(let messages) = machine.handle(.sessionOpened(parameters: [.init("timezone", "Asia/Tokyo")], key: Self.key))
        else {
            Issue.record("nothing sent")
            return
        }
        #expect(messages.first == .authenticationOK)
        #expect(messages.suffix(2) == [.backendKeyData(Self.key), .readyForQuery(.idle)])
        #expect(messages.contains(.parameterStatus(name: "application_name", value: "psql")))
        #expect(messages.contains(.parameterStatus(name: "TimeZone", value: "Asia/Tokyo")))
        #expect(messages.contains(.parameterStatus(name: "session_authorization", value: "u")))
        #expect(messages.contains(.parameterStatus(name: "server_version", value: "14.0 (Millrace)")))
        #expect(machine.isIdle)
    }

    @Test func newerMinorVersionsAndExtensionsAreNegotiatedDown() {
        var machine = ServerConnectionMachine()
        let startup = StartupMessage(minorVersion: 2, protocolExtensions: ["_pq_.x"])
        #expect(
            machine.handle(.startupPacket(.startup(startup)))
                == .openSession(startup, preamble: [.negotiateProtocolVersion(minor: 0, unknown: ["_pq_.x"])]))
    }

    @Test func cancelRequestEndsItsOwnConnection() {
        var machine = ServerConnectionMachine()
        #expect(machine.handle(.startupPacket(.cancel(Self.key))) == .cancel(Self.key))
    }

    @Test(arguments: [("client_encoding", "LATIN1"), ("replication", "database")])
    func settingsThatCannotBeHonouredRefuseTheConnection(setting: (String, String)) {
        var machine = ServerConnectionMachine()
        let action = machine.handle(.startupPacket(.startup(StartupMessage(settings: [.init(setting.0, setting.1)]))))
        #expect(name(action) == "0A000")
    }

    @Test(arguments: ["UTF8", "utf-8", "'UTF8'", "UNICODE", "SQL_ASCII"])
    func spellingsOfUTF8AreAccepted(encoding: String) {
        var machine = ServerConnectionMachine()
        let startup = StartupMessage(settings: [.init("client_encoding", encoding)])
        #expect(machine.handle(.startupPacket(.startup(startup))) == .openSession(startup, preamble: []))
    }

    @Test func refusedSessionIsFatal() {
        var machine = ServerConnectionMachine()
        _ = machine.handle(.startupPacket(.startup(StartupMessage())))
        #expect(
            machine.handle(.sessionRefused(SQLError(.invalidAuthorization, "no"))) == .close([error(.invalidAuthorization, "no", .fatal)]))
    }

    // MARK: Simple query

    @Test func simpleQueryRunsItsStatementsAndSettles() {
        var machine = opened()
        #expect(machine.handle(.message(.query(QueryMessage("select 1; begin")))) == .runQuery("select 1; begin"))
        #expect(machine.handle(.rowsBegin(Self.columns)) == .send([.rowDescription(RowDescription(Self.columns))]))
        #expect(machine.handle(.completed(tag: "SELECT 1")) == .send([.commandComplete("SELECT 1")]))
        #expect(machine.handle(.completed(tag: "BEGIN")) == .send([.commandComplete("BEGIN")]))
        #expect(machine.handle(.settled(.inBlock)) == .sendAndFlush([.readyForQuery(.inBlock)]))
        #expect(machine.isIdle)
    }

    @Test func emptySimpleQueryIsAnswered() {
        var machine = opened()
        _ = machine.handle(.message(.query(QueryMessage(" "))))
        #expect(machine.handle(.completed(tag: nil)) == .send([.emptyQueryResponse]))
        #expect(machine.handle(.settled(.idle)) == .sendAndFlush([.readyForQuery(.idle)]))
    }

    @Test func failedSimpleQueryTellsThePositionInCharactersAndSkipsNothing() {
        var machine = opened()
        let text = "select 'é', nope"
        _ = machine.handle(.message(.query(QueryMessage(text))))
        let failure = SQLError(.undefinedColumn, "no", at: SourceSpan(13, 17))
        #expect(machine.handle(.failed(failure, in: text)) == .reject([error(.undefinedColumn, "no", position: 13)]))
        #expect(machine.handle(.settled(.failed)) == .sendAndFlush([.readyForQuery(.failed)]))
        #expect(machine.handle(.message(.query(QueryMessage("x")))) == .runQuery("x"))
    }

    @Test func queryThatIsNotUTF8IsAnErrorNotAnEnd() {
        var machine = opened()
        #expect(
            machine.handle(.message(.query(QueryMessage(text: [0x61, 0xFF]))))
                == .rejectAndSettle([error(.characterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0xff")]))
        #expect(machine.handle(.settled(.idle)) == .sendAndFlush([.readyForQuery(.idle)]))
    }

    @Test func onlyANamedStatementIsKept() {
        for (name, isKept) in [("s", true), ("", false)] {
            var machine = opened()
            let action = machine.handle(.message(.parse(ParseMessage(name: name, "select 1", parameterTypes: []))))
            #expect(action == .prepare(StatementID(1), text: "select 1", parameterTypes: [], isKept: isKept))
        }
    }

    @Test func whatIsDeallocatedIsReleased() {
        var machine = opened()
        for (number, name) in ["b", "a", ""].enumerated() {
            _ = machine.handle(.message(.parse(ParseMessage(name: name, "select 1", parameterTypes: []))))
            #expect(machine.handle(.prepared(parameterTypes: [], columns: nil)) == .send([.parseComplete]), "\(number)")
        }
        let wereThere = ["c", "", "a", "a"].map { machine.deallocate($0) }
        #expect(wereThere == [false, false, true, false])
        #expect(machine.takeReleased() == .init(statements: [StatementID(2)], portals: []))
        machine.deallocateAll()
        #expect(machine.takeReleased() == .init(statements: [StatementID(1)], portals: []))
        let parse = ParseMessage(name: "b", "select 1", parameterTypes: [])
        #expect(machine.handle(.message(.parse(parse))) == .prepare(StatementID(4), text: "select 1", parameterTypes: [], isKept: true))
    }

    @Test func simpleQueryDropsTheUnnamedStatement() {
        var machine = prepared()
        _ = machine.handle(.message(.query(QueryMessage("x"))))
        #expect(machine.takeReleased() == .init(statements: [StatementID(1)], portals: []))
    }

    // MARK: Extended protocol

    @Test func pipelineOfOneStatement() {
        var machine = opened()
        #expect(
            machine.handle(.message(.parse(ParseMessage(name: "s", "select $1", parameterTypes: [.int4]))))
                == .prepare(StatementID(1), text: "select $1", parameterTypes: [.int4], isKept: true))
        #expect(machine.handle(.prepared(parameterTypes: [.int4], columns: Self.columns)) == .send([.parseComplete]))
        #expect(
            machine.handle(.message(.describe(.statement("s"))))
                == .send([.parameterDescription([.int4]), .rowDescription(RowDescription(Self.columns))]))
        let bind = BindMessage(statement: "s", parameterFormats: [.binary], values: [[0, 0, 0, 1]], resultFormats: [.binary])
        #expect(
            machine.handle(.message(.bind(bind)))
                == .bind(
                    PortalID(2), StatementID(1), parameters: [BoundParameter(.int4, .binary, [0, 0, 0, 1])], resultFormats: [.binary]))
        #expect(machine.handle(.bound) == .send([.bindComplete]))
        #expect(
            machine.handle(.message(.describe(.portal("")))) == .send([.rowDescription(RowDescription(Self.columns, formats: [.binary]))]))
        #expect(machine.handle(.message(.execute(ExecuteMessage(rowLimit: 10)))) == .execute(PortalID(2), rowLimit: 10))
        #expect(machine.handle(.suspended) == .send([.portalSuspended]))
        #expect(machine.handle(.message(.execute(ExecuteMessage()))) == .execute(PortalID(2), rowLimit: nil))
        #expect(machine.handle(.completed(tag: "SELECT 3")) == .send([.commandComplete("SELECT 3")]))
        #expect(machine.handle(.message(.sync)) == .settle)
        #expect(machine.handle(.settled(.idle)) == .sendAndFlush([.readyForQuery(.idle)]))
        #expect(machine.takeReleased() == .init(statements: [], portals: [PortalID(2)]))
        #expect(name(machine.handle(.message(.execute(ExecuteMessage())))) == "34000")
    }

    @Test func errorSkipsEverythingUpToSync() {
        var machine = opened()
        _ = machine.handle(.message(.parse(ParseMessage("nope"))))
        #expect(machine.handle(.failed(SQLError(.syntaxError, "bad"), in: "nope")) == .reject([error(.syntaxError, "bad")]))
        let skipped: [FrontendMessage] = [
            .bind(BindMessage()), .describe(.portal("")), .execute(ExecuteMessage()), .close(.statement("")), .flush,
            .query(QueryMessage("x")),
            .copy, .functionCall, .parse(ParseMessage("x")),
        ]
        for message in skipped { #expect(machine.handle(.message(message)) == .send([]), "\(message)") }
        #expect(machine.handle(.message(.sync)) == .settle)
        #expect(machine.handle(.settled(.failed)) == .sendAndFlush([.readyForQuery(.failed)]))
        #expect(machine.handle(.message(.flush)) == .flush)
    }

    @Test func commitThatFailsAtSyncIsReportedBeforeReadiness() {
        var machine = opened()
        #expect(machine.handle(.message(.sync)) == .settle)
        #expect(
            machine.handle(.failed(SQLError(SQLState("40001"), "conflict"), in: nil)) == .reject([error(SQLState("40001"), "conflict")]))
        #expect(machine.handle(.settled(.idle)) == .sendAndFlush([.readyForQuery(.idle)]))
    }

    @Test func statementWithoutRowsDescribesAsNoData() {
        var machine = opened()
        _ = machine.handle(.message(.parse(ParseMessage("insert"))))
        _ = machine.handle(.prepared(parameterTypes: [], columns: nil))
        #expect(machine.handle(.message(.describe(.statement("")))) == .send([.parameterDescription([]), .noData]))
    }

    @Test func namesMustExistAndBeNew() {
        var machine = prepared("s")
        #expect(name(machine.handle(.message(.parse(ParseMessage(name: "s", "x"))))) == "42P05")
        machine = opened()
        #expect(name(machine.handle(.message(.bind(BindMessage(statement: "s"))))) == "26000")
        machine = opened()
        #expect(name(machine.handle(.message(.describe(.statement(""))))) == "26000")
        machine = opened()
        #expect(name(machine.handle(.message(.describe(.portal("p"))))) == "34000")
        machine = bound("p")
        #expect(name(machine.handle(.message(.bind(BindMessage(portal: "p", values: [nil]))))) == "42P03")
    }

    @Test func bindMustMatchItsStatement() {
        for bind in [
            BindMessage(), BindMessage(values: [nil, nil]), BindMessage(parameterFormats: [.text, .text], values: [nil]),
            BindMessage(values: [nil], resultFormats: [.text, .text]),
        ] {
            var machine = prepared()
            #expect(name(machine.handle(.message(.bind(bind)))) == "08P01", "\(bind)")
        }
    }

    @Test func unnamedStatementAndPortalAreReplaced() {
        var machine = bound()
        _ = machine.handle(.message(.bind(BindMessage(values: [nil]))))
        #expect(machine.takeReleased() == .init(statements: [], portals: [PortalID(2)]))
        _ = machine.handle(.bound)
        _ = machine.handle(.message(.parse(ParseMessage("x"))))
        #expect(machine.takeReleased() == .init(statements: [StatementID(1)], portals: []))
    }

    @Test func closeIsAnsweredWhetherOrNotTheNameExists() {
        var machine = bound("p")
        #expect(machine.handle(.message(.close(.portal("p")))) == .send([.closeComplete]))
        #expect(machine.handle(.message(.close(.portal("p")))) == .send([.closeComplete]))
        #expect(machine.handle(.message(.close(.statement("")))) == .send([.closeComplete]))
        #expect(machine.takeReleased() == .init(statements: [StatementID(1)], portals: [PortalID(2)]))
    }

    @Test func portalsLiveThroughABlockAndDieWithItsFailure() {
        var machine = bound("p")
        _ = machine.handle(.message(.sync))
        _ = machine.handle(.settled(.inBlock))
        #expect(machine.handle(.message(.execute(ExecuteMessage(portal: "p")))) == .execute(PortalID(2), rowLimit: nil))
        _ = machine.handle(.failed(SQLError(.divisionByZero, "x"), in: nil))
        #expect(machine.takeReleased().portals == [PortalID(2)])
    }

    @Test func finishedPortalGivesNoMoreRows() {
        var machine = bound()
        _ = machine.handle(.message(.execute(ExecuteMessage())))
        _ = machine.handle(.completed(tag: "SELECT 1"))
        #expect(machine.handle(.message(.execute(ExecuteMessage()))) == .send([.commandComplete("SELECT 0")]))
    }

    // MARK: The rest

    @Test func functionCallsAreRefusedAndAnswered() {
        var machine = opened()
        #expect(name(machine.handle(.message(.functionCall))) == "0A000")
        #expect(machine.handle(.settled(.idle)) == .sendAndFlush([.readyForQuery(.idle)]))
    }

    @Test func strayCopyMessagesAreDropped() {
        var machine = opened()
        #expect(machine.handle(.message(.copy)) == .send([]))
    }

    @Test func terminateClosesAlsoWhileSkipping() {
        var machine = opened()
        _ = machine.handle(.message(.bind(BindMessage(statement: "none"))))
        #expect(machine.handle(.message(.terminate)) == .close([]))
    }

    @Test func malformedBytesAreFatal() {
        var machine = opened()
        #expect(name(machine.handle(.malformed(.unknownMessageType(1)))) == "08P01")
        #expect(machine.handle(.message(.sync)) == .close([]))
    }

    @Test func shutdownIsToldOnce() {
        var machine = opened()
        let end = SQLError(.adminShutdown, "end")
        #expect(machine.handle(.terminate(end)) == .close([error(.adminShutdown, "end", .fatal)]))
        #expect(machine.handle(.terminate(end)) == .close([]))
    }

    @Test func randomEventsNeverTrapTheMachine() {
        var generator = SplitMix(seed: 20_260_714)
        for _ in 0..<2000 {
            var machine = ServerConnectionMachine()
            for _ in 0..<40 { _ = machine.handle(generator.event()) }
        }
    }
}

extension SplitMix {
    fileprivate mutating func event() -> ServerConnectionEvent {
        let name = ["", "a", "b"][Int(next() % 3)]
        return switch next() % 24 {
        case 0: .startupPacket(.startup(StartupMessage()))
        case 1: .sessionOpened(parameters: [], key: CancelKey(processID: 1, secret: 1))
        case 2, 3: .message(.parse(ParseMessage(name: name, "x")))
        case 4, 5: .prepared(parameterTypes: [.int4], columns: next() % 2 == 0 ? nil : [PgColumn("x", .int4)])
        case 6, 7: .message(.bind(BindMessage(portal: name, statement: name, values: [nil])))
        case 8, 9: .bound
        case 10: .message(.execute(ExecuteMessage(portal: name, rowLimit: 1)))
        case 11: .completed(tag: next() % 2 == 0 ? nil : "SELECT 1")
        case 12: .suspended
        case 13: .message(.sync)
        case 14, 15: .settled(next() % 2 == 0 ? .idle : .inBlock)
        case 16: .failed(SQLError(.syntaxError, "x", at: SourceSpan(-4, 99)), in: "abc")
        case 17: .message(.close(.portal(name)))
        case 18: .message(.close(.statement(name)))
        case 19: .message(.describe(.portal(name)))
        case 20: .message(.query(QueryMessage("x")))
        case 21: .message(.flush)
        case 22: .message(.functionCall)
        default: .rowsBegin([])
        }
    }
}
