package import MillColumnar
package import MillExpr

/// Lets the rows through for which the predicate is true; weights stay.
package final class FilterOperator: Operator {
    private let predicate: RowExpression
    private var output: DeltaBatch?

    package init(_ predicate: CompiledExpression) {
        self.predicate = RowExpression(predicate, operatorName: "filter")
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        let selection = Selection(whereTrue: predicate.evaluate(batch, errors))
        if selection.count == batch.count {
            output = batch
        } else if selection.count > 0 {
            output = batch.gather(selection.rows, count: selection.count)
        }
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        defer { output = nil }
        return output
    }
}

/// An expression whose failures go to the job's errors relation.
struct RowExpression {
    private let expression: CompiledExpression
    private let operatorName: String

    init(_ expression: CompiledExpression, operatorName: String) {
        self.expression = expression
        self.operatorName = operatorName
    }

    func evaluate(_ batch: DeltaBatch, _ errors: OperatorErrors) -> Column {
        var failed = RowErrors()
        let result = expression.evaluate(batch, errors: &failed)
        for failure in failed.entries { errors.report(failure.error, operatorName: operatorName, batch: batch, row: failure.row) }
        return result
    }
}
