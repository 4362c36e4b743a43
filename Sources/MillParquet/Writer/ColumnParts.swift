package import MillColumnar

/// A column of a batch taken apart into its leaves, as they are stored: one, or those of a nested column.
///
/// Filled with each batch before anything of it is written, so that a value without a place in the column is found in time. Used again
/// for every batch. Who writes files of several at once fills one of its own beforehand, to ask which rows none of them could take.
///
/// Threading: one thread at a time.
package final class ColumnParts {
    struct Leaf {
        let column: ParquetColumn
        let place: LeafPlace
        let values: DenseValues
    }

    let column: ParquetColumn
    let leaves: [Leaf]
    /// Of the file's schema.
    let elements: [SchemaElement]
    /// Nil for a column that is a leaf.
    let shredder: NestedShredder?

    init(_ column: ParquetColumn, _ options: ParquetWriterOptions) {
        self.column = column
        guard let shape = column.members else {
            let values = DenseValues(column, options)
            let place = LeafPlace(path: [column.name], definitionMax: column.isRequired ? 0 : 1, repetitionMax: 0)
            (leaves, elements) = ([Leaf(column: column, place: place, values: values)], [values.storage.element(column)])
            shredder = nil
            return
        }
        var layout = NestedNode.Layout()
        let root = NestedNode.make(
            ParquetMember(column.name, shape, isRequired: column.isRequired, fieldID: column.fieldID), options, into: &layout)
        leaves = layout.leaves.map { column, place in Leaf(column: column, place: place, values: DenseValues(column, options)) }
        elements = layout.elements
        shredder = NestedShredder(root, layout.leaves.map(\.column.type))
    }

    /// Of a column by itself, to ask which values it takes.
    package convenience init(of column: ParquetColumn) { self.init(column, ParquetWriterOptions()) }

    /// Takes the first `count` values apart.
    /// - Throws: `valueDoesNotFit`, with the row of the batch; `batchTooLarge`.
    func fill(_ source: Column, count: Int) throws(ParquetError) {
        guard let shredder else { return try leaves[0].values.fill(source, count: count) }
        if column.isRequired, let row = (0..<count).first(where: { source.isNull($0) }) {
            throw .valueDoesNotFit(column: column.name, row: row, .missingInRequiredColumn)
        }
        try shredder.fill(source, count: count)
        for (leaf, part) in zip(leaves, shredder.leaves) {
            do throws(ParquetError) { try leaf.values.fill(part.values, count: part.values.count) } catch {
                guard case .valueDoesNotFit(_, let index, let reason) = error else { throw error }
                throw .valueDoesNotFit(column: column.name, row: part.row(ofValue: index, leaf.place), reason)
            }
        }
    }

    /// Rows whose values have no place in the column, ascending.
    package func unfit(_ source: Column, _ count: Int) -> [(row: Int, reason: UnfitValue)] {
        guard mayRefuse else { return [] }
        do throws(ParquetError) {
            try fill(source, count: count)
            return []
        } catch {}
        // One after the other, now that there is one.
        var found: [(row: Int, reason: UnfitValue)] = []
        for row in 0..<count {
            let one = withUnsafePointer(to: UInt32(row)) { source.gather($0, count: 1) }
            do throws(ParquetError) { try fill(one, count: 1) } catch {
                if case .valueDoesNotFit(_, _, let reason) = error { found.append((row, reason)) }
            }
        }
        return found
    }

    private var mayRefuse: Bool {
        switch column.type {
        case .boolean, .int16, .int32, .int64, .float32, .float64: column.isRequired
        default: true
        }
    }
}
