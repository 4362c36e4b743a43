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
    }

    /// A batch's columns as the file has them, every value of which the file can hold.
    func converted(_ batch: [Column], count: Int) throws(IcebergError) -> [Column] {
        try checkShape(batch, count: count)
        var result: [Column] = []
        for (index, column) in columns.enumerated() {
            let converted = conversions[index].converted(batch[sources[index]], count: count)
            try Self.check(converted, column, count)
            result.append(converted)
        }
        return result
    }

    private func checkShape(_ batch: [Column], count: Int) throws(IcebergError) {
        guard batch.count == inputTypes.count, zip(batch, inputTypes).allSatisfy({ $0.type.physical == $1.physical && $0.count >= count })
        else {
            throw .badRequest("a batch's columns are not those that were announced")
        }
    }

    /// All values of a batch that the file would refuse, in the order of columns; found in one pass.
    func refusals(_ batch: [Column], count: Int) throws(IcebergError) -> [RefusedValue] {
        try checkShape(batch, count: count)
        var result: [RefusedValue] = []
        for (index, column) in columns.enumerated() {
            let values = conversions[index].converted(batch[sources[index]], count: count)
            Self.unfit(values, column, count) { row, reason in
                result.append(RefusedValue(column: column.name, row: row, reason: reason))
                return true
            }
        }
        return result
    }

    /// Finds what the file would refuse, before rows of the batch are in files of other partitions.
    private static func check(_ values: Column, _ column: ParquetColumn, _ count: Int) throws(IcebergError) {
        var found: RefusedValue?
        unfit(values, column, count) { row, reason in
            found = RefusedValue(column: column.name, row: row, reason: reason)
            return false
        }
        if let found { throw .parquet(.valueDoesNotFit(column: found.column, row: found.row, found.reason)) }
    }

    /// - Parameter body: called with each row whose value has no place in the column, until it says that it has seen enough.
    private static func unfit(_ values: Column, _ column: ParquetColumn, _ count: Int, _ body: (Int, UnfitValue) -> Bool) {
        if column.isRequired, !values.hasNoNulls {
            for row in 0..<count where values.isNull(row) {
                guard body(row, .missingInRequiredColumn) else { return }
            }
        }
        if column.members != nil || column.form != .plain {
            for (row, reason) in column.unfit(values, count) { guard body(row, reason) else { return } }
            return
        }
        guard case .numeric(let precision?, let scale?) = column.type else { return }
        let bound = Decimal.powerOfTen(Int32(precision))
        let decimals = UnsafePointer(values.values(Decimal.self))
        for row in 0..<count where !values.isNull(row) {
            let value = decimals[row]
            guard value.isFinite else {
                if body(row, .notFinite) { continue }
                return
            }
            let stored = value.rescaled(to: Int32(scale))
            let fits = stored.scale == Int32(scale) && stored.unscaled.magnitude < UInt128(bound) && Decimal.order(stored, value) == 0
            if !fits, !body(row, .tooManyDigits(precision: precision, scale: scale)) { return }
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
