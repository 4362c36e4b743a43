package import MillBase
package import MillStore

extension Conductor {
    /// All stored state as of one epoch.
    package struct Seal: Sendable {
        package var record: EpochRecord
        package var tables: [SealedTable]
        package var notes: [StateNote]
        /// Of the sinks among the jobs whose tables are there.
        package var outboxes: [Outbox.Sealed]
    }

    /// What one worker gives for a checkpoint.
    struct SealPart: Sendable {
        var jobs: Set<ObjectID>
        var tables: [SealedTable]
        var errors: [ObjectID: OperatorErrors.Kept]
        var late: [ObjectID: LateRows.Kept]
        var plans: [StateNote]
        var outboxes: [Outbox]
    }
}
