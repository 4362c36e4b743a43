package import MillBase
package import MillColumnar
package import MillPlan

/// What one worker sends another. Messages between two workers arrive in the order they were sent.
package enum PeerMessage: Sendable {
    /// Rows of an exchange that belong to the receiver.
    case batch(ExchangeID, DeltaBatch)
    /// The sender has no more rows for this exchange in this epoch.
    case barrier(ExchangeID)

    var isBatch: Bool { if case .batch = self { true } else { false } }
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
