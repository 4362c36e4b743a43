import MillColumnar
package import MillParquet

/// The columns of a table's data files, and how the columns of batches become them.
struct FileLayout {
    /// As the file has them, in the order of the table's schema.
    let columns: [ParquetColumn]
    let fields: [NestedField]
    /// For each, its place in a batch.
    private let sources: [Int]
    private let conversions: [ColumnConversion]
    private let inputTypes: [SQLType]
    /// For each, what tells the values that it has no place for.
    private let checks: [ColumnParts]

    /// - Throws: when a column that is required has no input, or an input no column that could take it.
    init(_ table: TableMetadata, _ inputs: [DataFileWriter.Input]) throws(IcebergError) {
        let schema = table.currentSchema
        var (columns, fields, sources, conversions) = ([ParquetColumn](), [NestedField](), [Int](), [ColumnConversion]())
        for field in schema.fields {
            guard let source = inputs.firstIndex(where: { $0.fieldID == field.id }) else {
                guard !field.isRequired else {
                    throw .badRequest("column \"\(field.name)\" of the table is required, and nothing is written to it")
                }
                guard field.initialDefault == nil, field.writeDefault == nil else {
                    throw .unsupported("column \"\(field.name)\" has a default, which is not written: give it a value")
                }
                continue
            }
            guard let conversion = ColumnConversion(from: inputs[source].type, to: field.type) else {
                throw .badRequest(
                    "column \"\(field.name)\" of the table is \(field.type), which \(inputs[source].type.name) cannot be written to")
            }
            columns.append(
                field.type.isNested
                    ? ParquetColumn(try ParquetMember(field))
                    : ParquetColumn(
                        field.name, conversion.stored, form: conversion.form, isRequired: field.isRequired, fieldID: Int32(clamping: field.id)))
            fields.append(field)
            sources.append(source)
            conversions.append(conversion)
        }
        for input in inputs where !schema.fields.contains(where: { $0.id == input.fieldID }) {
            throw .badRequest("the table has no column with the identifier \(input.fieldID)")
        }
        guard !columns.isEmpty else { throw .badRequest("nothing is written to the table") }
        (self.columns, self.fields, self.sources, self.conversions) = (columns, fields, sources, conversions)
        inputTypes = inputs.map(\.type)
        checks = columns.map { ColumnParts(of: $0) }
    }

    /// A batch's columns as the file has them.
    func converted(_ batch: [Column], count: Int) throws(IcebergError) -> [Column] {
        try checkShape(batch, count: count)
        return columns.indices.map { conversions[$0].converted(batch[sources[$0]], count: count) }
    }

    /// The column of a batch that is written to a field, as the file has it; nil when none is.
    func converted(_ fieldID: Int, _ batch: [Column], count: Int) -> Column? {
        guard let index = fields.firstIndex(where: { $0.id == fieldID }) else { return nil }
        return conversions[index].converted(batch[sources[index]], count: count)
    }

    private func checkShape(_ batch: [Column], count: Int) throws(IcebergError) {
        guard batch.count == inputTypes.count, zip(batch, inputTypes).allSatisfy({ $0.type.physical == $1.physical && $0.count >= count })
        else {
            throw .badRequest("a batch's columns are not those that were announced")
        }
    }

    /// All values of a batch that the file would refuse, in the order of columns.
    /// - Parameter converted: as the file has them.
    func refusals(_ converted: [Column], count: Int) -> [RefusedValue] {
        columns.indices.flatMap { index in
            checks[index].unfit(converted[index], count).map { row, reason in
                RefusedValue(column: columns[index].name, row: row, reason: reason)
            }
        }
    }

    /// Finds what files would refuse, before rows of the batch are in one of several, or wait for theirs to end.
    /// - Throws: `parquet(.valueDoesNotFit)`, as a file's writer does.
    func check(_ converted: [Column], count: Int) throws(IcebergError) {
        for (index, column) in columns.enumerated() {
            guard let found = checks[index].unfit(converted[index], count).first else { continue }
            throw .parquet(.valueDoesNotFit(column: column.name, row: found.row, found.reason))
        }
    }
}

/// A value that a table has no place for.
package struct RefusedValue: Hashable, Sendable {
    package var column: String
    /// Its place in the batch.
    package var row: Int
    package var reason: UnfitValue

    package init(column: String, row: Int, reason: UnfitValue) { (self.column, self.row, self.reason) = (column, row, reason) }
}
