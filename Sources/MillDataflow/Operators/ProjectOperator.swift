package import MillColumnar
package import MillExpr

/// Computes new columns for every row; weights stay.
package final class ProjectOperator: Operator {
    private let expressions: [RowExpression]
    private var output: DeltaBatch?

    package init(_ expressions: [CompiledExpression]) {
        self.expressions = expressions.map { RowExpression($0, operatorName: "project") }
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        output = batch.with(columns: expressions.map { $0.evaluate(batch, errors) })
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        defer { output = nil }
        return output
    }
}
