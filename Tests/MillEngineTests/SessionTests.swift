import MillBase
import MillColumnar
import MillEngine
import MillSQL
import MillTestKit
import Testing

/// What a session keeps between statements: plans, settings, transactions.
@Suite struct SessionTests {
    // MARK: Prepared statements

    @Test func aPreparedStatementIsPlannedAnewWhenItsViewChanges() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, name varchar); INSERT INTO t VALUES (1, 'ann')")
        try await world.run("CREATE VIEW v AS SELECT id, name FROM t")
        let statement = try Session.parse("SELECT * FROM v WHERE id = $1")[0]
        let prepared = try await world.session.prepare(statement, parameterTypes: [.int32])
        func rows() async throws(SQLError) -> Int {
            guard case .rows(let channel, _) = try await world.session.execute(prepared, parameters: [.int(1)]) else { return -1 }
            var count = 0
            while let batch = try await channel.next() { count += batch.count }
            return count
        }
        #expect(try await rows() == 1)
        // The same columns from elsewhere are what the client expects.
        try await world.run("DROP VIEW v; CREATE VIEW v AS SELECT id, name FROM t WHERE id > 1")
        #expect(try await rows() == 0)
        for columns in ["name, id", "id, name, 1 AS one", "id::bigint AS id, name", "id, name AS title"] {
            try await world.run("DROP VIEW v; CREATE VIEW v AS SELECT \(columns) FROM t")
            do throws(SQLError) {
                _ = try await rows()
                Issue.record("no error with \(columns)")
            } catch {
                // A name that is gone ends the binding before.
                #expect(error.sqlState == .featureNotSupported || error.sqlState == .undefinedColumn, "\(columns): \(error)")
            }
        }
        await world.stop()
    }

    @Test(arguments: [("{1,3}", ["1", "3"]), ("{}", []), ("{NULL,2}", ["2"]), (nil, [])] as [(String?, [String])])
    func aParameterCanBeAnArray(array: String?, found: [String]) async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)")
        for (condition, expected) in [("id = ANY($1)", found), ("id = ANY($1::bigint[])", found), ("NOT id <> ALL($1)", found)] {
            let statement = try Session.parse("SELECT id FROM t WHERE \(condition) ORDER BY id")[0]
            let prepared = try await world.session.prepare(statement, parameterTypes: [])
            #expect(prepared.parameterTypes == [.varchar])
            var ids: [String?] = []
            guard case .rows(let channel, _) = try await world.session.execute(prepared, parameters: [array.map { .string($0) } ?? .null]) else { continue }
            while let batch = try await channel.next() { ids += (0..<batch.count).map { batch.columns[0].text($0) } }
            #expect(ids == expected, "\(condition)")
        }
        await world.stop()
    }

    @Test func prepareBindsAndExecuteKeepsItsColumns() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, name varchar); INSERT INTO t VALUES (1, 'ann')")
        try await world.run("CREATE VIEW v AS SELECT id FROM t; PREPARE p (bigint) AS SELECT * FROM v WHERE id = $1")
        #expect(try await world.run("EXECUTE p(1)")[0].rows == [["1"]])
        try await world.run("DROP VIEW v; CREATE VIEW v AS SELECT id, name FROM t")
        await expectError("0A000", "cached plan must not change result type") { () throws(SQLError) in try await world.run("EXECUTE p(1)") }
        await expectError("42P01", "relation \"nothing\" does not exist") { () throws(SQLError) in
            try await world.run("PREPARE q AS SELECT * FROM nothing")
        }
        #expect(try await world.run("DEALLOCATE ALL")[0].tag == "DEALLOCATE ALL")
        await world.stop()
    }

    @Test func commandTagsAreThoseOfPostgreSQL() async throws {
        let world = try await EngineWorld()
        let statements = [
            "CREATE TABLE t (id int)", "CREATE VIEW v AS SELECT id FROM t", "CREATE MATERIALIZED VIEW m AS SELECT id FROM t", "CREATE SCHEMA s",
            "BEGIN", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE a", "COMMIT", "BEGIN", "ROLLBACK", "SET application_name = 'x'", "RESET application_name",
            "DISCARD ALL", "PREPARE p AS SELECT 1", "DEALLOCATE p", "DROP MATERIALIZED VIEW m", "DROP VIEW v", "DROP TABLE t",
        ]
        let tags = [
            "CREATE TABLE", "CREATE VIEW", "CREATE MATERIALIZED VIEW", "CREATE SCHEMA", "BEGIN", "SAVEPOINT", "ROLLBACK", "RELEASE", "COMMIT", "BEGIN",
            "ROLLBACK", "SET", "RESET", "DISCARD ALL", "PREPARE", "DEALLOCATE", "DROP MATERIALIZED VIEW", "DROP VIEW", "DROP TABLE",
        ]
        #expect(try await world.run(statements.joined(separator: ";")).map(\.tag) == tags)
        await world.stop()
    }

    // MARK: Timeouts

    @Test func aStatementIsCancelledAtItsTimeout() async throws {
        let clock = VirtualClock()
        let world = try await EngineWorld(clock: clock)
        let rows = (0..<2000).map { "(\($0))" }.joined(separator: ",")
        try await world.run("CREATE TABLE t (id int); INSERT INTO t VALUES \(rows); SET statement_timeout = '2s'")
        async let time: Void = {
            await clock.untilSleeping()
            clock.advance(by: .seconds(2))
        }()
        await expectError("57014", "canceling statement due to statement timeout") { () throws(SQLError) in
            try await world.run("SELECT count(*) FROM t a, t b, t c WHERE a.id + b.id + c.id < 0")
        }
        await time
        // The next statement has its own time; one that ends in time is left alone.
        #expect(try await world.run("SELECT count(*) FROM t")[0].rows == [["2000"]])
        clock.advance(by: .seconds(10))
        #expect(try await world.run("SHOW statement_timeout")[0].rows == [["2s"]])
        try await world.run("RESET statement_timeout")
        await world.stop()
    }

    @Test(arguments: [
        ("0", "0"), ("1500", "1500ms"), ("60000", "1min"), ("1.5s", "1500ms"), ("2 h", "2h"), ("1d", "1d"), ("500us", "1ms"), ("24d", "24d"), ("2147483647", "2147483647ms"),
        ("2147483s", "2147483s"), ("000000005", "5ms"), ("0000000005", "5ms"), (" 5  s ", "5s"), ("0min", "0"),
    ])
    func aTimeoutShowsInItsLargestUnit(value: String, shown: String) async throws {
        let world = try await EngineWorld()
        try await world.run("SET statement_timeout = '\(value)'")
        #expect(try await world.run("SHOW statement_timeout")[0].rows == [[shown]])
        await world.stop()
    }

    @Test(arguments: ["-1", "25d", "2147484s", "2147483648", "٣s", "5S", "5 sec", "s", "5 parsecs", "soon", "99999999999", "1e400s", ""])
    func whatIsNoTimeIsRefused(value: String) async throws {
        let world = try await EngineWorld()
        await expectError("22023", "invalid value for parameter \"statement_timeout\": \"\(value)\"") { () throws(SQLError) in
            try await world.run("SET statement_timeout = '\(value)'")
        }
        await world.stop()
    }

    // MARK: Transactions

    @Test func rollingBackToASavepointTakesItsWritesBack() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY); BEGIN; INSERT INTO t VALUES (1); SAVEPOINT a; INSERT INTO t VALUES (2)")
        try await world.run("SAVEPOINT b; INSERT INTO t VALUES (3); ROLLBACK TO SAVEPOINT a")
        await expectError("3B001", "savepoint \"b\" does not exist") { () throws(SQLError) in try await world.run("RELEASE b") }
        // A failed block goes on from its savepoint, which stays.
        #expect(world.session.transaction == .failed)
        try await world.run("ROLLBACK TO a; INSERT INTO t VALUES (4); RELEASE a; COMMIT")
        #expect(try await world.run("SELECT id FROM t ORDER BY id")[0].rows == [["1"], ["4"]])
        await expectError("25P01", "SAVEPOINT can only be used in transaction blocks") { () throws(SQLError) in try await world.run("SAVEPOINT a") }
        await world.stop()
    }

    @Test func settingsFollowTheirTransaction() async throws {
        let world = try await EngineWorld()
        func shown() async throws(SQLError) -> String? { try await world.run("SHOW statement_timeout")[0].rows[0][0] }
        try await world.run("BEGIN; SET LOCAL statement_timeout = '1s'")
        #expect(try await shown() == "1s")
        try await world.run("COMMIT")
        #expect(try await shown() == "0")
        try await world.run("BEGIN; SET statement_timeout = '2s'; ROLLBACK")
        #expect(try await shown() == "0")
        try await world.run("BEGIN; SET statement_timeout = '3s'; SAVEPOINT a; SET LOCAL statement_timeout = '4s'; ROLLBACK TO a")
        #expect(try await shown() == "3s")
        try await world.run("COMMIT")
        #expect(try await shown() == "3s")
        try await world.run("DISCARD ALL")
        #expect(try await shown() == "0")
        try world.session.start(with: "statement_timeout", "9s")
        try await world.run("SET statement_timeout = 5; RESET statement_timeout")
        #expect(try await shown() == "9s")
        await world.stop()
    }

    @Test(arguments: [
        "BEGIN READ ONLY", "BEGIN; SET TRANSACTION READ ONLY", "SET default_transaction_read_only = on", "BEGIN READ ONLY; RESET ALL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
    ])
    func aReadOnlyTransactionRefusesWrites(opening: String) async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int); \(opening)")
        #expect(try await world.run("SELECT count(*) FROM t")[0].rows == [["0"]])
        await expectError("25006", "cannot execute INSERT in a read-only transaction") { () throws(SQLError) in
            try await world.run("INSERT INTO t VALUES (1)")
        }
        await world.stop()
    }

    @Test func discardAllIsRefusedInABlock() async throws {
        let world = try await EngineWorld()
        await expectError("25001", "DISCARD ALL cannot run inside a transaction block") { () throws(SQLError) in
            try await world.run("BEGIN; DISCARD ALL")
        }
        await world.stop()
    }

    @Test func aJoinThatCannotCountItsRowsSaysSo() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (k int); INSERT INTO t VALUES (1)")
        // Twice as many rows each time, which are one row to the view: it has it 2^16 times, so that five sides make 2^80.
        for _ in 0..<16 { try await world.run("INSERT INTO t SELECT k FROM t") }
        try await world.run("CREATE MATERIALIZED VIEW m AS SELECT k FROM t")
        await expectError("22003", "a join has a row more often than a bigint can count") { () throws(SQLError) in
            try await world.run("SELECT count(*) FROM m a JOIN m b USING (k) JOIN m c USING (k) JOIN m d USING (k) JOIN m e USING (k)")
        }
        await world.stop()
    }

    @Test func noticesFollowClientMinMessages() async throws {
        let world = try await EngineWorld()
        for (level, count) in [("notice", 2), ("warning", 1), ("error", 0)] {
            try await world.run("SET client_min_messages = \(level); DROP TABLE IF EXISTS nothing; COMMIT")
            #expect(world.session.takeMessages().count == count, "\(level)")
        }
        await world.stop()
    }

    private func expectError(_ state: String, _ message: String, _ call: () async throws(SQLError) -> Void) async {
        do throws(SQLError) {
            try await call()
            Issue.record("no error, but \(message)")
        } catch {
            #expect("\(error.sqlState)" == state && error.message == message, "\(error)")
        }
    }

    private func expectError(_ state: String, _ message: String, _ call: () async throws(SQLError) -> [EngineWorld.Answer]) async {
        await expectError(state, message) { () throws(SQLError) in _ = try await call() }
    }
}
