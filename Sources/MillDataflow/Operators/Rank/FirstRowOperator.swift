import MillBase
package import MillColumnar
package import MillPlan
import MillState

/// The first row of each partition over append-only input, such as the last version of a key: `row_number() ... = 1` without the number.
///
/// What `RankOperator` does for the cut at 1, in one probe a row instead of an ordered table: rows never go, so of a partition only its
/// first row can ever matter. Rows are compared by the first bytes of their order keys, and by all of their columns where these agree, in
/// the same total order.
///
/// State: partitions, each with its best row and the row given out; the rows themselves in a table without an index. Between epochs
/// there is one row for each partition. Per epoch and partition it gives at most one retraction and one insertion.
package final class FirstRowOperator: Operator {
    private let partition: [Int]
    private let keys: RankKeys
    private let partitions: StateTable
    private let rows: StateTable
    private var touched: [RowNumber] = []
    /// The touched partition to go on with while output is given; nil while rows come in.
    private var position: Int?

    private let numbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    /// What a partition's row carries. Row numbers are one higher, 0 for none.
    private struct Entry {
        /// The first bytes of the best row's order key, as numbers.
        var head: (UInt64, UInt64)
        var best: UInt32
        var shown: UInt32
        /// A better row of the batch that is being taken in.
        var candidate: UInt32
        var isTouched: Bool
    }

    package init(columns: [SQLType], window: Window) {
        partition = window.partition
        keys = RankKeys(columns: columns, window: window)
        partitions = StateTable(columns: partition.map { columns[$0] }, payloadBytes: MemoryLayout<Entry>.size)
        rows = StateTable(columns: columns, payloadBytes: 8, indexed: false)
    }

    deinit {
        numbers.deallocate()
        hashes.deallocate()
    }

    @inline(__always) private func entry(_ number: RowNumber) -> UnsafeMutablePointer<Entry> {
        partitions.payload(number).assumingMemoryBound(to: Entry.self)
    }

    // MARK: Input

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        var start = 0
        while start < batch.count {
            let end = min(start + Limits.batchRowsMax, batch.count)
            add(start == 0 && end == batch.count ? batch : batch.slice(start, end))
            start = end
        }
    }

    private func add(_ batch: DeltaBatch) {
        let partitionColumns = partition.map { batch.columns[$0] }
        RowHash.hash(partitionColumns, count: batch.count, into: hashes)
        partitions.findOrInsert(partitionColumns, hashes: hashes, count: batch.count, rows: numbers, inserted: &inserted)
        let lanes = keys.lanes(batch.columns)
        var key = KeyBuffer()
        var winners: [RowNumber] = []
        for row in 0..<batch.count {
            let start = lanes.encodeOrder(row, into: &key)
            let head = key.head(from: start)
            let entry = entry(numbers[row])
            if entry.pointee.best != 0 || entry.pointee.candidate != 0 {
                if head > entry.pointee.head { continue }
                if head == entry.pointee.head, !isBefore(row, entry.pointee, lanes) { continue }
            }
            if entry.pointee.candidate == 0 { winners.append(numbers[row]) }
            entry.pointee.candidate = UInt32(truncatingIfNeeded: row + 1)
            entry.pointee.head = head
        }
        take(winners, of: batch)
    }

    /// Whether a row of the batch stands before its partition's best one, when their heads are equal.
    private func isBefore(_ row: Int, _ entry: Entry, _ lanes: RankKeys.Lanes) -> Bool {
        var key = KeyBuffer()
        var best = KeyBuffer()
        _ = lanes.encode(row, into: &key)
        if entry.candidate != 0 {
            _ = lanes.encode(Int(entry.candidate) - 1, into: &best)
        } else {
            _ = keys.lanes(rows.gather(rows: [entry.best - 1], count: 1)).encode(0, into: &best)
        }
        return KeyHead.compare(key.bytes, best.bytes) < 0
    }

    /// Keeps the best rows of a batch in place of those that were best before.
    private func take(_ winners: [RowNumber], of batch: DeltaBatch) {
        guard !winners.isEmpty else { return }
        let places = winners.map { entry($0).pointee.candidate - 1 }
        rows.append(batch.gather(places, count: places.count).columns, hashes: hashes, count: places.count, rows: numbers)
        for (index, winner) in winners.enumerated() {
            let entry = entry(winner)
            if entry.pointee.best != 0, entry.pointee.best != entry.pointee.shown { rows.remove(entry.pointee.best - 1) }
            entry.pointee.best = numbers[index] + 1
            entry.pointee.candidate = 0
            guard !entry.pointee.isTouched else { continue }
            entry.pointee.isTouched = true
            touched.append(winner)
        }
    }

    // MARK: Epoch's end

    package func closeEpoch(errors: OperatorErrors) { position = 0 }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard let start = position else { return nil }
        let end = min(touched.count, start + Limits.batchRowsMax / 2)
        guard start < end else {
            finishEpoch()
            return nil
        }
        position = end
        var changed: [RowNumber] = []
        var weights: [Int64] = []
        for number in touched[start..<end] {
            let entry = entry(number).pointee
            if entry.shown != 0 {
                changed.append(entry.shown - 1)
                weights.append(-1)
            }
            changed.append(entry.best - 1)
            weights.append(1)
        }
        let hasRetraction = changed.count > end - start
        return DeltaBatch(
            columns: rows.gather(rows: changed, count: changed.count), count: changed.count, weights: hasRetraction ? Weights(weights) : nil
        )
    }

    private func finishEpoch() {
        for number in touched {
            let entry = entry(number)
            if entry.pointee.shown != 0 { rows.remove(entry.pointee.shown - 1) }
            entry.pointee.shown = entry.pointee.best
            entry.pointee.isTouched = false
        }
        touched.removeAll(keepingCapacity: true)
        position = nil
        rows.compactHeapIfWorthwhile()
    }

    package func checkInvariants() -> [String] {
        var broken = partitions.checkInvariants() + rows.checkInvariants()
        partitions.forEachRow { number in
            let entry = entry(number).pointee
            if entry.best == 0 || entry.best != entry.shown || entry.candidate != 0 {
                broken.append("partition \(number) is in the middle of an epoch")
            }
        }
        if partitions.count != rows.count { broken.append("\(rows.count) rows for \(partitions.count) partitions") }
        return broken
    }

    package var stateByteCount: Int { partitions.byteCount + rows.byteCount }
}
