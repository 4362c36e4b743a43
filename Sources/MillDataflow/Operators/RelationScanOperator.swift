import MillBase
package import MillColumnar
import MillState

/// A view or table as another job's input: its present rows first, then its deltas.
///
/// Backfill without a snapshot or a buffer: rows are taken over in ascending order of their stored hash, a slice an epoch, as
/// they are at the end of that epoch. `position` is the hash below which everything has been taken over: a live delta below
/// it is given on, one at or above it is dropped, because its row is still to come. Done when the scan reaches the end.
///
/// Its input is the upstream `MaterializeOperator` on the same worker, which closes an epoch before this one does.
package final class RelationScanOperator: Operator {
    private let upstream: MaterializeOperator
    private let columns: [Int]
    private let slots: StateTableSlice
    /// nil once the job is at the upstream's epoch.
    private var position: UInt64?
    private var waiting: [DeltaBatch] = []
    private var waitingIndex = 0
    /// Rows taken over per epoch at most: the backfill's share.
    private let rowsPerEpochMax: Int

    package init(upstream: MaterializeOperator, columns: [Int], rowsPerEpochMax: Int) {
        self.upstream = upstream
        self.columns = columns
        self.rowsPerEpochMax = rowsPerEpochMax
        slots = StateTableSlice(columns: columns)
        position = 0
    }

    /// Only a job that has taken everything over is stored.
    package func finishRestore() { position = nil }

    /// Takes nothing over; before the first epoch.
    func skipRows() { position = nil }

    package var isCaughtUp: Bool { position == nil }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        let picked = batch.with(columns: columns.map { batch.columns[$0] })
        guard let position else {
            waiting.append(picked)
            return
        }
        let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: batch.count)
        defer { hashes.deallocate() }
        RowHash.hash(upstream.key.map { batch.columns[$0] }, count: batch.count, into: hashes)
        var selection = Selection(capacity: batch.count)
        for row in 0..<batch.count where max(hashes[row], 1) < position {
            selection.append(row)
        }
        if selection.count > 0 { waiting.append(picked.gather(selection.rows, count: selection.count)) }
    }

    package func closeEpoch(errors: OperatorErrors) {
        guard let lower = position else { return }
        let (rows, next) = upstream.table.rows(fromHash: lower, limit: rowsPerEpochMax)
        waiting += slots.batches(of: upstream.table, rows: rows, weightOffset: MaterializeOperator.weightOffset)
        position = next
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard waitingIndex < waiting.count else {
            waiting.removeAll(keepingCapacity: true)
            waitingIndex = 0
            return nil
        }
        defer { waitingIndex += 1 }
        return waiting[waitingIndex]
    }
}

/// Rows of a table with their weights, as batches of some columns.
struct StateTableSlice {
    let columns: [Int]

    func batches(of table: StateTable, rows: [RowNumber], weightOffset: Int) -> [DeltaBatch] {
        var batches: [DeltaBatch] = []
        var start = 0
        while start < rows.count {
            let count = min(Limits.batchRowsMax, rows.count - start)
            let weights = Weights(count: count)
            for index in 0..<count {
                weights.values[index] = table.payload(rows[start + index]).load(fromByteOffset: weightOffset, as: Int64.self)
            }
            rows.withUnsafeBufferPointer { buffer in
                let numbers = buffer.baseAddress! + start
                let gathered = columns.map { table.gather($0, rows: numbers, count: count) }
                batches.append(DeltaBatch(columns: gathered, count: count, weights: weights))
            }
            start += count
        }
        return batches
    }
}
