import MillColumnar

/// The rows of one data file until it ends, which are then written in the table's order.
///
/// Holds copies, so that neither what rows were read from nor rows of other partitions stay in memory for its sake.
struct SortBuffer {
    private let order: RowOrder
    private var batches: [DeltaBatch] = []
    /// For each batch, how many rows are before it.
    private var starts: [Int] = []
    private(set) var rowCount = 0
    /// What the rows take in memory, with what sorting them will need beside.
    private(set) var byteCount = 0

    init(_ order: RowOrder) { self.order = order }

    var orderID: Int { order.orderID }

    /// - Parameter columns: as the file has them.
    mutating func append(_ columns: [Column], rows: [UInt32]) {
        let kept = columns.map { column in
            rows.withUnsafeBufferPointer { column.gatherCopying($0.baseAddress.unsafelyUnwrapped, count: $0.count) }
        }
        starts.append(rowCount)
        batches.append(DeltaBatch(columns: kept, count: rows.count))
        rowCount += rows.count
        byteCount += rows.count * Self.sortingBytes + kept.count * Self.columnBytes + order.textByteCount(kept)
        for column in kept { byteCount += rows.count * column.type.physical.stride + column.heaps.reduce(0) { $0 + $1.byteCount } }
    }

    /// Of a row's key, but for long texts, and its place in the order, about.
    private static let sortingBytes = 80
    /// Of a batch's column without its values, about.
    private static let columnBytes = 320

    /// The rows in order, so many at a time, and then nothing.
    /// - Returns: for each row, by its coming, its position in the order.
    mutating func drain(_ write: ([Column], Int) throws(IcebergError) -> Void) throws(IcebergError) -> [UInt32] {
        var keys = EncodedKeys(capacity: rowCount)
        for batch in batches { try order.appendKeys(batch.columns, count: batch.count, to: &keys) }
        let sorted = RowSort.sort(keys)
        var positions = [UInt32](repeating: 0, count: rowCount)
        for (position, row) in sorted.enumerated() { positions[row] = UInt32(truncatingIfNeeded: position) }
        let gathering = BatchGathering(batches)
        var (references, start) = ([RowReference](), 0)
        while start < sorted.count {
            let end = min(start + BatchGathering.rowsMax, sorted.count)
            references.removeAll(keepingCapacity: true)
            for row in sorted[start..<end] { references.append(reference(row)) }
            try write(gathering.gather(references), references.count)
            start = end
        }
        (batches, starts, rowCount, byteCount) = ([], [], 0, 0)
        return positions
    }

    /// The batch that has a row, by halving.
    private func reference(_ row: Int) -> RowReference {
        var (low, high) = (0, starts.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if starts[middle] <= row { low = middle } else { high = middle }
        }
        return RowReference(batch: UInt32(low), row: UInt32(row - starts[low]))
    }
}
