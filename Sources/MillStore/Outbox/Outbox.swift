package import MillBase
package import MillColumnar
package import MillIO
import Synchronization

/// What a sink has to send: frames of epochs in segments on disk (`docs/internals/outbox.md`).
///
/// Path: workers append what an epoch changed (`append`); a checkpoint takes the end (`seal`) and makes it durable (`persist`); from
/// `noteDurable` on the sink's own thread reads the frames up to there (`OutboxCursor`) and says how far its target is (`noteCommitted`).
///
/// Invariants: up to `durable` a position is one frame's for ever, and a start finds it again; an epoch is whole, or not in the outbox.
/// Bytes on disk and in memory are bounded: at a bound the sink is *detached*, and the outbox ends with the last epoch that is whole.
///
/// Threading: any thread; a lock orders them. Appending writes to the page cache under it; syncing does not hold it.
package final class Outbox: Sendable {
    package struct Limits: Sendable {
        /// Bytes of frames on disk that the target has not confirmed.
        package var byteCountMax: Int
        /// Bytes that wait in memory while the disk takes nothing.
        package var pendingBytesMax: Int
        package var segmentBytes: Int

        package init(byteCountMax: Int = 10 << 30, pendingBytesMax: Int = 64 << 20, segmentBytes: Int = 64 << 20) {
            self.byteCountMax = byteCountMax
            self.pendingBytesMax = pendingBytesMax
            self.segmentBytes = segmentBytes
        }
    }

    package let id: ObjectID
    package let directory: String
    let files: any FileSystem
    private let limits: Limits
    let state: Mutex<State>
    /// Called when there is something new to send, or nothing will come any more.
    private let listener = Mutex<(@Sendable () -> Void)?>(nil)

    struct State {
        /// In order; the last one is written to, if it has a file.
        var segments: [Segment] = []
        var nextNumber: UInt64
        var end: UInt64
        /// The epoch that is being appended, and where it begins.
        var epoch = Epoch.zero
        var epochStart: UInt64
        /// Frames that could not be written yet, in order.
        var pending: [(position: UInt64, bytes: [UInt8])] = []
        var pendingBytes = 0
        /// Before the first frame of the next epoch the target is to be emptied.
        var clearsNext = false
        /// A sync failed: the segments that it concerned are written anew.
        var isDistrusted = false
        var hasNewFile = false
        /// Files that count for nothing from the next checkpoint on. Until then the last one may name them, or one that is on the disk although
        /// making it failed.
        var obsolete: [UInt64] = []
        /// What the last checkpoint has.
        var durable: OutboxNote
        /// As the target has confirmed.
        var progress: OutboxNote
        /// When the oldest epoch was opened that is not confirmed; nil: all are.
        var oldestMicros: Int64?
        var detachment: SQLError?
    }

    struct Segment {
        var place: OutboxSegment
        /// nil: it is of an earlier process, which synced it.
        var file: (any File)?
        /// Nothing is appended to it any more: behind its end lie bytes that a checkpoint may name which is on the disk although making it failed.
        var isClosed = false
        var isUnsynced = false
    }

    /// - Parameters:
    ///   - directory: the sink's own.
    ///   - note: what the checkpoint has that the process began with; nil for a new sink.
    /// - Throws: XX001 for a note that nobody wrote.
    package init(_ id: ObjectID, directory: String, files: any FileSystem, limits: Limits = Limits(), note: StateNote?) throws(SQLError) {
        self.id = id
        self.directory = directory
        self.files = files
        self.limits = limits
        var found = OutboxNote()
        if let note {
            do throws(RecordDamage) { found = try OutboxNote(note.bytes) } catch {
                throw SQLError(
                    .dataCorrupted, "what is stored of the outbox of sink \(id) is damaged", hint: "Drop the sink and create it again.")
            }
        }
        var last: UInt64 = 0
        // A directory that cannot be listed cannot be written to either, which is told then.
        for name in (try? files.list(directory)) ?? [] {
            guard let number = Self.number(of: name) else { continue }
            last = max(last, number)
            if !found.segments.contains(where: { $0.number == number }) { try? files.remove(directory + "/" + name) }
        }
        state = Mutex(
            State(
                segments: found.segments.map { Segment(place: $0) }, nextNumber: max(last, found.segments.map(\.number).max() ?? 0) + 1,
                end: found.end,
                epochStart: found.end, durable: found, progress: found, detachment: found.detachment))
        state.withLock { state in
            state.progress.segments = []
            if found.start < found.end { state.oldestMicros = Int64.min }
        }
    }

    private static func number(of name: String) -> UInt64? { name.hasPrefix("segment-") ? UInt64(name.dropFirst(8)) : nil }
    func path(_ number: UInt64) -> String { "\(directory)/segment-\(number)" }

    package func onChange(_ body: (@Sendable () -> Void)?) { listener.withLock { $0 = body } }

    private func tell() { listener.withLock { $0 }?() }

    // MARK: Appending, by workers

    /// Appends rows of the running epoch. What cannot be taken detaches the sink; the rows of others go on.
    /// - Parameter batch: rows of one sign; weights are taken without it.
    package func append(_ batch: DeltaBatch, _ kind: OutboxFrame.Kind, epoch: Epoch, openedAtMicros: Int64) {
        guard batch.count > 0, state.withLock({ $0.detachment == nil }) else { return }
        if OutboxBody.byteCount(batch) > Self.frameBytesAim, batch.count > 1 {
            append(batch.slice(0, batch.count / 2), kind, epoch: epoch, openedAtMicros: openedAtMicros)
            append(batch.slice(batch.count / 2, batch.count), kind, epoch: epoch, openedAtMicros: openedAtMicros)
            return
        }
        var frame = OutboxFrame.encode(batch, kind, epoch: epoch, openedAtMicros: openedAtMicros)
        state.withLock { state in
            guard frame.count <= OutboxFrame.bytesMax else {
                return detach(
                    &state, SQLError(.programLimitExceeded, "a row takes \(frame.count) bytes, more than a sink's outbox can hold"))
            }
            if state.epoch != epoch { (state.epoch, state.epochStart) = (epoch, state.end) }
            putClear(&state, epoch, openedAtMicros)
            put(&frame, &state)
            if state.oldestMicros == nil { state.oldestMicros = openedAtMicros }
        }
    }

    /// Frames are halved above this.
    private static let frameBytesAim = 64 << 20

    private func putClear(_ state: inout State, _ epoch: Epoch, _ openedAtMicros: Int64) {
        guard state.clearsNext else { return }
        state.clearsNext = false
        var frame = OutboxFrame.encode(nil, .clear, epoch: epoch, openedAtMicros: openedAtMicros)
        put(&frame, &state)
    }

    private func put(_ frame: inout [UInt8], _ state: inout State) {
        guard state.detachment == nil else { return }
        let first = state.segments.first?.place.start ?? state.end
        guard state.end - first + UInt64(frame.count) <= UInt64(limits.byteCountMax) else {
            return detach(
                &state,
                SQLError(
                    .diskFull, "its outbox holds \(limits.byteCountMax >> 20) MiB that the target has not taken",
                    hint: "RESUME SINK sends all rows anew to a sink of type upsert; one that only adds is to be dropped and created again."
                ))
        }
        let position = state.end
        OutboxFrame.place(&frame, at: position)
        state.end += UInt64(frame.count)
        if state.pending.isEmpty, (try? write(frame, at: position, &state)) != nil { return }
        state.pendingBytes += frame.count
        state.pending.append((position, frame))
        if state.pendingBytes > limits.pendingBytesMax {
            detach(
                &state,
                SQLError(
                    .diskFull, "the disk does not take what it has to send, and \(limits.pendingBytesMax >> 20) MiB wait in memory",
                    hint:
                        "Make room. RESUME SINK sends all rows anew if it is of type upsert; one that only adds is to be created again."
                ))
        }
    }

    /// Appends a frame to the last segment, or to a new one.
    private func write(_ frame: [UInt8], at position: UInt64, _ state: inout State) throws(IOFailure) {
        let last = state.segments.count - 1
        if last < 0 || state.segments[last].file == nil || state.segments[last].isClosed
            || state.segments[last].place.byteCount >= UInt64(limits.segmentBytes)
            || state.segments[last].place.end != position
        {
            try files.createDirectory(directory)
            let file = try files.open(path(state.nextNumber), .create)
            // Half a frame of a write that failed lies there all the same; nothing is built upon it.
            try file.write(frame, at: 0)
            state.segments.append(
                Segment(
                    place: OutboxSegment(number: state.nextNumber, start: position, byteCount: UInt64(frame.count)), file: file,
                    isUnsynced: true))
            state.nextNumber += 1
            state.hasNewFile = true
        } else {
            try state.segments[last].file?.write(frame, at: Int(state.segments[last].place.byteCount))
            state.segments[last].place.byteCount += UInt64(frame.count)
            state.segments[last].isUnsynced = true
        }
    }

    private func writePending(_ state: inout State) throws(IOFailure) {
        while let first = state.pending.first {
            try write(first.bytes, at: first.position, &state)
            state.pending.removeFirst()
            state.pendingBytes -= first.bytes.count
        }
    }

    // MARK: Detaching and beginning anew

    /// Why it takes nothing more; nil when it does.
    package var detachment: SQLError? { state.withLock { $0.detachment } }

    /// Takes nothing more; what is whole is still sent.
    package func detach(_ reason: SQLError) {
        state.withLock { detach(&$0, reason) }
        tell()
    }

    private func detach(_ state: inout State, _ reason: SQLError) {
        guard state.detachment == nil else { return }
        state.detachment = reason
        // What waits in memory may begin in the middle of an epoch.
        cut(&state, to: state.pending.isEmpty ? max(state.epochStart, state.durable.end) : state.durable.end)
    }

    /// Forgets what lies behind a position.
    private func cut(_ state: inout State, to end: UInt64) {
        state.pending = []
        state.pendingBytes = 0
        while let last = state.segments.last, last.place.start >= end, last.place.byteCount > 0 {
            state.segments.removeLast()
            state.obsolete.append(last.place.number)
        }
        let last = state.segments.count - 1
        if last >= 0, state.segments[last].place.end > end {
            state.segments[last].place.byteCount = end - state.segments[last].place.start
            state.segments[last].isClosed = true
        }
        state.end = end
    }

    /// Whether a checkpoint has something of it: what its target holds may be of an earlier beginning.
    package var hasHistory: Bool { state.withLock { $0.durable.epoch > .zero } }

    /// The relation begins anew: what no checkpoint has is forgotten, and the target is emptied before what comes.
    package func beginAnew() {
        state.withLock { state in
            cut(&state, to: state.durable.end)
            state.detachment = nil
            state.clearsNext = true
            (state.epoch, state.epochStart) = (.zero, state.end)
        }
    }

    /// Removes all files; the sink is no more.
    package func remove() {
        state.withLock { state in
            state.detachment = SQLError(.objectNotInPrerequisiteState, "the sink was dropped")
            state.segments = []
            state.pending = []
        }
        onChange(nil)
        try? files.remove(directory)  // What cannot be removed now is removed at the next start.
    }

    // MARK: Checkpoints

    /// An outbox as of an epoch.
    package struct Sealed: Sendable {
        package let outbox: Outbox
        let end: UInt64
        let epoch: Epoch
    }

    /// Its end as of an epoch that all workers have ended; between two epochs.
    package func seal(_ epoch: Epoch, openedAtMicros: Int64) -> Sealed {
        state.withLock { state in
            if state.clearsNext {
                (state.epoch, state.epochStart) = (epoch, state.end)
                putClear(&state, epoch, openedAtMicros)
            }
            // Whatever becomes of later epochs, this one is whole.
            state.epochStart = state.end
            return Sealed(outbox: self, end: state.end, epoch: epoch)
        }
    }

    /// Makes what is sealed durable, before the record is written that names it.
    /// - Parameter attempt: tries again what failed for want of room.
    /// - Returns: what the record is to say.
    /// - Throws: what the system said; then nothing of it counts.
    func persist(_ sealed: Sealed, attempt: (() throws(IOFailure) -> Void) throws(IOFailure) -> Void) throws(IOFailure) -> OutboxNote {
        try attempt { () throws(IOFailure) in
            try self.state.withLock { (state) throws(IOFailure) in
                if state.isDistrusted { try writeAnew(&state) }
                try writePending(&state)
            }
        }
        let (unsynced, hasNewFile) = state.withLock { state in
            let unsynced = state.segments.compactMap { $0.isUnsynced ? $0.file : nil }
            for index in state.segments.indices { state.segments[index].isUnsynced = false }
            defer { state.hasNewFile = false }
            return (unsynced, state.hasNewFile)
        }
        do throws(IOFailure) {
            for file in unsynced { try file.sync() }
            if hasNewFile { try files.syncChain(directory) }
        } catch {
            state.withLock { state in
                for index in state.segments.indices where unsynced.contains(where: { $0 === state.segments[index].file }) {
                    state.segments[index].isUnsynced = true
                }
                state.isDistrusted = true
                state.hasNewFile = true
            }
            throw error
        }
        return state.withLock { note($0, upTo: min(sealed.end, $0.end), sealed.epoch) }
    }

    /// What is to be said of an outbox that a checkpoint does not hold: as the one before.
    package var note: StateNote {
        state.withLock { StateNote(object: id, kind: OutboxNote.kind, bytes: note($0, upTo: $0.durable.end, $0.durable.epoch).bytes) }
    }

    private func note(_ state: State, upTo end: UInt64, _ epoch: Epoch) -> OutboxNote {
        var note = state.progress
        note.end = max(end, note.start)
        note.epoch = epoch
        note.detachment = state.detachment
        note.segments = state.segments.map(\.place).filter { $0.end > note.start && $0.start < end }
        if let last = note.segments.indices.last, note.segments[last].end > end {
            note.segments[last].byteCount = end - note.segments[last].start
        }
        return note
    }

    /// The segments that a sync may have lost are copied, frame by frame, to new files.
    private func writeAnew(_ state: inout State) throws(IOFailure) {
        for index in state.segments.indices where state.segments[index].isUnsynced {
            let segment = state.segments[index]
            guard let file = segment.file else { continue }
            var bytes = [UInt8](repeating: 0, count: Int(segment.place.byteCount))
            let found = try file.read(at: 0, into: &bytes, count: bytes.count)
            guard found == bytes.count, Self.areWhole(bytes, from: segment.place.start) else {
                return detach(&state, SQLError(.dataCorrupted, "what it has to send was lost when the disk failed to sync"))
            }
            let copy = try files.open(path(state.nextNumber), .create)
            try copy.write(bytes)
            state.obsolete.append(segment.place.number)
            state.segments[index].place.number = state.nextNumber
            state.segments[index].file = copy
            state.nextNumber += 1
        }
        state.isDistrusted = false
        state.hasNewFile = true
    }

    private static func areWhole(_ bytes: [UInt8], from start: UInt64) -> Bool {
        var offset = 0
        while offset < bytes.count {
            guard
                let frame = try? OutboxFrame(
                    Array(bytes[offset..<min(offset + OutboxFrame.headerBytes, bytes.count)]), at: start + UInt64(offset)),
                offset + frame.byteCount <= bytes.count,
                checksum(bytes[(offset + OutboxFrame.headerBytes)..<(offset + frame.byteCount)]) == frame.bodyChecksum
            else { return false }
            offset += frame.byteCount
        }
        return true
    }

    /// The record that names this is written: its frames may be sent, and what lies before it may go.
    package func noteDurable(_ note: OutboxNote) {
        state.withLock { state in
            state.durable = note
            let obsolete = state.obsolete.filter { number in !note.segments.contains { $0.number == number } }
            state.obsolete.removeAll(where: obsolete.contains)
            // What cannot be removed now is removed at the next start.
            for number in obsolete { try? files.remove(path(number)) }
            while let first = state.segments.first, first.place.end <= note.start, first.place.byteCount > 0,
                state.segments.count > 1 || first.file == nil || first.isClosed
            {
                state.segments.removeFirst()
                // It is removed at the next start.
                try? files.remove(path(first.place.number))
            }
        }
        tell()
    }

    // MARK: Sending

    /// The last epoch that may be sent, and where it ends.
    package var durable: (epoch: Epoch, end: UInt64) { state.withLock { ($0.durable.epoch, $0.durable.end) } }

    /// What the target has confirmed.
    package var progress: OutboxNote { state.withLock { $0.progress } }

    /// Bytes of frames that the target has not confirmed.
    package var waitingBytes: Int { state.withLock { state in Int(clamping: state.end - min(state.progress.start, state.end)) } }

    /// When the oldest epoch was opened that the target has not confirmed, in microseconds since 1970; nil when it has all, `Int64.min`
    /// when that is not known.
    package var oldestMicros: Int64? { state.withLock { $0.oldestMicros } }

    /// The target has everything up to a position, which is the end of an epoch; nothing before it is sent again.
    /// - Parameters:
    ///   - committed: the last epoch that it confirmed.
    ///   - settled: up to where there is nothing to send.
    package func noteCommitted(
        _ position: UInt64, committed: Epoch, settled: Epoch, _ totals: OutboxTotals, commitCount: Int64, lastOpenedMicros: Int64?
    ) {
        state.withLock { state in
            state.progress.start = max(state.progress.start, position)
            state.progress.committed = max(state.progress.committed, committed)
            state.progress.settled = max(state.progress.settled, settled)
            state.progress.totals = totals
            state.progress.commitCount = commitCount
            if position >= state.end { state.oldestMicros = nil } else if let lastOpenedMicros { state.oldestMicros = lastOpenedMicros }
        }
    }
}
