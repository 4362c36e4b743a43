import MillBase
package import MillColumnar
import MillIO

/// Reads some columns of a file, batch by batch, without the rows that its bounds show not to be wanted.
///
/// Rows of a batch follow each other in the file: with `firstRow` each one's position in it is known.
/// Threading: one thread at a time.
package final class ParquetScan {
    package struct Batch {
        package let columns: [Column]
        package let count: Int
        /// The position of its first row in the file.
        package let firstRow: Int64
    }

    /// A column to be read, and as which type when not as its own.
    package struct Request: Sendable {
        package var column: Int
        package var type: SQLType?
        /// What a nested column is by a newer schema than the file's.
        package var projection: NestedProjection

        package init(_ column: Int, as type: SQLType? = nil, _ projection: NestedProjection = .asStored) {
            (self.column, self.type, self.projection) = (column, type, projection)
        }
    }

    private let file: ParquetFile
    private let columns: [ParquetFile.Source]
    private let selection: RowSelection
    /// Rows before this one of the file are not wanted.
    private let firstRow: Int64

    /// The row group at hand.
    private var group: Int
    private var isInGroup = false
    private var readers: [any RowReader] = []
    private var ranges: ArraySlice<Range<Int>> = []
    private var row = 0
    /// The file's rows before it.
    private var rowsBefore: Int64
    /// Rows that bounds kept out, so far.
    package private(set) var rowsPassedOver: Int64 = 0

    /// - Parameter firstRow: where to begin, as a position in the file.
    /// - Throws: `unsupported` when a column has no counterpart in SQL.
    package init(_ file: ParquetFile, _ requests: [Request], where conditions: [ParquetCondition] = [], from firstRow: Int64 = 0)
        throws(ParquetError)
    {
        self.file = file
        var columns: [ParquetFile.Source] = []
        for request in requests { columns.append(try file.source(of: request.column, as: request.type, request.projection)) }
        self.columns = columns
        selection = try RowSelection(file, conditions)
        self.firstRow = firstRow
        group = 0
        rowsBefore = 0
        while file.metadata.rowGroups.indices.contains(group), rowsBefore + file.metadata.rowGroups[group].rowCount <= firstRow {
            rowsBefore += file.metadata.rowGroups[group].rowCount
            group += 1
        }
    }

    /// The types of the columns that batches have.
    package var types: [SQLType] { columns.map(\.type) }

    /// The next rows, at most as many as a batch has and as are asked for; nil after the last one.
    package func next(atMost rowsMax: Int = Limits.batchRowsMax) throws(ParquetError) -> Batch? {
        while true {
            if let range = ranges.first {
                if row < range.lowerBound {
                    for reader in readers { try reader.skip(range.lowerBound - row) }
                    rowsPassedOver += Int64(range.lowerBound - row)
                    row = range.lowerBound
                }
                let count = min(range.upperBound - row, Limits.batchRowsMax, max(rowsMax, 1))
                guard count > 0 else {
                    ranges.removeFirst()
                    continue
                }
                var result: [Column] = []
                for reader in readers { result.append(try reader.read(count)) }
                defer { row += count }
                return Batch(columns: result, count: count, firstRow: rowsBefore + Int64(row))
            }
            guard try nextGroup() else { return nil }
        }
    }

    private func nextGroup() throws(ParquetError) -> Bool {
        // What follows the last range wanted is not read at all.
        if isInGroup { finishGroup() }
        while file.metadata.rowGroups.indices.contains(group) {
            let skipped = Int(max(firstRow - rowsBefore, 0))
            ranges = try selection.ranges(ofGroup: group).map { max($0.lowerBound, skipped)..<max($0.upperBound, skipped) }.filter { !$0.isEmpty }[...]
            row = 0
            if ranges.isEmpty {
                finishGroup()
                continue
            }
            let metadata = file.metadata.rowGroups[group]
            let isPartial = ranges.count > 1 || ranges.first?.count != Int(metadata.rowCount)
            for column in columns {
                switch column {
                case .flat(let leaf, let meaning):
                    let offsets = isPartial ? try file.offsetIndex(of: metadata.columns[leaf.index], leaf) : nil
                    readers.append(try reader(leaf, meaning, metadata, offsets))
                case .nested(let shape, let leaves):
                    var cursors: [LeafCursor] = []
                    for (leaf, meaning) in leaves { cursors.append(try cursor(leaf, meaning, metadata)) }
                    readers.append(NestedReader(shape, cursors, rowCount: Int(metadata.rowCount)))
                }
            }
            isInGroup = true
            return true
        }
        return false
    }

    private func reader(
        _ leaf: SchemaLeaf, _ meaning: ColumnMeaning, _ group: RowGroupMetadata, _ offsets: OffsetIndex?
    ) throws(ParquetError) -> ColumnReader {
        let chunk = group.columns[leaf.index]
        guard chunk.filePath == nil else {
            throw .unsupported(file: file.file.path, column: leaf.name, feature: "its values are in another file")
        }
        guard !chunk.isEncrypted else { throw .unsupported(file: file.file.path, column: leaf.name, feature: "it is encrypted") }
        let count = leaf.repetitionMax > 0 ? chunk.valueCount : group.rowCount
        return try ColumnReader(file.file, leaf, meaning, chunk, offsets, rowCount: Int(count), end: file.footerStart)
    }

    private func cursor(_ leaf: SchemaLeaf, _ meaning: ColumnMeaning, _ group: RowGroupMetadata) throws(ParquetError) -> LeafCursor {
        let entries = leaf.repetitionMax > 0 ? group.columns[leaf.index].valueCount : group.rowCount
        return LeafCursor(leaf, try reader(leaf, meaning, group, nil), entryCount: Int(entries))
    }

    private func finishGroup() {
        let rowCount = file.metadata.rowGroups[group].rowCount
        rowsPassedOver += rowCount - Int64(row)
        rowsBefore += rowCount
        group += 1
        readers = []
        isInGroup = false
        row = 0
    }
}
