package import MillBase
package import MillConnectorKit
package import MillDataflow
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

    private struct SourceRejects {
        var entries: [Entry] = []
        var byteCount = 0
        var knownUpTo: [SourceSplit: SplitOffset] = [:]
        var droppedCount = 0
    }

    private let sources = Mutex<[ObjectID: SourceRejects]>([:])
    private let bytesMaxPerSource: Int

    package init(bytesMaxPerSource: Int) { self.bytesMaxPerSource = bytesMaxPerSource }

    package func add(_ rejects: SplitRejects, source: ObjectID, nowMicros: Int64) {
        sources.withLock { sources in
            var state = sources[source] ?? SourceRejects()
            let known = state.knownUpTo[rejects.split] ?? SplitOffset(0)
            for reject in rejects.entries where reject.position >= known.position {
                state.entries.append(Entry(split: rejects.split, reject: reject, rejectedAtMicros: nowMicros))
                state.byteCount += reject.raw.count + 128
            }
            state.knownUpTo[rejects.split] = max(known, rejects.end)
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

    package func remove(_ source: ObjectID) { sources.withLock { $0[source] = nil } }
}
