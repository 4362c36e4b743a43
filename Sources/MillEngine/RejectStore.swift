package import MillBase
package import MillConnectorKit
package import MillDataflow
package import MillStore
import Synchronization

/// What sources refused, for `<source>_rejects`: once per record or value, however many jobs and queries read it.
///
/// Every split remembers up to where its records have been decoded, so a source that is read again from its origin adds nothing
/// before that, and whoever reads furthest adds the rest.
/// Bounded in bytes per source: the oldest entries go first, and `droppedCount` says how many went.
package final class RejectStore: Sendable {
    package struct Entry: Sendable {
        package var split: SourceSplit
        package var reject: Reject
        package var rejectedAtMicros: Int64
    }

    /// A record that was refused.
    package struct Key: Hashable, Sendable {
        package var split: SourceSplit
        package var position: Int64

        package init(split: SourceSplit, position: Int64) {
            self.split = split
            self.position = position
        }
    }

    private struct SourceRejects {
        var entries: [Entry] = []
        var byteCount = 0
        var knownUpTo: [SourceSplit: SplitOffset] = [:]
        var droppedCount = 0
        /// Records that were replayed: refused again by whoever reads them again, they are no rejects any more.
        var replayed: Set<Key> = []
        /// As a note of a checkpoint; nil when it must be made anew.
        var note: StateNote?

        func isReplayed(_ reject: Reject, _ split: SourceSplit) -> Bool {
            reject.column == nil && !replayed.isEmpty && replayed.contains(Key(split: split, position: reject.position))
        }
    }

    private let sources = Mutex<[ObjectID: SourceRejects]>([:])
    private let bytesMaxPerSource: Int

    package init(bytesMaxPerSource: Int) { self.bytesMaxPerSource = bytesMaxPerSource }

    package func add(_ rejects: SplitRejects, source: ObjectID, nowMicros: Int64) {
        sources.withLock { sources in
            var state = sources[source] ?? SourceRejects()
            let known = state.knownUpTo[rejects.split] ?? SplitOffset(0)
            for reject in rejects.entries where reject.position >= known.position && !state.isReplayed(reject, rejects.split) {
                state.entries.append(Entry(split: rejects.split, reject: reject, rejectedAtMicros: nowMicros))
                state.byteCount += reject.raw.count + 128
            }
            state.knownUpTo[rejects.split] = max(known, rejects.end)
            state.note = nil
            var dropped = 0
            while state.byteCount > bytesMaxPerSource, dropped < state.entries.count {
                state.byteCount -= state.entries[dropped].reject.raw.count + 128
                dropped += 1
            }
            if dropped > 0 {
                state.entries.removeFirst(dropped)
                state.droppedCount += dropped
            }
            sources[source] = state
        }
    }

    package func entries(of source: ObjectID) -> [Entry] { sources.withLock { $0[source]?.entries ?? [] } }

    package func counts(of source: ObjectID) -> (kept: Int, dropped: Int) {
        sources.withLock { ($0[source]?.entries.count ?? 0, $0[source]?.droppedCount ?? 0) }
    }

    /// Records were replayed; after `restore`.
    package func remove(_ replayed: [Key], of source: ObjectID) {
        sources.withLock { sources in
            var state = sources[source] ?? SourceRejects()
            state.replayed.formUnion(replayed)
            state.entries = state.entries.filter { !state.isReplayed($0.reject, $0.split) }
            state.byteCount = state.entries.reduce(0) { $0 + $1.reject.raw.count + 128 }
            state.note = nil
            sources[source] = state
        }
    }

    package func remove(_ source: ObjectID) { sources.withLock { $0[source] = nil } }

    // MARK: In checkpoints

    private static let noteKind = "rejects"

    package var notes: [StateNote] {
        sources.withLock { sources in
            sources.keys.sorted().compactMap { id in
                guard let state = sources[id] else { return nil }
                let note = state.note ?? Self.note(id, state)
                sources[id]?.note = note
                return note
            }
        }
    }

    private static func note(_ id: ObjectID, _ state: SourceRejects) -> StateNote {
        var bytes = RecordWriter()
        bytes.put(Int64(state.droppedCount))
        bytes.putList(state.knownUpTo) { bytes, known in
            put(known.key, &bytes)
            bytes.put(known.value.position)
        }
        bytes.putList(state.entries) { bytes, entry in
            put(entry.split, &bytes)
            bytes.put(entry.rejectedAtMicros)
            bytes.put(entry.reject.position)
            bytes.put(UInt8(entry.reject.column == nil ? 0 : 1))
            bytes.put(entry.reject.column ?? "")
            bytes.put(bytes: entry.reject.raw)
            bytes.put(entry.reject.reason)
        }
        return StateNote(object: id, kind: noteKind, bytes: bytes.bytes)
    }

    private static func put(_ split: SourceSplit, _ bytes: inout RecordWriter) {
        bytes.put(split.name)
        bytes.put(split.topic)
        bytes.put(split.partition)
    }

    private static func split(_ bytes: inout RecordReader) throws(RecordDamage) -> SourceSplit {
        SourceSplit(name: try bytes.getText(), topic: try bytes.getText(), partition: try bytes.get(Int32.self))
    }

    /// Takes back what a checkpoint has.
    /// - Throws: XX001 for a damaged note.
    package func restore(_ notes: [StateNote]) throws(SQLError) {
        for note in notes where note.kind == Self.noteKind {
            do throws(RecordDamage) {
                let state = try Self.rejects(note)
                sources.withLock { $0[note.object] = state }
            } catch { throw SQLError(.dataCorrupted, "the stored rejects of source \(note.object) are damaged") }
        }
    }

    private static func rejects(_ note: StateNote) throws(RecordDamage) -> SourceRejects {
        var state = SourceRejects()
        var bytes = RecordReader(note.bytes[...])
        state.droppedCount = Int(try bytes.get(Int64.self))
        let known = try bytes.getList { (bytes) throws(RecordDamage) in (try split(&bytes), SplitOffset(try bytes.get(Int64.self))) }
        state.knownUpTo = Dictionary(known, uniquingKeysWith: { max($0, $1) })
        state.entries = try bytes.getList { (bytes) throws(RecordDamage) in
            let split = try split(&bytes)
            let rejectedAt = try bytes.get(Int64.self)
            let position = try bytes.get(Int64.self)
            let hasColumn = try bytes.get(UInt8.self) == 1
            let column = try bytes.getText()
            let reject = Reject(position: position, column: hasColumn ? column : nil, raw: try bytes.getBytes(), reason: try bytes.getText())
            return Entry(split: split, reject: reject, rejectedAtMicros: rejectedAt)
        }
        state.byteCount = state.entries.reduce(0) { $0 + $1.reject.raw.count + 128 }
        return state
    }
}
