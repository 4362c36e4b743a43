import MillBase
import MillColumnar
import MillPgWire
import Synchronization

@testable import MillPgServer

/// A backend whose statements are fixed words, so that the server is tested without an engine.
///
/// `one`, `rows N`, `types`, `weights`, `nothing`, `echo` (its parameters), `fail` (at the word), `late` (fails after rows),
/// `block` (until cancelled), `notice`, `set NAME VALUE`, `begin`, `commit`, `conflict` (fails at settle), `live`,
/// `endless` (rows until cancelled), `deaf` (until the log lets it go on, whatever is cancelled).
struct FakeBackend: PgBackend {
    let log = Log()

    final class Log: Sendable {
        /// Batches that `endless` gave.
        let pulls = Atomic(0)
        /// Lets `deaf` go on.
        let hearing = AsyncStream<Void>.makeStream()
        private let lines = Mutex<[String]>([])
        /// In a task of its own, which nobody cancels.
        func hear() async {
            let stream = hearing.stream
            await Task { for await _ in stream { return } }.value
        }
        func add(_ line: String) { lines.withLock { $0.append(line) } }
        var all: [String] { lines.withLock { $0 } }
    }

    func openSession(_ startup: StartupMessage) async throws(SQLError) -> any PgSession {
        guard startup.user != "nobody" else { throw SQLError(.invalidAuthorization, "role \"nobody\" does not exist") }
        return FakeSession(log: log)
    }
}

final class FakeSession: PgSession {
    struct State {
        var status = TransactionStatus.idle
        var messages: [PgSessionMessage] = []
        var failsAtSettle = false
        var isCancelled = false
        var idleLimit: PgIdleLimit?
        var waiter: CheckedContinuation<Void, Never>?
    }

    let log: FakeBackend.Log
    let state = Mutex(State())

    init(log: FakeBackend.Log) { self.log = log }

    var initialParameters: [StartupMessage.Setting] { [.init("TimeZone", "Etc/UTC")] }
    var idleLimit: PgIdleLimit? { state.withLock { $0.idleLimit } }
    var transactionStatus: TransactionStatus { state.withLock { $0.status } }

    func split(_ text: String) async throws(SQLError) -> [PgStatement] {
        var statements: [PgStatement] = []
        var start = 0
        for part in text.split(separator: ";", omittingEmptySubsequences: false) {
            let words = part.split(separator: " ").map(String.init)
            let leading = part.utf8.prefix { $0 == UInt8(ascii: " ") }.count
            let span = SourceSpan(start + leading, start + part.utf8.count)
            if words.first == "syntax" { throw SQLError(.syntaxError, "syntax error at or near \"syntax\"", at: span) }
            if !words.isEmpty { statements.append(PgStatement(span: span, syntax: words)) }
            start += part.utf8.count + 1
        }
        return statements
    }

    func prepare(_ statement: PgStatement, parameterTypes: [PgOID], isKept: Bool) async throws(SQLError) -> PgPrepared {
        guard let words = statement.syntax as? [String] else { throw SQLError(.internalError, "not a fake statement") }
        if transactionStatus == .failed, words[0] != "commit" { throw SQLError(.inFailedSQLTransaction, "current transaction is aborted") }
        let columns: [PgColumn]?
        switch words[0] {
        case "one": columns = [PgColumn("one", .int4)]
        case "rows", "weights", "late", "live", "endless": columns = [PgColumn("n", .int8)]
        case "types": columns = FakeRows.schema.map { PgColumn($0) }
        case "block", "deaf": columns = [PgColumn("n", .int8)]
        case "echo": columns = parameterTypes.enumerated().map { PgColumn("p\($0 + 1)", $1) }
        case "fail": throw SQLError(.undefinedTable, "relation \"x\" does not exist", detail: "d", hint: "h", at: statement.span)
        default: columns = nil
        }
        return PgPrepared(parameterTypes: words[0] == "echo" ? parameterTypes : [], columns: columns, plan: words)
    }

    func execute(_ prepared: PgPrepared, parameters: [PgParameter]) async throws(SQLError) -> any PgExecution {
        guard let words = prepared.plan as? [String] else { throw SQLError(.internalError, "not a fake plan") }
        state.withLock { state in
            switch words[0] {
            case "begin": state.status = .inBlock
            case "idle": state.idleLimit = .transaction(.milliseconds(20))
            case "commit": state.status = .idle
            case "conflict": state.failsAtSettle = true
            case "notice": state.messages.append(.notice(ErrorResponse(.notice, .successfulCompletion, "take care")))
            case "set": state.messages.append(.parameterChanged(name: words[1], value: words[2]))
            default: break
            }
        }
        log.add("execute \(words.joined(separator: " "))")
        let batches = try FakeRows.batches(words, parameters)
        return FakeExecution(session: self, words: words, batches: batches)
    }

    func settle() async throws(SQLError) {
        let fails = state.withLock { state in
            defer { state.failsAtSettle = false }
            return state.failsAtSettle
        }
        log.add("settle")
        if fails { throw SQLError(SQLState("40001"), "could not serialize access") }
    }

    func statementFailed() async {
        log.add("failed")
        state.withLock { if $0.status == .inBlock { $0.status = .failed } }
    }

    func takeMessages() -> [PgSessionMessage] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    func cancel() {
        let waiter = state.withLock { state in
            state.isCancelled = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    func terminate() {
        log.add("terminate")
        cancel()
    }

    /// Returns once `cancel` came.
    func waitForCancel() async {
        log.add("blocked")
        await withCheckedContinuation { continuation in
            let isCancelled = state.withLock { state in
                if !state.isCancelled { state.waiter = continuation }
                return state.isCancelled
            }
            if isCancelled { continuation.resume() }
        }
        state.withLock { $0.isCancelled = false }
    }

    func close() async { log.add("close session") }
}

final class FakeExecution: PgExecution {
    private let session: FakeSession
    private let words: [String]
    private let batches: Mutex<[DeltaBatch]>

    init(session: FakeSession, words: [String], batches: [DeltaBatch]) {
        self.session = session
        self.words = words
        self.batches = Mutex(batches)
    }

    var isLive: Bool { words[0] == "live" }

    var tag: PgCommandTag {
        switch words[0] {
        case "one", "rows", "types", "weights", "echo", "late", "block", "deaf", "live", "endless": .counted("SELECT")
        default: .fixed(words[0].uppercased())
        }
    }

    func next() async throws(SQLError) -> DeltaBatch? {
        if let batch = batches.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { return batch }
        switch words[0] {
        case "endless":
            if session.state.withLock({ $0.isCancelled }) {
                session.state.withLock { $0.isCancelled = false }
                throw SQLError(.queryCanceled, "canceling statement due to user request")
            }
            session.log.pulls.add(1, ordering: .relaxed)
            return FakeRows.numbers(0..<4096)
        case "deaf":
            session.log.add("deaf")
            await session.log.hear()
            return nil
        case "late": throw SQLError(.divisionByZero, "division by zero")
        case "block", "live":
            await session.waitForCancel()
            throw SQLError(.queryCanceled, "canceling statement due to user request")
        default: return nil
        }
    }

    func close() async { session.log.add("close \(words[0])") }
}

enum FakeRows {
    static let schema: Schema = [
        Field("b", .boolean), Field("i2", .int16), Field("i4", .int32), Field("i8", .int64), Field("f4", .float32), Field("f8", .float64),
        Field("num", .numeric), Field("v", .varchar), Field("by", .bytea), Field("d", .date), Field("t", .time), Field("ts", .timestamp),
        Field("tz", .timestamptz), Field("iv", .interval), Field("j", .jsonb),
    ]

    static let values: [Scalar] = [
        .boolean(true), .int(-2), .int(Int64(Int32.min)), .int(.min), .float(1.5), .float(-0.25),
        .decimal(Decimal(unscaled: -12_345, scale: 2)),
        .string("a string over twelve bytes"), .bytes([0, 255]), .int(10_958), .int(1), .int(946_684_800_000_002), .int(.max),
        .interval(Interval(months: 1, days: 2, micros: 3)), .string("{}"),
    ]

    static func batches(_ words: [String], _ parameters: [PgParameter]) throws(SQLError) -> [DeltaBatch] {
        switch words[0] {
        case "one":
            let column = Column(.int32, capacity: 1)
            column.append(Int32(1))
            return [DeltaBatch(columns: [column], count: 1)]
        case "rows", "late", "live":
            let total = words.count > 1 ? Int(words[1]) ?? 0 : 2
            return stride(from: 0, to: total, by: 4096).map { numbers($0..<min($0 + 4096, total)) }
        case "weights":
            let batch = numbers(0..<3)
            return [DeltaBatch(columns: batch.columns, count: 3, weights: Weights([2, 0, 3]))]
        case "types":
            let present = zip(schema, values).map { field, value in
                let column = Column(field.type, capacity: 2)
                column.append(value)
                column.appendNull()
                return column
            }
            return [DeltaBatch(columns: present, count: 2)]
        case "echo":
            var columns: [Column] = []
            for parameter in parameters {
                let type = parameter.type.sqlType ?? .varchar
                let column = Column(type, capacity: 1)
                switch parameter.value {
                case .null: column.appendNull()
                case .scalar(let scalar): column.append(scalar)
                case .text(let text):
                    guard type == .varchar || type == .jsonb else { throw SQLError(.invalidTextRepresentation, "no text here: \(text)") }
                    column.append(text)
                }
                columns.append(column)
            }
            return [DeltaBatch(columns: columns, count: 1)]
        default: return []
        }
    }

    static func numbers(_ range: Range<Int>) -> DeltaBatch {
        let column = Column(.int64, capacity: range.count)
        for number in range { column.append(Int64(number)) }
        return DeltaBatch(columns: [column], count: range.count)
    }
}
