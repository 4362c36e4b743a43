import MillBase
import MillColumnar
import MillConnectorKit
import MillExpr
import MillPlan
import Testing

@testable import MillOptimizer

@Suite struct ScanBoundsTests {
    private static let relation = RelationReference(id: ObjectID(7), name: "t", kind: .catalogTable)
    /// Reads the columns 4 and 2 of the relation.
    private static let scan = LogicalPlan.scan(
        LogicalScan(relation: relation, columns: [4, 2], schema: [Field("e", .int64), Field("c", .varchar)]))

    private func call(_ name: String, _ left: BoundExpression, _ right: BoundExpression) throws -> BoundExpression {
        try FunctionRegistry.resolve(name: name, arguments: [left.type, right.type]).call([left, right])
    }

    private func bounds(_ condition: BoundExpression) -> [ScanBound] {
        let filter = LogicalPlan.filter(LogicalFilter(input: Self.scan, predicate: condition))
        let names = LogicalProject(input: filter, expressions: [.column(0, .int64)], names: ["e"])
        return ScanBounds.bounds(of: Self.relation.id, in: .project(names))
    }

    private let number = BoundExpression.column(0, .int64)
    private let text = BoundExpression.column(1, .varchar)

    @Test func comparisonsWithConstantsBecomeBounds() throws {
        let five = BoundExpression.literal(.int(5), .int64)
        let conditions = BoundExpression.and([
            try call("greater_or_equal", number, five), try call("greater", five, number), .not(.isNull(text)), .isNull(number),
            .inList(text, [.string("a"), .string("b")], negated: false), try call("equal", text, .literal(.string("x"), .varchar)),
        ])
        #expect(
            bounds(conditions) == [
                ScanBound(4, .between(.int(5), nil)), ScanBound(4, .between(nil, .int(5))), ScanBound(2, .isNotNull), ScanBound(4, .isNull),
                ScanBound(2, .oneOf([.string("a"), .string("b")])), ScanBound(2, .between(.string("x"), .string("x"))),
            ])
    }

    @Test func whatMayHoldOtherwiseIsNoBound() throws {
        let five = BoundExpression.literal(.int(5), .int64)
        for condition in [
            BoundExpression.or([try call("equal", number, five), .isNull(text)]), try call("not_equal", number, five),
            .not(try call("equal", number, five)), .inList(number, [.int(5)], negated: true), try call("equal", number, number),
            try call("equal", number, .literal(.null, .int64)),
        ] {
            #expect(bounds(condition).isEmpty, "\(condition)")
        }
    }

    @Test func anotherRelationsFilterIsNotOurs() throws {
        let filter = LogicalPlan.filter(
            LogicalFilter(input: Self.scan, predicate: try call("equal", number, .literal(.int(5), .int64))))
        #expect(ScanBounds.bounds(of: ObjectID(8), in: filter).isEmpty)
    }
}
