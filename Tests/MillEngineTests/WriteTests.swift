import MillBase
import MillColumnar
import MillDataflow
import MillEngine
import MillIO
import MillLog
import Testing

/// INSERT, UPDATE and DELETE, transactions, and several clients that write at once. What PostgreSQL answers is in Tests/slt/pg_compat.
@Suite struct WriteTests {
    /// The tables are what the model says, in and outside blocks, and views over them what their queries give.
    @Test(arguments: [1, 3]) func randomChangesAreWhatTheModelSays(workers: Int) async throws {
        for seed in UInt64(1)...12 {
            let world = try await EngineWorld(workerCount: workers)
            var model = WriteModel(seed: seed)
            let views = [
                "SELECT s, count(*) AS c, sum(n) AS total, min(id) AS low FROM t GROUP BY s",
                "SELECT t.id, bag.y, count(*) AS c FROM t JOIN bag ON t.id = bag.x GROUP BY t.id, bag.y",
                "SELECT x, y FROM bag WHERE x NOT IN (SELECT id FROM t)",
            ]
            try await world.run(WriteModel.definitions)
            for (number, view) in views.enumerated() { try await world.run("CREATE MATERIALIZED VIEW v\(number) AS \(view)") }
            for step in 0..<60 {
                let (text, count) = step == 59 ? (model.finish(), nil) : model.next()
                let note = "seed \(seed), \(workers) workers, step \(step): \(text)"
                let answer: EngineWorld.Answer
                do { answer = try #require(try await world.run(text).last) } catch {
                    Issue.record("\(note): \(error)")
                    break
                }
                if let count { #expect(answer.tag.split(separator: " ").last == "\(count)", "\(note): \(answer.tag)") }
                let t = try await world.run("SELECT id, n, s FROM t")[0].multiset
                let expected = Dictionary(uniqueKeysWithValues: model.tables.t.map { ("(\($0), \($1.n.map(String.init) ?? "NULL"), \($1.s))", 1) })
                #expect(t == expected, "\(note)")
                let bag = try await world.run("SELECT x, y FROM bag")[0].multiset
                #expect(bag == Dictionary(uniqueKeysWithValues: model.tables.bag.map { ("(\($0.x), \($0.y))", $1) }), "\(note)")
                // A block does not see its own changes in views.
                guard !model.isInBlock else { continue }
                for (number, view) in views.enumerated() {
                    #expect(try await world.run("SELECT * FROM v\(number)")[0].multiset == world.run(view)[0].multiset, "\(note), v\(number)")
                }
            }
            await world.stop()
        }
    }

    /// Among so many keys some are alike in the part of their hashes that a directory keeps.
    @Test(arguments: ["PRIMARY KEY", ""]) func aStatementMeetsEveryRowOfALargeTable(key: String) async throws {
        let world = try await EngineWorld(workerCount: 2)
        try await world.run("CREATE TABLE digits (d int); INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
        try await world.run("CREATE TABLE t (id int \(key), x int)")
        let rows = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d AS id FROM digits a, digits b, digits c, digits d, digits e WHERE e.d < 6"
        try await world.run("INSERT INTO t SELECT id, id FROM (\(rows)) AS made")
        func expect(_ statement: String, _ tag: String, _ rest: [[String?]]) async throws {
            #expect(try await world.run(statement).last?.tag == tag)
            #expect(try await world.run("SELECT count(*), count(DISTINCT id), coalesce(sum(abs(x - id - 7)), 0) FROM t")[0].rows == rest, "\(statement)")
        }
        try await expect("UPDATE t SET x = x + 7", "UPDATE 60000", [["60000", "60000", "0"]])
        if !key.isEmpty {
            let again = "INSERT INTO t SELECT id, x FROM t ON CONFLICT (id) DO UPDATE SET x ="
            try await expect("\(again) excluded.x + t.id - t.x + 7", "INSERT 0 60000", [["60000", "60000", "0"]])
            try await expect("\(again) excluded.id + 8", "INSERT 0 60000", [["60000", "60000", "60000"]])
        }
        try await expect("UPDATE t SET id = id + 1000000, x = id + 1000007", "UPDATE 60000", [["60000", "60000", "0"]])
        try await expect("DELETE FROM t USING digits WHERE t.id % 10 = digits.d AND digits.d < 5", "DELETE 30000", [["30000", "30000", "0"]])
        try await expect("DELETE FROM t", "DELETE 30000", [["0", "0", "0"]])
        await world.stop()
    }

    @Test(arguments: [1, 2]) func noUpdateIsLost(workers: Int) async throws {
        let world = try await EngineWorld(workerCount: workers)
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, x bigint); CREATE TABLE bag (x bigint)")
        try await world.run("INSERT INTO t VALUES (1, 0); INSERT INTO bag VALUES (0)")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<8 {
                group.addTask {
                    let session = world.connect()
                    for _ in 0..<25 {
                        try await world.run(client % 2 == 0 ? "UPDATE t SET x = x + 1 WHERE id < 2" : "UPDATE t SET x = x + 1 WHERE id = 1", on: session)
                        try await world.run("UPDATE bag SET x = x + 1", on: session)
                        try await world.run("INSERT INTO t VALUES (2, 1) ON CONFLICT (id) DO UPDATE SET x = t.x + excluded.x", on: session)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await world.run("SELECT id, x FROM t")[0].multiset == ["(1, 200)": 1, "(2, 200)": 1])
        #expect(try await world.run("SELECT x FROM bag")[0].multiset == ["(200)": 1])
        await world.stop()
    }

    @Test func transfersInBlocksKeepTheTotal() async throws {
        let world = try await EngineWorld(workerCount: 2)
        try await world.run("CREATE TABLE account (id int PRIMARY KEY, balance bigint)")
        try await world.run("INSERT INTO account VALUES (0, 100), (1, 100), (2, 100), (3, 100)")
        try await world.run("CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS b FROM account")
        try await withThrowingTaskGroup(of: Int.self) { group in
            for client in 0..<4 {
                group.addTask {
                    let session = world.connect()
                    var retries = 0
                    for round in 0..<15 {
                        while true {
                            do throws(SQLError) {
                                try await world.run("BEGIN", on: session)
                                try await world.run("UPDATE account SET balance = balance - 1 WHERE id = \((client + round) % 4)", on: session)
                                try await world.run("UPDATE account SET balance = balance + 1 WHERE id = \((client + round * 3 + 1) % 4)", on: session)
                                try await world.run("COMMIT", on: session)
                                break
                            } catch {
                                guard error.sqlState == .serializationFailure else { throw error }
                                try await world.run("ROLLBACK", on: session)
                                retries += 1
                            }
                        }
                    }
                    return retries
                }
            }
            group.addTask {
                let session = world.connect()
                for _ in 0..<60 {
                    for query in ["SELECT b FROM total", "SELECT sum(balance) FROM account"] {
                        let total = try await world.run(query, on: session)[0].rows
                        #expect(total == [["400"]])
                    }
                }
                return 0
            }
            for try await _ in group {}
        }
        #expect(try await world.run("SELECT sum(balance) FROM account")[0].rows == [["400"]])
        await world.stop()
    }

    @Test func aBlockSeesOneMoment() async throws {
        let world = try await EngineWorld()
        let other = world.connect()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2)")
        try await world.run("CREATE MATERIALIZED VIEW v AS SELECT sum(n) AS s FROM t")
        try await world.run("BEGIN; SELECT 1 FROM t")
        try await world.run("UPDATE t SET n = 50 WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (3, 3)", on: other)
        #expect(try await world.run("SELECT * FROM t")[0].multiset == ["(1, 1)": 1, "(2, 2)": 1])
        #expect(try await world.run("SELECT n FROM t WHERE id = 1")[0].rows == [["1"]])
        #expect(try await world.run("SELECT n FROM t WHERE id = 3")[0].rows.isEmpty)
        #expect(try await world.run("SELECT s FROM v")[0].rows == [["3"]])
        #expect(try await world.run("UPDATE t SET n = n + 1 WHERE id = 2")[0].tag == "UPDATE 1")
        #expect(try await world.run("SELECT n FROM t WHERE id = 2")[0].rows == [["3"]])
        let error = await #expect(throws: SQLError.self) { try await world.run("COMMIT") }
        #expect(error?.sqlState == .serializationFailure)
        #expect(try await world.run("SELECT * FROM t")[0].multiset == ["(1, 50)": 1, "(3, 3)": 1])
        await world.stop()
    }

    @Test func blocksConflictOverTheSameRowsOnly() async throws {
        let world = try await EngineWorld()
        let other = world.connect()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, n int); CREATE TABLE bag (x int)")
        try await world.run("INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO bag VALUES (1), (1), (2)")
        for (mine, theirs, conflicts) in [
            ("UPDATE t SET n = 5 WHERE id = 1", "UPDATE t SET n = 6 WHERE id = 2", false),
            ("UPDATE t SET n = 7 WHERE id = 1", "UPDATE t SET n = 8 WHERE id = 1", true),
            ("DELETE FROM t WHERE id = 1", "UPDATE t SET n = 9 WHERE id = 1", true),
            ("INSERT INTO t VALUES (7, 1)", "INSERT INTO t VALUES (7, 2)", true),
            ("INSERT INTO t VALUES (8, 1)", "INSERT INTO t VALUES (9, 2)", false),
            ("UPDATE t SET n = n WHERE id = 2", "UPDATE t SET n = 10 WHERE id = 2", false),
            ("INSERT INTO bag VALUES (1)", "INSERT INTO bag VALUES (1)", false),
            ("DELETE FROM bag WHERE x = 2", "DELETE FROM bag WHERE x = 1", false),
            ("UPDATE bag SET x = 0", "UPDATE bag SET x = -1", true),
        ] {
            try await world.run("INSERT INTO bag VALUES (1), (2)")
            try await world.run("BEGIN; \(mine)")
            try await world.run("BEGIN", on: other)
            try await world.run(theirs, on: other)
            try await world.run("COMMIT", on: other)
            var state: SQLState?
            do throws(SQLError) { try await world.run("COMMIT") } catch { state = error.sqlState }
            #expect(state == (conflicts ? .serializationFailure : nil), "\(mine) beside \(theirs)")
        }
        await world.stop()
    }

    /// Statements sent as one are a transaction, which keeps other writers of its tables waiting, and never for ever.
    @Test(.timeLimit(.minutes(10))) func circlesOfWritersEnd() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE a (x int); CREATE TABLE b (x int); INSERT INTO a VALUES (0); INSERT INTO b VALUES (0)")
        let (one, two) = (world.connect(), world.connect())
        try await Self.execute("UPDATE a SET x = x + 1", one)
        try await Self.execute("UPDATE b SET x = x + 1", two)
        // Whichever comes second closes the circle.
        async let first = Self.isDeadlock("UPDATE b SET x = x + 10", one)
        async let second = Self.isDeadlock("UPDATE a SET x = x + 10", two)
        let failures = try await [first, second]
        #expect(failures.count { $0 } == 1)
        try await one.settle()
        try await two.settle()
        let total = try await world.run("SELECT a.x + b.x FROM a, b")[0].rows
        #expect(total == [["11"]])
        await world.stop()
    }

    @Test(.timeLimit(.minutes(10))) func aClientThatLeavesLetsOthersWrite() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (x int); INSERT INTO t VALUES (0)")
        let gone = world.connect()
        try await Self.execute("UPDATE t SET x = 5", gone)
        async let waiting = world.run("UPDATE t SET x = x + 1")
        gone.close()
        _ = try await waiting
        #expect(try await world.run("SELECT x FROM t")[0].rows == [["1"]])
        await world.stop()
    }

    /// Whether a statement is refused for a deadlock, which ends its transaction.
    private static func isDeadlock(_ text: String, _ session: Session) async throws(SQLError) -> Bool {
        do throws(SQLError) { try await execute(text, session) } catch {
            guard error.sqlState == .deadlockDetected else { throw error }
            session.statementFailed()
            return true
        }
        return false
    }

    /// Runs a statement without ending its transaction.
    private static func execute(_ text: String, _ session: Session) async throws(SQLError) {
        for statement in try Session.parse(text) { _ = try await session.execute(try await session.prepare(statement, parameterTypes: []), parameters: []) }
    }

    @Test func whatWasAnsweredIsInTheLogAndComesBack() async throws {
        let files = MemoryFileSystem()
        let environment = Environment(files: files, clock: SystemClock(), random: SystemRandomSource())
        try files.createDirectory("/data")
        try files.syncDirectory("/")
        func open() throws -> DMLLog { try DMLLog(environment: environment, directory: "/data/dml") }
        let definitions = "CREATE TABLE t (id int PRIMARY KEY, s varchar); CREATE TABLE bag (x int); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS c FROM bag"
        let log = try open()
        let before = try await EngineWorld(dmlLog: log)
        try await before.run(definitions)
        try await before.run("INSERT INTO t VALUES (1, 'a text that does not fit a view'), (2, NULL); INSERT INTO bag VALUES (1), (1), (2)")
        try await before.run("BEGIN; UPDATE t SET s = 'new' WHERE id = 2; DELETE FROM bag WHERE x = 2; COMMIT")
        try await before.run("BEGIN; DELETE FROM t; ROLLBACK")
        let expected = try await (before.run("SELECT * FROM t")[0].multiset, before.run("SELECT _row_id, x FROM bag")[0].multiset)
        await before.stop()
        // No close: all that was answered is durable already.
        files.crash(random: SystemRandomSource())
        let after = try await EngineWorld(workerCount: 2, dmlLog: try open())
        try await after.run(definitions)
        #expect(try await after.engine.replay(after: .zero) == DMLPosition(3))
        #expect(try await after.run("SELECT * FROM t")[0].multiset == expected.0)
        #expect(try await after.run("SELECT _row_id, x FROM bag")[0].multiset == expected.1)
        #expect(try await after.run("SELECT c FROM v")[0].rows == [["2"]])
        try await after.run("INSERT INTO bag VALUES (3)")
        #expect(try await after.run("SELECT count(DISTINCT _row_id) FROM bag")[0].rows == [["3"]])
        await after.stop()
        log.close()
    }

    /// Workers that have ended have no rows; that is not what is in the table.
    @Test(arguments: [
        "SELECT * FROM t", "SELECT * FROM t WHERE k = 1", "SELECT * FROM v", "UPDATE t SET n = 2 WHERE k = 1", "DELETE FROM t WHERE k = 1",
        "INSERT INTO t VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET n = 2", "INSERT INTO t VALUES (1, 2)", "BEGIN; SELECT * FROM t",
        "BEGIN; UPDATE t SET n = 2 WHERE k = 1", "SHOW JOBS", "SELECT * FROM v_errors", "FLUSH", "WAIT",
        "CREATE MATERIALIZED VIEW w AS SELECT * FROM t", "CREATE TABLE u (k int)",
    ])
    func aServerThatStopsAnswersNoStatementFromNothing(statement: String) async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (k int PRIMARY KEY, n int); CREATE MATERIALIZED VIEW v AS SELECT 1 / n AS q FROM t; INSERT INTO t VALUES (1, 1)")
        world.engine.conductor.stop()
        await #expect(throws: SQLError.shuttingDown) { try await world.run(statement) }
        await world.stop()
    }

    /// Who tries again what was stored would have it twice.
    @Test func aTransactionThatIsStoredAsTheServerStopsSaysSo() async throws {
        let environment = Environment(files: MemoryFileSystem(), clock: SystemClock(), random: SystemRandomSource())
        let world = try await EngineWorld(dmlLog: try DMLLog(environment: environment, directory: "/dml"))
        try await world.run("CREATE TABLE t (k int)")
        world.engine.conductor.stop()
        let error = await #expect(throws: SQLError.self) { try await world.run("INSERT INTO t VALUES (1)") }
        #expect(error?.sqlState == .adminShutdown)
        #expect(error?.detail != nil)
        await world.stop()
        let after = try await EngineWorld(dmlLog: try DMLLog(environment: environment, directory: "/dml"))
        try await after.run("CREATE TABLE t (k int)")
        try await after.engine.replay(after: .zero)
        #expect(try await after.run("SELECT k FROM t")[0].rows == [["1"]])
        await after.stop()
    }

    /// Of a table that goes there is nothing to look for after a start.
    @Test(arguments: [
        ("INSERT INTO t VALUES (2)", "Whether the transaction was stored shows when the server is started again."),
        ("CREATE TABLE u AS SELECT id FROM t", "Table \"u\" is not created."),
    ])
    func aLogThatFailsSaysWhatBecameOfTheRows(statement: String, detail: String) async throws {
        let files = MemoryFileSystem()
        let environment = Environment(files: files, clock: SystemClock(), random: SystemRandomSource())
        let world = try await EngineWorld(dmlLog: try DMLLog(environment: environment, directory: "/dml"))
        try await world.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        files.setFault { operation, _ in operation == .sync ? 5 : nil }
        let error = await #expect(throws: SQLError.self) { try await world.run(statement) }
        #expect(error?.sqlState == .ioError)
        #expect(error?.detail == detail)
        #expect(error?.hint == "Nothing more can be written until the server is started again.")
        await #expect(throws: SQLError.self) { try await world.run("SELECT id FROM u") }
        await world.stop()
    }

    @Test func aLogThatFailsStoresNothing() async throws {
        let files = MemoryFileSystem()
        let environment = Environment(files: files, clock: SystemClock(), random: SystemRandomSource())
        let world = try await EngineWorld(dmlLog: try DMLLog(environment: environment, directory: "/dml"))
        try await world.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        files.setFault { operation, _ in operation == .sync ? 5 : nil }
        for statement in ["INSERT INTO t VALUES (2)", "DELETE FROM t"] {
            let error = await #expect(throws: SQLError.self) { try await world.run(statement) }
            #expect(error?.sqlState == .ioError)
        }
        #expect(try await world.run("SELECT * FROM t")[0].rows == [["1"]])
        await world.stop()
    }
}
