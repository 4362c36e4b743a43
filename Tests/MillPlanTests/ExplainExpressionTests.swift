import MillColumnar
import MillExpr
import MillPlan
import Testing

@Suite struct ExplainExpressionTests {
    private let a = BoundExpression.column(0, .int32)
    private let b = BoundExpression.column(1, .int32)

    @Test func columnsOfOneNameAreToldApart() {
        #expect(ExplainExpression(names: ["x", "y", "x"]).names([0, 1, 2]) == "[x#0, y, x#2]")
    }

    @Test func parenthesesStandWhereBindingAsksForThem() {
        let function = ScalarFunction(name: "add", argumentTypes: [.int32, .int32])
        let product = ScalarFunction(name: "multiply", argumentTypes: [.int32, .int32])
        let sum = BoundExpression.call(function, [a, b], .int32, nil)
        let printer = ExplainExpression(names: ["a", "b"])
        #expect(printer.text(.call(product, [sum, b], .int32, nil)) == "(a + b) * b")
        #expect(printer.text(.not(.or([.isNull(a), .isNull(b)]))) == "not (a is null or b is null)")
    }

    @Test func anAggregateShowsWhatItCounts() {
        let printer = ExplainExpression(names: ["a"])
        #expect(printer.text(AggregateCall(.count, argument: nil, type: .int64)) == "count(*)")
        #expect(printer.text(AggregateCall(.sum, argument: a, distinct: true, type: .int64)) == "sum(distinct a)")
    }
}
