import MillBase
import MillDataflow
import MillEngine
import MillIO
import MillLog
import MillMeta
import MillStore
import MillTestKit
import Testing

/// Watermarks of sources: splits that are ahead, behind or idle, views that come later, restarts.
@Suite(.timeLimit(.minutes(2))) struct WatermarkTests {
    private static let create = """
        CREATE SOURCE s (at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '5 seconds')
        WITH (connector = 's') FORMAT PLAIN ENCODE JSON;
        """
    private static let sums = "CREATE MATERIALIZED VIEW sums AS SELECT window_start, sum(v) AS n FROM TUMBLE(s, at, INTERVAL '10 seconds') GROUP BY window_start"
    private static let final = sums.replacing("VIEW sums", with: "VIEW final") + " EMIT ON WINDOW CLOSE"

    private func row(_ second: Int, _ v: Int) -> String { #"{"at":"2024-01-01 00:00:\#(second < 10 ? "0" : "")\#(second)","v":\#(v)}"# }

    private func rows(_ world: EngineWorld, _ sql: String) async throws -> [[String?]] { try #require(try await world.run(sql).last).rows }

    private func withWorld(
        _ connector: ScriptedConnector, workerCount: Int = 1, clock: any MillIO.Clock = SystemClock(), _ body: (EngineWorld) async throws -> Void
    ) async throws {
        let world = try await EngineWorld(
            workerCount: workerCount, assembly: ScriptedAssembly(connectors: ["s": connector]), clock: clock, splitDiscoveryNanos: 1_000_000)
        do { try await body(world) } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    /// One split runs ahead; what the other gives is not late as long as the other is not behind its own time.
    @Test(arguments: [1, 2]) func theSlowestSplitCloses(workerCount: Int) async throws {
        let connector = ScriptedConnector(row(1, 1), row(40, 2))
        connector.change { $0.splits.append([self.row(2, 4)]) }
        try await withWorld(connector, workerCount: workerCount) { world in
            try await world.run("\(Self.create) \(Self.sums); \(Self.final); FLUSH")
            #expect(try await rows(world, "SELECT * FROM final") == [])
            connector.change { $0.splits[1].append(self.row(3, 8)) }
            try await world.run("FLUSH")
            #expect(try await rows(world, "SELECT n FROM sums ORDER BY window_start") == [["13"], ["2"]])
            connector.change { $0.splits[1].append(self.row(21, 16)) }
            try await world.run("FLUSH")
            #expect(try await rows(world, "SELECT * FROM final") == [["2024-01-01 00:00:00", "13"]])
            // A view that comes later reads all from the origin, and has nothing late.
            try await world.run("\(Self.final.replacing("VIEW final", with: "VIEW again")); FLUSH")
            #expect(try await rows(world, "SELECT * FROM again") == [["2024-01-01 00:00:00", "13"]])
            connector.change { $0.splits[0].append(self.row(4, 32)) }
            try await world.run("FLUSH")
            for view in ["final", "sums", "again"] { #expect(try await rows(world, "SELECT \"row\"->>'v' FROM \(view)_late") == [["32"]]) }
            let jobs = try await rows(world, "SHOW JOBS")
            #expect(jobs.map(\.last) == ["1", "1", "1"])
        }
    }

    /// What only the workers know is not there any more when they have ended: that is an error, and not no rows.
    @Test func lateRowsAndErrorsOfAServerThatStopsAreNotNone() async throws {
        let connector = ScriptedConnector(row(1, 1))
        try await withWorld(connector) { world in
            try await world.run("\(Self.create) \(Self.sums); FLUSH")
            world.engine.conductor.stop()
            for relation in ["sums_late", "sums_errors"] {
                do throws(SQLError) {
                    _ = try await world.run("SELECT * FROM \(relation)")
                    Issue.record("\(relation) was read")
                } catch { #expect(error.sqlState == .adminShutdown) }
            }
        }
    }

    @Test func anIdleSplitLetsTheOthersGoOn() async throws {
        let clock = VirtualClock()
        let connector = ScriptedConnector(row(1, 1), row(40, 2))
        connector.change { $0.splits.append([self.row(2, 4)]) }
        try await withWorld(connector, clock: clock) { world in
            try await world.run("\(Self.create) \(Self.final); FLUSH")
            #expect(try await rows(world, "SELECT * FROM final") == [])
            // Nobody writes; time alone tells that the split is idle.
            while try await rows(world, "SELECT * FROM final") == [] {
                await clock.untilSleeping()
                clock.advance(by: .milliseconds(2500))
            }
            #expect(try await rows(world, "SELECT * FROM final") == [["2024-01-01 00:00:00", "5"]])
        }
    }

    @Test func aRestartClosesWhatWasClosedAndNothingElse() async throws {
        let files = MemoryFileSystem()
        let meta = try MetaStore.inMemory()
        let connector = ScriptedConnector(row(1, 1), row(12, 2), row(16, 4))
        let connectors = ChangingAssembly(["s": connector])
        for life in 0..<3 {
            let environment = Environment(files: files, clock: VirtualClock(), random: SeededSource(1))
            let keeper = try StateKeeper(environment: environment, directory: "/data/state")
            let engine = try Engine(environment: environment, assembly: connectors, meta: meta, keeper: keeper)
            try await engine.restore()
            let world = EngineWorld(engine, files: files)
            if life == 0 { try await world.run("\(Self.create) \(Self.sums); \(Self.final); FLUSH") }
            // Late in every life: the window was closed in the first one.
            connector.change { $0.splits[0].append(self.row(2 + life, 100 + life)) }
            try await world.run("FLUSH")
            #expect(try await rows(world, "SELECT * FROM final") == [["2024-01-01 00:00:00", "1"]])
            #expect(try await rows(world, "SELECT n FROM sums ORDER BY window_start") == [["1"], ["6"]])
            for view in ["sums", "final"] {
                let late = try await rows(world, "SELECT \"row\"->>'v' FROM \(view)_late").compactMap { $0[0] }.sorted()
                #expect(late == (0...life).map { "\(100 + $0)" })
            }
            await world.stop()
        }
    }

    // MARK: What is not idle

    private func pass(_ seconds: Int, _ clock: VirtualClock, _ world: EngineWorld) async throws {
        for _ in 0..<seconds {
            await clock.untilSleeping()
            clock.advance(by: .seconds(1))
            try await world.run("FLUSH")
        }
    }

    /// However long the pause is: what comes after it is not late for that.
    @Test func aPausedSourceIsNotIdle() async throws {
        let clock = VirtualClock()
        let connector = ScriptedConnector(row(1, 1), row(40, 2))
        connector.change { $0.splits.append([self.row(2, 4)]) }
        try await withWorld(connector, clock: clock) { world in
            try await world.run("\(Self.create) \(Self.sums); \(Self.final); FLUSH; PAUSE SOURCE s")
            connector.change { $0.splits[1].append(self.row(3, 8)) }
            try await pass(30, clock, world)
            #expect(try await rows(world, "SELECT * FROM final") == [])
            try await world.run("RESUME SOURCE s; FLUSH")
            #expect(try await rows(world, "SELECT n FROM sums ORDER BY window_start") == [["13"], ["2"]])
            #expect(try await rows(world, "SELECT * FROM sums_late") == [])
        }
    }

    @Test func aSourceThatCannotBeReadIsNotIdle() async throws {
        let clock = VirtualClock()
        let connector = ScriptedConnector(row(1, 1), row(40, 2))
        connector.change { $0.splits.append([self.row(2, 4)]) }
        try await withWorld(connector, clock: clock) { world in
            try await world.run("\(Self.create) \(Self.sums); \(Self.final); FLUSH; PAUSE SOURCE s")
            connector.change { state in
                state.failsAt = 1
                state.failure = SQLError(.connectionFailure, "the broker went away")
            }
            // Readers are opened anew.
            try await world.run("RESUME SOURCE s")
            try await pass(30, clock, world)
            #expect(try await rows(world, "SELECT * FROM final") == [])
            connector.change { state in
                state.failsAt = nil
                state.splits[1].append(self.row(3, 8))
            }
            while try await rows(world, "SELECT n FROM sums ORDER BY window_start") != [["13"], ["2"]] { try await pass(1, clock, world) }
            #expect(try await rows(world, "SELECT * FROM sums_late") == [])
        }
    }

    // MARK: What was published before a crash

    /// What readers have seen of late rows and of closed windows is there again, row for row, although the epochs since the checkpoint are run
    /// again: they end where they ended.
    @Test(arguments: 1...24) func aKilledProcessComesBackRowForRow(seed: Int) async throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let files = MemoryFileSystem()
        let meta = try MetaStore.inMemory()
        let clock = VirtualClock()
        let connector = ScriptedConnector()
        connector.change { $0.splits = [[], []] }
        let workers = random.number(1...2)
        let reads = [
            "SELECT * FROM sums", "SELECT * FROM final", "SELECT * FROM counts", "SELECT * FROM sums_late", "SELECT * FROM final_late",
            "SELECT * FROM counts_late", "SELECT * FROM above",
        ]
        var seen: [[String: Int]] = []
        var second = 0
        for life in 0..<4 {
            let (world, log) = try await begin(files, clock, connector, meta, workers)
            let engine = world.engine
            if life == 0 {
                try await world.run("\(Self.create) \(Self.sums); \(Self.final)")
                try await world.run("CREATE TABLE t (at timestamp, v int, WATERMARK FOR at AS at - INTERVAL '5 seconds')")
                try await world.run("\(Self.sums.replacing("VIEW sums", with: "VIEW counts").replacing("TUMBLE(s", with: "TUMBLE(t")) EMIT ON WINDOW CLOSE")
                try await world.run("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS windows, sum(n) AS n FROM final; FLUSH")
                await engine.checkpoint()
            } else {
                var found: [[String: Int]] = []
                for read in reads { found.append(try #require(try await world.run(read).last).multiset) }
                #expect(found == seen, "seed \(seed), life \(life)")
            }
            for _ in 0..<random.number(2...8) {
                second = min(second + random.number(0...6), 59)
                let at = max(second - random.number(0...25), 0)
                switch random.number(0...5) {
                case 0: await engine.checkpoint()
                case 1...2: try await world.run("INSERT INTO t VALUES ('2024-01-01 00:00:\(at < 10 ? "0" : "")\(at)', \(random.number(1...9)))")
                default:
                    for split in 0...1 {
                        let record = row(split == 0 ? at : second, random.number(1...9))
                        connector.change { $0.splits[split].append(record) }
                    }
                }
                if random.oneIn(2) { try await world.run("FLUSH") }
                clock.advance(by: .milliseconds(7))
            }
            try await world.run("FLUSH")
            seen = []
            for read in reads { seen.append(try #require(try await world.run(read).last).multiset) }
            await kill(world, log, files)
        }
    }

    /// A journal that has grown too long gives way to one entry. What closes then closes in every operator, and nothing that one gives out is
    /// late for the next.
    @Test(arguments: [1, 2]) func aJournalThatGaveWayToOneEntryClosesWhatItsEpochsClosed(workers: Int) async throws {
        let files = MemoryFileSystem()
        let meta = try MetaStore.inMemory()
        let clock = VirtualClock()
        let connector = ScriptedConnector()
        connector.change { $0.splits = [[], []] }
        let (world, log) = try await begin(files, clock, connector, meta, workers)
        try await world.run("\(Self.create) \(Self.final); FLUSH")
        await world.engine.checkpoint()
        for second in [1, 12, 17, 26] {
            connector.change { state in for split in 0...1 { state.splits[split].append(self.row(second, split + 1)) } }
            try await world.run("FLUSH")
        }
        let closed = [["2024-01-01 00:00:00", "3"], ["2024-01-01 00:00:10", "6"]]
        #expect(try await rows(world, "SELECT * FROM final ORDER BY window_start") == closed)
        await kill(world, log, files)
        let recovered = try StateStore(directory: "/data/state", files: files).newestCheckpoint()
        let journal = EpochJournal(directory: "/data/state", files: files)
        let epochs = try journal.epochs(since: recovered?.record)
        #expect(epochs.count > 3)
        for name in try files.list("/data/state") where name.hasPrefix("journal-") { try files.remove("/data/state/" + name) }
        try journal.begin(checkpoint: recovered?.record.number ?? 0, with: [EpochJournal.last(of: epochs)])
        let (next, nextLog) = try await begin(files, clock, connector, meta, workers)
        #expect(try await rows(next, "SELECT * FROM final ORDER BY window_start") == closed)
        #expect(try await rows(next, "SELECT * FROM final_late") == [])
        await kill(next, nextLog, files)
    }

    private func begin(
        _ files: MemoryFileSystem, _ clock: VirtualClock, _ connector: ScriptedConnector, _ meta: MetaStore, _ workers: Int
    ) async throws -> (EngineWorld, DMLLog) {
        let environment = Environment(files: files, clock: clock, random: SeededSource(1))
        let keeper = try StateKeeper(environment: environment, directory: "/data/state")
        let log = try DMLLog(environment: environment, directory: "/data/dml")
        let engine = try Engine(
            environment: environment, options: Engine.Options(workerCount: workers), assembly: ChangingAssembly(["s": connector]), meta: meta,
            keeper: keeper, dmlLog: log)
        try await engine.restore()
        return (EngineWorld(engine, files: files), log)
    }

    /// Nothing that a process does after kill -9 reaches the disk.
    private func kill(_ world: EngineWorld, _ log: DMLLog, _ files: MemoryFileSystem) async {
        files.setFault { _, _ in 5 }
        await world.stop()
        log.close()
        files.setFault(nil)
    }
}
