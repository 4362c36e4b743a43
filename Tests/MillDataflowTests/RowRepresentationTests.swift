import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillTestKit
import Testing

@testable import MillDataflow

/// Rows that SQL calls equal and that look different: what is given in one form is taken back in that form.
@Suite struct RowRepresentationTests {
    /// Two forms of one value.
    static let pairs: [(SQLType, Scalar, Scalar)] = [
        (.numeric, .decimal(Decimal(unscaled: 10, scale: 1)), .decimal(Decimal(unscaled: 100, scale: 2))),
        (.float64, .float(-0.0), .float(0)), (.float32, .float(-0.0), .float(0)),
        (.interval, .interval(Interval(days: 30)), .interval(Interval(months: 1))),
    ]

    private static func batch(_ type: SQLType, _ changes: [(Scalar, Int64)]) -> DeltaBatch {
        RandomRelation.batch(changes.map { (row: [$0.0], weight: $0.1) }[...], [Field("v", type)])
    }

    /// Runs a view over one table: both forms go in, then one is taken back; returns the view's rows.
    private static func run(_ type: SQLType, _ first: Scalar, _ second: Scalar, _ view: (inout PlanBuilder, NodeIndex) -> NodeIndex) throws -> ReferenceCounts {
        let schema = [Field("v", type)]
        let table = RelationReference(id: ObjectID(1), name: "t", kind: .table)
        let driver = CircuitDriver(workerCount: 2, seed: 1)
        var tables = PlanBuilder()
        let input = tables.tableInput(table, schema)
        try driver.attach(JobPlan(id: table.id, name: table.name, plan: tables.materialize(input)))
        var views = PlanBuilder()
        let rows = views.relation(table, schema)
        let root = view(&views, rows)
        try driver.attach(JobPlan(id: ObjectID(2), name: "v", plan: views.materialize(root)))
        driver.inject(batch(type, [(first, 1), (second, 1)]), into: table.id)
        #expect(driver.runEpoch() == [])
        driver.inject(batch(type, [(first, -1)]), into: table.id)
        #expect(driver.runEpoch() == [])
        #expect(DeltaBatch.counts(driver.rows(of: table.id)) == [[ReferenceValue(second)]: 1])
        return DeltaBatch.counts(driver.rows(of: ObjectID(2)))
    }

    @Test(arguments: pairs.indices) func aRetractionTakesBackTheFormThatWasGiven(pair: Int) throws {
        let (type, one, other) = Self.pairs[pair]
        for (first, second) in [(one, other), (other, one)] {
            let left = ReferenceValue(second)
            #expect(try Self.run(type, first, second) { _, rows in rows } == [[left]: 1])
            #expect(try Self.run(type, first, second) { builder, rows in
                builder.topN(rows, order: [SortKey(column: 0, descending: true, nullsFirst: true)], limit: 5, offset: 0)
            } == [[left]: 1])
            #expect(try Self.run(type, first, second) { builder, rows in
                builder.join(.full, rows, rows, leftKeys: [0], rightKeys: [0])
            } == [[left, left]: 1])
            #expect(try Self.run(type, first, second) { builder, rows in
                let column = BoundExpression.column(0, type)
                return builder.aggregate(
                    rows, keys: [],
                    [AggregateCall(.min, argument: column, type: type), AggregateCall(.max, argument: column, type: type)])
            } == [[left, left]: 1])
        }
    }
}
