import MillBase
import MillBinder
import Testing

struct BinderFailure: Sendable, CustomTestStringConvertible {
    var sql: String
    var code: String
    var message: String
    /// The text that the error points at.
    var place: String
    var hint: String?

    init(_ sql: String, _ code: String, _ message: String, at place: String, hint: String? = nil) {
        self.sql = sql
        self.code = code
        self.message = message
        self.place = place
        self.hint = hint
    }

    var testDescription: String { sql }
}

@Suite struct BinderErrorTests {
    static let names: [BinderFailure] = [
        BinderFailure("SELECT x FROM t", "42703", "column \"x\" does not exist", at: "x"),
        BinderFailure(
            "SELECT bb FROM t", "42703", "column \"bb\" does not exist", at: "bb", hint: "Perhaps you meant to reference the column \"t.b\"."),
        BinderFailure("SELECT t.zz FROM t", "42703", "column t.zz does not exist", at: "t.zz"),
        BinderFailure("SELECT q.a FROM t", "42P01", "missing FROM-clause entry for table \"q\"", at: "q.a"),
        BinderFailure("SELECT * FROM nope", "42P01", "relation \"nope\" does not exist", at: "nope"),
        BinderFailure("SELECT * FROM sch.nope", "42P01", "relation \"sch.nope\" does not exist", at: "sch.nope"),
        BinderFailure("SELECT a FROM t, u", "42702", "column reference \"a\" is ambiguous", at: "a"),
        BinderFailure("SELECT 1 FROM t, t", "42712", "table name \"t\" specified more than once", at: "t"),
        BinderFailure("SELECT a FROM t x(p, q, r, z)", "42P10", "table \"x\" has 3 columns available but 4 columns specified", at: "x"),
        BinderFailure("SELECT * FROM t JOIN u USING (b)", "42703", "column \"b\" specified in USING clause does not exist in right table", at: "b"),
        BinderFailure("SELECT nope(a) FROM t", "42883", "function nope(integer) does not exist", at: "nope",
            hint: "No function matches the given name and argument types. You might need to add explicit type casts."),
        BinderFailure("SELECT c + 1 FROM t", "42883", "operator does not exist: character varying + integer", at: "+",
            hint: "No operator matches the given name and argument types. You might need to add explicit type casts."),
        BinderFailure("SELECT a::nope FROM t", "42704", "type \"nope\" does not exist", at: "nope"),
        BinderFailure("SELECT 'x'::int", "22P02", "invalid input syntax for type integer: \"x\"", at: "'x'"),
        BinderFailure("SELECT a FROM t WHERE a = 'x'", "22P02", "invalid input syntax for type integer: \"x\"", at: "'x'"),
        BinderFailure("SELECT a FROM t WHERE b", "42804", "argument of WHERE must be type boolean, not type integer", at: "b"),
        BinderFailure("SELECT a FROM t WHERE b AND true", "42804", "argument of AND must be type boolean, not type integer", at: "b"),
        BinderFailure("SELECT CASE WHEN true THEN 1 ELSE current_date END", "42804", "CASE types integer and date cannot be matched", at: "current_date"),
        BinderFailure("SELECT sum(a) OVER (ORDER BY a) FROM t", "0A000", "sum over a part of its partition is not supported", at: "sum"),
        BinderFailure("SELECT lag(a) OVER (ORDER BY a) FROM t", "0A000", "window function lag is not supported", at: "lag"),
        BinderFailure("SELECT sum(rank() OVER ()) OVER () FROM t", "42P20", "window function calls cannot be nested", at: "rank"),
        BinderFailure("SELECT * FROM t WHERE a = DEFAULT", "42601", "", at: ""),
    ]

    static let windowFunctions: [BinderFailure] = [
        BinderFailure(
            "SELECT a FROM t WHERE row_number() OVER () = 1", "42P20", "window functions are not allowed in WHERE", at: "row_number"),
        BinderFailure(
            "SELECT a FROM t GROUP BY a HAVING rank() OVER () = 1", "42P20", "window functions are not allowed in HAVING", at: "rank"),
        BinderFailure(
            "SELECT a FROM t GROUP BY rank() OVER (ORDER BY a)", "42P20", "window functions are not allowed in GROUP BY", at: "rank"),
        BinderFailure(
            "SELECT rank() OVER (ORDER BY a) FROM t GROUP BY 1", "42P20", "window functions are not allowed in GROUP BY",
            at: "rank() OVER (ORDER BY a)"),
        BinderFailure(
            "SELECT 1 FROM t JOIN s ON rank() OVER () = 1", "42P20", "window functions are not allowed in JOIN conditions", at: "rank"),
        BinderFailure("SELECT a FROM t LIMIT rank() OVER ()", "42P20", "window functions are not allowed in LIMIT", at: "rank"),
        BinderFailure("VALUES (rank() OVER ())", "42P20", "window functions are not allowed in VALUES", at: "rank"),
        BinderFailure(
            "SELECT sum(rank() OVER ()) FROM t", "42803", "aggregate function calls cannot contain window function calls", at: "rank"),
        BinderFailure(
            "SELECT rank() OVER (ORDER BY rank() OVER ()) FROM t", "42P20", "window functions are not allowed in window definitions",
            at: "rank"),
        BinderFailure("SELECT row_number() FROM t", "42809", "window function row_number requires an OVER clause", at: "row_number"),
        BinderFailure(
            "SELECT lower('a') OVER () FROM t", "42809", "OVER specified, but lower is not a window function nor an aggregate function",
            at: "lower"),
        BinderFailure("SELECT nope(a) OVER () FROM t", "42883", "function nope(integer) does not exist", at: "nope"),
        BinderFailure("SELECT row_number(a) OVER () FROM t", "42883", "function row_number(integer) does not exist", at: "row_number"),
        BinderFailure("SELECT rank(DISTINCT a) OVER () FROM t", "0A000", "DISTINCT in a window function is not supported", at: "rank"),
        BinderFailure(
            "SELECT rank() FILTER (WHERE true) OVER () FROM t", "0A000", "FILTER of rank is not supported",
            at: "rank"),
        BinderFailure("SELECT rank() OVER w FROM t", "42704", "window \"w\" does not exist", at: "w"),
        BinderFailure("SELECT rank() OVER (w ORDER BY a) FROM t", "42704", "window \"w\" does not exist", at: "w"),
        BinderFailure("SELECT a FROM t WINDOW w AS (), w AS ()", "42P20", "window \"w\" is already defined", at: "w"),
        BinderFailure("SELECT a FROM t WINDOW w AS (ORDER BY nope)", "42703", "column \"nope\" does not exist", at: "nope"),
        BinderFailure(
            "SELECT rank() OVER (w PARTITION BY a) FROM t WINDOW w AS ()", "42P20", "cannot override PARTITION BY clause of window \"w\"",
            at: "w"),
        BinderFailure(
            "SELECT rank() OVER (w ORDER BY a) FROM t WINDOW w AS (ORDER BY b)", "42P20", "cannot override ORDER BY clause of window \"w\"",
            at: "w"),
        BinderFailure(
            "SELECT rank() OVER (w) FROM t WINDOW w AS (ROWS 1 PRECEDING)", "42P20",
            "cannot copy window \"w\" because it has a frame clause", at: "w"),
        BinderFailure(
            "SELECT rank() OVER (ROWS UNBOUNDED FOLLOWING) FROM t", "42P20", "frame start cannot be UNBOUNDED FOLLOWING",
            at: "ROWS UNBOUNDED FOLLOWING"),
        BinderFailure(
            "SELECT a, rank() OVER (ORDER BY b) FROM t GROUP BY a", "42803",
            "column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function", at: "b"),
    ]

    static let grouping: [BinderFailure] = [
        BinderFailure(
            "SELECT a, b FROM t GROUP BY a", "42803", "column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function", at: "b"),
        BinderFailure(
            "SELECT a + b, count(*) FROM t GROUP BY a", "42803",
            "column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function", at: "b"),
        BinderFailure(
            "SELECT * FROM t GROUP BY a", "42803", "column \"t.b\" must appear in the GROUP BY clause or be used in an aggregate function", at: "*"),
        BinderFailure("SELECT a FROM t WHERE sum(b) > 1", "42803", "aggregate functions are not allowed in WHERE", at: "sum(b)"),
        BinderFailure("SELECT a FROM t GROUP BY sum(b)", "42803", "aggregate functions are not allowed in GROUP BY", at: "sum(b)"),
        BinderFailure("SELECT sum(count(*)) FROM t", "42803", "aggregate function calls cannot be nested", at: "count(*)"),
        BinderFailure("SELECT a FROM t GROUP BY 3", "42P10", "GROUP BY position 3 is not in select list", at: "3"),
        BinderFailure("SELECT a FROM t ORDER BY 2", "42P10", "ORDER BY position 2 is not in select list", at: "2"),
        BinderFailure("SELECT DISTINCT a FROM t ORDER BY b", "42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list", at: "b"),
        BinderFailure("SELECT a FROM t LIMIT -1", "2201W", "LIMIT must not be negative", at: "-1"),
        BinderFailure("SELECT a FROM t UNION SELECT a, b FROM t", "42601", "each UNION query must have the same number of columns", at: "SELECT a FROM t UNION SELECT a, b FROM t"),
        BinderFailure("SELECT (SELECT a, b FROM t)", "42601", "subquery must return only one column", at: "(SELECT a, b FROM t)"),
        BinderFailure("SELECT a FROM t WHERE a IN (SELECT a, b FROM t)", "42601", "subquery has too many columns", at: "a IN (SELECT a, b FROM t)"),
    ]

    static let windows: [BinderFailure] = [
        BinderFailure("SELECT * FROM TUMBLE(s, k, INTERVAL '1 minute')", "42804",
            "the time column of TUMBLE must be date, timestamp or timestamp with time zone, not integer", at: "k"),
        BinderFailure("SELECT * FROM TUMBLE(s, ts, INTERVAL '1 month')", "22023", "the size of TUMBLE must not have months or years", at: "INTERVAL '1 month'"),
        BinderFailure("SELECT * FROM TUMBLE(s, ts, INTERVAL '0 seconds')", "22023", "the size of TUMBLE must be greater than zero", at: "INTERVAL '0 seconds'"),
        BinderFailure("SELECT * FROM TUMBLE(s, ts, INTERVAL '-1 seconds')", "22023", "the size of TUMBLE must be greater than zero", at: "INTERVAL '-1 seconds'"),
        BinderFailure("SELECT * FROM TUMBLE(s, ts, k)", "22023", "the size of TUMBLE must be a constant interval", at: "k"),
        BinderFailure("SELECT * FROM TUMBLE(s, nope, INTERVAL '1 minute')", "42703", "column \"nope\" does not exist", at: "nope"),
        BinderFailure("SELECT * FROM HOP(s, ts, INTERVAL '10' SECOND, INTERVAL '2' SECOND)", "22023",
            "the size of a HOP window must be at least its slide", at: "INTERVAL '2' SECOND"),
    ]

    static let statements: [BinderFailure] = [
        BinderFailure("INSERT INTO t VALUES (1, 2, 'x', 4)", "42601", "INSERT has more expressions than target columns", at: "4"),
        BinderFailure("INSERT INTO t (a, b) VALUES (1)", "42601", "INSERT has more target columns than expressions", at: "b"),
        BinderFailure("INSERT INTO t (a, a) VALUES (1, 2)", "42701", "column \"a\" specified more than once", at: "a"),
        BinderFailure("INSERT INTO t (z) VALUES (1)", "42703", "column \"z\" of relation \"t\" does not exist", at: "z"),
        BinderFailure("INSERT INTO t VALUES ('x', 2, 'y')", "22P02", "invalid input syntax for type integer: \"x\"", at: "'x'"),
        BinderFailure("INSERT INTO t VALUES (true, 2, 'y')", "42804", "column \"a\" is of type integer but expression is of type boolean", at: "true"),
        BinderFailure("INSERT INTO s VALUES (1)", "42809", "cannot insert into source \"s\"", at: "s"),
        BinderFailure("CREATE TABLE n (a INT, a INT)", "42701", "column \"a\" specified more than once", at: "a"),
        BinderFailure("CREATE TABLE n (a nope)", "42704", "type \"nope\" does not exist", at: "nope"),
        BinderFailure("CREATE TABLE n (a INT, PRIMARY KEY (b))", "42703", "column \"b\" named in key does not exist", at: "b"),
        BinderFailure("CREATE TABLE n (a INT PRIMARY KEY, b INT PRIMARY KEY)", "42P16", "multiple primary keys are not allowed", at: "PRIMARY KEY"),
        BinderFailure("CREATE VIEW n AS SELECT a, b AS a FROM t", "42701", "column \"a\" specified more than once", at: "a"),
        BinderFailure("CREATE VIEW n AS SELECT now()", "0A000", "now is not supported in a materialized view", at: "now()"),
        BinderFailure("CREATE VIEW n (p, q) AS SELECT 1", "42601", "CREATE VIEW specifies more column names than columns", at: "q"),
        BinderFailure("CREATE TABLE nope.n (a INT)", "3F000", "schema \"nope\" does not exist", at: "nope.n"),
    ]

    @Test(arguments: names + grouping + windows + windowFunctions + statements) func anErrorNamesItsCauseAndPlace(failure: BinderFailure)
        throws
    {
        let found = try #require(try BinderWorld.standard().failure(failure.sql), "the statement was accepted")
        #expect(found.error.sqlState.code == failure.code)
        if !failure.message.isEmpty {
            #expect(found.error.message == failure.message)
            #expect(found.place == failure.place)
        }
        if let hint = failure.hint { #expect(found.error.hint == hint) }
    }
}
