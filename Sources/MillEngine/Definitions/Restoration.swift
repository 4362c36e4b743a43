import MillBase
import MillConnectorKit
import Synchronization

/// What was stored and is not yet what it was before the restart.
struct Restoration {
    /// What needs state waits here while it comes back; open for an engine that had nothing before.
    var gate = RecoveryGate(isOpen: true)
    /// Origins of sources that could not be made yet.
    var sources: [ObjectID: [SourceSplit: SplitOffset]] = [:]
    /// Tables and materialized views that do not run yet, and may once what they wait for is there.
    var jobs: Set<ObjectID> = []
    /// Tables that do not run in this process, with the last transaction that their stored rows have. They stay on the disk as they are.
    var held: [ObjectID: DMLPosition] = [:]
    /// Jobs that go on from the checkpoint when they are attached.
    var resumable: Set<ObjectID> = []
    /// Why an object does not run, or does not get on; by source, table or view. One that is in neither set above stays as it is until it is
    /// rebuilt or dropped.
    var reasons: [ObjectID: SQLError] = [:]
    /// Views that cannot be read until they have what their sources held when they were attached.
    var recovering: [ObjectID: Recovery] = [:]
    /// When the process took up what an earlier one left, in microseconds since 1970.
    let startedMicros: Int64
    /// When what is pending is tried again, in microseconds since 1970.
    var retryMicros: Int64?
    /// When a source is asked for its ends again.
    var nextTryMicros: [ObjectID: Int64] = [:]
    /// Tries again what is pending.
    var retry: Task<Void, Never>?
    /// Asks a source for its ends until it answers; nil when the source is gone or the engine stops.
    var ends: [ObjectID: Task<[SourceSplit: SplitOffset]?, Never>] = [:]

    init(startedMicros: Int64) { self.startedMicros = startedMicros }

    var isPending: Bool { !sources.isEmpty || !jobs.isEmpty }

    mutating func forget(_ id: ObjectID) {
        sources[id] = nil
        jobs.remove(id)
        held[id] = nil
        resumable.remove(id)
        reasons[id] = nil
        recovering.removeValue(forKey: id)?.settle()
        nextTryMicros[id] = nil
        ends.removeValue(forKey: id)?.cancel()
    }

    mutating func cancel() {
        retry?.cancel()
        for task in ends.values { task.cancel() }
    }
}

/// Whether a statement that reads a restored view may still expect it to become readable by waiting.
final class Recovery: Sendable {
    private let settled = Atomic<Bool>(false)

    /// It can be read or is gone, or something that lasts is in its way.
    var isSettled: Bool { settled.load(ordering: .acquiring) }
    func settle(_ isSettled: Bool = true) { settled.store(isSettled, ordering: .releasing) }
}
