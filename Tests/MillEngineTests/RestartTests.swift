import MillBase
import MillCatalog
import MillColumnar
import MillConnectors
import MillEngine
import MillIO
@testable import MillMeta
import MillPlan
import MillSQL
import MillTestKit
import Synchronization
import Testing

/// What an engine finds of its definitions when it starts again over the same store.
@Suite(.timeLimit(.minutes(10))) struct RestartTests {
    /// Runs `body` on an engine over the store as it is then.
    private func withEngine(
        over meta: MetaStore, _ assembly: any SourceAssembly, clock: any MillIO.Clock = SystemClock(), workerCount: Int = 1,
        _ body: (EngineWorld) async throws -> Void
    ) async throws {
        let world = try await EngineWorld(workerCount: workerCount, assembly: assembly, clock: clock, meta: meta)
        do {
            try await world.engine.restore()
            try await body(world)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private func create(_ name: String, columns: String = "a int, b int") -> String {
        "CREATE SOURCE \(name) (\(columns)) WITH (connector = '\(name)') FORMAT PLAIN ENCODE JSON"
    }

    private func rows(_ world: EngineWorld, _ sql: String) async throws -> [[String?]] { try #require(try await world.run(sql).last).rows }

    private func error(of body: () async throws(SQLError) -> Void) async -> SQLError? {
        do throws(SQLError) { try await body() } catch { return error }
        return nil
    }

    // MARK: What survives

    @Test(arguments: [1, 3]) func definitionsSurviveAndViewsBecomeRightAgain(workerCount: Int) async throws {
        let meta = try MetaStore.inMemory()
        let connector = ScriptedConnector(#"{"a":1,"b":1}"#, #"{"a":2,"b":1}"#, #"{"a":3,"b":2}"#)
        let assembly = ScriptedAssembly(connectors: ["s": connector])
        let catalogSQL = "SELECT oid, relname, relkind FROM pg_class WHERE oid BETWEEN 16384 AND 99999 ORDER BY oid"
        var before: [[String?]] = []
        try await withEngine(over: meta, assembly, workerCount: workerCount) { (world) async throws in
            try await world.run(
                """
                CREATE SCHEMA other; \(create("s")); CREATE TABLE t (k int PRIMARY KEY, v varchar DEFAULT 'x'); INSERT INTO t VALUES (1, 'one');
                CREATE VIEW plain AS SELECT a * 10 AS ten, b FROM s WHERE a > 1;
                CREATE MATERIALIZED VIEW sums AS SELECT b, sum(ten) AS total FROM plain GROUP BY b;
                CREATE MATERIALIZED VIEW top AS SELECT max(total) AS most FROM sums;
                CREATE MATERIALIZED VIEW other.joined AS SELECT s.a, t.v FROM s LEFT JOIN t ON s.a = t.k;
                CREATE MATERIALIZED VIEW gone AS SELECT count(*) FROM s; DROP MATERIALIZED VIEW gone; FLUSH
                """)
            before = try await rows(world, catalogSQL)
            #expect(try await rows(world, "SELECT * FROM top") == [["30"]])
        }
        connector.change { $0.splits[0].append(#"{"a":9,"b":2}"#) }
        try await withEngine(over: meta, assembly, workerCount: workerCount) { (world) async throws in
            // At once, without a word of waiting.
            #expect(try await rows(world, "SELECT * FROM sums ORDER BY b") == [["1", "20"], ["2", "120"]])
            #expect(try await rows(world, "SELECT * FROM top") == [["120"]])
            #expect(try await rows(world, "SELECT * FROM plain ORDER BY ten").count == 3)
            #expect(try await rows(world, "SELECT * FROM t").isEmpty)
            try await world.run("INSERT INTO t (k) VALUES (9); FLUSH")
            #expect(try await rows(world, "SELECT * FROM other.joined WHERE v IS NOT NULL") == [["9", "x"]])
            #expect(try await rows(world, catalogSQL) == before)
            #expect(
                try await rows(world, "SHOW JOBS").map { [$0[1], $0[2]] } == [
                    ["sums", "running"], ["top", "running"], ["joined", "running"],
                ])
            #expect(await error { () throws(SQLError) in try await world.run("SELECT * FROM gone") }?.sqlState == .undefinedTable)
            // What depends on what is known again.
            #expect(await error { () throws(SQLError) in try await world.run("DROP SOURCE s") }?.sqlState == .dependentObjectsStillExist)
            try await world.run("DROP SOURCE s CASCADE; CREATE TABLE late (x int)")
            let late = try await rows(world, "SELECT oid FROM pg_class WHERE relname = 'late'")
            // `gone` has had the identifier after the last of those before.
            #expect(late.map { Int($0[0] ?? "") } == [(Int(before.last?[0] ?? "") ?? 0) + 2], "\(late), \(before)")
        }
        try await withEngine(over: meta, assembly, workerCount: workerCount) { (world) async throws in
            #expect(try await rows(world, "SHOW TABLES") == [["t"], ["late"]])
            #expect(try await rows(world, "SHOW MATERIALIZED VIEWS").isEmpty)
        }
    }

    @Test func namesOfAllKindsSurvive() async throws {
        let meta = try MetaStore.inMemory()
        let assembly = ScriptedAssembly(connectors: [:])
        let names = ["Größe", "事件 🐟", "with \"quotes\"", "it's", "select", " ", "a.b", "e\u{301}", String(repeating: "x", count: 255)]
        let quoted = names.map { "\"" + $0.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\"" }
        try await withEngine(over: meta, assembly) { (world) async throws in
            try await world.run("CREATE SCHEMA other")
            for name in quoted {
                try await world.run("CREATE TABLE \(name) (\(name) int); INSERT INTO \(name) VALUES (1)")
                try await world.run("CREATE MATERIALIZED VIEW other.\(name) AS SELECT \(name), 'x' || '🐟' AS \"'\" FROM public.\(name)")
            }
        }
        try await withEngine(over: meta, assembly) { (world) async throws in
            #expect(try await rows(world, "SHOW TABLES").map { $0[0] } == names)
            for name in quoted {
                try await world.run("INSERT INTO \(name) VALUES (2); FLUSH")
                #expect(try await rows(world, "SELECT \(name), \"'\" FROM other.\(name)") == [["2", "x🐟"]])
            }
        }
    }

    @Test func fiveHundredViewsSurvive() async throws {
        let meta = try MetaStore.inMemory()
        let connector = ScriptedConnector(#"{"a":1,"b":1}"#, #"{"a":2,"b":1}"#)
        let assembly = ScriptedAssembly(connectors: ["s": connector])
        try await withEngine(over: meta, assembly) { (world) async throws in
            try await world.run(create("s"))
            for number in 0..<500 {
                try await world.run("CREATE MATERIALIZED VIEW v\(number) AS SELECT sum(a) + \(number) AS n FROM s GROUP BY b")
            }
        }
        connector.change { $0.splits[0].append(#"{"a":4,"b":1}"#) }
        try await withEngine(over: meta, assembly) { (world) async throws in
            for number in 0..<500 { #expect(try await rows(world, "SELECT * FROM v\(number)") == [["\(7 + number)"]]) }
        }
    }

    @Test func generatedViewsComputeTheSame() async throws {
        let meta = try MetaStore.inMemory()
        let seed: UInt64 = 1
        var random = SeededGenerator(seed: seed)
        let events = (0..<40).map { number in
            #"{"id":\#(number),"player":"p\#(random.number(0...4))","score":\#(random.number(-3...3)),"bonus":\#(random.number(0...1) == 0),"#
                + #""value":"\#(random.number(0...3)).5","ts":"2024-01-0\#(random.number(1...3)) 00:0\#(random.number(0...9)):00"}"#
        }
        let players = (0..<6).map { number in
            #"{"name":"p\#(number)","rating":\#(random.number(0...9)).25,"born":"2000-01-0\#(random.number(1...9))","level":\#(random.number(0...3)),"#
                + #""played":"\#(random.number(0...9)) hours"}"#
        }
        let connectors = ["events": ScriptedConnector(), "players": ScriptedConnector()]
        connectors["events"]?.change { $0.splits = [events] }
        connectors["players"]?.change { $0.splits = [players] }
        let assembly = ScriptedAssembly(connectors: connectors)
        let tables = StatementGenerator.sampleTables
        var answers: [String: [String: Int]] = [:]
        try await withEngine(over: meta, assembly) { (world) async throws in
            for table in tables {
                try await world.run(
                    create(table.name, columns: table.columns.map { "\($0.name) \($0.type.rawValue)" }.joined(separator: ", ")))
            }
            var generator = StatementGenerator(seed: seed, tables: tables)
            for number in 0..<120 {
                // What is not supported or fails is no view.
                let query = generator.query()
                guard (try? await world.run("CREATE MATERIALIZED VIEW v\(number) AS \(query)")) != nil else { continue }
                answers["v\(number)"] = try await world.run("SELECT * FROM v\(number)").last?.multiset
            }
        }
        #expect(answers.count >= 40, "seed \(seed): \(answers.count) views")
        try await withEngine(over: meta, assembly, workerCount: 2) { (world) async throws in
            for (name, answer) in answers {
                #expect(try await world.run("SELECT * FROM \(name)").last?.multiset == answer, "seed \(seed), \(name)")
            }
        }
    }

    // MARK: A crash at any step

    @Test func aCrashWhileAViewIsCreatedLeavesOneThatBeginsAnew() async throws {
        let meta = try MetaStore.inMemory()
        let connector = ScriptedConnector(#"{"a":1}"#)
        let assembly = ScriptedAssembly(connectors: ["s": connector])
        let image = Mutex<MetaStore?>(nil)
        try await withEngine(over: meta, assembly) { (world) async throws in
            try await world.run(create("s"))
            // The view never has all that its source claims to hold.
            connector.change { state in
                state.missing = 5
                state.onEmptyPoll = {
                    guard image.withLock({ $0 == nil }), (try? meta.load().objects.count) == 2 else { return }
                    image.withLock { $0 = try? meta.copy() }
                    world.session.cancel()
                }
            }
            #expect(
                await error { () throws(SQLError) in try await world.run("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS n FROM s") }?
                    .sqlState == .queryCanceled)
            #expect(try await rows(world, "SHOW JOBS").isEmpty)
        }
        #expect(try meta.load().objects.map(\.object.name) == ["s"])
        connector.change { state in
            state.missing = 0
            state.onEmptyPoll = nil
        }
        let crashed = try #require(image.withLock { $0 })
        #expect(try crashed.load().objects[1].job?.state == .creating)
        try await withEngine(over: crashed, assembly) { (world) async throws in
            #expect(try await rows(world, "SELECT * FROM v") == [["1"]])
        }
        #expect(try crashed.load().objects[1].job?.state == .running)
    }

    @Test func aCrashWhileATableIsFilledLeavesNoTable() async throws {
        let meta = try MetaStore.inMemory()
        let connector = ScriptedConnector(#"{"a":1}"#)
        let assembly = ScriptedAssembly(connectors: ["s": connector])
        let image = Mutex<MetaStore?>(nil)
        try await withEngine(over: meta, assembly) { (world) async throws in
            try await world.run(create("s"))
            connector.change { state in
                state.missing = 5
                state.onEmptyPoll = {
                    image.withLock { $0 = try? meta.copy() }
                    world.session.cancel()
                }
            }
            #expect(
                await error { () throws(SQLError) in try await world.run("CREATE TABLE t AS SELECT a FROM s") }?.sqlState == .queryCanceled)
            #expect(try await rows(world, "SHOW TABLES").isEmpty)
        }
        let crashed = try #require(image.withLock { $0 })
        #expect(try crashed.load().objects.map(\.object.name) == ["s", "t"])
        try await withEngine(over: crashed, assembly) { (world) async throws in
            #expect(try await rows(world, "SHOW TABLES").isEmpty)
            try await world.run("CREATE TABLE t (a int)")
        }
        #expect(try crashed.load().objects.map(\.object.id.number) == [16384, 16386])
    }

    @Test(arguments: ["", " (PRIMARY KEY (a))"]) func nobodyUsesATableWhileItIsFilled(key: String) async throws {
        let connector = ScriptedConnector(#"{"a":1}"#)
        try await withEngine(over: .inMemory(), ScriptedAssembly(connectors: ["s": connector])) { (world) async throws in
            try await world.run(create("s"))
            let other = Session(engine: world.engine, userName: "root", databaseName: "dev")
            let statements = [
                "SELECT count(*) FROM t", "SELECT a FROM t WHERE a = 1", "INSERT INTO t VALUES (7)", "UPDATE t SET a = 8", "DELETE FROM t", "TRUNCATE t",
                "BEGIN; INSERT INTO t VALUES (7)",
            ]
            // A statement that waits for the table in place of being refused.
            try await other.run("SET statement_timeout = '20s'")
            for isCancelled in [true, false] {
                connector.change { $0.missing = 1 }
                let polls = connector.state.withLock { $0.emptyPolls }
                let hasEnded = Atomic(false)
                let first = Task {
                    defer { hasEnded.store(true, ordering: .relaxed) }
                    return await error { () throws(SQLError) in try await world.run("CREATE TABLE t\(key) AS SELECT a FROM s") }
                }
                while connector.state.withLock({ $0.emptyPolls }) == polls, !hasEnded.load(ordering: .relaxed) { await Task.yield() }
                for statement in statements {
                    let failure = await error { () throws(SQLError) in try await other.run(statement) }
                    #expect(failure?.message == "table \"t\" is still being created", "\(statement)")
                    #expect(failure?.sqlState == .objectNotInPrerequisiteState)
                    try await other.run("ROLLBACK")
                }
                // Definitions wait for it, until they are cancelled.
                for statement in ["CREATE TABLE late (a int)", "CREATE VIEW late AS SELECT 1 AS one", "CREATE MATERIALIZED VIEW late AS SELECT a FROM s"] {
                    let isAnswered = Atomic(false)
                    let waiting = Task {
                        defer { isAnswered.store(true, ordering: .relaxed) }
                        return await error { () throws(SQLError) in try await other.run(statement) }
                    }
                    while !isAnswered.load(ordering: .relaxed) {
                        other.cancel()
                        await Task.yield()
                    }
                    #expect(await waiting.value?.sqlState == .queryCanceled, "\(statement)")
                }
                let isFilled = hasEnded.load(ordering: .relaxed)
                #expect(!isFilled)
                if isCancelled {
                    world.session.cancel()
                    #expect(await first.value?.sqlState == .queryCanceled)
                    #expect(await error { () throws(SQLError) in try await other.run("INSERT INTO t VALUES (7)") }?.sqlState == .undefinedTable)
                } else {
                    connector.change { state in
                        state.missing = 0
                        state.splits[0].append(#"{"a":2}"#)
                    }
                    #expect(await first.value == nil)
                    try await other.run("INSERT INTO t VALUES (7)")
                    #expect(try await rows(world, "SELECT a FROM t ORDER BY a") == [["1"], ["2"], ["7"]])
                }
            }
        }
    }

    @Test func whatCannotBeStoredDoesNotTakeEffect() async throws {
        let meta = try MetaStore.inMemory()
        let assembly = ScriptedAssembly(connectors: ["s": ScriptedConnector(#"{"a":1}"#)])
        try await withEngine(over: meta, assembly) { (world) async throws in
            try await world.run("\(create("s")); CREATE TABLE t (a int)")
            try meta.execute("CREATE TRIGGER full BEFORE INSERT ON objects BEGIN SELECT RAISE(ABORT, 'no room'); END")
            try meta.execute("CREATE TRIGGER stuck BEFORE DELETE ON objects BEGIN SELECT RAISE(ABORT, 'no room'); END")
            let statements = [
                "CREATE TABLE u (a int)", "CREATE TABLE u AS SELECT 1 AS a", "CREATE VIEW u AS SELECT 1 AS a",
                "CREATE MATERIALIZED VIEW u AS SELECT a FROM s",
                "CREATE SOURCE u (a int) WITH (connector = 's') FORMAT PLAIN ENCODE JSON", "DROP TABLE t",
            ]
            for statement in statements {
                let error = await error { () throws(SQLError) in try await world.run(statement) }
                #expect(error?.message == "could not write \"memory\": no room", "\(statement)")
                #expect(error?.sqlState == .ioError)
            }
            try await world.run("INSERT INTO t VALUES (1)")
            try meta.execute("DROP TRIGGER full; DROP TRIGGER stuck")
            for statement in statements.dropLast() {
                try await world.run(statement)
                try await world.run(
                    "DROP \(statement.contains("MATERIALIZED") ? "MATERIALIZED VIEW" : String(statement.split(separator: " ")[1])) u")
            }
            #expect(try await rows(world, "SELECT * FROM t") == [["1"]])
        }
    }

    // MARK: What does not come back

    @Test func aPlanThatCannotBeUsedStopsItsViewAlone() async throws {
        let meta = try MetaStore.inMemory()
        let assembly = ScriptedAssembly(connectors: ["s": ScriptedConnector(#"{"a":1}"#, #"{"a":5}"#)])
        try await withEngine(over: meta, assembly) { (world) async throws in
            try await world.run(
                """
                \(create("s")); CREATE MATERIALIZED VIEW bad AS SELECT sum(a) AS n FROM s; CREATE MATERIALIZED VIEW good AS SELECT count(*) AS n FROM s;
                CREATE MATERIALIZED VIEW above AS SELECT n + 1 AS n FROM bad
                """)
        }
        try meta.execute("UPDATE jobs SET plan_version = 99 WHERE object_id = (SELECT id FROM objects WHERE name = 'bad')")
        try await withEngine(over: meta, assembly) { (world) async throws in
            #expect(try await rows(world, "SELECT * FROM good") == [["2"]])
            let jobs = try await rows(world, "SHOW JOBS")
            #expect(jobs.map { [$0[1], $0[2]] } == [["bad", "failed"], ["good", "running"], ["above", "failed"]])
            #expect(jobs[0][9]?.contains("has version 99, and this program knows up to \(StreamPlan.formatVersion)") == true)
            #expect(jobs[0][9]?.contains("REBUILD MATERIALIZED VIEW makes its plan anew.") == true)
            #expect(jobs[2][9]?.contains("materialized view \"bad\" does not run: ") == true)
            for statement in ["SELECT * FROM bad", "SELECT * FROM above", "CREATE MATERIALIZED VIEW more AS SELECT n FROM bad"] {
                let error = await error { () throws(SQLError) in try await world.run(statement) }
                #expect(error?.sqlState == .objectNotInPrerequisiteState, "\(statement)")
                #expect(error?.hint?.contains("REBUILD") == true, "\(statement)")
            }
            try await world.run("REBUILD MATERIALIZED VIEW bad")
            #expect(try await rows(world, "SELECT * FROM above") == [["7"]])
            #expect(try await rows(world, "SHOW JOBS").map { $0[2] } == ["running", "running", "running"])
        }
        try await withEngine(over: meta, assembly) { (world) async throws in
            #expect(try await rows(world, "SELECT * FROM above") == [["7"]])
            try await world.run("DROP MATERIALIZED VIEW bad CASCADE")
        }
    }

    @Test func aSourceThatCannotBeMadeIsTriedAgain() async throws {
        let meta = try MetaStore.inMemory()
        let connectors = ["s": ScriptedConnector(#"{"a":1}"#), "u": ScriptedConnector(#"{"a":2}"#)]
        let changing = ChangingAssembly(connectors)
        try await withEngine(over: meta, changing) { (world) async throws in
            try await world.run("\(create("s")); \(create("u"))")
            for name in ["s", "u"] { try await world.run("CREATE MATERIALIZED VIEW v_\(name) AS SELECT sum(a) AS n FROM \(name)") }
        }
        changing.connectors.withLock { $0["s"] = nil }
        let clock = VirtualClock()
        try await withEngine(over: meta, changing, clock: clock) { (world) async throws in
            #expect(try await rows(world, "SELECT * FROM v_u") == [["2"]])
            let job = try #require(try await rows(world, "SHOW JOBS").first)
            #expect(job[2] == "retrying")
            #expect(job[9]?.contains("source \"s\" does not run: there is no connector \"s\"") == true)
            #expect(
                await error { () throws(SQLError) in try await world.run("SELECT * FROM v_s") }?.sqlState == .objectNotInPrerequisiteState)
            #expect(
                await error { () throws(SQLError) in try await world.run("SELECT * FROM s") }?.sqlState == .objectNotInPrerequisiteState)
            await clock.untilSleeping()
            clock.advance(by: .seconds(1))
            // Tried in vain; the next time is two seconds later.
            await clock.untilSleeping()
            changing.connectors.withLock { $0["s"] = connectors["s"] }
            clock.advance(by: .seconds(2))
            while try await rows(world, "SHOW JOBS").first?[2] != "running" { await Task.yield() }
            #expect(try await rows(world, "SELECT * FROM v_s") == [["1"]])
            try await world.run("CREATE MATERIALIZED VIEW late AS SELECT a FROM s")
        }
    }

    @Test func aBrokerThatIsAwayHoldsUpOnlyWhatReadsIt() async throws {
        let meta = try MetaStore.inMemory()
        let connectors = ["s": ScriptedConnector(#"{"a":1}"#), "u": ScriptedConnector(#"{"a":2}"#)]
        let assembly = ScriptedAssembly(connectors: connectors)
        try await withEngine(over: meta, assembly) { (world) async throws in
            try await world.run("\(create("s")); \(create("u"))")
            for name in ["s", "u"] { try await world.run("CREATE MATERIALIZED VIEW v_\(name) AS SELECT sum(a) AS n FROM \(name)") }
        }
        connectors["s"]?.change { $0.questionError = SQLError(.connectionFailure, "nobody listens") }
        let clock = VirtualClock()
        try await withEngine(over: meta, assembly, clock: clock) { (world) async throws in
            #expect(try await rows(world, "SELECT * FROM v_u") == [["2"]])
            await clock.untilSleeping()
            let job = try #require(try await rows(world, "SHOW JOBS").first)
            #expect([job[2], job[9]] == ["recovering", "08006: nobody listens"])
            let error = await error { () throws(SQLError) in try await world.run("SELECT * FROM v_s") }
            #expect(error?.message == "materialized view \"v_s\" does not run: nobody listens")
            connectors["s"]?.change { $0.questionError = nil }
            clock.advance(by: .seconds(1))
            while try await rows(world, "SHOW JOBS").first?[2] != "running" { await Task.yield() }
            #expect(try await rows(world, "SELECT * FROM v_s") == [["1"]])
        }
    }

    @Test func aSelectThatWaitsForARestoredViewCanBeCancelled() async throws {
        let meta = try MetaStore.inMemory()
        let connector = ScriptedConnector(#"{"a":1}"#)
        let assembly = ScriptedAssembly(connectors: ["s": connector])
        try await withEngine(over: meta, assembly) { (world) async throws in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS n FROM s")
        }
        connector.change { $0.missing = 3 }
        try await withEngine(over: meta, assembly) { (world) async throws in
            connector.change { $0.onEmptyPoll = { world.session.cancel() } }
            try await world.run("SET statement_timeout = '1s'")
            #expect(await error { () throws(SQLError) in try await world.run("SELECT * FROM v") }?.sqlState == .queryCanceled)
            #expect(try await rows(world, "SHOW JOBS").map { $0[2] } == ["recovering"])
        }
    }
}

/// A `ScriptedAssembly` whose connectors come and go.
final class ChangingAssembly: SourceAssembly {
    let connectors: Mutex<[String: ScriptedConnector]>

    init(_ connectors: [String: ScriptedConnector]) { self.connectors = Mutex(connectors) }

    func source(
        name: String, options: [CatalogOption], fields: [Field], catalogs: @escaping IcebergSource.CatalogFinder
    ) throws(SQLError) -> AssembledSource {
        let now = ScriptedAssembly(connectors: connectors.withLock { $0 })
        return try now.source(name: name, options: options, fields: fields, catalogs: catalogs)
    }
}
