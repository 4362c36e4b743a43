import MillBase
import MillEngine
import MillIO
import MillMeta
import MillStore
import MillTestKit
import Synchronization
import Testing

/// What clients get while state is still being read.
@Suite(.timeLimit(.minutes(2))) struct RecoveringTests {
    private let files = MemoryFileSystem()
    private let connectors = ChangingAssembly(["s": ScriptedConnector(#"{"a":1}"#, #"{"a":2}"#)])

    private func engine(_ meta: MetaStore, _ files: any FileSystem, _ clock: VirtualClock = VirtualClock()) throws -> Engine {
        let environment = Environment(files: files, clock: clock, random: SeededSource(1))
        return try Engine(environment: environment, assembly: connectors, meta: meta, keeper: try StateKeeper(environment: environment, directory: "/data/state"))
    }

    /// A view over a source and a table, in a checkpoint.
    private func firstLife(_ meta: MetaStore) async throws {
        let world = EngineWorld(try engine(meta, files), files: files)
        try await world.engine.restore()
        try await world.run("CREATE SOURCE s (a int) WITH (connector = 's') FORMAT PLAIN ENCODE JSON")
        try await world.run("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM s GROUP BY a; CREATE TABLE t (id int PRIMARY KEY); FLUSH")
        await world.stop()
    }

    /// Why a statement is refused; nil when it is answered.
    private static func refusal(_ sql: String, _ world: EngineWorld, _ session: Session) async -> SQLError? {
        do throws(SQLError) { _ = try await world.run(sql, on: session) } catch { return error }
        return nil
    }

    private func rows(_ world: EngineWorld, _ sql: String) async throws(SQLError) -> [[String?]] { try await world.run(sql).last?.rows ?? [] }

    /// A second life whose page files cannot be read before `release`.
    private func whileReading(
        _ clock: VirtualClock = VirtualClock(), _ body: (EngineWorld, HeldFileSystem, Task<Void, any Error>) async throws -> Void) async throws {
        let meta = try MetaStore.inMemory()
        try await firstLife(meta)
        let held = HeldFileSystem(files)
        let engine = try engine(meta, held, clock)
        let world = EngineWorld(engine, files: files)
        try await engine.restoreDefinitions()
        let recovery = Task { try await engine.restoreState() }
        do { try await body(world, held, recovery) } catch {
            held.release()
            await world.stop()
            throw error
        }
        held.release()
        await world.stop()
    }

    @Test func whatNeedsNoStateIsAnsweredAtOnce() async throws {
        try await whileReading { world, held, recovery in
            #expect(try await rows(world, "SELECT 1 + 1") == [["2"]])
            #expect(try await rows(world, "SHOW MATERIALIZED VIEWS") == [["v"]])
            #expect(try await rows(world, "SELECT relname FROM pg_class WHERE relkind = 'm'") == [["v"]])
            try await world.run("BEGIN; SELECT 1; COMMIT; SET timezone = 'UTC'")
            let jobs = try await rows(world, "SHOW JOBS")
            #expect(jobs.map { [$0[1], $0[2], $0[9]] } == [["v", "recovering", "looking for state"]])
            #expect(await !world.engine.recoveryStatus.isDone)
            held.release()
            try await recovery.value
            #expect(try await rows(world, "SELECT * FROM v ORDER BY a") == [["1", "1"], ["2", "1"]])
            #expect(try await rows(world, "SHOW JOBS").map { $0[2] } == ["running"])
            let state = await world.engine.recoveryStatus.state.total
            #expect(state.tables == state.tablesRead && state.bytes == state.bytesRead && state.rows == state.rowsRead && state.rows > 0, "\(state)")
            #expect(await world.engine.recoveryStatus.isDone)
        }
    }

    @Test func whatNeedsStateWaitsForIt() async throws {
        try await whileReading { world, held, recovery in
            let statements = ["SELECT count(*) FROM v", "INSERT INTO t VALUES (1)", "CREATE MATERIALIZED VIEW w AS SELECT a FROM v", "FLUSH", "SELECT * FROM v_errors"]
            let answers = Answers()
            var waiting: [Task<SQLError?, Never>] = []
            for sql in statements {
                waiting.append(
                    Task {
                        let refusal = await Self.refusal(sql, world, world.connect())
                        answers.note()
                        return refusal
                    })
            }
            #expect(try await rows(world, "SELECT 1") == [["1"]])
            #expect(answers.count == 0)
            held.release()
            for task in waiting { #expect(await task.value == nil) }
            try await recovery.value
            #expect(try await rows(world, "SELECT id FROM t") == [["1"]])
        }
    }

    @Test func waitingEndsByCancelAndByTimeout() async throws {
        let clock = VirtualClock()
        try await whileReading(clock) { world, _, _ in
            for sql in ["SELECT * FROM v", "INSERT INTO t VALUES (1)", "DROP MATERIALIZED VIEW v", "FLUSH"] {
                let session = world.connect()
                try await world.run("SET statement_timeout = '2s'", on: session)
                async let time: Void = {
                    await clock.untilSleeping()
                    clock.advance(by: .seconds(2))
                }()
                let error = await Self.refusal(sql, world, session)
                #expect(error?.sqlState == .queryCanceled && error?.message == "canceling statement due to statement timeout", "\(sql): \(String(describing: error))")
                await time
            }
            let session = world.connect()
            let waiting = Task { await Self.refusal("SELECT * FROM v", world, session) }
            // It may not have begun; a cancel in vain is told again.
            let cancelling = Task {
                while !Task.isCancelled {
                    session.cancel()
                    await Task.yield()
                }
            }
            #expect(await waiting.value?.sqlState == .queryCanceled)
            cancelling.cancel()
        }
    }

    /// The directory is then as it was, and who waited is told.
    @Test func stoppedWhileReadingLosesNothing() async throws {
        let meta = try MetaStore.inMemory()
        try await firstLife(meta)
        let before = try files.list("/data/state").filter { $0.hasPrefix("checkpoint") }
        let held = HeldFileSystem(files)
        let stopped = try engine(meta, held)
        try await stopped.restoreDefinitions()
        let recovery = Task { try await stopped.restoreState() }
        let world = EngineWorld(stopped, files: files)
        let waiting = Task { await Self.refusal("SELECT * FROM v", world, world.connect()) }
        await held.untilRead()
        let stopping = Task { await stopped.stop() }
        #expect(await waiting.value?.sqlState == .adminShutdown)
        held.release()
        await stopping.value
        await #expect(throws: SQLError.self) { try await recovery.value }
        #expect(try files.list("/data/state").filter { $0.hasPrefix("checkpoint") } == before)
        let after = EngineWorld(try engine(meta, files), files: files)
        try await after.engine.restore()
        #expect(try await rows(after, "SELECT * FROM v ORDER BY a") == [["1", "1"], ["2", "1"]])
        await after.stop()
    }
}

private final class Answers: Sendable {
    private let noted = Atomic(0)
    var count: Int { noted.load(ordering: .relaxed) }
    func note() { noted.add(1, ordering: .relaxed) }
}

/// Files of which page files cannot be read for a while.
final class HeldFileSystem: FileSystem {
    private let base: MemoryFileSystem
    private let gate = Gate()

    init(_ base: MemoryFileSystem) { self.base = base }

    final class Gate: Sendable {
        private let isOpen = Mutex(false)
        private let readers = Semaphore()
        private let wanted = Mutex(false)

        var isWanted: Bool { wanted.withLock { $0 } }

        func pass() {
            wanted.withLock { $0 = true }
            guard !isOpen.withLock({ $0 }) else { return }
            readers.wait()
            readers.signal()
        }

        func open() {
            isOpen.withLock { $0 = true }
            readers.signal()
        }
    }

    func release() { gate.open() }

    /// Until somebody waits for a page file.
    func untilRead() async { while !gate.isWanted { await Task.yield() } }

    func open(_ path: String, _ mode: OpenMode) throws(IOFailure) -> any File {
        let file = try base.open(path, mode)
        return path.contains("/pages-") ? HeldFile(base: file, gate: gate) : file
    }

    func list(_ directory: String) throws(IOFailure) -> [String] { try base.list(directory) }
    func createDirectory(_ path: String) throws(IOFailure) { try base.createDirectory(path) }
    func remove(_ path: String) throws(IOFailure) { try base.remove(path) }
    func rename(_ from: String, to: String) throws(IOFailure) { try base.rename(from, to: to) }
    func syncDirectory(_ path: String) throws(IOFailure) { try base.syncDirectory(path) }
    func exists(_ path: String) -> Bool { base.exists(path) }
    func look(at path: String) throws(IOFailure) -> FileStatus? { try base.look(at: path) }
    func link(_ from: String, to: String) throws(IOFailure) { try base.link(from, to: to) }
    func lock(_ directory: String) throws(IOFailure) -> any FileLock { try base.lock(directory) }
}

private final class HeldFile: File {
    private let base: any File
    private let gate: HeldFileSystem.Gate

    init(base: any File, gate: HeldFileSystem.Gate) {
        self.base = base
        self.gate = gate
    }

    var path: String { base.path }
    func size() throws(IOFailure) -> Int { try base.size() }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int {
        gate.pass()
        return try base.read(at: offset, into: buffer)
    }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) { try base.write(buffer, at: offset) }
    func truncate(to size: Int) throws(IOFailure) { try base.truncate(to: size) }
    func sync() throws(IOFailure) { try base.sync() }
}
