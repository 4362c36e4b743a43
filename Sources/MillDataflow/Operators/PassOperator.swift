package import MillColumnar

/// Gives on what comes in: UNION ALL, the root of a query, an exchange between one worker and itself.
package final class PassOperator: Operator {
    private var output: DeltaBatch?

    package init() {}

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) { output = batch }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        defer { output = nil }
        return output
    }
}
