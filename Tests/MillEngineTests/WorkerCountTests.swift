import MillBase
import MillDataflow
import MillEngine
import MillIO
import MillLog
import MillMeta
import MillStore
import MillTestKit
import Testing

/// A start with another number of workers than before: every operator has its state, though nobody can read again what it was made from.
@Suite(.timeLimit(.minutes(10))) struct WorkerCountTests {
    private let files = MemoryFileSystem()
    private let meta: MetaStore
    private let connector = ScriptedConnector()

    init() throws { meta = try MetaStore.inMemory() }

    private static let source = """
        CREATE SOURCE s (
            id int, k int, v int, x numeric, f float8, text varchar, at timestamp, WATERMARK FOR at AS at - INTERVAL '3 seconds'
        ) WITH (connector = 's') FORMAT PLAIN ENCODE JSON
        """

    private static let views = [
        ("total", "SELECT count(*) AS n, sum(v) AS total, min(text) AS least, max(v) AS most FROM s"),
        (
            "sums",
            """
            SELECT k, count(*) AS n, sum(v) AS total, avg(x) AS mean, sum(f) AS rough, min(text) AS least, count(DISTINCT v) AS kinds
            FROM s GROUP BY k
            """
        ),
        (
            "above",
            """
            SELECT n % 3 AS rest, count(*) AS groups, max(least) AS text, min(total) AS low, sum(mean) AS means FROM sums GROUP BY n % 3
            """
        ),
        ("pairs", "SELECT a.id, b.id AS other, b.text FROM s a JOIN s b ON a.k = b.v AND a.id < b.id"),
        ("outer_pairs", "SELECT s.id, sums.n FROM s LEFT JOIN sums ON s.v = sums.k AND sums.n > 3"),
        ("both_sides", "SELECT a.k, b.v FROM sums a FULL JOIN (SELECT DISTINCT v FROM s) b ON a.k = b.v"),
        ("present", "SELECT id FROM s WHERE v IN (SELECT k FROM sums WHERE n % 2 = 0)"),
        ("absent", "SELECT id FROM s WHERE NOT EXISTS (SELECT 1 FROM sums WHERE k = v AND n % 2 = 0)"),
        ("places", "SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS place FROM s"),
        (
            "last_of_key",
            "SELECT id, k, text FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS place FROM s) r WHERE place = 1"
        ),
        (
            "first_of_key",
            "SELECT id, k, place FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v, id) AS place FROM s) r WHERE place <= 5"
        ),
        ("first_groups", "SELECT k, n FROM sums ORDER BY n DESC, k LIMIT 3"),
        (
            "windows",
            "SELECT window_start, count(*) AS n, sum(v) AS total FROM TUMBLE(s, at, INTERVAL '2 seconds') GROUP BY window_start"
        ),
        (
            "final",
            """
            SELECT window_end, count(*) AS n, max(text) AS most, sum(x) AS total FROM TUMBLE(s, at, INTERVAL '5 seconds')
            GROUP BY window_end EMIT ON WINDOW CLOSE
            """
        ),
        (
            "final_of_key",
            """
            SELECT k, window_end, count(DISTINCT v) AS n, sum(f) AS rough FROM TUMBLE(s, at, INTERVAL '4 seconds')
            GROUP BY k, window_end EMIT ON WINDOW CLOSE
            """
        ),
        (
            "sessions",
            """
            SELECT k, window_start, window_end, count(*) AS n, max(text) AS most, sum(x) AS total
            FROM SESSION(s PARTITION BY k, at, INTERVAL '1 second') GROUP BY k, window_start, window_end
            """
        ),
        ("in_sessions", "SELECT k, n, window_start FROM SESSION(t PARTITION BY k, at, INTERVAL '1 second')"),
        ("joined_table", "SELECT s.id, t.n FROM s JOIN t ON s.k = t.k"),
        ("every", "SELECT k FROM s UNION ALL SELECT v FROM s"),
    ]

    /// One life of an engine over what earlier ones left.
    private func withEngine(workers: Int, _ body: (EngineWorld) async throws -> Void) async throws {
        let environment = Environment(files: files, clock: VirtualClock(), random: SeededSource(1))
        let keeper = try StateKeeper(environment: environment, directory: "/data/state")
        let log = try DMLLog(environment: environment, directory: "/data/dml")
        defer { log.close() }
        let engine = try Engine(
            environment: environment, options: Engine.Options(workerCount: workers),
            assembly: ScriptedAssembly(connectors: ["s": connector]), meta: meta, keeper: keeper, dmlLog: log)
        try await engine.restore()
        let world = EngineWorld(engine, files: files)
        do { try await body(world) } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private func define(_ world: EngineWorld) async throws {
        try await world.run("\(Self.source); CREATE TABLE t (k int PRIMARY KEY, n int, at timestamp)")
        for (name, query) in Self.views { try await world.run("CREATE MATERIALIZED VIEW \(name) AS \(query)") }
    }

    private func answers(_ world: EngineWorld) async throws -> [String: [String: Int]] {
        try await world.run("FLUSH")
        var answers: [String: [String: Int]] = [:]
        for name in Self.views.map(\.0) + ["t"] { answers[name] = try #require(try await world.run("SELECT * FROM \(name)").last).multiset }
        let broken = try await world.engine.conductor.onWorkers { $0.checkInvariants() }
        #expect(broken.results.joined().isEmpty, "\(Array(broken.results.joined()))")
        return answers
    }

    /// Records in the order of their time, so that none is late however epochs are cut.
    private static func records(_ count: Int, after last: Int, _ random: inout SeededGenerator) -> [String] {
        (last + 1...last + count).map { id in
            let text = String(repeating: "long ", count: random.number(0...4)) + "\(random.number(0...9))"
            let seconds = 1_704_067_200 + id / 3
            return #"{"id":\#(id),"k":\#(random.number(0...12)),"v":\#(random.number(0...9)),"x":\#(random.pick(["1.5", "2", "0.125", "-7.30"])),"#
                + #""f":\#(random.pick(["0.1", "1e300", "-1e300", "2.5"])),"text":"\#(text)","at":\#(seconds * 1000)}"#
        }
    }

    @Test func everyOperatorGoesOnWithItsState() async throws {
        let seed: UInt64 = 7
        var random = SeededGenerator(seed: seed)
        var records: [[String]] = [[], []]
        var statements: [String] = []
        var last = 0
        /// The same amount for both splits, so that one is not far behind in time.
        func produce() {
            for split in 0...1 { records[split] += Self.records(30, after: last, &random) }
            last += 30
            let key = random.number(0...12)
            statements.append("INSERT INTO t VALUES (\(key), \(last), '2024-01-01 00:00:0\(random.number(0...9))')")
            statements.append("UPDATE t SET n = n + 1 WHERE k % 2 = \(random.number(0...1))")
        }
        produce()
        var known: [String: [String: Int]] = [:]
        var done = 0
        for (life, workers) in [2, 3, 1, 4, 2, 1].enumerated() {
            // Who reads again what was read before reads something else.
            let unread = records
            connector.change { state in
                state.splits = zip(unread, state.splits + [[], []]).map { records, before in
                    records.enumerated().map { $0 < before.count ? #"{"id":-1,"k":1,"v":1}"# : $1 }
                }
            }
            let fresh = statements[done...]
            done = statements.count
            try await withEngine(workers: workers) { world in
                if life == 0 { try await define(world) }
                if fresh.isEmpty { #expect(try await answers(world) == known, "seed \(seed), \(workers) workers") }
                for statement in fresh { try await world.run(statement) }
                known = try await answers(world)
            }
            // Every other life only takes up what the one before left.
            if life == 1 || life == 3 { produce() }
        }
        let (all, changes) = (records, statements)
        let plain = ScriptedConnector()
        plain.change { $0.splits = all }
        let world = try await EngineWorld(workerCount: 1, assembly: ScriptedAssembly(connectors: ["s": plain]))
        try await define(world)
        for statement in changes { try await world.run(statement) }
        let expected = try await answers(world)
        for (name, answer) in expected { #expect(known[name] == answer, "seed \(seed), \(name)") }
        await world.stop()
    }
}
