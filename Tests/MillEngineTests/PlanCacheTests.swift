import MillBase
import MillColumnar
import MillPlan
import MillSQL
import MillTestKit
import Synchronization
import Testing

@testable import MillEngine

/// Which plans are kept, and that a statement asked again answers as one that is new.
@Suite struct PlanCacheTests {
    private static func error(of sql: String, _ world: EngineWorld) async -> SQLError? {
        do throws(SQLError) {
            try await world.run(sql)
            return nil
        } catch { return error }
    }

    @Test func whatIsAskedAgainSeesWhatHasChanged() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10), (2, 20)")
        try await world.run("CREATE MATERIALIZED VIEW m AS SELECT v % 3 AS k, count(*) AS n FROM t GROUP BY v % 3")
        let other = world.connect()
        for (sql, before, after) in [
            ("SELECT sum(v), count(DISTINCT v) FROM t", [["30", "2"]], [["100", "3"]]), ("SELECT * FROM t ORDER BY v LIMIT 1", [["1", "10"]], [["2", "20"]]),
            ("SELECT k, n FROM m ORDER BY k", [["1", "1"], ["2", "1"]], [["0", "1"], ["2", "2"]]), ("SELECT v FROM t WHERE id = 1", [["10"]], [["30"]]),
        ] as [(String, [[String?]], [[String?]])] {
            for session in [world.session, other, world.session] { #expect(try await world.run(sql, on: session)[0].rows == before, "\(sql)") }
            #expect(world.engine.planCache.plan(of: sql) != nil, "\(sql)")
            try await world.run("INSERT INTO t VALUES (3, 50); UPDATE t SET v = 30 WHERE id = 1")
            for session in [other, world.session] { #expect(try await world.run(sql, on: session)[0].rows == after, "\(sql)") }
            try await world.run("DELETE FROM t WHERE id = 3; UPDATE t SET v = 10 WHERE id = 1")
        }
        await world.stop()
    }

    /// What a block has changed is taken back in its plans, and only in its own.
    @Test func aBlockSeesItsOwnChanges() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10), (2, 20); CREATE VIEW shown AS SELECT v FROM t")
        let other = world.connect()
        let questions = ["SELECT min(v), max(v), count(*) FROM t", "SELECT v FROM t ORDER BY v LIMIT 1", "SELECT DISTINCT v / 10 FROM t ORDER BY 1", "SELECT v FROM t WHERE id = 1", "SELECT max(v) FROM shown"]
        func answers(_ session: Session) async throws -> [[[String?]]] {
            var answers: [[[String?]]] = []
            for question in questions { answers.append(try await world.run(question, on: session)[0].rows) }
            return answers
        }
        let before: [[[String?]]] = [[["10", "20", "2"]], [["10"]], [["1"], ["2"]], [["10"]], [["20"]]]
        let after: [[[String?]]] = [[["20", "40", "2"]], [["20"]], [["2"], ["4"]], [["40"]], [["40"]]]
        #expect(try await answers(world.session) == before)
        try await world.run("BEGIN; UPDATE t SET v = 40 WHERE id = 1")
        #expect(try await answers(world.session) == after)
        #expect(try await answers(other) == before)
        #expect(try await answers(world.session) == after)
        try await world.run("COMMIT")
        #expect(try await answers(other) == after)
        await world.stop()
    }

    /// Nor is a plan taken that relies on there being no changes while a statement before it, sent with it, has some.
    @Test func aStatementSeesThoseSentBeforeIt() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10), (2, 20)")
        func answer(_ sql: String) async throws -> [[String?]] {
            let statement = try Session.parse(sql)[0]
            guard case .rows(let channel, _) = try await world.session.execute(try await world.session.prepare(statement, parameterTypes: []), parameters: []) else { return [] }
            var rows: [[String?]] = []
            while let batch = try await channel.next() { for row in 0..<batch.count { for _ in 0..<max(0, batch.weight(row)) { rows.append(batch.columns.map { $0.text(row) }) } } }
            return rows
        }
        let questions = ["SELECT min(v), max(v), count(*) FROM t", "SELECT DISTINCT v / 10 FROM t ORDER BY 1", "SELECT v FROM t ORDER BY v DESC LIMIT 1"]
        for question in questions {
            _ = try await answer(question)
            #expect(world.engine.planCache.plan(of: question) != nil)
        }
        for (write, after) in [("UPDATE t SET v = 40 WHERE id = 1", [[["20", "40", "2"]], [["2"], ["4"]], [["40"]]]), ("DELETE FROM t WHERE v = 40", [[["20", "20", "1"]], [["2"]], [["20"]]])] {
            _ = try await answer(write)
            for (question, rows) in zip(questions, after) { #expect(try await answer(question) == rows, "\(question) after \(write)") }
        }
        try await world.session.settle()
        for (question, rows) in zip(questions, [[["20", "20", "1"]], [["2"]], [["20"]]]) { #expect(try await answer(question) == rows) }
        await world.stop()
    }

    @Test func aChangedCatalogIsSeenAtOnce() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10); CREATE VIEW shown AS SELECT id FROM t")
        for (columns, rows) in [("id, v", [["1", "10"]]), ("v AS id", [["10"]]), ("'x' AS id, 2 AS two", [["x", "2"]])] as [(String, [[String?]])] {
            #expect(try await world.run("SELECT * FROM shown").count == 1)
            try await world.run("DROP VIEW shown; CREATE VIEW shown AS SELECT \(columns) FROM t")
            let answer = try await world.run("SELECT * FROM shown")[0]
            #expect(answer.rows == rows)
            #expect(answer.schema?.count == rows[0].count)
        }
        try await world.run("DROP VIEW shown")
        #expect(await Self.error(of: "SELECT * FROM shown", world)?.sqlState == .undefinedTable)
        await world.stop()
    }

    @Test func whatDependsOnTheMomentIsNotKept() async throws {
        let clock = VirtualClock()
        let world = try await EngineWorld(clock: clock)
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)")
        try world.write("a,b\n1,2\n", to: "/data/f.csv")
        for sql in [
            "SELECT now()", "SELECT current_date", "SELECT id FROM t WHERE to_timestamp(v) < CURRENT_TIMESTAMP", "SELECT current_user", "SELECT session_user", "SELECT version()",
            "SELECT current_database()", "SELECT current_setting('TimeZone')", "SELECT pg_table_is_visible(1)", "SELECT 't'::regclass",
            "SELECT relname FROM pg_class WHERE oid = 't'::regclass", "SELECT set_config('application_name', 'x', false)", "SELECT * FROM read_csv('/data/f.csv')",
            "WITH a AS (SELECT now() AS at) SELECT * FROM a", "SELECT (SELECT current_user) AS who FROM t", "SELECT id FROM t UNION ALL SELECT length(current_user)",
        ] {
            for _ in 0..<2 { try await world.run(sql) }
            #expect(world.engine.planCache.plan(of: sql) == nil, "\(sql)")
        }
        for sql in ["SELECT 1", "SELECT id FROM t", "SELECT relname FROM pg_class", "VALUES (1), (2)"] {
            for _ in 0..<2 { try await world.run(sql) }
            #expect(world.engine.planCache.plan(of: sql) != nil, "\(sql)")
        }
        let ann = Session(engine: world.engine, userName: "ann", databaseName: "dev")
        #expect(try await world.run("SELECT current_user")[0].rows == [["root"]])
        #expect(try await world.run("SELECT current_user", on: ann)[0].rows == [["ann"]])
        let first = try await world.run("SELECT now()")[0].rows
        clock.advance(by: .seconds(1))
        #expect(try await world.run("SELECT now()")[0].rows != first)
        await world.stop()
    }

    /// Settings are looked at when a plan runs.
    @Test func settingsAreThoseOfTheSession() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (0)")
        for sql in ["SELECT 1 / id FROM t", "SELECT 1 / 0"] {
            for _ in 0..<2 {
                #expect(await Self.error(of: sql, world)?.sqlState == .divisionByZero)
                let lenient = world.connect()
                #expect(try await world.run("SET on_error = 'null'; \(sql)", on: lenient)[1].rows == [[nil]])
            }
        }
        await world.stop()
    }

    @Test func aPlanOfAnOlderCatalogIsNotKept() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY)")
        try await world.run("SELECT id FROM t")
        let cache = PlanCache()
        let plan = try #require(world.engine.planCache.plan(of: "SELECT id FROM t")).current.plan
        let old = cache.generation
        cache.keep(plan, of: "a", old)
        #expect(cache.plan(of: "a") != nil)
        cache.empty()
        #expect(cache.plan(of: "a") == nil)
        cache.keep(plan, of: "a", old)
        #expect(cache.plan(of: "a") == nil)
        // PREPARE has no text of its own; a long one is seldom sent twice.
        cache.keep(plan, of: "", cache.generation)
        cache.keep(plan, of: String(repeating: " ", count: 5000), cache.generation)
        #expect(cache.plan(of: "") == nil)
        #expect(cache.plan(of: String(repeating: " ", count: 5000)) == nil)
        await world.stop()
    }

    /// It is known from the third time on, with all places as they were sent.
    @Test func aTextThatIsKnownIsNotParsedAgain() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY)")
        let cache = world.engine.planCache
        let sql = "SELECT id, 'é;' AS s FROM t -- no\nWHERE id / 1 > 0"
        let texts = [sql, sql + ";", "\r\n\t" + sql + " ;\n; ", "/* é */ " + sql + " -- ;"]
        for text in texts {
            #expect(cache.statement(sentAs: text) == nil, "\(text)")
            for _ in 0..<2 { try await world.run(text) }
            let known = try #require(cache.statement(sentAs: text), "\(text)")
            #expect(String(reflecting: [known]) == String(reflecting: try Session.parse(text)))
        }
        for text in [" " + sql, sql + "; SELECT 1", sql + "\u{301}", "SELECT 1", ""] { #expect(cache.statement(sentAs: text) == nil, "\(text)") }
        for _ in 0..<3 { try await world.run(sql + "; SELECT 1") }
        #expect(cache.statement(sentAs: sql + "; SELECT 1") == nil)
        let long = "SELECT id FROM t WHERE id <> 0" + String(repeating: " ", count: PlanCache.parsedBytesMax) + "AND true"
        for _ in 0..<2 { try await world.run(long) }
        #expect(cache.plan(of: long) != nil)
        #expect(cache.statement(sentAs: long) == nil)
        // Whose plan is not kept is parsed each time.
        for _ in 0..<3 { try await world.run("SELECT now() IS NULL") }
        #expect(cache.statement(sentAs: "SELECT now() IS NULL") == nil)
        // It is the one that runs.
        cache.keep(ParsedStatement(statement: .flush, span: SourceSpan(0, 4), text: sql), sentAs: "any")
        #expect(try await world.run("any").map(\.tag) == ["FLUSH"])
        for number in 0..<1000 {
            cache.keep(ParsedStatement(statement: .flush, span: SourceSpan(0, 4), text: sql), sentAs: "\(number)")
            if number % 50 == 0 { #expect(cache.statement(sentAs: sql) != nil, "\(number)") }
        }
        #expect(cache.statement(sentAs: "0") == nil)
        try await world.run("CREATE TABLE u (id int PRIMARY KEY)")
        #expect(cache.statement(sentAs: sql) == nil)
        await world.stop()
    }

    /// A text that is asked again while others come and go keeps its plan.
    @Test func theCacheIsBounded() async throws {
        let world = try await EngineWorld()
        try await world.run("SELECT 1")
        let plan = try #require(world.engine.planCache.plan(of: "SELECT 1")).current.plan
        let cache = PlanCache()
        cache.keep(plan, of: "often", cache.generation)
        for number in 0..<1000 {
            cache.keep(plan, of: "\(number)", cache.generation)
            if number % 50 == 0 { #expect(cache.plan(of: "often") != nil, "\(number)") }
            #expect(cache.count <= 2 * PlanCache.youngMax)
        }
        #expect(cache.plan(of: "999") != nil)
        await world.stop()
    }

    @Test func whatIsLargeIsNotKept() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10)")
        let twice = "WITH a0 AS (SELECT id FROM t)" + (1...9).map { ", a\($0) AS (SELECT * FROM a\($0 - 1) UNION ALL SELECT * FROM a\($0 - 1))" }.joined() + " SELECT count(*) FROM a9"
        let between = (1...11).reduce("v") { inner, _ in "(CASE WHEN \(inner) BETWEEN 1 AND 5 THEN 1 ELSE 0 END)" }
        let list = (0..<500).map(String.init).joined(separator: ",")
        let columns = (0..<400).map { "c\($0) int" }.joined(separator: ", ")
        try await world.run("CREATE TABLE wide (\(columns))")
        let wide = Array(repeating: "SELECT * FROM wide", count: 20).joined(separator: " UNION ALL ")
        // Nor where what is prepared becomes large.
        try await world.run("CREATE VIEW grows AS SELECT count(*) AS n FROM t; PREPARE grown AS SELECT * FROM grows")
        #expect(try await world.run("EXECUTE grown")[0].rows == [["1"]])
        try await world.run("DROP VIEW grows; CREATE VIEW grows AS SELECT n FROM (\(twice)) AS a (n)")
        for _ in 0..<2 { #expect(try await world.run("EXECUTE grown")[0].rows == [["512"]]) }
        #expect(world.session.state.withLock { $0.prepared["grown"]?.known?.current.plan.isSmall } == true)
        for (sql, isKept, rows) in [
            ("SELECT length(repeat('x', 1000000))", true, [["1000000"]]), ("SELECT repeat('x', 1000)", true, [[String(repeating: "x", count: 1000)]]),
            ("SELECT left(repeat('x', 1000000), v) FROM t", false, [["xxxxxxxxxx"]]), (twice, false, [["512"]]), ("SELECT \(between) FROM t", false, [["0"]]),
            ("SELECT v FROM t WHERE v IN (\(list))", true, [["10"]]), ("SELECT v FROM t WHERE v IN (\(list)) OR v + 1 IN (\(list))", false, [["10"]]),
            ("SELECT * FROM wide", true, []), (wide, false, []),
        ] as [(String, Bool, [[String?]])] {
            #expect(sql.utf8.count <= PlanCache.textBytesMax)
            for _ in 0..<2 { #expect(try await world.run(sql)[0].rows == rows, "\(sql)") }
            #expect((world.engine.planCache.plan(of: sql) != nil) == isKept, "\(sql)")
            // Nor is it kept in what is prepared: a thousand statements are a thousand texts.
            try await world.run("PREPARE p AS \(sql)")
            #expect((world.session.state.withLock { $0.prepared["p"]?.known } != nil) == isKept, "\(sql)")
            // But where it runs but once, as an unnamed one does, it is planned once.
            let unnamed = try await world.session.prepare(try Session.parse(sql)[0], parameterTypes: [], isKept: false)
            #expect(unnamed.known != nil, "\(sql)")
            #expect(try await world.run("EXECUTE p; DEALLOCATE p")[0].rows == rows, "\(sql)")
        }
        await world.stop()
    }

    /// The same characters, spelled otherwise, are other values.
    @Test func onlyWhatCannotBeToldApartIsTheSame() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, name varchar); INSERT INTO t VALUES (1, 'caf\u{e9}'), (2, 'cafe\u{301}'), (3, 'K'), (4, '\u{212A}')")
        for _ in 0..<2 {
            for (name, id) in [("caf\u{e9}", "1"), ("cafe\u{301}", "2"), ("K", "3"), ("\u{212A}", "4")] {
                #expect(try await world.run("SELECT id FROM t WHERE name = '\(name)'")[0].rows == [[id]])
                #expect(try await world.run("SELECT octet_length('\(name)')")[0].rows == [["\(name.utf8.count)"]])
            }
            // Neither is one of the two taken for the other within a statement.
            #expect(try await world.run("SELECT id FROM t WHERE name = 'caf\u{e9}' OR name = 'cafe\u{301}' ORDER BY id")[0].rows == [["1"], ["2"]])
            #expect(try await world.run("SELECT id FROM t WHERE name IN ('K', '\u{212A}') ORDER BY id")[0].rows == [["3"], ["4"]])
            #expect(
                try await world.run("SELECT count(*) FROM (SELECT * FROM t WHERE name = 'K' UNION ALL SELECT * FROM t WHERE name = '\u{212A}') AS pair")[0].rows == [["2"]])
        }
        // Nor numbers that are equal and not shown alike: a plan has one part for what is the same twice.
        for (sql, rows) in [
            ("SELECT max(1.0), max(1.00) FROM t", [["1.0", "1.00"]]),
            ("SELECT count(DISTINCT x) FROM (SELECT (id + 1.0)::varchar AS x FROM t WHERE id = 1 UNION ALL SELECT (id + 1.00)::varchar FROM t WHERE id = 1) AS pair", [["2"]]),
            ("SELECT id FROM t WHERE id IN (1.0, 1.00, 2.000) ORDER BY id", [["1"], ["2"]]),
            ("SELECT max(0.0::double precision), max(-0.0::double precision) FROM t", [["0", "-0"]]),
        ] as [(String, [[String?]])] {
            #expect(try await world.run(sql)[0].rows == rows, "\(sql)")
        }
        try await world.run(
            "CREATE MATERIALIZED VIEW shown AS SELECT (id + 1.0)::varchar AS x FROM t WHERE id = 1 UNION ALL SELECT (id + 1.00)::varchar FROM t WHERE id = 1")
        #expect(try await world.run("SELECT x FROM shown ORDER BY x")[0].rows == [["2.0"], ["2.00"]])
        try await world.run("CREATE TABLE priced (price numeric PRIMARY KEY); INSERT INTO priced VALUES (1.0), (2.0)")
        #expect(try await world.run("SELECT price FROM priced WHERE price IN (1.0, 1.00)")[0].rows == [["1.0"]])
        await world.stop()
    }

    /// A statement that a driver keeps is planned anew after a definition, and kept again.
    @Test func aPreparedStatementOutlivesDefinitions() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10); CREATE VIEW shown AS SELECT v FROM t")
        let sql = "SELECT * FROM shown"
        let prepared = try await world.session.prepare(try Session.parse(sql)[0], parameterTypes: [])
        func rows() async throws(SQLError) -> [String?] {
            guard case .rows(let channel, _) = try await world.session.execute(prepared, parameters: []) else { return [] }
            var rows: [String?] = []
            while let batch = try await channel.next() { rows += (0..<batch.count).map { batch.columns[0].text($0) } }
            return rows
        }
        try await world.run("PREPARE p AS SELECT * FROM shown")
        for added in 1...3 {
            #expect(try await rows() == ["\(9 + added)"])
            #expect(try await world.run("EXECUTE p")[0].rows == [["\(9 + added)"]])
            let p = try #require(world.session.state.withLock { $0.prepared["p"]?.known })
            #expect(p.current.generation == world.engine.planCache.generation)
            #expect(world.engine.planCache.plan(of: sql) != nil)
            try await world.run("DROP VIEW shown; CREATE VIEW shown AS SELECT v + \(added) AS v FROM t")
            #expect(world.engine.planCache.plan(of: sql) == nil)
        }
        try await world.run("DROP VIEW shown; CREATE VIEW shown AS SELECT v, id FROM t")
        do throws(SQLError) {
            _ = try await rows()
            Issue.record("no error")
        } catch { #expect(error.sqlState == .featureNotSupported) }
        await world.stop()
    }

    /// Whether a name of four parts is one of ours is not the catalog's to say.
    @Test func namesOfOtherCatalogsAreNotKept() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY)")
        for name in ["public.t", "dev.public.t", "lake.dev.public.t"] {
            let sql = "SELECT * FROM \(name)"
            #expect(await Self.error(of: sql, world) == nil, "\(name)")
            #expect((world.engine.planCache.plan(of: sql) != nil) == (name != "lake.dev.public.t"), "\(name)")
        }
        await world.stop()
    }
}
