import MillBase
import MillColumnar
import MillConnectorKit
import MillDataflow
import MillEngine
import MillIO
import MillMeta
import Synchronization
import MillTestKit
import Testing

/// What becomes of statements when a source is slow, fails, or is read by several at once.
@Suite(.timeLimit(.minutes(10))) struct SourceReadingTests {
    private func withWorld(
        _ connectors: [String: ScriptedConnector], clock: any MillIO.Clock = SystemClock(), splitDiscoveryNanos: UInt64 = 1_000_000,
        meta: MetaStore? = nil, _ body: (EngineWorld) async throws -> Void
    ) async throws {
        let world = try await EngineWorld(
            assembly: ScriptedAssembly(connectors: connectors), clock: clock, splitDiscoveryNanos: splitDiscoveryNanos, meta: meta)
        do { try await body(world) } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private func create(_ name: String) -> String {
        "CREATE SOURCE \(name) (a int, b int) WITH (connector = '\(name)') FORMAT PLAIN ENCODE JSON"
    }

    private func error(of body: () async throws(SQLError) -> Void) async -> SQLError? {
        do throws(SQLError) { try await body() } catch { return error }
        return nil
    }

    // MARK: Catching up

    @Test func aViewThatCannotCatchUpLeavesTheOthersAlone() async throws {
        let connector = ScriptedConnector(#"{"a":1}"#, #"{"a":2}"#, #"{"a":3}"#, #"{"a":4}"#, #"{"a":5}"#)
        try await withWorld(["s": connector]) { world in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW first AS SELECT sum(a) AS total FROM s")
            connector.change { $0.failsAt = 3 }
            let late = "CREATE MATERIALIZED VIEW late AS SELECT count(*) AS n FROM s"
            let error = await error { () throws(SQLError) in try await world.run(late) }
            #expect(error?.message == "the record at 3 cannot be read")
            connector.change { state in
                state.failsAt = nil
                state.splits[0].append(#"{"a":10}"#)
            }
            try await world.run("FLUSH")
            #expect(try await world.run("SELECT * FROM first").last?.rows == [["25"]])
            let jobs = try #require(try await world.run("SHOW JOBS").last).rows
            #expect(jobs.map { [$0[1], $0[2], $0[9]] } == [["first", "running", nil]])
            try await world.run(late)
            #expect(try await world.run("SELECT * FROM late").last?.rows == [["6"]])
        }
    }

    // MARK: Splits that come later

    @Test func flushWaitsForASplitThatNobodyHasSeenYet() async throws {
        let connector = ScriptedConnector()
        connector.change { $0.splits = [] }
        // An hour until anyone would look for splits.
        try await withWorld(["s": connector], splitDiscoveryNanos: 3_600_000_000_000) { world in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS total FROM s; FLUSH")
            connector.change { $0.splits = [[#"{"a":1}"#, #"{"a":2}"#, #"{"a":3}"#]] }
            try await world.run("FLUSH")
            #expect(try await world.run("SELECT * FROM v").last?.rows == [["6"]])
        }
    }

    @Test func aSourceIsToldOfItsSplits() async throws {
        let connector = ScriptedConnector()
        connector.change { $0.splits = [] }
        try await withWorld(["s": connector], splitDiscoveryNanos: 3_600_000_000_000) { world in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS total FROM s")
            connector.change { $0.splits = [[#"{"a":4}"#]] }
            while try await world.run("SELECT * FROM v").last?.rows != [["4"]] { await Task.yield() }
        }
    }

    @Test func flushAndQueriesWarnOfASourceThatHasStopped() async throws {
        let connector = ScriptedConnector(#"{"a":1}"#)
        try await withWorld(["s": connector]) { world in
            connector.change { $0.failsAt = 2 }
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS total FROM s")
            connector.change { $0.splits[0] += [#"{"a":2}"#, #"{"a":3}"#] }
            _ = world.session.takeMessages()
            try await world.run("FLUSH")
            func warnings() -> [String] { world.session.takeMessages().compactMap { if case .notice(let notice) = $0 { notice.message } else { nil } } }
            let warning = #"source "s" has stopped: the record at 2 cannot be read"#
            #expect(warnings() == [warning])
            // So does a query of what comes from it, and no other.
            try await world.run("CREATE MATERIALIZED VIEW w AS SELECT total FROM v; CREATE TABLE t (a int)")
            _ = warnings()
            #expect(try await world.run("SELECT * FROM v").last?.rows == [["3"]])
            #expect(warnings() == [warning])
            #expect(try await world.run("SELECT * FROM w").last?.rows == [["3"]])
            #expect(warnings() == [warning])
            #expect(try await world.run("SELECT count(*) FROM s").last?.rows == [["2"]])
            #expect(warnings() == [warning])
            try await world.run("SELECT * FROM t")
            #expect(warnings() == [])
        }
    }

    // MARK: Rejects

    @Test func rejectsAreKeptOnceWhoeverReadsTheSource() async throws {
        let connector = ScriptedConnector("broken", #"{"a":1}"#, #"{"a":"x","b":"y"}"#)
        try await withWorld(["s": connector]) { world in
            let list = #"SELECT "offset", column_name FROM s_rejects ORDER BY 1, 2"#
            let expected: [[String?]] = [["0", nil], ["2", "a"], ["2", "b"]]
            try await world.run(create("s"))
            #expect(try await world.run(list).last?.rows == [])
            try await world.run("SELECT a FROM s LIMIT 1; SELECT count(*) FROM s")
            #expect(try await world.run(list).last?.rows == expected)
            for view in ["v", "w"] {
                try await world.run("CREATE MATERIALIZED VIEW \(view) AS SELECT a FROM s")
                #expect(try await world.run(list).last?.rows == expected)
            }
            try await world.run("DROP MATERIALIZED VIEW v; DROP MATERIALIZED VIEW w")
            connector.change { $0.splits[0] += ["broken", #"{"b":"z"}"#] }
            try await world.run("SELECT count(*) FROM s; CREATE MATERIALIZED VIEW v AS SELECT b FROM s; SELECT count(*) FROM s")
            #expect(try await world.run(list).last?.rows == expected + [["3", nil], ["4", "b"]])
            #expect(try await world.run("SHOW JOBS").last?.rows.first?[8] == "5")
        }
    }

    @Test func stretchesThatOverlapAreStoredOnce() {
        let store = RejectStore(bytesMaxPerSource: 1 << 20)
        let split = SourceSplit(name: "s/0", topic: "s", partition: 0)
        func add(_ positions: [Int64], to end: Int64) {
            let entries = positions.map { Reject(position: $0, column: nil, raw: [], reason: "") }
            store.add(SplitRejects(split: split, entries: entries, end: SplitOffset(end)), source: ObjectID(1), nowMicros: 0)
        }
        add([2, 5], to: 10)
        add([2], to: 4)
        add([5, 9, 9, 12], to: 20)
        add([15], to: 20)
        add([20], to: 21)
        #expect(store.entries(of: ObjectID(1)).map(\.reject.position) == [2, 5, 12, 20])
    }

    // MARK: Slow sources

    @Test func aSourceThatAnswersLateHoldsUpNoOtherDefinition() async throws {
        let slow = ScriptedConnector(#"{"a":1}"#)
        let fast = ScriptedConnector(#"{"a":2}"#)
        let asked = Atomic(false)
        let gate = Semaphore()
        slow.change { state in
            state.onQuestion = {
                asked.store(true, ordering: .releasing)
                gate.wait()
            }
        }
        try await withWorld(["slow": slow, "fast": fast]) { world in
            for ifNotExists in ["", "IF NOT EXISTS "] {
                asked.store(false, ordering: .releasing)
                let other = Session(engine: world.engine, userName: "root", databaseName: "dev")
                let text = create("slow").replacing("CREATE SOURCE ", with: "CREATE SOURCE \(ifNotExists)")
                let creation = Task { await error { () throws(SQLError) in try await other.run(text) } }
                while !asked.load(ordering: .acquiring) { await Task.yield() }
                // Its name, too, is anyone's until it is there.
                try await world.run("\(create("fast")); CREATE TABLE slow (x int); SELECT * FROM fast")
                gate.signal()
                let failure = await creation.value
                #expect(failure?.sqlState == (ifNotExists.isEmpty ? .duplicateTable : nil))
                #expect(other.takeMessages().count == (ifNotExists.isEmpty ? 0 : 1))
                try await world.run("DROP TABLE slow; DROP SOURCE fast")
            }
        }
    }

    @Test func aSourceThatAnswersLateHoldsUpNoOthersSplits() async throws {
        let slow = ScriptedConnector()
        let fast = ScriptedConnector(#"{"a":1}"#)
        let gate = Semaphore()
        let waiting = Atomic(0)
        let isOpen = Atomic(false)
        try await withWorld(["slow": slow, "fast": fast]) { world in
            try await world.run("\(create("slow")); \(create("fast")); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS total FROM fast")
            slow.change { state in
                state.onQuestion = {
                    guard !isOpen.load(ordering: .acquiring) else { return }
                    waiting.add(1, ordering: .relaxed)
                    gate.wait()
                }
            }
            for round in 1...3 {
                while waiting.load(ordering: .relaxed) == 0 { await Task.yield() }
                fast.change { $0.splits.append([#"{"a":10}"#]) }
                // Returns when the new split has been read.
                try await world.run("FLUSH")
                #expect(try await world.run("SELECT total FROM v").last?.rows == [["\(1 + 10 * round)"]])
            }
            // Who has not answered is not asked again.
            #expect(waiting.load(ordering: .relaxed) == 1)
            isOpen.store(true, ordering: .releasing)
            gate.signal()
        }
    }

    @Test(arguments: [("", 30), ("SET source_timeout = '2min'", 120), ("SET source_timeout = 5000", 5)])
    func aQueryEndsWhenItsSourceGivesNothingForSomeTime(setting: String, seconds: Int) async throws {
        let clock = VirtualClock()
        let connector = ScriptedConnector(#"{"a":1}"#, #"{"a":2}"#)
        connector.change { state in
            state.missing = 3
            state.status = "broker:9092: connection refused"
        }
        connector.change { state in
            state.onEmptyPoll = { [unowned connector] in
                clock.advance(by: .seconds(1))
                // The reader wakes the query, as librdkafka does for an error, but has nothing.
                connector.change { _ in }
            }
        }
        try await withWorld(["s": connector], clock: clock) { world in
            try await world.run(setting.isEmpty ? create("s") : "\(create("s")); \(setting)")
            let error = await error { () throws(SQLError) in try await world.run("SELECT count(*) FROM s") }
            #expect(error?.sqlState == .connectionFailure)
            #expect(error?.message == "source \"s\" gave no record for \(Duration.seconds(seconds)): broker:9092: connection refused")
            #expect(error?.detail == "\"s/0\" was read up to 2 of 5.")
            #expect(error?.hint != nil)
            #expect(connector.state.withLock { $0.emptyPolls } == seconds)
        }
    }

    @Test func aQueryThatWaitsForItsSourceCanBeCancelled() async throws {
        let connector = ScriptedConnector()
        connector.change { $0.missing = 1 }
        try await withWorld(["s": connector]) { world in
            try await world.run("\(create("s")); SET source_timeout = 0")
            for end in [world.session.cancel, world.session.terminate] {
                let before = connector.state.withLock { $0.emptyPolls }
                let query = Task { await error { () throws(SQLError) in try await world.run("SELECT * FROM s") } }
                while connector.state.withLock({ $0.emptyPolls }) == before { await Task.yield() }
                end()
                #expect(await query.value?.sqlState == .queryCanceled)
            }
            // What was terminated runs nothing more.
            let late = await error { () throws(SQLError) in try await world.run("SELECT 1") }
            #expect(late?.sqlState == .adminShutdown)
        }
    }

    /// Records that did not come before the engine stopped were not waited for, and a view without them is none.
    @Test(arguments: ["FLUSH", "WAIT", "CREATE MATERIALIZED VIEW w AS SELECT * FROM s"])
    func aStatementThatWaitsForRecordsEndsWithTheEngine(statement: String) async throws {
        let connector = ScriptedConnector()
        let meta = try MetaStore.inMemory()
        try await withWorld(["s": connector], meta: meta) { world in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW v AS SELECT * FROM s")
            let before = connector.state.withLock { state in
                state.missing = 1
                return state.emptyPolls
            }
            let waiting = Task { await error { () throws(SQLError) in try await world.run(statement) } }
            while connector.state.withLock({ $0.emptyPolls }) == before { await Task.yield() }
            world.engine.conductor.stop()
            #expect(await waiting.value == SQLError.shuttingDown)
            #expect(try meta.load().objects.map(\.object.name) == ["s", "v"])
        }
    }

    @Test func aSourceTimeoutIsALengthOfTime() async throws {
        try await withWorld([:]) { world in
            for value in ["0", "'100'", "'1500ms'", "'2 s'", "'3min'", "'1h'", "'1d'"] {
                try await world.run("SET source_timeout = \(value)")
            }
            for value in ["'x'", "'-1'", "'1 week'", "'99999999999'", "'9223372036854775807d'"] {
                let error = await error { () throws(SQLError) in try await world.run("SET source_timeout = \(value)") }
                #expect(error?.sqlState == .invalidParameterValue, "\(value)")
            }
        }
    }

    // MARK: Waiting for each other

    @Test func aStatementThatWaitsForAnotherDefinitionCanBeCancelled() async throws {
        let connector = ScriptedConnector()
        connector.change { $0.missing = 1 }
        try await withWorld(["s": connector]) { world in
            try await world.run("\(create("s")); SET source_timeout = 0")
            // Holds the definitions until its query ends.
            let first = Task { await error { () throws(SQLError) in try await world.run("CREATE TABLE t AS SELECT * FROM s") } }
            while connector.state.withLock({ $0.emptyPolls }) == 0 { await Task.yield() }
            let other = Session(engine: world.engine, userName: "root", databaseName: "dev")
            let second = Task { await error { () throws(SQLError) in try await other.run("CREATE TABLE u (x int)") } }
            // However far it is: one that has not begun is terminated, too.
            other.terminate()
            let failure = try #require(await second.value)
            #expect([.queryCanceled, .adminShutdown].contains(failure.sqlState))
            let third = Session(engine: world.engine, userName: "root", databaseName: "dev")
            let last = Task { await error { () throws(SQLError) in try await third.run("CREATE TABLE u (x int)") } }
            world.session.cancel()
            #expect(await first.value?.sqlState == .queryCanceled)
            #expect(await last.value == nil)
        }
    }
}
