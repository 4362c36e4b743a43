import MillBase
import MillDataflow
import MillEngine
import MillIO
import MillLog
import MillStore
@testable import MillMeta
import MillTestKit
import Synchronization

/// One database through many lives on one disk, all from a seed: random statements, records, checkpoints, clocks that jump, a disk that is
/// full or fails for a while, and ends of the process and of the machine in the middle of any file operation. After each start:
/// - what was acknowledged is there, and what was not is there wholly or not at all;
/// - every view is what its query gives over the same input without any state; one whose windows close, together with its late rows; one
///   that is paused, once it goes on;
/// - every record is a row or a reject, also when rejects are replayed;
/// - after the end of a process, not of the machine, the first answer is not from before the last one, and what a closed window gave out and
///   what was late is there again;
/// - the invariants of all state hold.
///
/// What is not the same in every run of a seed: how the threads of the engine divide input into epochs, and so how many journal entries
/// lie between two other file operations, and which statement a process ends in.
actor Simulation {
    struct Problem: Error, CustomStringConvertible {
        let description: String
        init(_ description: String) { self.description = description }
    }

    private enum Ending: CaseIterable { case stop, kill, powerCut }

    private var random: SeededGenerator
    /// Apart from the rest, so that a seed does the same whatever number of workers there is.
    private var workerCounts: SeededGenerator
    private let planted: PlantedBug?
    private let targets: SimulatedTargets
    private let files = MemoryFileSystem()
    private let faults: Faults
    private let clock = JumpingClock()
    private var meta: MetaStore
    private var life: Life?
    private var ending = Ending.powerCut
    private var trace: [String] = []

    // What is known of the content.
    private var records: [[String]] = [[], []]
    private var lastRecord = 0
    /// The source, and views, that are paused; of some it is not known whether the statement took effect.
    private var maybePaused: Set<String> = []
    private var views: [String: String] = [:]
    private var unsureViews: [String: String] = [:]
    /// What the table may hold: of a statement whose answer nobody heard it is not known whether it took effect.
    private var possibleRows: Set<[Int: Int]> = [[:]]
    private var lastRow = 0
    private var totalSeen = 0
    /// What was seen of `final` and its late rows: they only grow.
    private var closedSeen: [String: Int] = [:]
    /// A checkpoint has the views that `define` makes: without one they begin anew, and windows close elsewhere.
    private var isStored = false

    /// An engine and what it stands on.
    private final class Life: Sendable {
        let world: EngineWorld
        let keeper: StateKeeper
        let dmlLog: DMLLog
        let connector: ScriptedConnector

        init(world: EngineWorld, keeper: StateKeeper, dmlLog: DMLLog, connector: ScriptedConnector) {
            self.world = world
            self.keeper = keeper
            self.dmlLog = dmlLog
            self.connector = connector
        }
    }

    init(seed: UInt64, planted: PlantedBug? = nil) throws {
        random = SeededGenerator(seed: seed &* 0x2545_F491_4F6C_DD1D)
        workerCounts = SeededGenerator(seed: seed &* 0x9E37_79B9_7F4A_7C15)
        self.planted = planted
        targets = SimulatedTargets(seed: seed &* 0xD6E8_FEB8_6659_FD93)
        meta = try MetaStore.inMemory()
        try files.createDirectory("/data")
        try files.syncDirectory("/")
        faults = Faults(files)
    }

    /// Runs all of it; what is wrong, with what was done before.
    func problem() async -> String? {
        do {
            for number in 0..<random.number(2...6) { try await live(number) }
            faults.clear()
            try await open()
            try await checkStart()
            _ = try await run("FLUSH")
            for name in maybePaused.sorted() { try await resume(name) }
            try await checkEverything()
            try await checkTargets()
            try await end(.stop)
            return nil
        } catch {
            faults.end(after: 0)
            await stopLife()
            return "\(error); after: \(trace.suffix(30).joined(separator: ", "))"
        }
    }

    private func live(_ number: Int) async throws {
        let dies = number > 0 && random.oneIn(4)
        if dies { faults.end(after: random.number(0...40)) }
        do { try await open() } catch {
            guard faults.isAtEnd else { throw error }
        }
        if !faults.isAtEnd {
            if number == 0 { try await define() }
            if !dies || random.oneIn(2) { try await checkStart() }
            for _ in 0..<random.number(3...14) where !faults.isAtEnd {
                if random.oneIn(10) { faults.end(after: random.number(0...30)) }
                try await step()
            }
        }
        try await end(random.pick(Ending.allCases))
    }

    // MARK: Lives

    private func open() async throws {
        let workers = workerCounts.number(1...3)
        trace.append("open with \(workers) workers")
        let disk: any FileSystem = planted.map { PlantedFileSystem(files, $0) } ?? files
        let environment = Environment(files: disk, clock: clock, random: SeededSource(random.next()))
        let connector = ScriptedConnector()
        let records = records
        connector.change { $0.splits = records }
        let keeper = try StateKeeper(environment: environment, directory: "/data/state")
        let dmlLog = try DMLLog(environment: environment, directory: "/data/dml")
        let budget = random.pick([2, 5, 8192])
        let conducting = Conductor.Options(recordsMin: budget, recordsMax: budget)
        var options = Engine.Options(workerCount: workers, conductor: conducting)
        // Time flies here.
        options.answerTimeout = .seconds(86_400)
        let engine = try Engine(
            environment: environment, options: options,
            assembly: targets.nextLife(["s": connector]), meta: meta, keeper: keeper, dmlLog: dmlLog, replayDirectory: "/data/replay")
        life = Life(world: EngineWorld(engine, files: files), keeper: keeper, dmlLog: dmlLog, connector: connector)
        try await perform { (world) async throws(SQLError) in try await world.engine.restore() }
    }

    /// Runs a statement while the clock goes on, and ends the engine when the disk is at its end.
    @discardableResult
    private func perform<T: Sendable>(_ body: @escaping @Sendable (EngineWorld) async throws(SQLError) -> T) async throws(SQLError) -> T {
        guard let life else { throw SQLError(.adminShutdown, "there is no server") }
        let answer = Mutex<Result<T, SQLError>?>(nil)
        Task.detached {
            do throws(SQLError) {
                let value = try await body(life.world)
                answer.withLock { $0 = .success(value) }
            } catch { answer.withLock { $0 = .failure(error) } }
        }
        let begun = ContinuousClock.now
        while true {
            if let answer = answer.withLock({ $0 }) { return try answer.get() }
            if faults.isAtEnd { await stopLife() }
            await passTime()
            // Virtual time ran for hours by then.
            if ContinuousClock.now - begun > .seconds(60) {
                fatalError("no answer; \(trace.suffix(12)); ended \(faults.isAtEnd), trouble \(life.keeper.trouble.map { "\($0)" } ?? "none"), \(life.world.engine.conductor.published)")
            }
        }
    }

    private func passTime() async {
        clock.advance(by: .milliseconds(20))
        // As the timer of checkpoints does.
        if let life, life.keeper.trouble != nil { life.world.engine.conductor.wake() }
        await Task.yield()
    }

    private func stopLife() async {
        guard let life else { return }
        self.life = nil
        // What is in it at this moment: what a statement takes back while it ends, the next life does not know.
        if faults.isAtEnd, let image = try? meta.copy() { meta = image }
        let isDone = Mutex(false)
        Task.detached {
            await life.world.stop()
            life.dmlLog.close()
            isDone.withLock { $0 = true }
        }
        while !isDone.withLock({ $0 }) { await passTime() }
    }

    private func end(_ how: Ending) async throws {
        trace.append("\(how)")
        ending = faults.isAtEnd && how == .stop ? .kill : how
        if how != .stop { faults.end(after: 0) }
        await stopLife()
        faults.clear()
        if ending == .powerCut {
            files.crash(random: SeededSource(random.next()))
            // It may take what the journal had not synced.
            totalSeen = 0
        }
        if ending == .powerCut || !isStored { closedSeen = [:] }
        if planted == .tornPage, files.exists("/data/state") { try BlockDamage.tear(files, &random) }
        faults.clear()
    }

    // MARK: Statements

    private func run(_ sql: String) async throws(SQLError) -> EngineWorld.Answer {
        trace.append(sql)
        return try await perform { (world) async throws(SQLError) in try await world.run(sql).last! }
    }

    /// Runs a statement that may come to nothing because everything ends.
    /// - Returns: whether it was acknowledged.
    private func attempt(_ sql: String) async throws -> Bool {
        do throws(SQLError) {
            _ = try await run(sql)
            // An answer that comes while everything ends is heard by nobody.
            return !faults.isAtEnd
        } catch {
            guard faults.isAtEnd else { throw Problem("\(sql): \(error)") }
            return false
        }
    }

    private func define() async throws {
        // A life that ends here begins anew with nothing.
        _ = try await run("CREATE SOURCE s (id int, k int, v int, at timestamp, WATERMARK FOR at AS at - INTERVAL '3 seconds') WITH (connector = 's') FORMAT PLAIN ENCODE JSON")
        _ = try await run("CREATE TABLE t (id int PRIMARY KEY, v int)")
        for (name, query) in [("total", "SELECT count(*) AS n FROM s"), ("sums", Self.queries[0]), ("windows", Self.windows)] {
            _ = try await run("CREATE MATERIALIZED VIEW \(name) AS \(query)")
            views[name] = query
        }
        _ = try await run("CREATE MATERIALIZED VIEW final AS \(Self.windows) EMIT ON WINDOW CLOSE")
        for sink in SimulatedTargets.definitions { _ = try await run(sink) }
    }

    private static let windows =
        "SELECT window_start, count(*) AS n, sum(v) AS total FROM TUMBLE(s, at, INTERVAL '2 seconds') GROUP BY window_start"

    /// What was too late for `windows` put back.
    private static let windowsWithLateRows = """
        SELECT window_start, sum(n)::bigint AS n, sum(total)::bigint AS total FROM (
        SELECT window_start, n, total FROM windows
        UNION ALL SELECT ("row"->>'window_start')::timestamp, count, count * ("row"->>'v')::int FROM windows_late
        ) AS every GROUP BY window_start
        """

    private static let queries = [
        "SELECT k, count(*) AS n, sum(v) AS total FROM s GROUP BY k",
        "SELECT k, max(v) AS most, min(v) AS least FROM s GROUP BY k",
        "SELECT n, count(*) AS groups FROM sums GROUP BY n",
        "SELECT a.id, b.id AS other FROM s a JOIN s b ON a.k = b.v",
        "SELECT s.id, sums.n FROM s LEFT JOIN sums ON s.v = sums.k",
        "SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS place FROM s",
        "SELECT DISTINCT v FROM s",
        "SELECT k, n FROM sums ORDER BY n DESC, k LIMIT 2",
        "SELECT t.id, t.v, s.id AS record FROM t JOIN s ON t.v = s.k",
        "SELECT v, count(*) AS n FROM t GROUP BY v",
        "SELECT id, repeat('long ', v) AS text FROM s WHERE v > 2",
    ]

    /// The windows that `final` has given out, with what was too late for them put back: rows of `windows` over all input.
    private static let finalWithLateRows = """
        SELECT window_start, sum(n)::bigint AS n, sum(total)::bigint AS total FROM (
        SELECT window_start, n, total FROM final
        UNION ALL SELECT ("row"->>'window_start')::timestamp, count, count * ("row"->>'v')::int FROM final_late
        ) AS every GROUP BY window_start HAVING window_start IN (SELECT window_start FROM final)
        """

    private static let replay = #"REPLAY REJECTS FROM s USING replace(convert_from(raw, 'UTF8'), '''', '"')"#

    private func step() async throws {
        switch random.number(0...18) {
        case 0...3: produce()
        case 4...5: try await readTotal()
        case 6: if !faults.isAtEnd { try await checkEverything() }
        case 7...8: try await write()
        case 9: try await create()
        case 10: try await drop()
        case 11: clock.jump(random.number(-3_600_000_000...3_600_000_000))
        case 12...13: try await checkpoint()
        case 14: _ = try await attempt(Self.replay)
        case 15...16: try await pauseOrResume()
        default: try await checkpointOnABadDisk()
        }
    }

    private func produce() {
        for _ in 0..<random.number(1...8) {
            lastRecord += 1
            // Milliseconds since 1970, in an order that is not quite that of the records.
            let at = 1_704_067_200_000 + 500 * (lastRecord - lastRecord * 7 % 11)
            let record = #"{"id":\#(lastRecord),"k":\#(random.number(0...4)),"v":\#(random.number(0...9)),"at":\#(at)}"#
            // Some cannot be read before they are corrected.
            records[random.number(0...1)].append(random.oneIn(12) ? record.replacing("\"", with: "'") : record)
        }
        trace.append("produce to \(lastRecord)")
        let records = records
        life?.connector.change { $0.splits = records }
    }

    private func write() async throws {
        let id = Set(possibleRows.flatMap(\.keys)).sorted().randomElement(using: &random)
        let value = random.number(0...4)
        let sql: String
        let after: [[Int: Int]]
        if let id, random.oneIn(2) {
            let isDelete = random.oneIn(2)
            sql = isDelete ? "DELETE FROM t WHERE id = \(id)" : "UPDATE t SET v = \(value) WHERE id = \(id)"
            after = possibleRows.map { rows in rows[id] == nil ? rows : rows.merging([id: value]) { $1 }.filter { !isDelete || $0.key != id } }
        } else {
            lastRow += 1
            sql = "INSERT INTO t VALUES (\(lastRow), \(value))"
            after = possibleRows.map { $0.merging([lastRow: value]) { $1 } }
        }
        if try await attempt(sql) { possibleRows = Set(after) } else { possibleRows.formUnion(after) }
    }

    private func create() async throws {
        let name = "v\(random.number(0...5))"
        guard views[name] == nil, unsureViews[name] == nil, !maybePaused.contains("s") else { return }
        let query = random.pick(Self.queries)
        if try await attempt("CREATE MATERIALIZED VIEW \(name) AS \(query)") { views[name] = query } else { unsureViews[name] = query }
    }

    private func drop() async throws {
        guard let name = views.keys.filter({ $0.hasPrefix("v") }).sorted().randomElement(using: &random), let query = views[name] else { return }
        views[name] = nil
        if try await attempt("DROP MATERIALIZED VIEW \(name)") { maybePaused.remove(name) } else { unsureViews[name] = query }
    }

    private func checkpoint() async throws {
        trace.append("checkpoint")
        let report = try await perform { (world) async throws(SQLError) in await world.engine.checkpoint() }
        guard let report else { return }
        trace.append("was \(report.number), \(report.bytesWritten) bytes")
        isStored = true
    }

    private func pauseOrResume() async throws {
        let alone = views.keys.filter { name in views[name].map { Self.alone.contains($0) } ?? false }
        let name = random.pick(["s", "windows"] + alone.sorted())
        if maybePaused.contains(name) { return try await resume(name) }
        maybePaused.insert(name)
        try await control("PAUSE", name)
    }

    /// Queries that read the source once and nothing else.
    private static let alone: Set<String> = [queries[1], queries[5], queries[6], queries[10]]

    private func resume(_ name: String) async throws { if try await control("RESUME", name) { maybePaused.remove(name) } }

    /// - Returns: whether it was acknowledged.
    @discardableResult
    private func control(_ verb: String, _ name: String) async throws -> Bool {
        do throws(SQLError) {
            _ = try await run("\(verb) \(name == "s" ? "SOURCE" : "MATERIALIZED VIEW") \(name)")
            return !faults.isAtEnd
        } catch {
            // It is still being recovered.
            if error.sqlState == .objectNotInPrerequisiteState { return false }
            guard faults.isAtEnd else { throw Problem("\(verb) \(name): \(error)") }
            return false
        }
    }

    private func checkpointOnABadDisk() async throws {
        let path = random.pick(["pages-", "checkpoint-", "journal-", "state", "outbox", "segment-"])
        let operation = random.pick([MemoryFileSystem.Operation.write, .write, .sync, .syncDirectory, .rename, .open, .remove])
        let passing = Faults.Passing(operation: operation, path: path, errorNumber: random.pick([5, 28]), times: random.number(1...4))
        trace.append("\(passing)")
        faults.pass(passing)
        produce()
        try await checkpoint()
        faults.pass(nil)
    }

    // MARK: Checks

    private func readTotal() async throws {
        do throws(SQLError) {
            let answer = try await run("SELECT n FROM total")
            guard let total = answer.rows.first?.first.flatMap({ $0 }).flatMap({ Int($0) }) else { return }
            // What came before the end of everything may be seen even in its last moments.
            if total < totalSeen { throw SQLError(.internalError, "a reader saw \(totalSeen) records, then \(total)") }
            totalSeen = total
        } catch {
            guard faults.isAtEnd, error.sqlState != .internalError else { throw Problem("SELECT n FROM total: \(error)") }
        }
    }

    private func checkStart() async throws {
        try await readTotal()
        guard !faults.isAtEnd else { return }
        if try await !readRows() { return }
        let listed = try await expectAnswer("SELECT relname FROM pg_class WHERE relkind = 'm'")
        guard let listed else { return }
        let names = Set(listed.rows.compactMap { $0[0] })
        for (name, query) in unsureViews where names.contains(name) { views[name] = query }
        unsureViews = [:]
        guard names == Set(views.keys).union(["final"]) else { throw Problem("there are views \(names.sorted()), not \(views.keys.sorted())") }
        maybePaused = maybePaused.filter { $0 == "s" || names.contains($0) }
        try await readClosed()
        if random.oneIn(2) { try await checkEverything() }
    }

    /// - Returns: false when everything has ended.
    private func readRows() async throws -> Bool {
        guard let answer = try await expectAnswer("SELECT id, v FROM t") else { return false }
        let found = Dictionary(answer.rows.map { (Int($0[0] ?? "") ?? 0, Int($0[1] ?? "") ?? 0) }) { $0 + $1 }
        guard possibleRows.contains(found) else { throw Problem("the table has \(found), not one of \(possibleRows)") }
        possibleRows = [found]
        return true
    }

    /// Every record is a row of the source or a reject, none both.
    private func checkRecords() async throws {
        guard !maybePaused.contains("s"), let rows = try await expectAnswer("SELECT count(*) FROM s"),
            let rejects = try await expectAnswer("SELECT count(*) FROM s_rejects WHERE column_name IS NULL")
        else { return }
        let counts = [rows, rejects].map { $0.rows.first?.first.flatMap { $0 }.flatMap { Int($0) } ?? -1 }
        guard counts[0] + counts[1] == lastRecord else { throw Problem("\(lastRecord) records became \(counts[0]) rows and \(counts[1]) rejects") }
    }

    /// What a window gave out when it closed, and what was late, never goes.
    private func readClosed() async throws {
        guard let final = try await expectAnswer("SELECT * FROM final"),
            let late = try await expectAnswer(#"SELECT operator, "row", count, watermark FROM final_late"#)
        else { return }
        let now = final.multiset.merging(late.multiset.map { ("late " + $0.key, $0.value) }) { $0 + $1 }
        if let gone = closedSeen.first(where: { $0.value > now[$0.key] ?? 0 }) { throw Problem("of closed windows \(gone) has gone; there are \(now)") }
        closedSeen = now
    }

    /// The answer, nil when everything ended before it came.
    private func expectAnswer(_ sql: String) async throws -> EngineWorld.Answer? {
        do throws(SQLError) { return try await run(sql) } catch {
            guard faults.isAtEnd else { throw Problem("\(sql): \(error)") }
            return nil
        }
    }

    /// Sinks have brought all of it to their targets, each change once.
    private func checkTargets() async throws {
        targets.calmDown()
        try await checkpoint()
        var answers: [EngineWorld.Answer] = []
        for query in SimulatedTargets.queries { answers.append(try await run(query)) }
        let begun = ContinuousClock.now
        while let difference = targets.difference(answers) {
            let lines = try await run("SHOW SINKS").rows
            if lines.contains(where: { $0[4] == "failed" }) || ContinuousClock.now - begun > .seconds(20) { throw Problem("\(difference); sinks are \(lines)") }
            await passTime()
        }
        if let problem = targets.problem { throw Problem(problem) }
    }

    private func checkEverything() async throws {
        guard try await expectAnswer("FLUSH") != nil, try await readRows() else { return }
        try await checkRecords()
        try await readClosed()
        for (name, query) in views.sorted(by: { $0.key < $1.key }) where !maybePaused.contains(name) {
            let read = name == "windows" ? Self.windowsWithLateRows : "SELECT * FROM \(name)"
            guard let stored = try await expectAnswer(read), let computed = try await expectAnswer(query) else { return }
            guard stored.multiset == computed.multiset else {
                throw Problem("\(name), \(query), is \(stored.multiset), not \(computed.multiset)")
            }
        }
        guard let closed = try await expectAnswer(Self.finalWithLateRows), let computed = try await expectAnswer(Self.windows) else { return }
        if let wrong = closed.multiset.first(where: { computed.multiset[$0.key] != $0.value }) {
            throw Problem("final has with its late rows \(wrong), the windows are \(computed.multiset)")
        }
        guard life != nil else { return }
        do throws(SQLError) {
            let broken = try await perform { (world) async throws(SQLError) in try await world.engine.conductor.onWorkers { $0.checkInvariants() } }
            if let first = broken.results.joined().first { throw SQLError(.internalError, first) }
        } catch {
            // Everything may have ended since the last answer.
            guard faults.isAtEnd, error.sqlState != .internalError else { throw Problem("invariants: \(error)") }
        }
    }
}

/// A virtual clock whose wall time jumps.
final class JumpingClock: Clock {
    private let clock = VirtualClock()
    private let shift = Mutex<Int64>(0)

    var nowMicros: Int64 { clock.nowMicros + shift.withLock { $0 } }
    var monotonicNanos: UInt64 { clock.monotonicNanos }
    func sleep(for duration: Duration) async throws { try await clock.sleep(for: duration) }
    func advance(by duration: Duration) { clock.advance(by: duration) }
    func jump(_ micros: Int) { shift.withLock { $0 += Int64(micros) } }
}
