import MillBase
package import MillColumnar
package import MillPlan
import MillState
package import MillStore

/// Panes shared by overlapping windows: rows of one pane that are equal in all but their time go through the windows above once.
///
/// A pane is a span of time whose rows all lie in the same windows, the greatest common divisor of size and slide wide. A row's time becomes the
/// start of its pane; equal rows then become one with the sum of their weights, which is what every operator takes them for. So of n rows of a
/// group and pane the windows above get one, size / slide times, in place of n.
///
/// Rows wait until the epoch ends or there are `rowsMax` different ones. Where rows hardly repeat that is not worth its while: then the next
/// ones pass as they are, and it is tried again later. Rows that are late already for some window pass as they are, too, for `<job>_late`
/// to show them so. Between epochs it is empty, so it has no state to keep.
package final class PaneOperator: Operator {
    private let window: TimeWindow
    private let paneMicros: Int64
    private let columns: [SQLType]
    /// Different rows and their weights.
    private var table: StateTable
    private var numbers: [RowNumber] = []
    /// How many of `numbers` have been given out.
    private var given = 0
    private var isGivingOut = false
    private var passing: [DeltaBatch] = []
    private var passed: Int64?
    /// Rows that came since the table was empty.
    private var taken = 0
    /// Rows that still pass as they are because the ones before hardly repeated.
    private var toPass = 0

    private let rows = UnsafeMutablePointer<RowNumber>.allocate(capacity: Limits.batchRowsMax)
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)
    private var inserted = Selection(capacity: Limits.batchRowsMax)

    /// Different rows that wait at most: they stay in the cache.
    private static let rowsMax = 8 * Limits.batchRowsMax
    /// So many times as many rows as were tried in vain pass until it is tried again.
    private static let passingFactor = 8

    package init(_ window: TimeWindow, columns: [SQLType]) {
        self.window = window
        paneMicros = window.paneMicros
        self.columns = columns
        table = Self.emptyTable(columns)
    }

    /// Rows are one only where nothing above can tell them apart: it may read 1.0 and 1.00, which are equal, as texts.
    private static func emptyTable(_ columns: [SQLType]) -> StateTable {
        StateTable(columns: columns, payloadBytes: 8, equality: .representation)
    }

    deinit {
        rows.deallocate()
        hashes.deallocate()
    }

    package func openEpoch(_ watermarks: [WatermarkStep]) { passed = watermarks[0].passed }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        batch.forEachPart { part in
            if toPass > 0 {
                toPass -= part.count
                passing.append(part)
            } else {
                add(inTime(part))
            }
        }
        if numbers.count >= Self.rowsMax { isGivingOut = true }
    }

    /// The rows that no window has closed for; the others pass.
    private func inTime(_ batch: DeltaBatch) -> DeltaBatch {
        guard let passed, let split = EventTimes(batch.columns[window.timeColumn]).split(before: passed) else { return batch }
        passing.append(batch.gather(split.before.rows, count: split.before.count))
        return batch.gather(split.others.rows, count: split.others.count)
    }

    private func add(_ batch: DeltaBatch) {
        var keys = batch.columns
        keys[window.timeColumn] = panes(of: keys[window.timeColumn])
        RowHash.hash(keys, count: batch.count, into: hashes)
        table.findOrInsert(keys, hashes: hashes, count: batch.count, rows: rows, inserted: &inserted)
        for position in 0..<inserted.count { numbers.append(rows[Int(inserted.rows[position])]) }
        let weights = batch.weights.map { UnsafePointer($0.values) }
        for index in 0..<batch.count {
            table.preparedPayload(rows[index]).assumingMemoryBound(to: Int64.self).pointee &+= weights?[index] ?? 1
        }
        taken += batch.count
    }

    /// Each time's pane; what is no finite time stays as it is.
    private func panes(of times: Column) -> Column {
        let panes = Column(times.type, uninitialized: times.count)
        let micros = EventTimes(times)
        let (from, to) = (times.values(Int64.self), panes.values(Int64.self))
        for row in 0..<times.count { to[row] = micros.micros(row).map { window.paneStart($0, paneMicros: paneMicros) } ?? from[row] }
        if !times.hasNoNulls { for row in 0..<times.count where times.isNull(row) { panes.setNull(row) } }
        return panes
    }

    package func closeEpoch(errors: OperatorErrors) {
        isGivingOut = true
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        if let batch = passing.popLast() { return batch }
        guard isGivingOut else { return nil }
        while given < numbers.count {
            let part = Array(numbers[given..<min(given + Limits.batchRowsMax, numbers.count)])
            given += part.count
            if let batch = output(part) { return batch }
        }
        reset()
        return nil
    }

    /// Rows with their weights; nil when none is left of them.
    private func output(_ part: [RowNumber]) -> DeltaBatch? {
        let weights = part.map { table.payload($0).load(as: Int64.self) }
        let batch = DeltaBatch(columns: table.gather(rows: part, count: part.count), count: part.count, weights: Weights(weights))
        guard weights.contains(0) else { return batch }
        var kept = Selection(capacity: part.count)
        for (row, weight) in weights.enumerated() where weight != 0 { kept.append(row) }
        return kept.count == 0 ? nil : batch.gather(kept.rows, count: kept.count)
    }

    private func reset() {
        isGivingOut = false
        guard !numbers.isEmpty else { return }
        // Each way through the table costs a row about what one window more costs above.
        if numbers.count > Limits.batchRowsMax, numbers.count > taken / 4 * 3 { toPass = taken * Self.passingFactor }
        table = Self.emptyTable(columns)
        numbers.removeAll(keepingCapacity: true)
        given = 0
        taken = 0
    }

    package var stateByteCount: Int { table.byteCount }

    package func checkInvariants() -> [String] {
        numbers.isEmpty && passing.isEmpty && table.count == 0 ? [] : ["\(table.count) rows of panes have not been given out"]
    }
}
