package import MillBase
package import MillConnectorKit
package import MillStore

/// What an epoch was made of: enough to run it again.
package struct EpochRecord: Sendable {
    package var epoch: Epoch
    /// Wall time at the opening, microseconds since 1970: what `now()` means in this epoch.
    package var openedAtMicros: Int64
    /// Where every source stands after it.
    package var offsets: [ObjectID: [SourceSplit: SplitOffset]]
    /// The ends of the splits as the readers last heard of them.
    package var highWatermarks: [ObjectID: [SourceSplit: SplitOffset]]
    /// The last transaction whose changes of tables are part of it.
    package var dmlPosition: DMLPosition
    package var sourceFailures: [ObjectID: SQLError]
    /// Why single jobs get nothing more of a source that others read on.
    package var jobFailures: [ObjectID: SQLError]
    /// Sources that may give more records; empty when every input is bounded and read.
    package var unfinishedSources: Set<ObjectID>
    /// Jobs that are not yet visible.
    package var catchingUp: Set<ObjectID>
    /// Sources and tables of which epochs of an earlier process are being run again: what closes by their watermarks is not where it was.
    package var rerunning: Set<ObjectID> = []
    /// What each job closed by in it on each source, and closes by in the next one; without those that are run again.
    package var watermarks: [WatermarkKey: WatermarkStep] = [:]
    /// Input was left when the budget was spent.
    package var hasMore: Bool
    package var durationNanos: UInt64

    /// Whether the next epoch closes more than this one, even if nothing comes.
    package var hasOpenWatermarks: Bool { watermarks.values.contains { $0.passed != $0.now } }

    /// Whether every source named has been read up to `ends`, or is bounded and read whole.
    package func hasReached(_ ends: [ObjectID: [SourceSplit: SplitOffset]]) -> Bool {
        ends.allSatisfy { source, splits in
            !unfinishedSources.contains(source) || splits.allSatisfy { split, end in (offsets[source]?[split] ?? SplitOffset(0)) >= end }
        }
    }

    package static let none = EpochRecord(
        epoch: .zero, openedAtMicros: 0, offsets: [:], highWatermarks: [:], dmlPosition: .zero, sourceFailures: [:], jobFailures: [:],
        unfinishedSources: [], catchingUp: [], watermarks: [:], hasMore: false, durationNanos: 0)
}
