import MillColumnar
import MillParquet

/// The columns of a table's data files, and how the columns of batches become them.
struct FileLayout {
    /// As the file has them, in the order of the table's schema.
    let columns: [ParquetColumn]
    let fields: [NestedField]
    /// For each, its place in a batch.
    private let sources: [Int]
    private let conversions: [ColumnConversion]
    private let inputTypes: [SQLType]

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
            columns.append(ParquetColumn(field.name, conversion.stored, isRequired: field.isRequired, fieldID: Int32(clamping: field.id)))
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
    }

    /// A batch's columns as the file has them, every value of which the file can hold.
    func converted(_ batch: [Column], count: Int) throws(IcebergError) -> [Column] {
        guard batch.count == inputTypes.count, zip(batch, inputTypes).allSatisfy({ $0.type.physical == $1.physical && $0.count >= count })
        else {
            throw .badRequest("a batch's columns are not those that were announced")
        }
        var result: [Column] = []
        for (index, column) in columns.enumerated() {
            let converted = conversions[index].converted(batch[sources[index]], count: count)
            try Self.check(converted, column, count)
            result.append(converted)
        }
        return result
    }

    /// Finds what the file would refuse, before rows of the batch are in files of other partitions.
    private static func check(_ values: Column, _ column: ParquetColumn, _ count: Int) throws(IcebergError) {
        if column.isRequired, !values.hasNoNulls, let row = (0..<count).first(where: { values.isNull($0) }) {
            throw .parquet(.valueDoesNotFit(column: column.name, row: row, .missingInRequiredColumn))
        }
        guard case .numeric(let precision?, let scale?) = column.type else { return }
        let bound = Decimal.powerOfTen(Int32(precision))
        let decimals = UnsafePointer(values.values(Decimal.self))
        for row in 0..<count where !values.isNull(row) {
            let value = decimals[row]
            guard value.isFinite else { throw .parquet(.valueDoesNotFit(column: column.name, row: row, .notFinite)) }
            let stored = value.rescaled(to: Int32(scale))
            guard stored.scale == Int32(scale), stored.unscaled.magnitude < UInt128(bound), Decimal.order(stored, value) == 0 else {
                throw .parquet(.valueDoesNotFit(column: column.name, row: row, .tooManyDigits(precision: precision, scale: scale)))
            }
        }
    }
}
