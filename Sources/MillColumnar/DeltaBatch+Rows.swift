import MillBase

extension DeltaBatch {
    /// Rows of single values as batches: for what has few of them.
    package static func batches(_ rows: [[Scalar]], _ schema: Schema) -> [DeltaBatch] {
        stride(from: 0, to: rows.count, by: Limits.batchRowsMax).map { start in
            let part = rows[start..<min(start + Limits.batchRowsMax, rows.count)]
            let columns = schema.enumerated().map { index, field in
                let column = Column(field.type, capacity: part.count)
                for row in part { column.append(row[index]) }
                return column
            }
            return DeltaBatch(columns: columns, count: part.count)
        }
    }
}
