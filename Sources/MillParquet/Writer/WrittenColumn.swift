import MillColumnar

/// A column of a file that is being written: one leaf, or those of a nested column.
struct WrittenColumn {
    private let parts: ColumnParts
    let leaves: [ColumnChunkWriter]

    init(_ column: ParquetColumn, _ options: ParquetWriterOptions, _ compressor: PageCompressor) throws(ParquetError) {
        parts = ColumnParts(column, options)
        var leaves: [ColumnChunkWriter] = []
        for leaf in parts.leaves { leaves.append(try ColumnChunkWriter(leaf, options, compressor)) }
        self.leaves = leaves
    }

    var column: ParquetColumn { parts.column }
    /// Of the file's schema.
    var elements: [SchemaElement] { parts.elements }

    /// Takes the values of a batch apart; nothing is written yet.
    func prepare(_ source: Column, _ count: Int) throws(ParquetError) { try parts.fill(source, count: count) }

    /// Writes the values that were prepared.
    func append(_ source: Column, _ count: Int) {
        guard let shredder = parts.shredder else { return leaves[0].append(source, count: count) }
        for (leaf, part) in zip(leaves, shredder.leaves) { leaf.append(part, rows: count) }
    }
}
