import MillBase
import MillColumnar
import MillEngine
import MillIO
import MillMeta
import MillTestKit
import Synchronization
import Testing

/// PAUSE and RESUME: what stands still, what goes on, and what a restart makes of it.
///
/// A record of split b has its number in the split as a: a view that has read a prefix of each split once has n rows of each, with the
/// sum n(n-1)/2.
@Suite(.timeLimit(.minutes(2))) struct PauseTests {
    private let files = MemoryFileSystem()
    private let meta: MetaStore
    private let connector = ScriptedConnector()

    init() throws {
        meta = try MetaStore.inMemory()
        connector.change { $0.splits = [[], []] }
    }

    private enum Ending { case stop, kill }

    /// One life of an engine over what earlier ones left.
    private func withEngine(workers: Int = 1, ending: Ending = .stop, _ body: (EngineWorld) async throws -> Void) async throws {
        let environment = Environment(files: files, clock: VirtualClock(), random: SeededSource(1))
        let keeper = try StateKeeper(environment: environment, directory: "/data/state")
        let engine = try Engine(
            environment: environment, options: Engine.Options(workerCount: workers), assembly: ScriptedAssembly(connectors: ["s": connector]), meta: meta,
            keeper: keeper)
        try await engine.restore()
        let world = EngineWorld(engine, files: files)
        do { try await body(world) } catch {
            await world.stop()
            throw error
        }
        // Nothing that a process does after kill -9 reaches the disk.
        if ending == .kill { files.setFault { _, _ in 5 } }
        await world.stop()
        files.setFault(nil)
    }

    private func create(_ world: EngineWorld, _ views: String...) async throws {
        try await world.run("CREATE SOURCE s (a int, b int) WITH (connector = 's') FORMAT PLAIN ENCODE JSON")
        for view in views { try await world.run("CREATE MATERIALIZED VIEW \(view) AS SELECT b, count(*) AS n, sum(a) AS total FROM s GROUP BY b") }
    }

    private func produce(_ count: Int, to split: Int = 0) {
        connector.change { state in
            let first = state.splits[split].count
            state.splits[split] += (first..<first + count).map { #"{"a":\#($0),"b":\#(split)}"# }
        }
    }

    private func rows(_ world: EngineWorld, _ sql: String) async throws -> [[String?]] { try #require(try await world.run(sql).last).rows }

    /// How many records of each split a view has; nil when it is not a prefix of each.
    private func prefixes(_ world: EngineWorld, _ view: String) async throws -> [Int]? {
        var counts = [0, 0]
        for row in try await rows(world, "SELECT b, n, total FROM \(view)") {
            guard let split = row[0].flatMap(Int.init), let n = row[1].flatMap(Int.init), row[2] == String(n * (n - 1) / 2) else { return nil }
            counts[split] = n
        }
        return counts
    }

    private func state(_ world: EngineWorld, _ view: String) async throws -> String? { try await job(world, view).state }

    private func job(_ world: EngineWorld, _ view: String) async throws -> (state: String?, lag: String?, message: String?, since: String?) {
        let line = try #require(try await rows(world, "SHOW JOBS").first { $0[1] == view })
        return (line[2], line[5], line[9], line[10])
    }

    private func error(of body: () async throws(SQLError) -> Void) async -> SQLError? {
        do throws(SQLError) { try await body() } catch { return error }
        return nil
    }

    // MARK: In one life

    @Test func aPausedViewKeepsItsPlaceWhileOthersGoOn() async throws {
        try await withEngine { (world) async throws in
            try await create(world, "v", "w")
            produce(5)
            produce(3, to: 1)
            try await world.run("FLUSH; PAUSE MATERIALIZED VIEW v")
            produce(4)
            connector.change { $0.splits.append([]) }
            produce(2, to: 1)
            try await world.run("FLUSH")
            #expect(try await prefixes(world, "v") == [5, 3])
            #expect(try await prefixes(world, "w") == [9, 5])
            #expect(try await state(world, "v") == "paused")
            try await world.run("RESUME MATERIALIZED VIEW v; FLUSH")
            #expect(try await prefixes(world, "v") == [9, 5])
            produce(1)
            try await world.run("FLUSH")
            #expect(try await prefixes(world, "v") == [10, 5])
            #expect(try await state(world, "v") == "running")
        }
    }

    @Test func theOnlyViewOfASourceIsPausedWithIt() async throws {
        try await withEngine { (world) async throws in
            try await create(world, "v")
            produce(5)
            try await world.run("FLUSH; PAUSE MATERIALIZED VIEW v")
            produce(4)
            // Nobody reads the source, so there is nothing to wait for.
            try await world.run("FLUSH")
            // The next view takes over all, and the paused one finds it there.
            try await world.run("CREATE MATERIALIZED VIEW w AS SELECT b, count(*) AS n, sum(a) AS total FROM s GROUP BY b")
            #expect(try await prefixes(world, "w") == [9, 0])
            #expect(try await prefixes(world, "v") == [5, 0])
            try await world.run("RESUME MATERIALIZED VIEW v; FLUSH")
            #expect(try await prefixes(world, "v") == [9, 0])
        }
    }

    @Test func aPausedSourceStandsStillForAll() async throws {
        try await withEngine { (world) async throws in
            try await create(world, "v")
            try await world.run("CREATE MATERIALIZED VIEW above AS SELECT sum(n) AS n FROM v")
            produce(5)
            try await world.run("FLUSH; PAUSE SOURCE s")
            produce(4)
            _ = world.session.takeMessages()
            try await world.run("FLUSH")
            let warnings = world.session.takeMessages().compactMap { if case .notice(let notice) = $0 { notice.message } else { nil } }
            #expect(warnings == ["source \"s\" is paused: rows are as of then"])
            #expect(try await prefixes(world, "v") == [5, 0])
            #expect(try await rows(world, "SELECT n FROM above") == [["5"]])
            #expect(try await rows(world, "SELECT count(*) FROM s") == [["5"]])
            #expect(try await state(world, "v") == "paused")
            let refused = await error { () throws(SQLError) in try await world.run("CREATE MATERIALIZED VIEW w AS SELECT a FROM s") }
            #expect(refused?.message == "source \"s\" is paused")
            try await world.run("RESUME SOURCE s; FLUSH")
            #expect(try await prefixes(world, "v") == [9, 0])
            #expect(try await rows(world, "SELECT n FROM above") == [["9"]])
        }
    }

    @Test func whatCannotBePausedAloneIsRefusedWithWhatCan() async throws {
        try await withEngine { (world) async throws in
            try await create(world, "v")
            try await world.run("CREATE TABLE t (b int, c int); CREATE MATERIALIZED VIEW joined AS SELECT s.a FROM s JOIN t ON s.b = t.b")
            try await world.run("CREATE MATERIALIZED VIEW above AS SELECT sum(n) AS n FROM v; CREATE VIEW plain AS SELECT 1 AS one")
            func refusal(_ statement: String) async -> SQLError? { await error { () throws(SQLError) in try await world.run(statement) } }
            let read = await refusal("PAUSE MATERIALIZED VIEW v")
            #expect(read?.message == "materialized view \"v\" cannot be paused alone: materialized view \"above\" reads it")
            #expect(read?.sqlState == .objectNotInPrerequisiteState)
            #expect(await refusal("PAUSE MATERIALIZED VIEW joined")?.sqlState == .objectNotInPrerequisiteState)
            #expect(await refusal("PAUSE MATERIALIZED VIEW above")?.message.hasSuffix("it reads materialized view \"v\", whose changes cannot wait") == true)
            #expect(await refusal("PAUSE TABLE t")?.sqlState == .featureNotSupported)
            #expect(await refusal("PAUSE SOURCE nothing")?.sqlState == .undefinedTable)
            #expect(await refusal("PAUSE MATERIALIZED VIEW plain")?.sqlState == .wrongObjectType)
            try await world.run("PAUSE SOURCE s; PAUSE SOURCE s; RESUME SOURCE s; RESUME SOURCE s")
        }
    }

    // MARK: Through restarts

    @Test(arguments: [1, 2]) func aPausedViewIsWhereItWasAfterARestart(workers: Int) async throws {
        try await withEngine { (world) async throws in
            try await create(world, "v", "w")
            produce(5)
            try await world.run("FLUSH; PAUSE MATERIALIZED VIEW v")
            produce(4)
            try await world.run("FLUSH")
        }
        produce(2)
        try await withEngine(workers: workers, ending: .kill) { (world) async throws in
            #expect(try await prefixes(world, "v") == [5, 0])
            #expect(try await state(world, "v") == "paused")
            try await world.run("FLUSH")
            #expect(try await prefixes(world, "w") == [11, 0])
        }
        try await withEngine(workers: workers) { (world) async throws in
            #expect(try await prefixes(world, "v") == [5, 0])
            try await world.run("RESUME MATERIALIZED VIEW v; FLUSH")
            #expect(try await prefixes(world, "v") == [11, 0])
        }
        try await withEngine(workers: workers) { (world) async throws in #expect(try await prefixes(world, "v") == [11, 0]) }
    }

    @Test func aPausedViewTellsSinceWhenAndWhatItHasNotHad() async throws {
        var since: String?
        try await withEngine { (world) async throws in
            try await create(world, "v", "w")
            produce(5)
            try await world.run("FLUSH; PAUSE MATERIALIZED VIEW v")
            produce(4)
            produce(2, to: 1)
            try await world.run("FLUSH")
            let (v, w) = (try await job(world, "v"), try await job(world, "w"))
            #expect(v.state == "paused" && v.lag == "6" && v.message == "materialized view \"v\" is paused")
            #expect(w.state == "running" && w.lag == "0" && w.message == nil && w.since == nil)
            since = v.since
        }
        #expect(since != nil)
        try await withEngine { (world) async throws in
            produce(1)
            try await world.run("FLUSH")
            let v = try await job(world, "v")
            #expect(v.state == "paused" && v.lag == "7" && v.since == since)
            try await world.run("RESUME MATERIALIZED VIEW v; FLUSH")
            let resumed = try await job(world, "v")
            #expect(resumed.state == "running" && resumed.lag == "0" && resumed.message == nil && resumed.since == nil)
        }
    }

    @Test func aPauseThatNoCheckpointKnowsRestsBehindNothingThatWasRead() async throws {
        try await withEngine { (world) async throws in
            try await create(world, "v", "w")
            produce(5)
            try await world.run("FLUSH")
            await world.engine.checkpoint()
        }
        try await withEngine(ending: .kill) { (world) async throws in
            produce(4)
            try await world.run("FLUSH; PAUSE MATERIALIZED VIEW v")
            #expect(try await prefixes(world, "v") == [9, 0])
        }
        produce(3)
        try await withEngine { (world) async throws in
            #expect(try await prefixes(world, "v") == [9, 0])
            try await world.run("FLUSH")
            #expect(try await prefixes(world, "v") == [9, 0])
            #expect(try await prefixes(world, "w") == [12, 0])
        }
    }

    @Test func aViewThatCatchesUpGoesOnAfterARestart() async throws {
        try await withEngine(ending: .kill) { (world) async throws in
            try await create(world, "v", "w")
            produce(5)
            try await world.run("FLUSH; PAUSE MATERIALIZED VIEW v")
            produce(4)
            try await world.run("FLUSH")
            // It gets so far and no further.
            connector.change { state in
                state.failsAt = 7
                state.failure = SQLError(.connectionFailure, "the broker went away")
            }
            try await world.run("RESUME MATERIALIZED VIEW v")
            while try await prefixes(world, "v") != [7, 0] { await Task.yield() }
            await world.engine.checkpoint()
        }
        connector.change { $0.failsAt = nil }
        try await withEngine { (world) async throws in
            #expect(try await prefixes(world, "v") == [9, 0])
            produce(1)
            try await world.run("FLUSH")
            #expect(try await prefixes(world, "v") == [10, 0])
            #expect(try await prefixes(world, "w") == [10, 0])
        }
    }

    @Test(arguments: [1, 2]) func aPausedSourceIsWhereItWasAfterARestart(workers: Int) async throws {
        try await withEngine { (world) async throws in
            try await create(world, "v")
            produce(5)
            try await world.run("FLUSH")
        }
        try await withEngine(ending: .kill) { (world) async throws in
            produce(2)
            try await world.run("FLUSH; PAUSE SOURCE s")
        }
        produce(4)
        try await withEngine(workers: workers) { (world) async throws in
            #expect(try await prefixes(world, "v") == [7, 0])
            try await world.run("RESUME SOURCE s; FLUSH")
            #expect(try await prefixes(world, "v") == [11, 0])
        }
    }

    @Test(arguments: 1...20) func noPrefixIsEverBrokenOrTakenBack(seed: Int) async throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var seen = ["v": [0, 0], "w": [0, 0]]
        var paused: Set<String> = []
        func look(_ world: EngineWorld, _ why: String) async throws {
            for view in ["v", "w"] {
                let now = try #require(try await prefixes(world, view), "seed \(seed): \(view) after \(why)")
                let before = seen[view] ?? [0, 0]
                #expect(zip(now, before).allSatisfy { $0 >= $1 }, "seed \(seed): \(view) went from \(before) to \(now) after \(why)")
                if paused.contains("s") || paused.contains(view), why.hasPrefix("step") { #expect(now == before, "seed \(seed): \(view) is paused") }
                seen[view] = now
            }
        }
        try await withEngine { (world) async throws in try await create(world, "v", "w") }
        for life in 1...4 {
            let ending: Ending = random.oneIn(2) ? .kill : .stop
            try await withEngine(workers: random.oneIn(3) ? 2 : 1, ending: ending) { (world) async throws in
                try await look(world, "start \(life)")
                for step in 1...8 {
                    produce(Int.random(in: 0...4, using: &random), to: Int.random(in: 0...1, using: &random))
                    switch Int.random(in: 0...4, using: &random) {
                    case 0:
                        let name = ["v", "w", "s"].randomElement(using: &random) ?? "v"
                        let kind = name == "s" ? "SOURCE" : "MATERIALIZED VIEW"
                        if paused.remove(name) != nil {
                            try await world.run("RESUME \(kind) \(name); FLUSH")
                            // Up to where the source is, also while that is paused.
                            try await look(world, "resume")
                        } else {
                            try await world.run("PAUSE \(kind) \(name)")
                            try await look(world, "pause")
                            paused.insert(name)
                        }
                    case 1: await world.engine.checkpoint()
                    case 2: try await world.run("FLUSH")
                    default: break
                    }
                    try await look(world, "step \(step) of life \(life)")
                }
            }
        }
        try await withEngine { (world) async throws in
            for name in paused { try await world.run("RESUME \(name == "s" ? "SOURCE" : "MATERIALIZED VIEW") \(name)") }
            try await world.run("FLUSH")
            let all = connector.state.withLock { $0.splits.map(\.count) }
            for view in ["v", "w"] { #expect(try await prefixes(world, view) == all, "seed \(seed): \(view)") }
        }
    }
}
