import MillBase
import MillConnectorKit
import MillIO
import MillStore
import Synchronization

/// A sink of the catalog, as it runs.
final class Sink: Sendable {
    let id: ObjectID
    let isUpsert: Bool
    let takesRows: Bool
    let outbox: Outbox
    let refused: RefusedRowLog
    let delivery: SinkDelivery

    init(id: ObjectID, isUpsert: Bool, takesRows: Bool, outbox: Outbox, refused: RefusedRowLog, delivery: SinkDelivery) {
        (self.id, self.isUpsert, self.takesRows) = (id, isUpsert, takesRows)
        (self.outbox, self.refused, self.delivery) = (outbox, refused, delivery)
    }
}

/// All outboxes, for checkpoints: what is not sealed with one stays as the one before has it.
final class OutboxShelf: Sendable {
    private let outboxes = Mutex<[ObjectID: Outbox]>([:])

    func put(_ outbox: Outbox) { outboxes.withLock { $0[outbox.id] = outbox } }
    func remove(_ id: ObjectID) { outboxes.withLock { $0[id] = nil } }

    /// - Parameter sealed: those that the checkpoint has as of its own epoch.
    func notes(besides sealed: Set<ObjectID>) -> [StateNote] {
        outboxes.withLock { $0.values.filter { !sealed.contains($0.id) }.sorted { $0.id < $1.id }.map(\.note) }
    }
}
