import MillBase
import MillColumnar
import MillIceberg

/// Which column of a table each column of a relation is written to: those of the same name.
struct SinkColumns: Sendable {
    let inputs: [DataFileWriter.Input]
    /// For each column: the digits after the point that the table has room for; nil where nothing is rounded.
    private let scales: [Int?]

    /// - Throws: 42703 for a column that the table lacks, 42804 for one of another type, 23502 for one of the table's that is required and
    ///   gets nothing.
    init(_ relation: SinkConnectors.Relation, _ table: IcebergTable) throws(SQLError) {
        let schema = table.metadata.currentSchema
        let names = schema.fields.map { "\"\($0.name)\"" }.joined(separator: ", ")
        var inputs: [DataFileWriter.Input] = []
        var scales: [Int?] = []
        for column in relation.fields {
            guard let field = schema.field(named: column.name) else {
                throw SQLError(
                    .undefinedColumn, "table \"\(table.identifier)\" has no column \"\(column.name)\", which \"\(relation.name)\" has",
                    detail: "The table's columns are \(names).",
                    hint: "Add the column to the table, or sink a view without it: CREATE SINK ... AS SELECT ....")
            }
            guard ColumnConversion(from: column.type, to: field.type) != nil else {
                throw SQLError(
                    .datatypeMismatch,
                    "column \"\(column.name)\" of table \"\(table.identifier)\" is \(field.type), not \(column.type.name) as in \"\(relation.name)\"",
                    hint: "Cast the column in the view to what the table has.")
            }
            inputs.append(DataFileWriter.Input(field.id, column.type))
            if case .decimal(_, let scale) = field.type, case .numeric = column.type { scales.append(scale) } else { scales.append(nil) }
        }
        for field in schema.fields where field.isRequired && !inputs.contains(where: { $0.fieldID == field.id }) {
            throw SQLError(
                .notNullViolation,
                "column \"\(field.name)\" of table \"\(table.identifier)\" is required, and \"\(relation.name)\" has no such column",
                hint: "Add the column to the view, or make it optional in the table.")
        }
        (self.inputs, self.scales) = (inputs, scales)
    }

    /// A batch's columns with numerics rounded to what the table has room for, half away from zero.
    func rounded(_ batch: DeltaBatch) -> [Column] {
        zip(batch.columns, scales).map { column, scale in scale.map { column.rounded(toScale: $0, count: batch.count) } ?? column }
    }
}
