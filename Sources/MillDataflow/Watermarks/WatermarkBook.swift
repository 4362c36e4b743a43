import MillBase
package import MillConnectorKit
package import MillStore

/// How far one job is in event time in one split.
package struct SplitProgress: Hashable, Sendable {
    /// Of the watermark expression, microseconds since 1970; nil: no record has had a value yet.
    package var greatest: Int64?
    package var offset: SplitOffset
    package var state: State

    package enum State: Int, Comparable, Sendable {
        /// It has given its last record: nothing of it is waited for.
        case finished
        /// All that is known to be there has been read.
        case atEnd
        /// There is more, or nobody knows: records wait, it cannot be read, or it is paused. It is not idle, however long that takes.
        case behind

        package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
    }

    package init(greatest: Int64?, offset: SplitOffset, state: State) {
        self.greatest = greatest
        self.offset = offset
        self.state = state
    }

    /// Of two workers that put rows into one table.
    func further(_ other: SplitProgress) -> SplitProgress {
        SplitProgress(greatest: later(greatest, other.greatest), offset: max(offset, other.offset), state: max(state, other.state))
    }

    /// Of two scans of one job: what both promise.
    func slower(_ other: SplitProgress) -> SplitProgress {
        let greatest: Int64? = if let greatest, let theirs = other.greatest { min(greatest, theirs) } else { nil }
        return SplitProgress(greatest: greatest, offset: min(offset, other.offset), state: max(state, other.state))
    }
}

/// The watermark of every job on every source: over its splits the least of the greatest values seen, and never less than before.
///
/// Kept by the conductor, changed between two epochs only, so that all workers have the same one in an epoch. A split that has given
/// nothing for `idleNanos` although all that it has was read does not hold the others back, nor does one that has given its last record; once
/// that is so of all, none does. A checkpoint holds the book as it is after an epoch: `passed` is what the stored state has been closed by, `now` what the next epoch closes by.
package struct WatermarkBook {
    private struct Split {
        var greatest: Int64?
        /// nil: not heard of since the start.
        var offset: SplitOffset?
        var activeAtNanos: UInt64 = 0
        var isIdle = false
    }

    private struct Entry {
        var splits: [SourceSplit: Split] = [:]
        var step = WatermarkStep()
    }

    private var entries: [WatermarkKey: Entry] = [:]
    private let idleNanos: UInt64

    package init(idleNanos: UInt64) { self.idleNanos = idleNanos }

    /// Some watermark is further than what has been closed by it.
    package var isPending: Bool { entries.values.contains { $0.step.passed != $0.step.now } }

    /// Time alone may move a watermark: some of a source's splits, and not all, are known to be idle, or may become so.
    package var waitsForIdleness: Bool {
        entries.values.contains { $0.splits.count > 1 && $0.splits.values.contains { !$0.isIdle } }
    }

    package var steps: [WatermarkKey: WatermarkStep] { entries.mapValues(\.step) }

    // MARK: Epochs

    /// What the epoch that begins closes by; from then on that counts as closed.
    /// - Parameter held: those that close nothing in this epoch.
    package mutating func open(holding held: Set<WatermarkKey> = []) -> [WatermarkKey: WatermarkStep] {
        var opened = steps
        for (key, step) in opened {
            if held.contains(key) { opened[key]?.now = step.passed } else { entries[key]?.step.passed = step.now }
        }
        return opened
    }

    /// Sets what the next epoch closes by, as an earlier process had it.
    mutating func set(_ steps: [WatermarkKey: WatermarkStep]) {
        for (key, step) in steps {
            guard let known = entries[key]?.step else { continue }
            entries[key]?.step = WatermarkStep(passed: later(known.passed, step.passed), now: later(known.now, step.now))
        }
    }

    /// Takes in how far the jobs were at the end of an epoch; jobs that are not named have gone.
    /// - Parameter held: those whose watermarks stay: they are to be `set`.
    package mutating func note(
        _ progress: [WatermarkKey: [SourceSplit: SplitProgress]], nowNanos: UInt64, holding held: Set<WatermarkKey> = []
    ) {
        entries = entries.filter { progress[$0.key] != nil }
        for (key, splits) in progress {
            var entry = entries[key] ?? Entry()
            for (split, progress) in splits {
                var known = entry.splits[split] ?? Split()
                if known.offset != progress.offset || progress.state == .behind { known.activeAtNanos = nowNanos }
                known.greatest = later(known.greatest, progress.greatest)
                known.offset = progress.offset
                known.isIdle = progress.state == .finished || nowNanos - known.activeAtNanos >= idleNanos
                entry.splits[split] = known
            }
            if !held.contains(key) { entry.step.now = later(entry.step.now, Self.watermark(Array(entry.splits.values))) }
            entries[key] = entry
        }
    }

    private static func watermark(_ splits: [Split]) -> Int64? {
        let active = splits.filter { !$0.isIdle }
        if active.isEmpty { return splits.compactMap(\.greatest).max() }
        return active.contains { $0.greatest == nil } ? nil : active.compactMap(\.greatest).min()
    }

    // MARK: In checkpoints

    private static let noteKind = "watermarks"

    /// A note for each of these jobs that has watermarks.
    func notes(of jobs: Set<ObjectID>) -> [StateNote] {
        Dictionary(grouping: entries.filter { jobs.contains($0.key.job) }, by: \.key.job).sorted { $0.key < $1.key }.map { job, entries in
            var bytes = RecordWriter()
            bytes.putList(entries.sorted { $0.key.source < $1.key.source }) { bytes, entry in
                bytes.put(entry.key.source.number)
                bytes.put(time: entry.value.step.passed)
                bytes.put(time: entry.value.step.now)
                bytes.putList(entry.value.splits.sorted { $0.key < $1.key }) { bytes, split in
                    bytes.put(split.key.name)
                    bytes.put(split.key.topic)
                    bytes.put(split.key.partition)
                    bytes.put(time: split.value.greatest)
                }
            }
            return StateNote(object: job, kind: Self.noteKind, bytes: bytes.bytes)
        }
    }

    /// A job joins: as the checkpoint has it, or with nothing promised yet.
    /// - Returns: what the checkpoint has.
    mutating func begin(_ job: ObjectID, from recovered: RecoveredState?) throws(SQLError) -> [WatermarkKey] {
        entries = entries.filter { $0.key.job != job }
        guard let note = recovered?.note(Self.noteKind, of: job) else { return [] }
        do throws(RecordDamage) {
            var bytes = RecordReader(note.bytes[...])
            let stored = try bytes.getList { (bytes) throws(RecordDamage) in
                let key = WatermarkKey(job: job, source: ObjectID(try bytes.get(UInt32.self)))
                var entry = Entry(step: WatermarkStep(passed: try bytes.getTime(), now: try bytes.getTime()))
                let splits = try bytes.getList { (bytes) throws(RecordDamage) in
                    let split = SourceSplit(name: try bytes.getText(), topic: try bytes.getText(), partition: try bytes.get(Int32.self))
                    return (split, Split(greatest: try bytes.getTime()))
                }
                entry.splits = [SourceSplit: Split](splits, uniquingKeysWith: { _, last in last })
                return (key, entry)
            }
            for (key, entry) in stored { entries[key] = entry }
            return stored.map(\.0)
        } catch { throw SQLError(.dataCorrupted, "the stored watermarks of job \(job) are damaged") }
    }
}
