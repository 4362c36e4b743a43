import Foundation
import MillBase
import MillCatalog
import MillMeta
import MillPlan
import MillSQL
import MillTestKit
import Testing

/// The law of stored plans: what is read back is the plan that was stored, node for node, and is explained alike.
///
/// Equal plans are rendered into equal circuits, so they compute the same; `RestartTests` of the engine compare answers too.
@Suite struct StoredPlanTests {
    private static let owner = CatalogObject(id: ObjectID(16384), schemaName: "public", name: "v", kind: .materializedView, columns: [])

    private func checkRoundTrip(_ plan: StreamPlan, _ query: BoundQuery, _ sql: String) throws {
        let stored = try PlanText(encoding: plan)
        let decoded = try stored.decoded(StreamPlan.self, of: Self.owner)
        #expect(decoded.explained == plan.explained, "\(sql)")
        #expect(decoded.nodes.map(\.inputs) == plan.nodes.map(\.inputs), "\(sql)")
        // The text tells apart what == does not, such as 1.0 and 1.00, and holds equal what == does not, NaN.
        #expect(try PlanText(encoding: decoded) == stored, "\(sql)")
        let hasNaN = stored.text.contains("NaN")
        if !hasNaN { #expect(decoded == plan, "\(sql)") }
        let meaning = try PlanText(encoding: query)
        let decodedQuery = try meaning.decoded(BoundQuery.self, of: Self.owner)
        #expect(decodedQuery.explained == query.explained, "\(sql)")
        #expect(try PlanText(encoding: decodedQuery) == meaning, "\(sql)")
        if !hasNaN { #expect(decodedQuery == query, "\(sql)") }
    }

    @Test(arguments: PlanGoldenTests.files) func goldenPlansComeBackAsTheyWere(name: String) throws {
        let cases = try PlanFile.planned(try PlanGoldenTests.text(of: name))
        #expect(!cases.isEmpty)
        for planned in cases { try checkRoundTrip(planned.stream, planned.logical, name) }
    }

    @Test(arguments: OptimizerLawTests.queries) func lawQueriesComeBackAsTheyWere(sql: String) throws {
        var world = try OptimizerLawTests.world()
        let planned = try #require(try world.run(sql))
        try checkRoundTrip(planned.stream, planned.logical, sql)
    }

    @Test func generatedQueriesComeBackAsTheyWere() throws {
        let tables = StatementGenerator.sampleTables
        let definitions = tables.map { table in
            "CREATE TABLE \(table.name) (\(table.columns.map { "\($0.name) \($0.type.rawValue)" }.joined(separator: ", ")))"
        }
        var world = PlanWorld()
        _ = try world.run(definitions.joined(separator: ";"))
        var planned = 0
        for seed in 1...400 as ClosedRange<UInt64> {
            var generator = StatementGenerator(seed: seed, tables: tables)
            let sql = generator.query()
            var copy = world
            // What cannot be bound or planned cannot be stored.
            guard let plans = try? copy.run(sql) else { continue }
            planned += 1
            try checkRoundTrip(plans.stream, plans.logical, "seed \(seed): \(sql)")
        }
        #expect(planned >= 200, "\(planned) of 400 queries could be planned")
    }

    @Test func literalsOfEveryKindComeBackAsTheyWere() throws {
        var world = PlanWorld()
        let sql = """
            SELECT -0.0::double precision, 'NaN'::double precision, '-Infinity'::real, 5e-324::double precision, 1.7976931348623157e308::double precision,
                   1.00, 'NaN'::numeric, 99999999999999999999999999999999999999, -9223372036854775807, 9223372036854775807,
                   E'line\\n"quoted" \\\\ \u{1F41F} \u{301}', '\\xdeadbeef'::bytea, INTERVAL '1 month -2 days 3.5 seconds', DATE '-infinity',
                   TIMESTAMPTZ '2024-01-01 00:00+00', NULL, true, '{"a": 1}'::jsonb
            """
        let planned = try #require(try world.run(sql))
        try checkRoundTrip(planned.stream, planned.logical, sql)
    }

    @Test func heightIsNoObstacle() throws {
        var world = PlanWorld()
        let expression = String(repeating: "(", count: 20) + "1" + String(repeating: " + 1)", count: 20)
        let queries =
            String(repeating: "SELECT * FROM (", count: 20) + "SELECT \(expression) AS a" + String(repeating: ") q LIMIT 5", count: 20)
        let planned = try #require(try world.run(queries))
        try checkRoundTrip(planned.stream, planned.logical, "a high query")
    }
}
