import MillBase
import MillColumnar
import MillDataflow
import MillEngine
import MillIO
import MillMeta
import MillTestKit
import Testing

/// What fails for a reason that may pass is tried again by itself, from where it stopped.
@Suite(.timeLimit(.minutes(1))) struct TroubleTests {
    private func create(_ name: String) -> String { "CREATE SOURCE \(name) (a int) WITH (connector = '\(name)') FORMAT PLAIN ENCODE JSON" }

    private func rows(_ world: EngineWorld, _ sql: String) async throws -> [[String?]] { try #require(try await world.run(sql).last).rows }

    private func withWorld(_ connectors: [String: ScriptedConnector], _ body: (EngineWorld, VirtualClock) async throws -> Void) async throws {
        let clock = VirtualClock()
        // Looked after as often as can be: what decides is the virtual clock.
        let world = try await EngineWorld(assembly: ScriptedAssembly(connectors: connectors), clock: clock, splitDiscoveryNanos: 1_000_000)
        do { try await body(world, clock) } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    @Test func aReaderThatFailedGoesOnFromTheRecordWhereItStopped() async throws {
        let (s, u) = (ScriptedConnector(#"{"a":1}"#), ScriptedConnector(#"{"a":10}"#))
        s.change { state in
            state.failsAt = 2
            state.failure = SQLError(.undefinedObject, "no such partition yet")
        }
        try await withWorld(["s": s, "u": u]) { (world, clock) async throws in
            for name in ["s", "u"] { try await world.run("\(create(name)); CREATE MATERIALIZED VIEW v_\(name) AS SELECT sum(a) AS n FROM \(name)") }
            s.change { $0.splits[0] += [#"{"a":2}"#, #"{"a":3}"#, #"{"a":4}"#] }
            u.change { $0.splits[0].append(#"{"a":20}"#) }
            while try await rows(world, "SHOW JOBS")[0][2] != "retrying" { await Task.yield() }
            let job = try await rows(world, "SHOW JOBS")[0]
            #expect(job[9] == "42704: no such partition yet")
            #expect(job[10] != nil && job[11] != nil)
            while try await rows(world, "SELECT n FROM v_u") != [["30"]] { await Task.yield() }
            #expect(try await rows(world, "SELECT n FROM v_s") == [["3"]])
            // Not before its time.
            s.change { $0.failsAt = nil }
            #expect(try await rows(world, "SHOW JOBS")[0][2] == "retrying")
            clock.advance(by: .seconds(1))
            while try await rows(world, "SELECT n FROM v_s") != [["10"]] { await Task.yield() }
            #expect(try await rows(world, "SHOW JOBS").map { [$0[2], $0[9]] } == [["running", nil], ["running", nil]])
        }
    }

    @Test func whatWillNotPassIsNotTriedAgain() async throws {
        let s = ScriptedConnector(#"{"a":1}"#)
        s.change { $0.failsAt = 2 }
        try await withWorld(["s": s]) { (world, clock) async throws in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS n FROM s")
            s.change { $0.splits[0] += [#"{"a":2}"#, #"{"a":3}"#] }
            while try await rows(world, "SHOW JOBS")[0][2] != "failed" { await Task.yield() }
            s.change { $0.failsAt = nil }
            clock.advance(by: .seconds(60))
            let job = try await rows(world, "SHOW JOBS")[0]
            #expect([job[2], job[9], job[11]] == ["failed", "XX001: the record at 2 cannot be read", nil])
            // The record that cannot be read, which nobody waits for.
            while try await rows(world, "SHOW JOBS")[0][5] != "1" { await Task.yield() }
        }
    }

    @Test func whatStandsStillTellsWhyAndHowFarBehindItIs() async throws {
        let s = ScriptedConnector(#"{"a":1}"#)
        try await withWorld(["s": s]) { (world, clock) async throws in
            try await world.run("\(create("s")); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS n FROM s")
            try await world.run("CREATE MATERIALIZED VIEW above AS SELECT n + 1 AS n FROM v; CREATE MATERIALIZED VIEW top AS SELECT n FROM above")
            clock.advance(by: .seconds(5))
            try await world.run("FLUSH; PAUSE SOURCE s")
            s.change { $0.splits[0] += [#"{"a":2}"#, #"{"a":3}"#, #"{"a":4}"#] }
            // Nobody reads it: the broker is asked now and then.
            while try await rows(world, "SHOW JOBS")[0][5] != "3" { await Task.yield() }
            let jobs = try await rows(world, "SHOW JOBS")
            #expect(jobs.map { $0[2] } == ["paused", "waiting", "waiting"])
            #expect(jobs[0][9] == "source \"s\" is paused")
            for job in jobs[1...] { #expect(job[9] == "waits for materialized view \"v\": source \"s\" is paused") }
            #expect(jobs[0][10] != nil && Set(jobs.map { $0[10] }).count == 1, "\(jobs)")
            #expect(jobs[1][5] == nil)
            s.change { $0.questionError = SQLError(.connectionFailure, "nobody listens") }
            while try await rows(world, "SHOW JOBS")[0][5] != nil { await Task.yield() }
            s.change { $0.questionError = nil }
            try await world.run("RESUME SOURCE s; FLUSH")
            #expect(try await rows(world, "SHOW JOBS").map { [$0[2], $0[5], $0[9]] } == [["running", "0", nil], ["running", nil, nil], ["running", nil, nil]])
            s.change { $0.status = "the broker is away" }
            let job = try await rows(world, "SHOW JOBS")[0]
            #expect([job[2], job[5]] == ["retrying", nil])
        }
    }

    @Test func sourcesTellWhatTheyDo() async throws {
        let (s, u) = (ScriptedConnector(#"{"a":1}"#), ScriptedConnector(#"{"a":10}"#, "no object"))
        u.change { $0.splits.append([]) }
        try await withWorld(["s": s, "u": u]) { (world, _) async throws in
            func lines() async throws -> [[String?]] { try await rows(world, "SHOW SOURCES") }
            try await world.run("CREATE SOURCE s (a int) WITH (connector = 's', topic = 'numbers') FORMAT PLAIN ENCODE JSON; \(create("u"))")
            #expect(try await rows(world, "SHOW SOURCES LIKE 'u%'").map { $0[0] } == ["u"])
            #expect(try await lines()[0] == ["s", "s", "numbers", "PLAIN ENCODE JSON", "unread", "1", "0", "no materialized view reads it", nil, nil])
            for name in ["s", "u"] { try await world.run("CREATE MATERIALIZED VIEW v_\(name) AS SELECT sum(a) AS n FROM \(name); FLUSH") }
            #expect(try await lines().map { Array($0[4...]) } == [["running", "1", "0", nil, nil, nil], ["running", "2", "1", nil, nil, nil]])
            try await world.run("PAUSE MATERIALIZED VIEW v_s; PAUSE SOURCE u")
            let paused = try await lines()
            #expect(paused.map { $0[4] } == ["unread", "paused"])
            #expect(paused.map { $0[7] } == ["the materialized views that read it are paused", "source \"u\" is paused"])
            #expect(paused[1][8] != nil)
            try await world.run("RESUME MATERIALIZED VIEW v_s; RESUME SOURCE u; FLUSH")
            s.change { $0.failsAt = 1 }
            try await world.run("PAUSE SOURCE s; RESUME SOURCE s")
            s.change { $0.splits[0].append(#"{"a":2}"#) }
            while try await lines()[0][4] != "failed" { await Task.yield() }
            #expect(try await lines()[0][7] == "XX001: the record at 1 cannot be read")
        }
    }

    @Test func aBrokerThatIsAwayHoldsUpNoOtherDefinition() async throws {
        let s = ScriptedConnector(#"{"a":1}"#)
        try await withWorld(["s": s]) { (world, _) async throws in
            try await world.run(create("s"))
            let asked = Semaphore()
            let mayAnswer = Semaphore()
            s.change { state in
                state.onQuestion = {
                    asked.signal()
                    mayAnswer.wait()
                }
                state.questionError = SQLError(.connectionFailure, "nobody listens")
            }
            let other = world.connect()
            async let created: [EngineWorld.Answer] = world.run("CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS n FROM s", on: other)
            // On a thread of its own: tests share few.
            try await withCheckedThrowingContinuation { continuation in
                do {
                    _ = try PinnedThread {
                        asked.wait()
                        continuation.resume()
                    }
                } catch { continuation.resume(throwing: error) }
            }
            try await world.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE MATERIALIZED VIEW w AS SELECT a FROM t; DROP MATERIALIZED VIEW w")
            s.change { state in
                state.onQuestion = nil
                state.questionError = nil
            }
            for _ in 0..<1000 { mayAnswer.signal() }
            _ = try await created
            while try await rows(world, "SELECT n FROM v") != [["1"]] { await Task.yield() }
        }
    }

    @Test func flushGoesOnWithoutABrokerThatIsAway() async throws {
        let (s, u) = (ScriptedConnector(#"{"a":1}"#), ScriptedConnector(#"{"a":10}"#))
        try await withWorld(["s": s, "u": u]) { (world, _) async throws in
            for name in ["s", "u"] { try await world.run("\(create(name)); CREATE MATERIALIZED VIEW v_\(name) AS SELECT sum(a) AS n FROM \(name)") }
            s.change { $0.questionError = SQLError(.connectionFailure, "nobody listens") }
            u.change { $0.splits[0].append(#"{"a":20}"#) }
            _ = world.session.takeMessages()
            try await world.run("FLUSH")
            let warnings = world.session.takeMessages().compactMap { if case .notice(let notice) = $0 { notice.message } else { nil } }
            #expect(warnings == ["source \"s\" does not answer: nobody listens"])
            #expect(try await rows(world, "SELECT n FROM v_u") == [["30"]])
        }
    }
}
