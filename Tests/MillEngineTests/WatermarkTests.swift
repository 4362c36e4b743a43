import MillBase
import MillEngine
import MillIO
import MillMeta
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
        let world = await EngineWorld(
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
            let engine = Engine(environment: environment, assembly: connectors, meta: meta, keeper: keeper)
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
}
