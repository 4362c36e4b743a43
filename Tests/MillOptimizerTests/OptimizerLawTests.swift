import MillBase
import MillColumnar
import MillOptimizer
import MillPlan
import MillSQL
import Testing

/// The optimizer's laws on statements over random rows: same rows, same columns, no new failures, and nothing left to do.
@Suite struct OptimizerLawTests {
    static let queries = [
        "SELECT a, b FROM t WHERE b <> 0 AND a / b > 0",
        "SELECT x FROM (SELECT a AS x, b FROM t WHERE b <> 0) q WHERE x / b >= 1",
        "SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE u.d = 1",
        "SELECT * FROM t LEFT JOIN u ON t.a = u.a AND u.d > 1 AND t.b > 1",
        "SELECT * FROM t LEFT JOIN u ON t.a = u.a WHERE u.d IS NULL",
        "SELECT * FROM t RIGHT JOIN u ON t.a = u.a AND t.b > 1 WHERE u.d > 0",
        "SELECT * FROM t FULL JOIN u ON t.a = u.a AND u.d > 1 WHERE t.b > 0 OR u.d > 0",
        "SELECT * FROM t FULL JOIN u ON t.a = u.a WHERE t.b > 0",
        "SELECT t.b FROM t, u WHERE t.a = u.a AND u.d = t.b AND t.a > 0",
        "SELECT * FROM (SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b) g WHERE b >= 1 AND n > 1",
        "SELECT count(*) FROM (SELECT a, b FROM t UNION ALL SELECT a, d FROM u) x WHERE b = 1",
        "SELECT * FROM (SELECT a, b FROM t ORDER BY a, b LIMIT 3) x WHERE b > 0",
        "SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS n FROM t) q WHERE n <= 2 AND a > 0",
        "SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY b ORDER BY a DESC, b) AS n FROM t) q WHERE n BETWEEN 2 AND 3",
        "SELECT a, b FROM (SELECT a, b, rank() OVER (ORDER BY a NULLS FIRST) AS n FROM t) q WHERE 3 > n",
        "SELECT * FROM (SELECT a, b, dense_rank() OVER (PARTITION BY b ORDER BY a) AS n, rank() OVER (PARTITION BY b ORDER BY a) AS r FROM t) q WHERE n = 2 AND r > 1",
        "SELECT * FROM (SELECT a, rank() OVER (PARTITION BY b ORDER BY a) AS n FROM t) q WHERE n > 1",
        "SELECT a, n FROM (SELECT a, b, rank() OVER (PARTITION BY a ORDER BY b) AS n FROM t) q WHERE n < 0 OR b = 1",
        "SELECT a, sum(b) OVER (PARTITION BY a) AS s, count(*) OVER () AS n FROM t WHERE b > 0",
        "SELECT b, sum(a) AS s, rank() OVER (ORDER BY sum(a) DESC) AS n FROM t GROUP BY b",
        "SELECT a, (SELECT d FROM u WHERE u.a = t.a ORDER BY d DESC LIMIT 1) FROM t",
        "SELECT DISTINCT b FROM (SELECT DISTINCT a, b FROM t) q",
        "SELECT a FROM t UNION SELECT d FROM u UNION SELECT 1",
        "SELECT a FROM t EXCEPT SELECT d FROM u",
        "SELECT a, b FROM t INTERSECT SELECT a, d FROM u",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.d > t.b)",
        "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.d > 0)",
        "SELECT a, b FROM t WHERE a IN (SELECT d FROM u WHERE u.a = t.b)",
        "SELECT a, b FROM t WHERE a NOT IN (SELECT d FROM u)",
        "SELECT a, b FROM t WHERE a NOT IN (SELECT d FROM u WHERE u.a = t.b) OR b = 2",
        "SELECT a, (SELECT count(*) + 1 FROM u WHERE u.a = t.a AND u.d > 0) FROM t",
        "SELECT a, (SELECT max(d) FROM u WHERE u.a = t.a) FROM t",
        "SELECT b, max(a) FROM t GROUP BY b HAVING max(a) > (SELECT min(d) FROM u)",
        "SELECT b, (SELECT count(*) FROM u WHERE u.d = t.b) FROM t GROUP BY b",
        "SELECT 1, b, count(*) FROM t GROUP BY 1, b",
        "SELECT t.a, CASE WHEN true THEN b ELSE 1 / 0 END FROM t WHERE 1 = 1 AND (false OR b > 0)",
    ]

    /// Rows of `t(a, b)` and `u(a, d)`: small numbers, so that everything collides, and NULLs.
    static func tables(seed: UInt64) -> [String: [[Scalar]]] {
        var state = seed
        func next(_ bound: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % bound
        }
        func value() -> Scalar { next(5) == 0 ? .null : .int(Int64(next(4))) }
        func rows() -> [[Scalar]] { (0..<next(9)).map { _ in [value(), value()] } }
        return ["t": rows(), "u": rows()]
    }

    static func world() throws -> PlanWorld {
        var world = PlanWorld()
        _ = try world.run("CREATE TABLE t (a INT, b INT); CREATE TABLE u (a INT, d INT);")
        return world
    }

    static func bind(_ sql: String) throws -> BoundQuery {
        guard case .query(let query) = try Parser.parseStatement(sql) else { throw SQLError(.syntaxError, "no query") }
        return try world().bind(query)
    }

    @Test(arguments: queries) func rowsAndColumnsStay(sql: String) throws {
        let bound = try Self.bind(sql)
        let optimized = Optimizer.optimize(bound)
        #expect(optimized.plan.schema == bound.plan.schema)
        for seed in 0..<60 as Range<UInt64> {
            var before = RowInterpreter(tables: Self.tables(seed: seed))
            var after = RowInterpreter(tables: Self.tables(seed: seed))
            let expected = Self.counted(before.rows(bound.plan))
            let rows = Self.counted(after.rows(optimized.plan))
            #expect(rows == expected, "seed \(seed)")
            #expect(after.failures <= before.failures, "seed \(seed)")
        }
    }

    @Test(arguments: queries) func aSecondRunChangesNothing(sql: String) throws {
        let once = Optimizer.optimize(try Self.bind(sql))
        #expect(Optimizer.optimize(once) == once)
    }

    private static func counted(_ rows: [[Scalar]]) -> [[Scalar]: Int] { rows.reduce(into: [:]) { $0[$1, default: 0] += 1 } }

    /// Subqueries against what SQL says of them, by loops over the same rows.
    @Test func subqueriesMeanWhatTheyMeanInSQL() throws {
        for seed in 0..<200 as Range<UInt64> {
            let tables = Self.tables(seed: seed)
            let t = tables["t"] ?? []
            let u = tables["u"] ?? []
            func rows(_ sql: String) throws -> [[Scalar]: Int] {
                var interpreter = RowInterpreter(tables: tables)
                return Self.counted(interpreter.rows(Optimizer.optimize(try Self.bind(sql)).plan))
            }
            func matches(_ row: [Scalar], _ column: Int, _ other: [Scalar], _ otherColumn: Int) -> Bool {
                !row[column].isNull && row[column] == other[otherColumn]
            }
            let notIn = t.filter { row in
                u.isEmpty || (!row[0].isNull && !u.contains { $0[1].isNull } && !u.contains { $0[1] == row[0] })
            }
            #expect(try rows("SELECT a, b FROM t WHERE a NOT IN (SELECT d FROM u)") == Self.counted(notIn), "seed \(seed)")
            let isIn = t.filter { row in u.contains { matches(row, 0, $0, 1) && matches(row, 1, $0, 0) } }
            #expect(try rows("SELECT a, b FROM t WHERE a IN (SELECT d FROM u WHERE u.a = t.b)") == Self.counted(isIn), "seed \(seed)")
            let counts = t.map { row in [row[0], Scalar.int(Int64(u.count { matches(row, 0, $0, 0) }))] }
            #expect(try rows("SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) FROM t") == Self.counted(counts), "seed \(seed)")
            let absent = t.filter { row in !u.contains { matches(row, 0, $0, 0) } }
            #expect(try rows("SELECT a, b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)") == Self.counted(absent), "seed \(seed)")
            let except = Set(t.map { [$0[0]] }).subtracting(u.map { [$0[1]] })
            #expect(try rows("SELECT a FROM t EXCEPT SELECT d FROM u") == Self.counted(Array(except)), "seed \(seed)")
            let intersect = Set(t).intersection(u)
            #expect(try rows("SELECT a, b FROM t INTERSECT SELECT a, d FROM u") == Self.counted(Array(intersect)), "seed \(seed)")
        }
    }
}
