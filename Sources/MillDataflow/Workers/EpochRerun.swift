import MillBase
import MillConnectorKit
import MillStore

/// Epochs that an earlier process published after its last checkpoint, run again one by one.
///
/// What closes by watermarks depends on where epochs were cut: which rows are late, and what EMIT ON WINDOW CLOSE has given out. Readers have
/// seen both. So the jobs that go on from the checkpoint read their sources to where each epoch of the journal ended, and close by what it
/// closed by; what follows is the same, row for row. Jobs without watermarks need none of this, and read on beside it.
///
/// For each epoch of the journal:
/// 1. read: epochs that end where it ended, as many as it takes, in which rows count as late by what it had passed and nothing closes;
/// 2. close: one epoch that reads nothing and closes by what it closed by; then its watermarks are those that the journal names.
///
/// Epochs may be missing: a journal that has grown too long gives way to one entry, and a power cut may take one file of it and leave the next.
/// The one that follows then closes what they closed, too. Nothing ever counts as closed by a watermark that no epoch here has closed by:
/// what an operator gives out when it closes would come late to the next one, which has closed nothing of it either.
///
/// A source that has failed is not waited for, nor is one that gives nothing for as long as makes a split idle: then the rest is cut anew, and
/// fewer rows may be late than before. On the conductor's thread; steps are between epochs.
struct EpochRerun {
    /// What is still to be run, each with what it changed; the first is in work.
    private var epochs: ArraySlice<EpochPosition> = []
    /// Where the epoch in work ends, in all splits that were known by then.
    private var known: SourceOffsets = [:]
    private(set) var keys: Set<WatermarkKey> = []
    private var hasStarted = false
    private var isClosing = false
    /// The last transaction of tables that epochs which are done had.
    private var position = DMLPosition.zero
    /// For a source that gives nothing.
    private var lastOffsets: SourceOffsets = [:]
    private var movedAtNanos: UInt64 = 0

    init() {}

    /// - Parameter epochs: as `EpochJournal.epochs` gives them: the first is the checkpoint's.
    init(_ epochs: [EpochPosition]) {
        guard let first = epochs.first else { return }
        (known, position) = (first.offsets, first.dmlPosition)
        self.epochs = epochs.dropFirst()
    }

    /// A job goes on from the checkpoint with these.
    mutating func join(_ keys: [WatermarkKey]) {
        // A table that comes later goes on by itself.
        if !hasStarted { self.keys.formUnion(keys) }
    }

    var isActive: Bool { !epochs.isEmpty && !keys.isEmpty }

    /// Sources of which something is still to be read or closed.
    var sources: Set<ObjectID> { isActive ? Set(keys.map(\.source)) : [] }

    // MARK: An epoch

    /// Where reading ends; empty when it is free.
    var ends: SourceOffsets { Dictionary(uniqueKeysWithValues: sources.map { ($0, known[$0] ?? [:]) }) }

    /// What closes nothing in the next epoch.
    var held: Set<WatermarkKey> { isActive && !isClosing ? keys : [] }

    /// When the epoch in work was opened.
    var openedAtMicros: Int64? { isActive ? epochs.first?.openedAtMicros : nil }

    /// Before the first epoch that jobs have which go on from the checkpoint.
    mutating func startOnce(nowNanos: UInt64) {
        guard isActive, !hasStarted else { return }
        hasStarted = true
        movedAtNanos = nowNanos
        goOn()
    }

    /// An epoch has ended.
    /// - Parameter injected: the last transaction that tables have been given.
    /// - Returns: what the watermarks are from here on, at least; nil: what they were. When all is read, `now` is what the journal's epoch closed
    ///   by; when that is closed, both are as the journal names them.
    mutating func note(
        _ report: EpochReport, injected: DMLPosition, nowNanos: UInt64, idleNanos: UInt64
    ) -> [WatermarkKey: WatermarkStep]? {
        guard isActive, let epoch = epochs.first else { return nil }
        guard isClosing else {
            isClosing = report.shortOfRerun.isDisjoint(with: sources) && (!readsTables || injected >= epoch.dmlPosition)
            let offsets = report.offsets.filter { sources.contains($0.key) }
            if isClosing || offsets != lastOffsets || readsTables && injected < epoch.dmlPosition { movedAtNanos = nowNanos }
            lastOffsets = offsets
            if nowNanos - movedAtNanos >= idleNanos { end() }
            return isClosing ? closed(in: epoch) : nil
        }
        isClosing = false
        position = epoch.dmlPosition
        epochs.removeFirst()
        goOn()
        return epoch.watermarks.filter { keys.contains($0.key) }
    }

    /// What an epoch closed by.
    private func closed(in epoch: EpochPosition) -> [WatermarkKey: WatermarkStep] {
        epoch.watermarks.filter { keys.contains($0.key) }.mapValues { WatermarkStep(now: $0.passed) }
    }

    /// Passes over epochs in which nothing happened to these jobs.
    private mutating func goOn() {
        while let next = epochs.first {
            let isRead = readFurther(next.offsets) || readsTables && next.dmlPosition > position
            if isRead || next.watermarks.keys.contains(where: keys.contains) { return }
            epochs.removeFirst()
        }
        end()
    }

    /// - Returns: whether these jobs had a record. A split that was only found has given none: to close in between would be one epoch too many.
    private mutating func readFurther(_ offsets: SourceOffsets) -> Bool {
        let sources = sources
        var isRead = false
        for (source, splits) in offsets {
            let before = known[source] ?? [:]
            if sources.contains(source), splits.contains(where: { $1 > before[$0] ?? SplitOffset(0) }) { isRead = true }
            known[source] = before.merging(splits) { $1 }
        }
        return isRead
    }

    private mutating func end() {
        epochs = []
        known = [:]
        lastOffsets = [:]
    }

    // MARK: Tables

    private var readsTables: Bool { keys.contains { $0.job == $0.source } }

    /// Whether a transaction belongs to an epoch behind the one in work.
    func isAhead(_ transaction: DMLPosition) -> Bool {
        guard isActive, readsTables, let epoch = epochs.first else { return false }
        return transaction > epoch.dmlPosition
    }

    /// The last transaction that is published; nil: all that were injected are.
    var publishedPosition: DMLPosition? { isActive && readsTables ? position : nil }

    /// With which transactions epochs ended.
    var positions: [DMLPosition] { epochs.map(\.dmlPosition) }
}
