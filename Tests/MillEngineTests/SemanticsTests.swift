import MillBase
import MillEngine
import MillTestKit
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// One semantics: a query answers the same as a materialized view of the same text does, whatever came before and after its
/// creation.
///
/// Views take NULL for an expression that fails, so the query runs with `on_error = null`.
@Suite struct SemanticsTests {
    private static let tables = [
        StatementGenerator.Table(
            "events",
            [
                .init("id", .bigint), .init("player", .varchar), .init("score", .integer), .init("bonus", .boolean), .init("value", .numeric), .init("ts", .timestamp),
            ]),
        StatementGenerator.Table(
            "players", [.init("name", .varchar), .init("rating", .double), .init("born", .date), .init("level", .integer), .init("played", .interval)]),
    ]

    @Test(arguments: [1, 3])
    func aQueryAnswersWhatAViewOfItsTextDoes(workerCount: Int) async throws {
        let total = getenv("MILLRACE_SEMANTICS").flatMap { Int(String(cString: $0)) } ?? 400
        let first = getenv("MILLRACE_FUZZ_SEED").flatMap { UInt64(String(cString: $0)) } ?? 1
        var compared = 0
        var rows = 0
        for batch in 0..<UInt64((total + 19) / 20) {
            let seed = first + batch
            let world = try await Self.world(workerCount, seed: seed)
            var generator = StatementGenerator(seed: seed, tables: Self.tables)
            generator.depthMax = 2
            var random = SplitMix64(state: seed ^ 0xcafe)
            var views: [(name: String, query: String)] = []
            for number in 0..<20 {
                let query = generator.query()
                // A view's columns need names of their own, and a cut without an order may take any rows.
                guard let schema = try? await world.run(query).last?.schema, !query.contains(" LIMIT "), !query.contains(" OFFSET ") else { continue }
                let names = schema.indices.map { "c\($0)" }.joined(separator: ", ")
                do throws(SQLError) {
                    try await world.run("CREATE MATERIALIZED VIEW v\(number) (\(names)) AS \(query)")
                } catch {
                    // A query that a view refuses for its shape.
                    guard error.sqlState == .featureNotSupported else {
                        Issue.record("seed \(seed): \(error)\n\(query)")
                        continue
                    }
                    continue
                }
                views.append(("v\(number)", query))
                if random.below(3) == 0 { try await world.run(Self.insert(&random)) }
            }
            for _ in 0..<6 { try await world.run(Self.insert(&random)) }
            for view in views {
                let expected = try await world.run(view.query).last?.multiset ?? [:]
                let found = try await world.run("SELECT * FROM \(view.name)").last?.multiset ?? [:]
                compared += 1
                rows += expected.values.reduce(0, +)
                guard found == expected else {
                    let missing = Array(expected.filter { found[$0.key] != $0.value }.prefix(3))
                    let extra = Array(found.filter { expected[$0.key] != $0.value }.prefix(3))
                    Issue.record("seed \(seed), \(workerCount) workers: the query has \(missing), the view \(extra)\n\(view.query)")
                    continue
                }
            }
            await world.stop()
        }
        print("\(compared) views compared with their queries, \(rows) rows, \(workerCount) workers")
        #expect(compared > total / 8)
    }

    private static func world(_ workerCount: Int, seed: UInt64) async throws -> EngineWorld {
        let world = try await EngineWorld(workerCount: workerCount)
        try await world.run(
            """
            CREATE TABLE events (id bigint PRIMARY KEY, player varchar, score integer, bonus boolean, value numeric, ts timestamp);
            CREATE TABLE players (name varchar, rating double precision, born date, level integer, played interval);
            SET on_error = null
            """)
        var random = SplitMix64(state: seed)
        for _ in 0..<5 { try await world.run(insert(&random)) }
        return world
    }

    /// Few distinct values, so that keys meet, rows repeat and keyed rows are replaced.
    private static func insert(_ random: inout SplitMix64) -> String {
        func pick(_ values: [String]) -> String { values[random.below(values.count)] }
        let texts = ["NULL", "'ann'", "'bob'", "''", "'abc'", "'ключ'"]
        let numbers = ["NULL", "0", "1", "-5", "10", "999", "2147483647"]
        let isEvents = random.below(2) == 0
        let rows = (0...random.below(4)).map { _ -> String in
            if isEvents {
                let value = pick(["NULL", "0", "1.50", "-2.25", "0.1", "'NaN'", "99999999999999999999"])
                let time = pick(["NULL", "'2024-01-01 00:00:00'", "'2024-01-01 00:00:59.5'", "'2024-01-02 03:00:00'", "'1999-12-31 23:59:59'"])
                return "(\(random.below(12)), \(pick(texts)), \(pick(numbers)), \(pick(["NULL", "true", "false"])), \(value), \(time))"
            }
            let rating = pick(["NULL", "0", "1.5", "'NaN'", "'Infinity'", "'-Infinity'", "'1e300'", "-0.1"])
            let born = pick(["NULL", "'2024-02-29'", "'2024-01-15'", "'1970-01-01'"])
            let played = pick(["NULL", "'1 hour'", "'1 day'", "'24 hours'", "'1 month'", "'30 days'", "'-1 second'"])
            return "(\(pick(texts)), \(rating), \(born), \(pick(numbers)), \(played))"
        }
        return "INSERT INTO \(isEvents ? "events" : "players") VALUES \(rows.joined(separator: ", "))"
    }
}
