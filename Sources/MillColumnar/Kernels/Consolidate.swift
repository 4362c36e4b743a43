/// Sums the weights of equal rows and drops the rows whose sum is zero.
///
/// Used by results of queries, changes of tables and tests: the result is the smallest batch with the same meaning. Rows are the
/// same by representation (1.0 is not 1.00, but nulls are equal and NaN equals NaN) unless equality by value is asked for, where
/// the first to appear stands for all. The output keeps the order of first appearance, so it does not depend on hashing.
///
/// Steps: hash all rows of a batch; find or insert each in an open-addressing directory of `tag:32 | entry+1:32`, probing
/// linearly at a load of at most one half; an entry is (batch, row, weight). Then copy the rows left. O(n) expected.
package enum Consolidate {
    /// Batches with one row per distinct row of non-zero weight. An input that is already so is returned as it is.
    package static func consolidate(_ batches: [DeltaBatch], by equality: RowEquality = .representation) -> [DeltaBatch] {
        let batches = batches.filter { $0.count > 0 }
        guard let first = batches.first else { return [] }
        var table = RowTable(batches, equality)
        let total = batches.reduce(0) { $0 + $1.count }
        for index in batches.indices { table.add(index) }
        if table.entries.count == total && table.entries.allSatisfy({ $0.weight != 0 }) { return batches }
        var builder = BatchBuilder(first.columns.map(\.type))
        // Entries are in order of batch and row: each batch's rows are copied column by column.
        var rows: [UInt32] = []
        var weights: [Int64] = []
        var next = 0
        for index in batches.indices {
            rows.removeAll(keepingCapacity: true)
            weights.removeAll(keepingCapacity: true)
            while next < table.entries.count && table.entries[next].batch == UInt32(index) {
                if table.entries[next].weight != 0 {
                    rows.append(table.entries[next].row)
                    weights.append(table.entries[next].weight)
                }
                next += 1
            }
            builder.append(batches[index], rows: rows, count: rows.count, weights: weights)
        }
        return builder.take()
    }
}

extension DeltaBatch {
    /// `batches` with equal rows summed; see `Consolidate`.
    package static func consolidate(_ batches: [DeltaBatch], by equality: RowEquality = .representation) -> [DeltaBatch] {
        Consolidate.consolidate(batches, by: equality)
    }
}

private struct RowTable: ~Copyable {
    struct Entry {
        var batch: UInt32
        var row: UInt32
        var weight: Int64
    }

    let batches: [DeltaBatch]
    let equality: RowEquality
    var entries: [Entry] = []
    private let directory: UnsafeMutablePointer<UInt64>
    private let mask: Int

    /// Room for every row to be distinct.
    init(_ batches: [DeltaBatch], _ equality: RowEquality) {
        self.batches = batches
        self.equality = equality
        let rows = batches.reduce(0) { $0 + $1.count }
        entries.reserveCapacity(rows)
        var slots = 16
        while slots < rows * 2 { slots *= 2 }
        mask = slots - 1
        directory = .allocate(capacity: slots)
        directory.initialize(repeating: 0, count: slots)
    }

    deinit { directory.deallocate() }

    mutating func add(_ index: Int) {
        let batch = batches[index]
        let directory = directory
        let mask = mask
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: batch.count) { hashes in
            RowHash.hash(batch.columns, count: batch.count, into: hashes.baseAddress.unsafelyUnwrapped)
            for row in 0..<batch.count {
                let hash = hashes[row]
                let weight = batch.weights.map { $0.values[row] } ?? 1
                let tag = hash >> 32
                var slot = Int(truncatingIfNeeded: hash) & mask
                while true {
                    let word = directory[slot]
                    if word == 0 {
                        entries.append(Entry(batch: UInt32(index), row: UInt32(row), weight: weight))
                        directory[slot] = tag << 32 | UInt64(entries.count)
                        break
                    }
                    let found = Int(word & 0xFFFF_FFFF) - 1
                    if word >> 32 == tag && isEqual(entries[found], batch, row) {
                        entries[found].weight &+= weight
                        break
                    }
                    slot = (slot &+ 1) & mask
                }
            }
        }
    }

    private func isEqual(_ entry: Entry, _ batch: DeltaBatch, _ row: Int) -> Bool {
        let other = batches[Int(entry.batch)]
        let otherRow = Int(entry.row)
        for index in batch.columns.indices where !batch.columns[index].equals(row, other.columns[index], otherRow, by: equality) {
            return false
        }
        return true
    }
}
