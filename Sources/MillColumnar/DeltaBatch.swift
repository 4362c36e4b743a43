/// A slice of a Z-set in one epoch: columns and one weight per row.
///
/// `weights` nil means that every row has weight +1: append-only input, the common case, pays nothing for retraction.
/// A batch has at most `Limits.batchRowsMax` rows. Immutable once made; shared between threads.
package final class DeltaBatch: Sendable {
    package let columns: [Column]
    package let count: Int
    package let weights: Weights?

    package init(columns: [Column], count: Int, weights: Weights? = nil) {
        assert(columns.allSatisfy { $0.count == count }, "every column of a batch has its rows")
        self.columns = columns
        self.count = count
        self.weights = weights
    }

    package func weight(_ row: Int) -> Int64 { weights?.values[row] ?? 1 }

    /// The same rows, other columns.
    package func with(columns: [Column]) -> DeltaBatch { DeltaBatch(columns: columns, count: count, weights: weights) }
}

/// One weight per row of a batch. Built by one thread, then only read.
package final class Weights: @unchecked Sendable {
    package let values: UnsafeMutablePointer<Int64>
    package let count: Int

    /// Uninitialised weights that the caller writes before anyone reads them.
    package init(count: Int) {
        self.count = count
        values = .allocate(capacity: max(count, 1))
    }

    package convenience init(_ values: [Int64]) {
        self.init(count: values.count)
        for (index, value) in values.enumerated() { self.values[index] = value }
    }

    /// The same weights to change; +1 each when there are none.
    package convenience init(copying other: Weights?, count: Int) {
        self.init(count: count)
        if let other { values.update(from: other.values, count: count) } else { values.update(repeating: 1, count: count) }
    }

    deinit { values.deallocate() }
}
