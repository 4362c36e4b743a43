package import MillConnectorKit

/// What was rejected in a stretch of a split, by whichever reader decoded it: every reader of a source begins at its origin and
/// leaves nothing out, and what is rejected depends on the records alone.
package struct SplitRejects: Sendable {
    package var split: SourceSplit
    package var entries: [Reject]
    /// Where the stretch ends: all that was rejected before is known.
    package var end: SplitOffset

    package init(split: SourceSplit, entries: [Reject], end: SplitOffset) {
        self.split = split
        self.entries = entries
        self.end = end
    }

    /// nil when all of the chunk was accepted.
    package init?(_ decoded: DecodedChunk, of chunk: RawChunk, in split: SourceSplit) {
        guard !decoded.rejects.isEmpty else { return nil }
        self.init(split: split, entries: decoded.rejects, end: chunk.nextOffset)
    }
}
