import MillColumnar

/// A column of a file that is being written: one leaf, or those of a nested column.
struct WrittenColumn {
    let column: ParquetColumn
    let leaves: [ColumnChunkWriter]
    /// Of the file's schema.
    let elements: [SchemaElement]
    private let shredder: NestedShredder?

    init(_ column: ParquetColumn, _ options: ParquetWriterOptions, _ compressor: PageCompressor) throws(ParquetError) {
        self.column = column
        guard let shape = column.members else {
            let leaf = try ColumnChunkWriter(column, options, compressor)
            (leaves, elements, shredder) = ([leaf], [leaf.storage.element(column)], nil)
            return
        }
        var layout = NestedNode.Layout()
        let root = NestedNode.make(
            ParquetMember(column.name, shape, isRequired: column.isRequired, fieldID: column.fieldID), options, into: &layout)
        var leaves: [ColumnChunkWriter] = []
        for leaf in layout.leaves { leaves.append(try ColumnChunkWriter(leaf.column, options, compressor, place: leaf.place)) }
        (self.leaves, elements) = (leaves, layout.elements)
        shredder = NestedShredder(root, layout.leaves.map(\.column.type))
    }

    /// Rows of a batch whose values have no place in the column, one after the other.
    func unfit(_ source: Column, _ count: Int) -> [(row: Int, reason: UnfitValue)] {
        var found: [(row: Int, reason: UnfitValue)] = []
        for row in 0..<count {
            let one = withUnsafePointer(to: UInt32(row)) { source.gather($0, count: 1) }
            do throws(ParquetError) { try prepare(one, 1) } catch {
                if case .valueDoesNotFit(_, _, let reason) = error { found.append((row, reason)) }
            }
        }
        return found
    }

    /// Takes the values of a batch apart; nothing is written yet.
    func prepare(_ source: Column, _ count: Int) throws(ParquetError) {
        guard let shredder else { return try leaves[0].prepare(source, count: count) }
        try shredder.fill(source, count: count)
        for (leaf, part) in zip(leaves, shredder.leaves) { try leaf.prepare(part.values, count: part.values.count) }
    }

    /// Writes the values that were prepared.
    func append(_ source: Column, _ count: Int) {
        guard let shredder else { return leaves[0].append(source, count: count) }
        for (leaf, part) in zip(leaves, shredder.leaves) { leaf.append(part, rows: count) }
    }
}
