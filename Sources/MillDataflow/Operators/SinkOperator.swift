package import MillBase
package import MillColumnar
package import MillState
package import MillStore

/// The root of a sink: puts what an epoch changed into the outbox, rows that are taken back apart from those that are added.
///
/// Rows of an append-only input go there as they come. Others wait for the end of the epoch and are consolidated: equal rows are on one
/// worker, so of each row there is at most one weight. What waits is bounded by what an epoch changes.
package final class SinkOperator: Operator {
    private let outbox: Outbox
    private let isAppendOnly: Bool
    private let dropsRetractions: Bool
    private var epoch = Epoch.zero
    private var openedAtMicros: Int64 = 0
    private var waiting: [DeltaBatch] = []
    /// Always empty: by its tables a checkpoint knows that it holds a job.
    private let table = StateTable(columns: [.int64], payloadBytes: 8, equality: .representation)

    package init(_ outbox: Outbox, isAppendOnly: Bool, dropsRetractions: Bool) {
        self.outbox = outbox
        self.isAppendOnly = isAppendOnly
        self.dropsRetractions = dropsRetractions
    }

    package func openEpoch(_ epoch: Epoch, atMicros: Int64) {
        self.epoch = epoch
        openedAtMicros = atMicros
        // Of an epoch whose job was abandoned.
        waiting.removeAll(keepingCapacity: true)
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        if isAppendOnly { put(batch, .added) } else { waiting.append(batch) }
    }

    private func put(_ batch: DeltaBatch, _ kind: OutboxFrame.Kind) {
        batch.forEachPart { outbox.append($0, kind, epoch: epoch, openedAtMicros: openedAtMicros) }
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? { nil }

    package func closeEpoch(errors: OperatorErrors) {
        guard !waiting.isEmpty else { return }
        let changes = Consolidate.consolidate(waiting)
        waiting.removeAll(keepingCapacity: true)
        if !dropsRetractions { for batch in changes { put(batch, isBack: true) } }
        for batch in changes { put(batch, isBack: false) }
    }

    private func put(_ batch: DeltaBatch, isBack: Bool) {
        guard let weights = batch.weights else {
            if !isBack { put(batch, .added) }
            return
        }
        var part = Selection(capacity: batch.count)
        for row in 0..<batch.count where (weights.values[row] < 0) == isBack && weights.values[row] != 0 {
            part.append(row)
        }
        guard part.count > 0 else { return }
        put(part.count == batch.count ? batch : batch.gather(part.rows, count: part.count), isBack ? .takenBack : .added)
    }

    package var tables: [any DurableTable] { [table] }

    /// Nothing is kept, so nothing is shared out.
    package func adopt(from other: SinkOperator, _ share: StateShare) throws(StateCorruption) {}
}
