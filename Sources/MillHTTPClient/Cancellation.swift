import Synchronization

/// Says to whoever blocks for its holder that nobody wants the answer any more.
///
/// Threading: any thread; once cancelled it stays so.
package final class Cancellation: Sendable {
    private let flag = Atomic(false)

    package init() {}

    package func cancel() { flag.store(true, ordering: .releasing) }
    package var isCancelled: Bool { flag.load(ordering: .acquiring) }
}
