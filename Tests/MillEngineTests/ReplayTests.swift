import MillBase
import MillColumnar
import MillEngine
import MillIO
import MillMeta
import MillTestKit
import Testing

/// REPLAY REJECTS: what becomes of records that were refused, also when the process ends in the middle.
@Suite(.timeLimit(.minutes(2))) struct ReplayTests {
    private let files = MemoryFileSystem()
    private let meta: MetaStore
    private let connector = ScriptedConnector(#"{"a":1}"#, "{'a':10}", #"{"a":2}"#, "{'a':20}", "rubbish", #"{"a":"x"}"#)

    init() throws { meta = try MetaStore.inMemory() }

    private enum Ending { case stop, kill, powerCut }

    private func withEngine(
        workers: Int = 1, ending: Ending = .stop, seed: UInt64 = 1, source: ScriptedConnector? = nil, bytesMax: Int = 1 << 20, _ body: (EngineWorld) async throws -> Void
    ) async throws {
        let environment = Environment(files: files, clock: VirtualClock(), random: SeededSource(seed))
        let keeper = try StateKeeper(environment: environment, directory: "/data/state")
        let engine = try Engine(
            environment: environment, options: Engine.Options(workerCount: workers, replayBytesMax: bytesMax),
            assembly: ScriptedAssembly(connectors: ["s": source ?? connector]), meta: meta, keeper: keeper, replayDirectory: "/data/replay")
        try await engine.restore()
        let world = EngineWorld(engine, files: files)
        do { try await body(world) } catch {
            await world.stop()
            throw error
        }
        if ending != .stop { files.setFault { _, _ in 5 } }
        await world.stop()
        files.setFault(nil)
        if ending == .powerCut { files.crash(random: SeededSource(seed)) }
    }

    private func create(_ world: EngineWorld) async throws {
        try files.createDirectory("/data")
        try files.syncDirectory("/")
        try await world.run(
            "CREATE SOURCE s (a int) WITH (connector = 's') FORMAT PLAIN ENCODE JSON; CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS total FROM s; FLUSH")
    }

    private func rows(_ world: EngineWorld, _ sql: String) async throws -> [[String?]] { try #require(try await world.run(sql).last).rows }

    private func rejects(_ world: EngineWorld) async throws -> [String?] {
        try await rows(world, #"SELECT "offset" FROM s_rejects WHERE column_name IS NULL ORDER BY 1"#).map { $0[0] }
    }

    private func error(of body: () async throws(SQLError) -> Void) async -> SQLError? {
        do throws(SQLError) { try await body() } catch { return error }
        return nil
    }

    private let quotes = #"REPLAY REJECTS FROM s USING replace(convert_from(raw, 'UTF8'), '''', '"')"#

    @Test func aDamagedSideSplitStopsItsSourceAlone() async throws {
        try await withEngine { (world) async throws in
            try await create(world)
            try await world.run(quotes)
            try await world.run("REPLAY REJECTS FROM s USING '{\"a\":7}'; CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
        }
        let name = try #require(try files.list("/data/replay").first)
        try [UInt8(0xFF)].withUnsafeBytes { try files.open("/data/replay/\(name)", .readWrite).write($0, at: 20) }
        try await withEngine { (world) async throws in
            let error = await error { () throws(SQLError) in _ = try await world.run("SELECT * FROM v") }
            #expect(error?.message.contains("/data/replay/\(name)\" is damaged: the entry at byte 0") == true, "\(String(describing: error))")
            #expect(try await rows(world, "SELECT * FROM t") == [["1"]])
        }
    }

    @Test func correctedRecordsBecomeRowsAndTheOthersStay() async throws {
        try await withEngine { (world) async throws in
            try await create(world)
            #expect(try await rows(world, "SELECT * FROM v") == [["3", "3"]])
            #expect(try await rejects(world) == ["1", "3", "4"])
            #expect(try await world.run("REPLAY REJECTS FROM s").last?.tag == "REPLAY 0")
            #expect(try await rejects(world) == ["1", "3", "4"])
            _ = world.session.takeMessages()
            #expect(try await world.run(quotes + "; FLUSH").first?.tag == "REPLAY 2")
            let notices = world.session.takeMessages().compactMap { if case .notice(let notice) = $0 { notice.message } else { nil } }
            #expect(notices == [#"1 of 3 records still cannot be read and stay in "s_rejects""#])
            #expect(try await rows(world, "SELECT * FROM v") == [["5", "33"]])
            #expect(try await rejects(world) == ["4"])
            // Once.
            #expect(try await world.run(quotes + "; FLUSH").first?.tag == "REPLAY 0")
            #expect(try await rows(world, "SELECT * FROM v") == [["5", "33"]])
            // The source has them for whoever reads it, and a view that comes later.
            #expect(try await rows(world, "SELECT count(*), sum(a) FROM s") == [["5", "33"]])
            try await world.run("CREATE MATERIALIZED VIEW late AS SELECT count(*) AS n, sum(a) AS total FROM s")
            #expect(try await rows(world, "SELECT * FROM late") == [["5", "33"]])
            // A value that was refused is no record.
            #expect(try await rows(world, "SELECT column_name FROM s_rejects WHERE column_name IS NOT NULL") == [["a"]])
        }
    }

    @Test func aConditionChoosesAndUsingMayGiveAnything() async throws {
        try await withEngine { (world) async throws in
            try await create(world)
            #expect(try await world.run(#"REPLAY REJECTS FROM s WHERE "offset" > 3 AND reason IS NOT NULL USING '{"a":100}'"#).last?.tag == "REPLAY 1")
            try await world.run("FLUSH")
            #expect(try await rows(world, "SELECT * FROM v") == [["4", "103"]])
            #expect(try await world.run("REPLAY REJECTS FROM s USING NULL::bytea").last?.tag == "REPLAY 0")
            func refusal(_ statement: String) async -> SQLState? { await error { () throws(SQLError) in try await world.run(statement) }?.sqlState }
            #expect(await refusal("REPLAY REJECTS FROM nothing") == .undefinedTable)
            #expect(await refusal("REPLAY REJECTS FROM s WHERE nothing = 1") == .undefinedColumn)
            #expect(await refusal("REPLAY REJECTS FROM s USING 1") == .datatypeMismatch)
            #expect(try await rejects(world) == ["1", "3"])
        }
    }

    /// What an expression fails for, what cannot be read and what can: each record by itself, and by its name.
    @Test func oneRecordIsInNoOthersWay() async throws {
        let corrected = #"CASE "offset" WHEN 1 THEN '{"a":"y"}' WHEN 3 THEN '{"a":' || (1 / ("offset" - 3))::varchar || '}' ELSE 'rubbish again' END"#
        let list = #"SELECT topic, "partition", "offset", column_name FROM s_rejects ORDER BY 3"#
        let left: [[String?]] = [["s", "0", "1", "a"], ["s", "0", "3", nil], ["s", "0", "4", nil], ["s", "0", "5", "a"]]
        try await withEngine { (world) async throws in
            try await create(world)
            _ = world.session.takeMessages()
            #expect(try await world.run("REPLAY REJECTS FROM s USING \(corrected); FLUSH").first?.tag == "REPLAY 1")
            let notices = world.session.takeMessages().compactMap { if case .notice(let notice) = $0 { notice } else { nil } }
            #expect(notices.map(\.message) == [
                #"2 of 3 records still cannot be read and stay in "s_rejects""#, #"values of replayed records cannot be read (1): each is NULL, and in "s_rejects""#,
            ])
            let details = notices.compactMap(\.detail).joined(separator: "\n").split(separator: "\n").map { String($0.split(separator: ":")[0]) }
            #expect(details == ["s/0, offset 4", "s/0, offset 3", #"s/0, offset 1, column "a""#])
            #expect(notices.first?.detail?.contains("s/0, offset 3: division by zero") == true)
            #expect(try await rows(world, "SELECT * FROM v") == [["4", "3"]])
            #expect(try await rows(world, list) == left)
            // A condition that fails is told of as well.
            #expect(try await world.run(#"REPLAY REJECTS FROM s WHERE 1 / ("offset" - 3) = 1 USING '{"a":7}'; FLUSH"#).first?.tag == "REPLAY 1")
            let failed = world.session.takeMessages().compactMap { if case .notice(let notice) = $0 { notice } else { nil } }
            #expect(failed.map(\.message) == [#"WHERE fails for some records, which stay in "s_rejects""#])
            #expect(try await rejects(world) == ["3"])
        }
        try await withEngine { (world) async throws in
            #expect(try await rows(world, list) == left.filter { $0[2] != "4" })
            #expect(try await rows(world, "SELECT * FROM v") == [["5", "10"]])
        }
    }

    @Test func whatIsNoSourceIsSaidToBeNone() async throws {
        try await withEngine { (world) async throws in
            try await create(world)
            try await world.run("CREATE TABLE t (a int); CREATE VIEW plain AS SELECT 1 AS one")
            func refusal(_ name: String) async -> SQLError? { await error { () throws(SQLError) in try await world.run("REPLAY REJECTS FROM \(name)") } }
            let view = await refusal("v")
            #expect(view?.sqlState == .wrongObjectType && view?.message == #"materialized view "v" is not a source and has no rejects"#)
            #expect(view?.hint == #"It reads from "s"."#)
            let table = await refusal("t")
            #expect(table?.sqlState == .wrongObjectType && table?.message == #"table "t" is not a source and has no rejects"#)
            #expect(table?.hint == "SHOW SOURCES lists the sources.")
            #expect(await refusal("plain")?.message == #"view "plain" is not a source and has no rejects"#)
            #expect(await refusal("nowhere.s")?.sqlState == .invalidSchemaName)
        }
    }

    @Test func aBoundedSourceTakesNothing() async throws {
        let bounded = ScriptedConnector(isBounded: true, #"{"a":1}"#, "rubbish")
        try await withEngine(source: bounded) { (world) async throws in
            try await world.run("CREATE SOURCE s (a int) WITH (connector = 's') FORMAT PLAIN ENCODE JSON; CREATE MATERIALIZED VIEW v AS SELECT a FROM s; FLUSH")
            let refusal = await error { () throws(SQLError) in try await world.run(#"REPLAY REJECTS FROM s USING '{"a":2}'"#) }
            #expect(refusal?.sqlState == .featureNotSupported)
            #expect(refusal?.message == #"source "s" ends with what it reads: nothing can be added to it"#)
            #expect(try await rejects(world) == ["1"])
        }
    }

    /// All of a statement or nothing; what is there counts, also after a restart.
    @Test func beyondTheLimitNothingIsTaken() async throws {
        for life in 0..<2 {
            try await withEngine(bytesMax: 20) { (world) async throws in
                if life == 0 {
                    try await create(world)
                    #expect(try await world.run(#"REPLAY REJECTS FROM s WHERE "offset" = 1 USING '{"a":10}'"#).last?.tag == "REPLAY 1")
                }
                let full = await error { () throws(SQLError) in try await world.run(#"REPLAY REJECTS FROM s USING '{"a":20}'"#) }
                #expect(full?.sqlState == .programLimitExceeded)
                #expect(try await rejects(world) == ["3", "4"])
                // Such a record is not even decoded.
                let huge = await error { () throws(SQLError) in try await world.run("REPLAY REJECTS FROM s USING repeat('[', 1000000)") }
                #expect(huge?.sqlState == .programLimitExceeded)
                try await world.run("FLUSH")
                #expect(try await rows(world, "SELECT * FROM v") == [["4", "13"]])
            }
        }
        try await withEngine(bytesMax: 30) { (world) async throws in
            #expect(try await world.run(#"REPLAY REJECTS FROM s USING '{"a":20}'; FLUSH"#).first?.tag == "REPLAY 2")
            #expect(try await rows(world, "SELECT * FROM v") == [["6", "53"]])
        }
    }

    @Test func aPausedSourceGivesThemOnceItGoesOn() async throws {
        try await withEngine { (world) async throws in
            try await create(world)
            try await world.run("PAUSE SOURCE s")
            #expect(try await world.run(quotes + "; FLUSH").first?.tag == "REPLAY 2")
            #expect(try await rows(world, "SELECT * FROM v") == [["3", "3"]])
            #expect(try await rejects(world) == ["4"])
            try await world.run("RESUME SOURCE s; FLUSH")
            #expect(try await rows(world, "SELECT * FROM v") == [["5", "33"]])
        }
    }

    /// A checkpoint before or after, no checkpoint at all; the process or the machine ends.
    @Test(arguments: 1...12) func replayedOnceThroughAnyEnd(seed: Int) async throws {
        let ending: Ending = [.stop, .kill, .powerCut][seed % 3]
        try await withEngine(ending: ending, seed: UInt64(seed)) { (world) async throws in
            try await create(world)
            if seed % 4 != 0 { await world.engine.checkpoint() }
            #expect(try await world.run(quotes).last?.tag == "REPLAY 2")
            if seed % 2 == 0 { try await world.run("FLUSH") }
            if seed % 4 == 2 { await world.engine.checkpoint() }
        }
        for life in 0..<2 {
            try await withEngine(workers: 1 + (seed + life) % 2, ending: .kill) { (world) async throws in
                try await world.run("FLUSH")
                #expect(try await rows(world, "SELECT * FROM v") == [["5", "33"]], "seed \(seed), life \(life)")
                #expect(try await rejects(world) == ["4"], "seed \(seed), life \(life)")
            }
        }
        try await withEngine { (world) async throws in
            try await world.run("DROP SOURCE s CASCADE")
            #expect(try files.list("/data/replay") == [])
        }
    }

    @Test func whatCannotBeStoredStaysARejection() async throws {
        try await withEngine { (world) async throws in
            try await create(world)
            files.setFault { operation, path in operation == .write && path.contains("replay") ? 28 : nil }
            let full = await error { () throws(SQLError) in try await world.run(quotes) }
            #expect(full?.sqlState == .diskFull)
            #expect(try await rejects(world) == ["1", "3", "4"])
            files.setFault(nil)
            #expect(try await world.run(quotes + "; FLUSH").first?.tag == "REPLAY 2")
            #expect(try await rows(world, "SELECT * FROM v") == [["5", "33"]])
        }
    }
}
