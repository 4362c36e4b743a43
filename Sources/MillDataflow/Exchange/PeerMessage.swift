package import MillBase
package import MillColumnar
package import MillConnectorKit
package import MillPlan

/// What one worker sends another. Messages between two workers arrive in the order they were sent.
package enum PeerMessage: Sendable {
    /// Rows of an exchange that belong to the receiver.
    case batch(ExchangeID, DeltaBatch)
    /// The sender has no more rows for this exchange in this epoch.
    case barrier(ExchangeID)
    /// The sender reads no more in this epoch, and decodes what others have read.
    case hasRead(WorkerIndex)
    /// Records that the sender has read, for the receiver to decode, who has read its own.
    case chunk(LentChunk)
    /// The receiver's records have been decoded, and their rows are on their way.
    case decoded(LentChunk.Outcome)

    /// Whether it keeps the receiver busy.
    var isWork: Bool {
        switch self {
        case .batch, .chunk: true
        case .barrier, .hasRead, .decoded: false
        }
    }
}

/// Records of a split that another worker decodes than the one that reads it.
package struct LentChunk: Sendable {
    var source: ObjectID
    var split: SourceSplit
    var records: RawChunk
    var reader: WorkerIndex

    /// What the reader of the split has to know of them.
    package struct Outcome: Sendable {
        var source: ObjectID
        var split: SourceSplit
        /// Where they end, by which the reader knows them.
        var end: SplitOffset
        var rejects: SplitRejects?
        /// Of the watermark expression; nil when nobody asks or it has no value.
        var greatest: Int64?
    }
}

/// An exchange of a job: the plan node that it was rendered from.
package struct ExchangeID: Hashable, Sendable {
    package var job: ObjectID
    package var node: NodeIndex

    package init(job: ObjectID, node: NodeIndex) {
        self.job = job
        self.node = node
    }
}
