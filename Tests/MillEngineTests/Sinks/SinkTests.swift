import MillBase
import MillColumnar
import MillDataflow
import MillEngine
import MillIO
import MillLog
import MillMeta
import MillTestKit
import Synchronization
import Testing

@testable import MillStore

/// CREATE SINK over a target in memory: what arrives, and when, through failures and restarts.
@Suite(.timeLimit(.minutes(10))) struct SinkTests {
    let files = MemoryFileSystem()
    let target = ScriptedTarget()
    let clock = VirtualClock()

    /// One life of a server over the files as they are.
    func withEngine(
        _ meta: MetaStore, workers: Int = 1, outboxBytesMax: Int = 10 << 30, interval: Duration = .seconds(1), isKilled: Bool = false,
        _ body: (EngineWorld) async throws -> Void
    ) async throws {
        let environment = Environment(files: files, clock: clock, random: SeededSource(1))
        let keeper = try StateKeeper(environment: environment, directory: "/data/state", options: StateKeeper.Options(interval: interval))
        let log = try DMLLog(environment: environment, directory: "/data/dml")
        defer { log.close() }
        let engine = try Engine(
            environment: environment, options: Engine.Options(workerCount: workers, outboxBytesMax: outboxBytesMax),
            assembly: SinkAssembly(targets: ["memory": target.nextLife()]), meta: meta, keeper: keeper, dmlLog: log)
        let world = EngineWorld(engine, files: files)
        do {
            try await engine.restore()
            try await body(world)
        } catch {
            await world.stop()
            throw error
        }
        if isKilled { files.setFault { _, _ in 5 } }
        await world.stop()
        files.setFault(nil)
    }

    func text(_ world: EngineWorld, _ sql: String) async throws -> [[String?]] { try #require(try await world.run(sql).last).rows }

    /// What a relation holds, as the target shows rows.
    func rows(_ world: EngineWorld, _ relation: String) async throws -> [String: Int64] {
        let answer = try #require(try await world.run("SELECT * FROM \(relation)").last)
        var rows: [String: Int64] = [:]
        for batch in answer.batches {
            let fields = batch.columns.indices.map { Field("c\($0)", batch.columns[$0].type) }
            for row in 0..<batch.count { rows[LateRows.json(batch, row, fields), default: 0] += batch.weight(row) }
        }
        return rows
    }

    /// A checkpoint, and what it holds at the target.
    func settle(_ world: EngineWorld, _ sql: String = "") async throws {
        try await world.run(sql.isEmpty ? "FLUSH" : sql + "; FLUSH")
        _ = await world.engine.checkpoint()
    }

    func expectTarget(_ world: EngineWorld, equals relation: String) async throws {
        let wanted = try await rows(world, relation)
        let limit = ContinuousClock.now + .seconds(20)
        while target.rows != wanted {
            guard ContinuousClock.now < limit else {
                let line = try await text(world, "SHOW SINKS")
                Issue.record("the target has \(target.rows.count) rows, not the \(wanted.count) of \(relation); the sink is \(line)")
                return
            }
            await Task.yield()
        }
        let problems = target.state.withLock { $0.problems }
        #expect(problems == [])
    }

    func error(_ world: EngineWorld, _ sql: String) async -> SQLError? {
        do throws(SQLError) { try await world.run(sql) } catch { return error }
        return nil
    }

    static let definitions = """
        CREATE TABLE t (id int PRIMARY KEY, k int, v varchar);
        CREATE MATERIALIZED VIEW sums AS SELECT k, count(*) AS n, max(v) AS most FROM t GROUP BY k;
        """

    /// Rows numbered from 1.
    private static func insert(_ count: Int) -> String {
        "INSERT INTO t VALUES " + (1...count).map { "(\($0), \($0 % 5), 'a value of some length \($0)')" }.joined(separator: ", ")
    }

    // MARK: What arrives

    @Test(arguments: [1, 3]) func anUpsertSinkHoldsWhatTheViewDoes(workers: Int) async throws {
        let meta = try MetaStore.inMemory()
        try await withEngine(meta, workers: workers) { world in
            try await world.run(Self.definitions + "\(Self.insert(100)); FLUSH")
            try await world.run("CREATE SINK out FROM sums WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1000, 1, 'later')")
            try await expectTarget(world, equals: "sums")
            let key = target.state.withLock { $0.key }
            #expect(key == [0])
            try await settle(world, "DELETE FROM t WHERE k = 2; UPDATE t SET v = 'other' WHERE id = 1")
            try await expectTarget(world, equals: "sums")
            let shown = try await text(world, "SHOW SINKS")
            #expect(shown.count == 1)
            #expect(shown[0][..<5] == ["out", "memory", "upsert", "sums", "running"])
        }
    }

    @Test func theNamesOfOptionsAreChecked() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(Self.definitions)
            func refusal(_ options: String, from: String = "sums") async -> SQLError? {
                await error(world, "CREATE SINK out FROM \(from) WITH (connector = 'memory', \(options))")
            }
            let missing = await refusal("typ = 'upsert'")
            #expect(missing?.sqlState == .invalidParameterValue && missing?.hint?.contains("Perhaps") == true)
            let close = await refusal("type = 'upsert', primry_key = 'k'")
            #expect(close?.hint == "Perhaps you meant \"primary_key\".")
            let column = await refusal("type = 'upsert', primary_key = 'x'")
            #expect(column?.sqlState == .undefinedColumn)
            let append = await refusal("type = 'append-only'")
            #expect(append?.sqlState == .featureNotSupported && append?.hint?.contains("force_append_only") == true)
            let debezium = await refusal("type = 'debezium'")
            #expect(debezium?.sqlState == .featureNotSupported)
            let relation = await refusal("type = 'upsert'", from: "nothing")
            #expect(relation?.sqlState == .undefinedTable)
            target.change { $0.fault = { $0 == .prepare ? SQLError(.connectionFailure, "nobody is there") : nil } }
            let away = await refusal("type = 'upsert'")
            #expect(away?.sqlState == .connectionFailure)
            let shown = try await text(world, "SHOW SINKS")
            #expect(shown.isEmpty)
        }
    }

    @Test func whatIsDropppedOrNamedTwiceIsToldAsForOtherObjects() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(
                Self.definitions + "CREATE SINK out FROM sums WITH (connector = 'memory', type = 'upsert', s3.secret.key = 'hidden')")
            let twice = await error(world, "CREATE SINK out FROM sums WITH (connector = 'memory', type = 'upsert')")
            #expect(twice?.sqlState == .duplicateTable)
            try await world.run("CREATE SINK IF NOT EXISTS out FROM sums WITH (connector = 'memory', type = 'upsert')")
            let definition = try await text(world, "SHOW CREATE SINK out")
            #expect(definition[0][1]?.contains("hidden") == false && definition[0][1]?.contains("'****'") == true)
            let held = await error(world, "DROP MATERIALIZED VIEW sums")
            #expect(held?.sqlState == .dependentObjectsStillExist)
            let read = await error(world, "SELECT * FROM out")
            #expect(read?.sqlState == .wrongObjectType)
            let columns = try await text(world, "DESCRIBE out")
            #expect(columns.map { $0[0] } == ["k", "n", "most"])
            try await world.run("DROP MATERIALIZED VIEW sums CASCADE")
            let shown = try await text(world, "SHOW SINKS")
            #expect(shown.isEmpty)
            try await world.run("DROP SINK IF EXISTS out")
        }
    }

    @Test func aSinkThatOnlyAddsHasTheHistory() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(Self.definitions + "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b'); FLUSH")
            try await world.run(
                "CREATE SINK out AS SELECT id, v FROM t WITH (connector = 'memory', type = 'append-only', force_append_only = 'true')")
            try await settle(world, "UPDATE t SET v = 'c' WHERE id = 1")
            try await settle(world, "DELETE FROM t WHERE id = 2")
            try await settle(world, "INSERT INTO t VALUES (3, 3, 'd')")
            let rows: [String: Int64] = [
                #"{"c0": 1, "c1": "a"}"#: 1, #"{"c0": 2, "c1": "b"}"#: 1, #"{"c0": 1, "c1": "c"}"#: 1, #"{"c0": 3, "c1": "d"}"#: 1,
            ]
            await target.until { $0.rows[#"{"c0": 3, "c1": "d"}"#] == 1 }
            let found = target.rows
            #expect(found == rows || found == rows.filter { !$0.key.contains(#""a""#) })
        }
    }

    @Test func withoutItsRowsASinkHasWhatComesLater() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(Self.definitions + "INSERT INTO t VALUES (1, 1, 'a'); FLUSH")
            try await world.run("CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert', snapshot = 'false')")
            try await settle(world, "INSERT INTO t VALUES (2, 2, 'b')")
            await target.until { !$0.rows.isEmpty }
            let found = target.rows
            #expect(found == [#"{"c0": 2, "c1": 2, "c2": "b"}"#: 1])
        }
    }

    @Test func everyTypeArrivesAsItIs() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(
                """
                CREATE TABLE every (id int PRIMARY KEY, b boolean, s smallint, l bigint, r real, d double precision, n numeric, v varchar, y bytea, da date,
                    ti time, ts timestamp, tz timestamptz, iv interval, j jsonb);
                INSERT INTO every VALUES
                (1, true, -3, 9223372036854775807, 1.5, 'NaN', -12345678901234567890.123456789, 'Grüße 🙂 and more than twelve bytes', '\\x00ff10', '2024-02-29',
                    '23:59:59.999999', '2024-01-01 00:00:00', '2024-01-01 00:00:00+00', '1 mon 2 days 03:00:00', '{"a": [1, 2.50, null, "ü"]}'),
                (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
                (3, false, 0, 0, -0.0, 'Infinity', 0.10, '', '', 'infinity', '00:00:00', '-infinity', 'infinity', '-1 year', '"x"');
                CREATE SINK out FROM every WITH (connector = 'memory', type = 'upsert')
                """)
            try await settle(world)
            try await expectTarget(world, equals: "every")
        }
    }

    @Test(arguments: [1, 3]) func aLargeViewArrivesInOneCommit(workers: Int) async throws {
        try await withEngine(try MetaStore.inMemory(), workers: workers) { world in
            try await world.run(
                Self.definitions + "\(Self.insert(150_000)); FLUSH;"
                    + "CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            // Changes while the rows are taken over.
            try await world.run("DELETE FROM t WHERE id % 7 = 0; UPDATE t SET v = 'new' WHERE id % 11 = 0")
            try await settle(world)
            try await expectTarget(world, equals: "t")
            let commits = target.state.withLock { $0.commits.count }
            #expect(commits == 1)
        }
    }

    // MARK: Restarts

    @Test(arguments: [1, 3]) func afterARestartNothingIsMissingAndNothingTwice(workers: Int) async throws {
        let meta = try MetaStore.inMemory()
        try await withEngine(meta, workers: workers) { world in
            try await world.run(Self.definitions + "CREATE SINK out FROM sums WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')")
            try await expectTarget(world, equals: "sums")
            try await settle(world, "PAUSE SINK out; INSERT INTO t VALUES (3, 1, 'c')")
        }
        for life in 0..<3 {
            let isKilled = life == 1
            try await withEngine(meta, workers: isKilled ? workers : 4 - workers, isKilled: isKilled) { world in
                if life == 0 { try await world.run("RESUME SINK out") }
                try await settle(
                    world,
                    "UPDATE t SET v = 'life \(life)' WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (\(10 + life), 2, 'x')")
                try await expectTarget(world, equals: "sums")
                // Not in a checkpoint: the next life has it again.
                try await world.run("INSERT INTO t VALUES (\(20 + life), 5, 'y'); FLUSH")
            }
        }
        try await withEngine(meta, workers: workers) { world in
            try await settle(world, "INSERT INTO t VALUES (30, 6, 'z')")
            try await expectTarget(world, equals: "sums")
            let clears = target.state.withLock { $0.clears }
            #expect(clears == 0)
        }
    }

    @Test func aLostAnswerIsNoSecondCommit() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(Self.definitions + "CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            let left = Mutex(1)
            target.change { state in
                state.lostAnswer = {
                    left.withLock { left in
                        left -= 1
                        return left >= 0 ? SQLError(.connectionFailure, "no answer") : nil
                    }
                }
            }
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a')")
            await target.until { $0.commits.count == 1 }
            let ticking = Task { [clock] in
                while !Task.isCancelled {
                    clock.advance(by: .seconds(1))
                    await Task.yield()
                }
            }
            try await settle(world, "INSERT INTO t VALUES (2, 1, 'b')")
            try await expectTarget(world, equals: "t")
            ticking.cancel()
            let lines = try await text(world, "SHOW SINKS")
            #expect(lines[0][5] == "2")
        }
    }

    @Test func aTargetThatIsAheadStopsTheSink() async throws {
        let meta = try MetaStore.inMemory()
        try await withEngine(meta) { world in
            try await world.run(Self.definitions + "CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a')")
            try await expectTarget(world, equals: "t")
        }
        target.change { $0.committedEpoch = 100_000 }
        try await withEngine(meta) { world in
            try await untilState(world, "failed")
            let line = try await text(world, "SHOW SINKS")[0]
            #expect(line[11]?.contains("55000") == true && line[11]?.contains("100000") == true)
        }
    }

    /// Waits for what SHOW SINKS says of the one sink.
    func untilState(_ world: EngineWorld, _ state: String) async throws {
        let limit = ContinuousClock.now + .seconds(30)
        while try await text(world, "SHOW SINKS").first?[4] != state {
            guard ContinuousClock.now < limit else {
                Issue.record("the sink is \(try await text(world, "SHOW SINKS"))")
                return
            }
            clock.advance(by: .milliseconds(100))
            await Task.yield()
        }
    }

    // MARK: Failures

    @Test func refusedRowsAreThereOnceThroughRestarts() async throws {
        let meta = try MetaStore.inMemory()
        target.change { $0.refuses = { $0.contains("bad") ? "it is bad" : nil } }
        try await withEngine(meta) { world in
            try await world.run(Self.definitions + "CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'good'), (2, 1, 'bad 2')")
            await target.until { $0.committedEpoch != nil }
            let found = try await text(world, "SELECT column_name, \"row\"->>'id', reason FROM out_errors")
            #expect(found == [[nil, "2", "it is bad"]])
            // Written, refused, and not committed.
            target.change { $0.fault = { $0 == .commit ? SQLError(.connectionFailure, "away") : nil } }
            try await settle(world, "INSERT INTO t VALUES (3, 1, 'bad 3')")
            try await untilState(world, "retrying")
        }
        target.change { $0.fault = nil }
        try await withEngine(meta) { world in
            try await settle(world, "INSERT INTO t VALUES (4, 1, 'good too')")
            await target.until { $0.rows.count == 2 }
            let found = try await text(world, "SELECT \"row\"->>'id' FROM out_errors ORDER BY 1")
            #expect(found == [["2"], ["3"]])
        }
    }

    @Test func aStoppedSinkGoesOnAfterResume() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            target.change { $0.fault = { $0 == .write ? SQLError(.datatypeMismatch, "no such column") : nil } }
            try await world.run(Self.definitions + "CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a')")
            try await untilState(world, "failed")
            // Views go on.
            let found = try await text(world, "SELECT n FROM sums")
            #expect(found == [["1"]])
            target.change { $0.fault = nil }
            try await world.run("RESUME SINK out")
            try await expectTarget(world, equals: "t")
        }
    }

    @Test func aFullOutboxGivesTheSinkUpAndResumeSendsAllAnew() async throws {
        let meta = try MetaStore.inMemory()
        try await withEngine(meta, outboxBytesMax: 4000) { world in
            try await world.run(Self.definitions + "CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b')")
            try await expectTarget(world, equals: "t")
            try await world.run("PAUSE SINK out; DELETE FROM t WHERE id = 2")
            for number in 10..<60 { try await world.run("INSERT INTO t VALUES (\(number), 1, 'a value of some length'); FLUSH") }
            try await settle(world)
            let line = try await text(world, "SHOW SINKS")[0]
            #expect(line[4] == "failed" && line[11]?.contains("53100") == true)
        }
        try await withEngine(meta, outboxBytesMax: 1 << 20) { world in
            let line = try await text(world, "SHOW SINKS")[0]
            #expect(line[4] == "failed" && line[11]?.contains("53100") == true)
            try await settle(world, "RESUME SINK out")
            try await expectTarget(world, equals: "t")
            let clears = target.state.withLock { $0.clears }
            #expect(clears == 1)
        }
    }

    @Test func aRebuiltViewEmptiesTheTargetInOneCommit() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(Self.definitions + "CREATE SINK out FROM sums WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')")
            try await expectTarget(world, equals: "sums")
            try await world.run("REBUILD MATERIALIZED VIEW sums")
            try await settle(world, "DELETE FROM t WHERE id = 2")
            try await expectTarget(world, equals: "sums")
            let (clears, commits) = target.state.withLock { ($0.clears, $0.commits.count) }
            #expect(clears == 1 && commits == 2)
        }
    }

    @Test func anIdleRelationMakesNoCommitsAndNoLag() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(
                Self.definitions + "CREATE TABLE other (a int); CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a')")
            await target.until { $0.commits.count == 1 }
            for _ in 0..<5 { try await settle(world, "INSERT INTO other VALUES (1)") }
            try await untilLag(world, "0")
            let commits = target.state.withLock { $0.commits.count }
            #expect(commits == 1)
        }
    }

    private func untilLag(_ world: EngineWorld, _ lag: String) async throws {
        let limit = ContinuousClock.now + .seconds(30)
        while let line = try await text(world, "SHOW SINKS").first, line[8] != lag || line[9] != lag {
            guard ContinuousClock.now < limit else {
                Issue.record("the sink is \(line)")
                return
            }
            await Task.yield()
        }
    }

    @Test func commitsAreAsRareAsTheyAreToBe() async throws {
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(
                Self.definitions
                    + "SET execution.checkpointing.interval = '60s'; CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a')")
            await target.until { $0.commits.count == 1 }
            for number in 2..<6 { try await settle(world, "INSERT INTO t VALUES (\(number), 1, 'a')") }
            await clock.untilSleeping()
            let before = target.state.withLock { $0.commits.count }
            #expect(before == 1)
            clock.advance(by: .seconds(61))
            try await expectTarget(world, equals: "t")
            let after = target.state.withLock { $0.commits.count }
            #expect(after == 2)
        }
    }

    @Test func aSlowTargetHoldsUpNobody() async throws {
        let gate = Semaphore()
        try await withEngine(try MetaStore.inMemory()) { world in
            try await world.run(Self.definitions + "CREATE SINK out FROM t WITH (connector = 'memory', type = 'upsert')")
            target.change { $0.onCall = { if $0 == .commit { gate.wait() } } }
            try await settle(world, "INSERT INTO t VALUES (1, 1, 'a')")
            for number in 2..<20 { try await settle(world, "INSERT INTO t VALUES (\(number), 1, 'a')") }
            let found = try await text(world, "SELECT n FROM sums")
            #expect(found == [["19"]])
            // Dropped while it is being written to.
            try await world.run("DROP SINK out")
            target.change { $0.onCall = nil }
            gate.signal()
        }
    }
}
