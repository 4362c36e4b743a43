import MillBase

/// Rows of several batches in any order, so many at a time: what is written in order need not be in memory a second time.
package struct BatchGathering {
    private let columns: [ColumnGathering]

    /// - Parameter batches: of the same columns; one at least.
    package init(_ batches: [DeltaBatch]) {
        columns = (batches.first?.columns.indices ?? 0..<0).map { index in ColumnGathering(batches.map { $0.columns[index] }) }
    }

    /// Rows that a call should take at most.
    package static let rowsMax = Limits.batchRowsMax

    package func gather(_ rows: [RowReference]) -> [Column] {
        rows.withUnsafeBufferPointer { rows in columns.map { $0.gather(rows) } }
    }
}

/// One column of many batches, from which rows are taken in any order: a loop over rows per column, with the columns' pointers
/// side by side. Shares string heaps as `BatchBuilder` does: rows from many sources get copies of their long strings.
struct ColumnGathering {
    private let sources: [Column]
    private let type: SQLType
    private let data: [UnsafeRawPointer]
    private let mayMiss: Bool

    init(_ sources: [Column]) {
        self.sources = sources
        type = sources[0].type
        data = sources.map { UnsafeRawPointer($0.data) }
        mayMiss = sources.contains { !$0.hasNoNulls }
    }

    func gather(_ rows: UnsafeBufferPointer<RowReference>) -> Column {
        let result = Column(type, uninitialized: rows.count)
        switch type.physical.stride {
        case 1: copy(UInt8.self, rows, result)
        case 2: copy(UInt16.self, rows, result)
        case 4: copy(UInt32.self, rows, result)
        case 8: copy(UInt64.self, rows, result)
        case 16: copy(StringView.self, rows, result)
        default: copy(Decimal.self, rows, result)
        }
        if mayMiss {
            let bitmap = result.ensureValidity()
            for index in 0..<rows.count where sources[Int(rows[index].batch)].isNull(Int(rows[index].row)) {
                Bitmap.set(bitmap, index, 0)
            }
            if Bitmap.isFull(bitmap, rows.count) { result.adoptValidity(nil) }
        }
        if type.physical == .string { shareStrings(rows, result) }
        return result
    }

    @inline(__always)
    private func copy<T: BitwiseCopyable>(_: T.Type, _ rows: UnsafeBufferPointer<RowReference>, _ result: Column) {
        let target = result.values(T.self)
        data.withUnsafeBufferPointer { data in
            for index in 0..<rows.count {
                let row = rows[index]
                target[index] = data[Int(row.batch)].load(fromByteOffset: Int(row.row) &* MemoryLayout<T>.stride, as: T.self)
            }
        }
    }

    private func shareStrings(_ rows: UnsafeBufferPointer<RowReference>, _ result: Column) {
        var isUsed = Array(repeating: false, count: sources.count)
        for row in rows { isUsed[Int(row.batch)] = true }
        let heapCount = sources.indices.reduce(0) { isUsed[$1] ? $0 + sources[$1].heaps.count : $0 }
        if heapCount <= ColumnBuilder.heapsMax {
            for index in sources.indices where isUsed[index] { result.keep(sources[index].heaps) }
            return
        }
        let heap = result.ownHeap()
        let views = result.values(StringView.self)
        for index in 0..<rows.count where !views[index].isInline { views[index] = heap.view(copying: views[index]) }
    }
}
