import MillBase
import MillColumnar
import MillConnectorKit
import MillDataflow
import MillIO
import MillStore

/// From opening a sink's target to closing it: where it is in the outbox, and what it has written since the last commit. On the sink's
/// thread.
final class DeliveryRun {
    private let outbox: Outbox
    private let refused: RefusedRowLog
    private let task: SinkTask
    private let writer: any SinkWriter
    private let environment: Environment
    private let cursor: OutboxCursor
    /// Confirmed by the target.
    private(set) var totals: OutboxTotals
    private(set) var commitCount: Int64
    private var committed: Epoch
    /// Written since: the last epoch, when it was opened, and what it comes to.
    private var written: (epoch: Epoch, openedMicros: Int64)?
    private var writtenTotals: OutboxTotals
    /// nil before the first, which waits for nothing.
    private var lastCommitNanos: UInt64?
    /// Whether writing ended in the middle of an epoch: the target is then to be opened again, and nothing of this run is committed.
    private(set) var isCut = false

    init(_ outbox: Outbox, _ refused: RefusedRowLog, _ task: SinkTask, _ writer: any SinkWriter, _ environment: Environment) {
        (self.outbox, self.refused, self.task, self.writer, self.environment) = (outbox, refused, task, writer, environment)
        let progress = outbox.progress
        (totals, writtenTotals, commitCount, committed) = (progress.totals, progress.totals, progress.commitCount, progress.committed)
        cursor = OutboxCursor(outbox)
    }

    /// Compares what the target has with what the outbox has, and goes behind it.
    /// - Throws: 55000 when they do not fit together, XX001.
    func passOverWhatIsThere() throws(SQLError) {
        let (durable, end) = outbox.durable
        let there = writer.committedEpoch
        guard there ?? 0 >= 0, let found = UInt64(exactly: there ?? 0), found <= durable.number else {
            throw SQLError(
                .objectNotInPrerequisiteState,
                "the target has this sink's epoch \(there ?? 0), and the state of this server is that of epoch \(durable)",
                hint:
                    "Another server writes to it, or the data directory is an older copy. Create the sink again for another target."
            )
        }
        guard found >= committed.number else {
            throw SQLError(
                .objectNotInPrerequisiteState, "the target has this sink's epoch \(found), and had confirmed epoch \(committed)",
                hint: "It has lost what it had. Drop the sink and create it again.")
        }
        let epoch = Epoch(found)
        try refused.open(after: epoch)
        var last: Int64?
        while cursor.position < end {
            let place = cursor.position
            let frames = try cursor.nextEpoch(before: end)
            guard let first = frames.first, first.epoch <= epoch else {
                cursor.goBack(to: place)
                last = frames.first?.openedAtMicros
                break
            }
            for frame in frames { writtenTotals.add(frame) }
            last = first.openedAtMicros
        }
        if epoch > committed {
            commitCount += 1
            committed = epoch
        }
        totals = writtenTotals
        note(settled: epoch, lastMicros: last)
    }

    /// Writes what the last checkpoint holds, epoch by epoch, until a commit is due by size.
    /// - Returns: whether nothing is left to write.
    func writeDurable(while mayGoOn: () -> Bool) throws(SQLError) -> Bool {
        let end = outbox.durable.end
        while cursor.position < end {
            guard mayGoOn(), !isOverLimit else { return false }
            for frame in try cursor.nextEpoch(before: end) {
                guard mayGoOn() else {
                    isCut = true
                    return false
                }
                written = (frame.epoch, frame.openedAtMicros)
                try write(frame)
                writtenTotals.add(frame)
            }
        }
        return true
    }

    private func write(_ frame: OutboxFrame) throws(SQLError) {
        guard let batch = try cursor.batch(of: frame, types: task.fields.map(\.type)) else { return try writer.clear() }
        let rows = try writer.write(batch, epoch: Int64(frame.epoch.number))
        guard !rows.isEmpty else { return }
        let now = environment.clock.nowMicros
        try refused.append(
            rows.filter { batch.columns.isEmpty || (0..<batch.count).contains($0.row) }.map { row in
                RefusedEntry(
                    epoch: frame.epoch, refusedAtMicros: now, column: row.column, reason: row.reason,
                    row: LateRows.json(batch, row.row, task.fields))
            })
    }

    /// Time until what is written is to be committed; nil when nothing is.
    var timeToCommit: Duration? {
        guard written != nil else { return nil }
        guard let lastCommitNanos else { return .zero }
        let passed = Duration.nanoseconds(Int64(clamping: environment.clock.monotonicNanos - lastCommitNanos))
        return max(task.commitEvery - passed, .zero)
    }

    var isOverLimit: Bool {
        guard task.commitRows != nil || task.commitBytes != nil, written != nil else { return false }
        let pending = writer.pending
        return pending.rowCount >= task.commitRows ?? .max || pending.byteCount >= task.commitBytes ?? .max
    }

    func commit() throws(SQLError) {
        guard let written, !isCut else { return }
        // When everything is written that the checkpoint holds, the target has its epoch, whatever the last change was.
        let (durable, end) = outbox.durable
        let epoch = cursor.position >= end ? durable : written.epoch
        try refused.sync()
        try writer.commit(through: Int64(epoch.number))
        committed = epoch
        commitCount += 1
        totals = writtenTotals
        let last = written.openedMicros
        self.written = nil
        lastCommitNanos = environment.clock.monotonicNanos
        note(settled: epoch, lastMicros: last)
    }

    /// Nothing is left to send: what a checkpoint holds since is that nothing changed.
    func settle() {
        let (durable, end) = outbox.durable
        guard cursor.position >= end else { return }
        note(settled: durable, lastMicros: nil)
    }

    private func note(settled: Epoch, lastMicros: Int64?) {
        outbox.noteCommitted(
            cursor.position, committed: committed, settled: settled, totals, commitCount: commitCount, lastOpenedMicros: lastMicros)
    }
}
