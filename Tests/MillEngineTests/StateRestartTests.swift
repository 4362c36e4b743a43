import MillBase
import MillCatalog
import MillEngine
import MillIO
import MillLog
import MillMeta
import MillState
import MillTestKit
import Synchronization
import Testing

@testable import MillStore

/// What becomes of jobs whose state is damaged, or that cannot go on at once from where the checkpoint has them.
@Suite(.timeLimit(.minutes(10))) struct StateRestartTests {
    private let files = MemoryFileSystem()

    /// One life of an engine over the files as they are, which ends after a checkpoint.
    private func withEngine(_ meta: MetaStore, _ connectors: ChangingAssembly, clock: VirtualClock = VirtualClock(), dmlLog: Bool = false, workers: Int = 1, _ body: (EngineWorld) async throws -> Void) async throws {
        let environment = Environment(files: files, clock: clock, random: SeededSource(1))
        let keeper = try StateKeeper(environment: environment, directory: "/data/state")
        let log = dmlLog ? try DMLLog(environment: environment, directory: "/data/dml") : nil
        defer { log?.close() }
        let options = Engine.Options(workerCount: workers)
        let engine = try Engine(environment: environment, options: options, assembly: connectors, meta: meta, keeper: keeper, dmlLog: log)
        do { try await engine.restore() } catch {
            await engine.stop()
            throw error
        }
        let world = EngineWorld(engine, files: files)
        do { try await body(world) } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private func create(_ name: String) -> String { "CREATE SOURCE \(name) (a int) WITH (connector = '\(name)') FORMAT PLAIN ENCODE JSON" }

    private func rows(_ world: EngineWorld, _ sql: String) async throws -> [[String?]] { try #require(try await world.run(sql).last).rows }

    /// Flips a bit in the first block of a checkpoint's first table; the closure given back does it again.
    private func flipBit(of checkpoint: UInt64) throws -> () throws -> Void {
        let record = try CheckpointRecord(files.open("/data/state/checkpoint-\(checkpoint)", .read).readAll())
        let table = try #require(record.tables.first).id
        let number = try #require(record.files.first).number
        let file = try files.open("/data/state/pages-\(number)", .readWrite)
        let whole = try file.readAll()
        let block = try #require(whole.indices.dropFirst(16).first { index in
            whole.withUnsafeBytes { all in
                index & 7 == 0 && index + 32 <= all.count
                    && BlockChecksums.isHeaderWhole(UnsafeRawBufferPointer(rebasing: all[index..<index + 32]))
                    && all.loadUnaligned(fromByteOffset: index + 8, as: UInt32.self) == table.number
            }
        })
        let flip = {
            var bytes = try file.readAll()
            bytes[block + 40] ^= 1
            try file.write(bytes)
        }
        try flip()
        return flip
    }

    @Test func aSourceIsToldWhatItWas() async throws {
        let meta = try MetaStore.inMemory()
        let source = ScriptedConnector(#"{"a":1}"#)
        let connectors = ChangingAssembly(["s": source])
        try await withEngine(meta, connectors) { world in
            try await world.run(create("s"))
            source.change { $0.incarnation = "the first" }
            try await world.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM s; FLUSH")
        }
        let none = source.state.withLock { $0.expected }
        #expect(none == nil)
        try await withEngine(meta, connectors) { world in
            let found = try await rows(world, "SELECT * FROM v")
            #expect(found == [["1"]])
        }
        let expected = source.state.withLock { $0.expected }
        #expect(expected == "the first")
    }

    /// A topic that was deleted takes nothing away that was read of it, however often the server starts.
    @Test(arguments: [1, 2]) func aSourceThatIsGoneTakesNoStateAlong(_ workers: Int) async throws {
        let meta = try MetaStore.inMemory()
        let source = ScriptedConnector(#"{"a":1}"#)
        source.change { $0.splits.append([#"{"a":2}"#]) }
        let connectors = ChangingAssembly(["s": source])
        try await withEngine(meta, connectors, workers: workers) { world in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM s GROUP BY a")
            try await world.run("CREATE MATERIALIZED VIEW above AS SELECT sum(a * n) AS total FROM v; FLUSH")
        }
        source.change { state in
            state.openError = SQLError(.objectNotInPrerequisiteState, "the topic was deleted")
            state.questionError = state.openError
        }
        for life in 0..<3 {
            try await withEngine(meta, connectors, workers: workers) { world in
                #expect(try await rows(world, "SELECT * FROM v ORDER BY a") == [["1", "1"], ["2", "1"]])
                #expect(try await rows(world, "SELECT total FROM above") == [["3"]])
                let jobs = try await rows(world, "SHOW JOBS")
                #expect(jobs.map { [$0[1], $0[2]] } == [["v", "failed"], ["above", "waiting"]], "life \(life): \(jobs)")
                #expect(jobs.allSatisfy { $0[9]?.contains("the topic was deleted") == true }, "\(jobs)")
                #expect(try await rows(world, "SHOW SOURCES").map { $0.contains("failed") } == [true])
            }
        }
        source.change { state in
            (state.openError, state.questionError) = (nil, nil)
            state.splits[0].append(#"{"a":3}"#)
        }
        try await withEngine(meta, connectors, workers: workers) { world in
            try await world.run("FLUSH")
            #expect(try await rows(world, "SELECT total FROM above") == [["6"]])
            #expect(try await rows(world, "SELECT * FROM v ORDER BY a") == [["1", "1"], ["2", "1"], ["3", "1"]])
        }
    }

    @Test func damageStopsItsOwnJobAlone() async throws {
        let meta = try MetaStore.inMemory()
        let connectors = ChangingAssembly(["s": ScriptedConnector(#"{"a":1}"#, #"{"a":2}"#)])
        try await withEngine(meta, connectors) { world in
            try await world.run(create("s"))
            for name in ["first", "second"] { try await world.run("CREATE MATERIALIZED VIEW \(name) AS SELECT a, count(*) AS n FROM s GROUP BY a") }
            try await world.run("CREATE MATERIALIZED VIEW above AS SELECT max(n) AS most FROM first; FLUSH")
        }
        _ = try flipBit(of: 1)
        try await withEngine(meta, connectors) { world in
            #expect(try await rows(world, "SELECT * FROM second ORDER BY a") == [["1", "1"], ["2", "1"]])
            let jobs = try await rows(world, "SHOW JOBS")
            #expect(jobs.map { [$0[1], $0[2]] } == [["first", "failed"], ["second", "running"], ["above", "failed"]])
            #expect(jobs[0][9]?.hasPrefix("XX001: the stored state of ") == true, "\(jobs)")
            try await world.run("REBUILD MATERIALIZED VIEW first")
            #expect(try await rows(world, "SELECT * FROM above") == [["1"]])
        }
    }

    /// No epoch begins that could not be noted, so what is there is read as before, and all goes on when there is room.
    @Test func aFullDiskStopsNoReader() async throws {
        let connector = ScriptedConnector(#"{"a":1}"#)
        let files = files
        try await withEngine(try MetaStore.inMemory(), ChangingAssembly(["s": connector])) { world in
            try await world.run(create("s"))
            try await world.run("CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n FROM s; FLUSH")
            let refusals = Mutex(0)
            files.setFault { operation, path in
                guard operation == .reserve, path.contains("journal-") else { return nil }
                refusals.withLock { $0 += 1 }
                return 28
            }
            // Its journal has no room ahead.
            #expect(await world.engine.checkpoint() != nil)
            connector.change { $0.splits[0].append(#"{"a":2}"#) }
            while refusals.withLock({ $0 }) < 2 { await Task.yield() }
            #expect(try await rows(world, "SELECT n FROM total") == [["1"]])
            files.setFault(nil)
            while try await rows(world, "SELECT n FROM total") != [["2"]] { _ = await world.engine.checkpoint() }
        }
    }

    /// Transactions that were made while it was away are behind what it holds. What is kept of it is as its own workers made it, whatever
    /// number of them the others have by then.
    @Test(arguments: [[1, 1, 1, 1], [1, 2, 1, 3], [1, 3, 2, 2]]) func aTableThatHealsHasAllTransactions(workers: [Int]) async throws {
        let meta = try MetaStore.inMemory()
        let none = ChangingAssembly([:])
        try await withEngine(meta, none, dmlLog: true, workers: workers[0]) { world in try await world.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)") }
        try await withEngine(meta, none, dmlLog: true, workers: workers[0]) { world in
            try await world.run("CREATE TABLE u (a int); INSERT INTO t VALUES (2); INSERT INTO u VALUES (7)")
            files.setFault { operation, path in operation == .write && path.contains("/state/") ? 5 : nil }
        }
        files.setFault(nil)
        let flip = try flipBit(of: 1)
        try await withEngine(meta, none, dmlLog: true, workers: workers[1]) { world in
            let failure = await #expect(throws: SQLError.self) { try await world.run("SELECT a FROM t") }
            #expect(failure?.sqlState == .objectNotInPrerequisiteState)
            try await world.run("INSERT INTO u VALUES (8)")
            #expect(await world.engine.checkpoint() != nil)
            try await world.run("INSERT INTO u VALUES (9)")
        }
        try await withEngine(meta, none, dmlLog: true, workers: workers[2]) { world in
            let kept = try await rows(world, "SELECT a FROM u ORDER BY a")
            #expect(kept == [["7"], ["8"], ["9"]])
        }
        try flip()
        for _ in 0..<2 {
            try await withEngine(meta, none, dmlLog: true, workers: workers[3]) { world in
                let healed = try await rows(world, "SELECT a FROM t ORDER BY a")
                #expect(healed == [["1"], ["2"]])
                let kept = try await rows(world, "SELECT a FROM u ORDER BY a")
                #expect(kept == [["7"], ["8"], ["9"]])
            }
        }
    }

    /// While one of its sources is away what the other holds is read by others.
    @Test func aViewThatJoinsLaterMissesNothing() async throws {
        let meta = try MetaStore.inMemory()
        let (s, late) = (ScriptedConnector(#"{"a":1}"#), ScriptedConnector(#"{"a":1}"#, #"{"a":2}"#))
        let connectors = ChangingAssembly(["s": s, "late": late])
        try await withEngine(meta, connectors) { world in
            try await world.run("\(create("s")); \(create("late")); CREATE MATERIALIZED VIEW sum AS SELECT sum(a) AS n FROM s")
            try await world.run("CREATE MATERIALIZED VIEW pairs AS SELECT s.a FROM s JOIN late ON s.a = late.a; FLUSH")
        }
        connectors.connectors.withLock { $0["late"] = nil }
        let clock = VirtualClock()
        try await withEngine(meta, connectors, clock: clock) { world in
            s.change { $0.splits[0].append(#"{"a":2}"#) }
            while try await rows(world, "SELECT n FROM sum") != [["3"]] { await Task.yield() }
            await clock.untilSleeping()
            connectors.connectors.withLock { $0["late"] = late }
            clock.advance(by: .seconds(1))
            while try await rows(world, "SHOW JOBS").last?[2] != "running" { await Task.yield() }
            #expect(try await rows(world, "SELECT a FROM pairs ORDER BY a") == [["1"], ["2"]])
        }
    }

    /// A crash right after REBUILD: the plan is the new one, what the checkpoint has was made by the old one.
    @Test func stateOfAnotherPlanIsNotTakenUp() async throws {
        let meta = try MetaStore.inMemory()
        let connectors = ChangingAssembly(["s": ScriptedConnector(#"{"a":1}"#, #"{"a":2}"#)])
        try await withEngine(meta, connectors) { world in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW total AS SELECT sum(a) AS n FROM s")
            try await world.run("CREATE MATERIALIZED VIEW above AS SELECT n + 1 AS n FROM total")
            try await world.run("CREATE MATERIALIZED VIEW other AS SELECT sum(a + 9) AS n FROM s; FLUSH")
        }
        let stored = try meta.load().objects
        let other = try #require(stored.first { $0.object.name == "other" }?.job).plan.get()
        let total = try #require(stored.first { $0.object.name == "total" }).object.id
        // Of the same shape: the state would fit.
        try meta.replacePlan(of: total, by: other)
        try await withEngine(meta, connectors) { world in
            let above = try await rows(world, "SELECT n FROM above")
            #expect(above == [["22"]])
        }
    }

    /// Numbers of transactions that a checkpoint has are not given out again.
    @Test func aLogOfTransactionsThatEndsTooEarlyIsRefused() async throws {
        let meta = try MetaStore.inMemory()
        let connectors = ChangingAssembly([:])
        try await withEngine(meta, connectors, dmlLog: true) { world in try await world.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1)") }
        try await withEngine(meta, connectors, dmlLog: true) { world in
            let kept = try await rows(world, "SELECT a FROM t")
            #expect(kept == [["1"]])
        }
        try files.remove("/data/dml")
        let error = await #expect(throws: SQLError.self) { try await withEngine(meta, connectors, dmlLog: true) { _ in } }
        #expect(error?.sqlState == .dataCorrupted)
    }
}
