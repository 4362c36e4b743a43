import MillBase
package import MillColumnar

/// All rows of a `StateTable` as of one epoch, readable on any thread while the owner goes on writing.
package struct TableSnapshot: @unchecked Sendable {
    // Safe to share: pages are copied by their writer before a change while this holds them, and the heap only grows.
    let layout: RowLayout
    let pages: [StatePage]
    let rowsPerPage: Int
    let rowsUsed: Int
    /// Live rows.
    package let count: Int
    let heap: StringHeap

    /// The rows as batches. `weightOffset` says where in the payload a row's Int64 weight is; rows of weight 0 are left out.
    ///
    /// - Parameters:
    ///   - columns: numbers of the columns wanted, in output order.
    ///   - isWanted: says by its stored hash whether a row is to be among them.
    package func batches(columns: [Int], weightOffset: Int, where isWanted: ((UInt64) -> Bool)? = nil) -> [DeltaBatch] {
        var batches: [DeltaBatch] = []
        var pending: [UnsafeMutableRawPointer] = []
        pending.reserveCapacity(Limits.batchRowsMax)
        let weightAt = layout.payloadOffset + weightOffset
        for (pageIndex, page) in pages.enumerated() {
            let rows = min(rowsPerPage, rowsUsed - pageIndex * rowsPerPage)
            for slot in 0..<max(rows, 0) {
                let row = page.memory + slot * layout.stride
                let hash = row.load(as: UInt64.self)
                guard hash != 0, isWanted?(hash) ?? true, row.load(fromByteOffset: weightAt, as: Int64.self) != 0 else { continue }
                pending.append(row)
                if pending.count == Limits.batchRowsMax {
                    batches.append(batch(pending, columns, weightAt))
                    pending.removeAll(keepingCapacity: true)
                }
            }
        }
        if !pending.isEmpty { batches.append(batch(pending, columns, weightAt)) }
        return batches
    }

    private func batch(_ rows: [UnsafeMutableRawPointer], _ columns: [Int], _ weightAt: Int) -> DeltaBatch {
        let reader = RowReader(layout: layout, heap: heap)
        let gathered = columns.map { index in reader.gather(index, count: rows.count) { rows[$0] } }
        var plain = true
        let weights = Weights(count: rows.count)
        for (index, row) in rows.enumerated() {
            let weight = row.load(fromByteOffset: weightAt, as: Int64.self)
            weights.values[index] = weight
            plain = plain && weight == 1
        }
        return DeltaBatch(columns: gathered, count: rows.count, weights: plain ? nil : weights)
    }
}
