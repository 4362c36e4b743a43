import MillBase
import MillColumnar
import MillSQL
import Testing

@testable import MillEngine

/// Which questions run where they are asked, and that they answer the same there.
@Suite struct BriefQueryTests {
    private static func rows(_ channel: RowChannel) async throws -> [[String?]] {
        var rows: [[String?]] = []
        while let batch = try await channel.next() {
            for row in 0..<batch.count { for _ in 0..<batch.weight(row) { rows.append(batch.columns.map { $0.text(row) }) } }
        }
        return rows.sorted { "\($0)" < "\($1)" }
    }

    @Test func whatTakesLongHasAThread() async throws {
        let world = try await EngineWorld()
        try await world.run("CREATE TABLE t (id int PRIMARY KEY, name varchar, price numeric); INSERT INTO t VALUES (1, 'ann', 1.5), (2, 'bo', 2), (3, NULL, NULL)")
        try await world.run("CREATE MATERIALIZED VIEW v AS SELECT name, count(*) AS n, max(id) AS newest FROM t GROUP BY name")
        try await world.run("CREATE TABLE few (id int); CREATE TABLE many (id int); CREATE TABLE long (id int, body varchar)")
        let numbers = (0..<4096).map { "(\($0))" }.joined(separator: ", ")
        try await world.run("INSERT INTO few VALUES \(numbers); INSERT INTO many VALUES \(numbers), (4096)")
        try await world.run("INSERT INTO long VALUES (1, repeat('x', 200000)), (2, repeat('y', 200000))")
        let list = (0..<300).map(String.init).joined(separator: ", ")
        let cases: [(sql: String, isBrief: Bool)] = [
            ("SELECT sum(n), max(newest) FROM v", true), ("SELECT * FROM v ORDER BY n DESC, name LIMIT 2", true),
            ("SELECT name, n + 1 FROM v WHERE name = 'ann' OR name IS NULL", true), ("SELECT * FROM t WHERE id = 2", true), ("SELECT * FROM t WHERE id = 9", true),
            ("SELECT name, count(DISTINCT id), min(name) FROM t GROUP BY name HAVING count(*) > 0", true), ("SELECT DISTINCT name FROM t", true),
            ("SELECT 1 / 0 FROM v", true), ("SELECT price / 3 FROM t WHERE name IN ('ann', 'bo')", true), ("SELECT count(*) FROM few", true), ("SELECT body FROM long WHERE id = 1", true),
            ("SELECT count(*) FROM many", false), ("SELECT id + 1, id + 2, id + 3, id + 4 FROM few", false), ("SELECT max(body), min(body) FROM long", false),
            ("SELECT upper(name) FROM v", false), ("SELECT length(name) FROM v", false), ("SELECT name FROM v WHERE name LIKE 'a%'", false),
            ("SELECT id::text FROM t", false), ("SELECT name::int FROM t WHERE id = 3", false), ("SELECT 'x' AS mark, id FROM t", false),
            ("SELECT id FROM t WHERE name = '\(String(repeating: "z", count: 257))'", false), ("SELECT id FROM t WHERE id = 9 AND id IN (\(list))", false),
            ("SELECT a.id FROM t a JOIN t b ON a.id = b.id", false), ("SELECT id FROM t UNION ALL SELECT id FROM t", false),
            ("SELECT id, row_number() OVER (ORDER BY id) FROM t", false), ("SELECT CASE WHEN id > 1 THEN name END FROM t", false),
        ]
        for (sql, isBrief) in cases {
            guard case .query(let query) = try Session.parse(sql)[0].statement else { continue }
            func run() async throws -> QueryRun {
                try await world.engine.queryRun(try await world.session.bind(query, []), session: world.session.context)
            }
            let (here, there) = (try await run(), try await run())
            #expect(here.isBrief == isBrief, "\(sql)")
            do {
                let rows = try await Self.rows(here.start(mayRunHere: true))
                #expect(rows == (try await Self.rows(there.start())), "\(sql)")
            } catch let error as SQLError {
                #expect(error.sqlState == .divisionByZero, "\(sql): \(error)")
            }
        }
        await world.stop()
    }
}
