import MillBase
package import MillColumnar

/// Literal rows, given out once, in the first epoch, by the worker that owns them.
package final class ValuesOperator: Operator {
    private var rows: [[Scalar]]
    private let schema: Schema

    package init(_ rows: [[Scalar]], schema: Schema, isOwner: Bool) {
        self.rows = isOwner ? rows : []
        self.schema = schema
    }

    package func finishRestore() { rows = [] }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        preconditionFailure("literal rows have no input")
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard !rows.isEmpty else { return nil }
        let part = rows.prefix(Limits.batchRowsMax)
        rows.removeFirst(part.count)
        let columns = schema.enumerated().map { index, field in
            let column = Column(field.type, capacity: part.count)
            for row in part { column.append(row[index]) }
            return column
        }
        return DeltaBatch(columns: columns, count: part.count)
    }
}
