import MillIO
import Synchronization

/// What the log does by itself as time passes.
extension Log {
    /// Lets time pass: ends transactions that nobody ends, and from time to time has old and superseded records taken away. Called about
    /// once a second; returns at once, the work is done on the flusher's threads.
    package func tick() {
        transactions.expire()
        if maintenance.isDue(self) { flusher.schedule(maintenance) }
    }

    /// Rolls, deletes and compacts what the topics' settings say; blocks until that is done. A partition that fails goes on as it was, and
    /// is tried again.
    package func maintain() {
        for topic in allTopics {
            for partition in topic.partitions {
                guard !maintenance.isStopped else { return }
                do throws(LogError) { try partition.maintain { maintenance.isStopped } } catch {
                    maintenance.note(MaintenanceFailure(topic: topic.name, partition: partition.index, error: error))
                }
            }
        }
    }

    /// What failed since this was asked last; for the server's log.
    package func takeMaintenanceFailures() -> [MaintenanceFailure] { maintenance.takeFailures() }
}

package struct MaintenanceFailure: Sendable, Hashable {
    package var topic: String
    package var partition: Int32
    package var error: LogError
}

/// When maintenance comes next, and whether the log still wants it.
final class Maintenance: Flushable {
    private struct State {
        weak var log: Log?
        var isStopped = false
        var nextNanos: UInt64 = 0
        var failures: [MaintenanceFailure] = []
    }

    private static let intervalNanos: UInt64 = 5_000_000_000
    private static let failuresMax = 100
    private let state = Mutex(State())

    var isStopped: Bool { state.withLock { $0.isStopped } }

    func isDue(_ log: Log) -> Bool {
        let now = log.environment.clock.monotonicNanos
        return state.withLock { state in
            guard !state.isStopped, now >= state.nextNanos else { return false }
            state.log = log
            state.nextNanos = now + Self.intervalNanos
            return true
        }
    }

    func flush() { state.withLock { $0.log }?.maintain() }

    func stop() { state.withLock { $0.isStopped = true } }

    func note(_ failure: MaintenanceFailure) {
        state.withLock { if $0.failures.count < Self.failuresMax { $0.failures.append(failure) } }
    }

    func takeFailures() -> [MaintenanceFailure] {
        state.withLock { state in
            defer { state.failures = [] }
            return state.failures
        }
    }
}
