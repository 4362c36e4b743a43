package import MillBase
package import MillIO
import Synchronization

/// The epochs published since a checkpoint (`docs/internals/state.md`): written before each is published, so that after a crash of the
/// process no reader sees less than it saw before.
///
/// Threading: one thread appends, another begins new files; a lock orders them.
package final class EpochJournal: Sendable {
    private let directory: String
    private let files: any FileSystem
    private let state = Mutex(State())

    private struct State {
        var file: (any File)?
        /// The checkpoint that it belongs to.
        var checkpoint: UInt64 = 0
        var size = 0
        /// Room found ahead.
        var reserved = 0
        /// The last entry, with all offsets.
        var position = EpochPosition.start
    }

    private static let header: [UInt8] = Array("MILLJRNL".utf8) + [1, 0, 0, 0, 0, 0, 0, 0]
    private static let reservedBytes = 1 << 20
    /// What one entry takes at most, unless thousands of splits move in one epoch.
    private static let entryBytes = 256 << 10
    /// From here on the entries give way to one with all that they say.
    private static let sizeMax = 4 << 20

    package init(directory: String, files: any FileSystem) {
        self.directory = directory
        self.files = files
    }

    private func path(_ checkpoint: UInt64) -> String { "\(directory)/journal-\(checkpoint)" }

    /// Begins the journal of a checkpoint, with the last epoch that was noted. The one before stays: it has the epochs that were published
    /// while the checkpoint was written. Those before that go.
    /// - Parameters:
    ///   - sources: those that the checkpoint knows; others are forgotten until an epoch reads them, because no job goes on from there.
    package func begin(checkpoint: UInt64, keeping sources: Set<ObjectID>? = nil) throws(IOFailure) {
        try state.withLock { (state) throws(IOFailure) in
            var first = state.position
            if let sources { first.offsets = first.offsets.filter { sources.contains($0.key) } }
            // The next entry has those of the jobs that are still there.
            first.watermarks = [:]
            try begin(checkpoint, with: [first], &state)
        }
    }

    /// Begins it with epochs of an earlier process: they are run again, and that may come to an end in its middle, too.
    /// - Parameter epochs: as `epochs(since:)` gives them, behind where they begin.
    package func begin(checkpoint: UInt64, with epochs: [EpochPosition]) throws(IOFailure) {
        try state.withLock { (state) throws(IOFailure) in try begin(checkpoint, with: epochs, &state) }
    }

    private func begin(_ checkpoint: UInt64, with epochs: [EpochPosition], _ state: inout State) throws(IOFailure) {
        // Under another name until the entry is in it: this may be the only place that knows.
        let name = path(checkpoint)
        let file = try files.open(name + ".new", .create)
        // Without the room `prepare` asks again.
        let hasRoom = (try? file.reserve(Self.reservedBytes)) != nil
        var fresh = State(file: file, checkpoint: checkpoint, reserved: hasRoom ? Self.reservedBytes : 0)
        let bytes = Self.header + epochs.flatMap { Self.entry($0, after: &fresh.position) }
        try file.write(bytes)
        fresh.size = bytes.count
        try files.rename(name + ".new", to: name)
        removeFiles(before: state.checkpoint)
        state = fresh
    }

    /// Not with the checkpoints they are named after: when a journal cannot begin, an older one goes on and is the only one that knows.
    private func removeFiles(before checkpoint: UInt64) {
        // What cannot be removed now is removed when the next one begins.
        for number in (try? numbers()) ?? [] where number < checkpoint { try? files.remove(path(number)) }
    }

    private func numbers() throws(IOFailure) -> [UInt64] {
        try files.list(directory).compactMap { name in name.hasPrefix("journal-") ? UInt64(name.dropFirst(8)) : nil }.sorted()
    }

    /// Makes sure that the next entry has room. An epoch that could not be noted must not be seen, and by then the state is what it
    /// made of it: without room it had better not begin.
    package func prepare() throws(IOFailure) {
        try state.withLock { (state) throws(IOFailure) in
            if state.size > Self.sizeMax, let _ = try? begin(state.checkpoint, with: [state.position], &state) { return }
            guard let file = state.file, state.size + Self.entryBytes > state.reserved else { return }
            try file.reserve(state.size + Self.reservedBytes)
            state.reserved = state.size + Self.reservedBytes
        }
    }

    /// Writes an epoch's entry; not synced.
    package func append(_ position: EpochPosition) throws(IOFailure) {
        try state.withLock { (state) throws(IOFailure) in
            guard let file = state.file else { return }
            var last = state.position
            let bytes = Self.entry(position, after: &last)
            try file.write(bytes, at: state.size)
            state.size += bytes.count
            state.position = last
        }
    }

    /// What an epoch has changed, as bytes; `last` becomes what is known with it.
    private static func entry(_ position: EpochPosition, after last: inout EpochPosition) -> [UInt8] {
        // After a start the sources are read again from the checkpoint on, and until then nobody sees what comes of it. Were that noted, a
        // second crash in the middle would let readers in too early.
        var position = position
        position.dmlPosition = max(position.dmlPosition, last.dmlPosition)
        // Nor does a source go that no job reads yet.
        position.offsets.merge(last.offsets) { now, _ in now }
        var moved: SourceOffsets = [:]
        for (source, splits) in position.offsets {
            let before = last.offsets[source] ?? [:]
            if before == splits { continue }
            let furthest = before.merging(splits) { max($0, $1) }
            let further = furthest.filter { before[$0.key] != $0.value }
            if !further.isEmpty { moved[source] = further }
            position.offsets[source] = furthest
        }
        var body = RecordWriter()
        body.put(position.epoch.number)
        body.put(position.openedAtMicros)
        body.put(position.dmlPosition.number)
        moved.put(into: &body)
        let steps = position.watermarks.filter { last.watermarks[$0.key] != $0.value }
        body.putList(steps.sorted { ($0.key.job, $0.key.source) < ($1.key.job, $1.key.source) }) { body, step in
            body.put(step.key.job.number)
            body.put(step.key.source.number)
            body.put(time: step.value.passed)
            body.put(time: step.value.now)
        }
        position.watermarks.merge(last.watermarks) { now, _ in now }
        last = position
        var entry = RecordWriter()
        entry.put(UInt32(body.bytes.count))
        entry.put(checksum(body.bytes))
        return entry.bytes + body.bytes
    }

    /// What each journal has, for people to look at.
    func inspect() throws(IOFailure) -> [StateInspection.Journal] {
        var found: [StateInspection.Journal] = []
        for number in try numbers() {
            let bytes = try files.open(path(number), .read).readAll()
            guard bytes.starts(with: Self.header) else { continue }
            var journal = StateInspection.Journal(checkpoint: number, entries: 0, last: .start)
            var reader = RecordReader(bytes[Self.header.count...])
            while let entry = try? Self.entry(&reader) {
                journal.entries += 1
                journal.last.take(entry)
            }
            found.append(journal)
        }
        return found
    }

    /// The epochs that were published from a checkpoint on, in order: first the checkpoint's own, then of each what it changed.
    package func epochs(since checkpoint: CheckpointRecord?) throws(IOFailure) -> [EpochPosition] {
        var found = [checkpoint?.position ?? .start]
        guard files.exists(directory) else { return found }
        // The journal before the checkpoint's own has the epochs that were published while it was written.
        for number in try numbers() {
            let bytes = try files.open(path(number), .read).readAll()
            guard bytes.starts(with: Self.header) else { continue }
            var reader = RecordReader(bytes[Self.header.count...])
            while let entry = try? Self.entry(&reader) {
                let last = found.count - 1
                // A journal begins with the last epoch of the one before.
                if entry.epoch == found[last].epoch { found[last].take(entry) } else if entry.epoch > found[last].epoch { found.append(entry) }
            }
        }
        return found
    }

    /// The last of these epochs, with all that is known of it.
    package static func last(of epochs: [EpochPosition]) -> EpochPosition {
        epochs.dropFirst().reduce(into: epochs.first ?? .start) { $0.take($1) }
    }

    private static func entry(_ reader: inout RecordReader) throws(RecordDamage) -> EpochPosition {
        let count = Int(try reader.get(UInt32.self))
        let sum = try reader.get(UInt32.self)
        let part = try reader.take(count)
        guard checksum(part) == sum, count > 0 else { throw RecordDamage() }
        var body = RecordReader(part)
        var position = EpochPosition(
            epoch: Epoch(try body.getNumber()), openedAtMicros: try body.get(Int64.self), dmlPosition: DMLPosition(try body.getNumber()),
            offsets: try SourceOffsets(from: &body))
        // Entries of earlier versions end here.
        guard !body.isAtEnd else { return position }
        let steps = try body.getList { (body) throws(RecordDamage) in
            let key = WatermarkKey(job: ObjectID(try body.get(UInt32.self)), source: ObjectID(try body.get(UInt32.self)))
            return (key, WatermarkStep(passed: try body.getTime(), now: try body.getTime()))
        }
        position.watermarks = Dictionary(steps, uniquingKeysWith: { $1 })
        return position
    }
}
