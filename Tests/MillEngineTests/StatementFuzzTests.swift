import MillBase
import MillEngine
import MillIO
import MillSQL
import MillTestKit
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Hostile statements through a session, end to end: each is an answer or an error of its own kind, in bounded time.
///
/// Every statement is written to MILLRACE_FUZZ_TRACE (by default millrace-fuzz.sql in the temporary directory) before it runs, so
/// after a crash the last line there is the one. MILLRACE_FUZZ is the number of statements, MILLRACE_FUZZ_SEED the first seed; a
/// seed makes one engine with `statementsPerWorld` statements.
@Suite(.serialized) struct StatementFuzzTests {
    private static let statementsPerWorld = 200

    @Test func everyStatementIsAnAnswerOrAnErrorThatNamesTheMistake() async throws {
        let total = Int(variable("MILLRACE_FUZZ") ?? "") ?? 3_000
        let first = UInt64(variable("MILLRACE_FUZZ_SEED") ?? "") ?? 1
        let run = try FuzzRun()
        for number in 0..<UInt64((total + Self.statementsPerWorld - 1) / Self.statementsPerWorld) {
            let seed = first + number
            let world = try await run.world()
            var statements = HostileStatements(seed: seed, tables: HostileStatements.tables)
            for _ in 0..<Self.statementsPerWorld { await run.execute(statements.next(), in: world, note: "seed \(seed)") }
            await world.stop()
        }
        run.report("generated", answersMin: 20)
    }

    @Test func everyBeginningOfAStatementIsAnAnswerOrAnErrorThatNamesTheMistake() async throws {
        var statements = HostileStatements.definitions.filter { !$0.hasPrefix("DROP") } + HostileStatements.setup
        var generator = StatementGenerator(seed: 11, tables: HostileStatements.tables)
        for _ in 0..<80 { statements.append(generator.statement()) }
        let run = try FuzzRun()
        for (number, statement) in statements.enumerated() {
            let world = try await run.world()
            let bytes = Array(statement.utf8)
            for end in 0...bytes.count {
                // A cut inside a character is the wire's to refuse.
                guard let beginning = String(validating: bytes[..<end], as: UTF8.self) else { continue }
                await run.execute(beginning, in: world, note: "beginning of \(number)")
            }
            await world.stop()
        }
        run.report("truncated", answersMin: 2)
    }
}

private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

/// What a run of many statements found, and its watchdog.
private final class FuzzRun: Sendable {
    /// After this long a statement is cancelled.
    private static let patienceNanos: UInt64 = 5_000_000_000
    /// How long a cancelled statement may still take.
    private static let graceNanos: UInt64 = 15_000_000_000

    private let clock = SystemClock()
    private let trace: any File
    private let state = Mutex(State())

    private struct State {
        var traceEnd = 0
        var count = 0
        var answers = 0
        var cancelled = 0
        var codes: [String: Int] = [:]
    }

    init() throws {
        trace = try LocalFileSystem().open(variable("MILLRACE_FUZZ_TRACE") ?? "/tmp/millrace-fuzz.sql", .create)
    }

    /// An engine with the tables that the statements are about.
    func world() async throws -> EngineWorld {
        let world = try await EngineWorld()
        try world.write(HostileStatements.readings, to: "/in/readings.jsonl")
        for statement in HostileStatements.setup { try await world.run(statement) }
        return world
    }

    private func write(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        let offset = state.withLock { state in
            defer { state.traceEnd += bytes.count }
            return state.traceEnd
        }
        bytes.withUnsafeBytes { try? trace.write($0, at: offset) }  // The trace is for people; a full disk must not fail the run.
    }

    func execute(_ sql: String, in world: EngineWorld, note: String) async {
        write("-- \(note)\n\(sql)")
        let started = clock.monotonicNanos
        let watch = Watch()
        let watchdog = Task.detached {
            try? await Task.sleep(nanoseconds: Self.patienceNanos)  // Ends early when the statement does.
            while !Task.isCancelled, !watch.isDone {
                watch.wasCancelled = true
                world.session.cancel()
                if self.clock.monotonicNanos - started > Self.patienceNanos + Self.graceNanos {
                    self.write("-- hangs")
                    fatalError("\(note): a statement could not be cancelled: \(sql)")
                }
                try? await Task.sleep(nanoseconds: 100_000_000)  // As above.
            }
        }
        let outcome: Result<[EngineWorld.Answer], SQLError>
        do throws(SQLError) { outcome = .success(try await world.run(sql)) } catch { outcome = .failure(error) }
        watch.isDone = true
        watchdog.cancel()
        switch outcome {
        case .success: state.withLock { $0.answers += 1 }
        case .failure(let error):
            state.withLock { $0.codes[error.sqlState.code, default: 0] += 1 }
            if error.sqlState == .internalError || error.message.isEmpty || error.message == "not supported" {
                write("-- \(error)")
                Issue.record("\(note): \(error)\n\(sql)")
            }
        }
        if watch.wasCancelled {
            write("-- slow")
            state.withLock { $0.cancelled += 1 }
        }
        if world.session.transaction != .none { _ = try? await world.run("ROLLBACK") }  // The next statement starts outside a block.
        state.withLock { $0.count += 1 }
    }

    /// - Parameter answersMin: in a hundred; with fewer the run proves little.
    func report(_ what: String, answersMin: Int) {
        state.withLock { state in
            let codes = state.codes.sorted { $0.value > $1.value }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
            print("\(state.count) \(what) statements: \(state.answers) answers, \(state.cancelled) cancelled for slowness, errors: \(codes)")
            #expect(state.answers * 100 >= state.count * answersMin, "too few statements got past their first error to prove anything")
        }
    }
}

private final class Watch: Sendable {
    private let state = Mutex((isDone: false, wasCancelled: false))
    var isDone: Bool {
        get { state.withLock { $0.isDone } }
        set { state.withLock { $0.isDone = newValue } }
    }
    var wasCancelled: Bool {
        get { state.withLock { $0.wasCancelled } }
        set { state.withLock { $0.wasCancelled = newValue } }
    }
}
