import MillBase
import MillConnectorKit
import Synchronization

/// How far a source's partitions are known to reach: a topic that is deleted and made anew mostly reaches less far at first, and must
/// not be taken for the one that the source began with.
final class KnownEnds: Sendable {
    private let ends = Mutex<[SourceSplit: SplitOffset]>([:])

    /// - Throws: 55000 when the partition reached further before.
    func note(_ end: SplitOffset, of split: SourceSplit) throws(SQLError) {
        let known = ends.withLock { ends in
            let known = ends[split] ?? end
            ends[split] = max(known, end)
            return known
        }
        guard end >= known else {
            throw SQLError(
                .objectNotInPrerequisiteState, "\"\(split.name)\" ends at offset \(end.position), but had reached \(known.position)",
                detail: "Its last records are gone, or the topic was deleted and made anew.", hint: "Drop the source and create it again.")
        }
    }
}
