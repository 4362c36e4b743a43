import MillBase
import Synchronization

/// Lets whoever else ends the statement that a session runs, at any moment of it.
///
/// What blocks for a statement registers how to be woken; a cancel wakes all of it, and what registers later is woken at once.
/// Threading: any thread.
package final class StatementCancellation: Sendable {
    private struct State {
        var isCancelled = false
        var wakers: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var isCancelled: Bool { state.withLock { $0.isCancelled } }

    package func cancel() {
        let wakers = state.withLock { state in
            state.isCancelled = true
            defer { state.wakers = [] }
            return state.wakers
        }
        for wake in wakers { wake() }
    }

    func onCancel(_ wake: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            if !state.isCancelled { state.wakers.append(wake) }
            return state.isCancelled
        }
        if isLate { wake() }
    }

    /// - Throws: 57014 after a cancel.
    func check() throws(SQLError) {
        if isCancelled { throw SQLError(.queryCanceled, "canceling statement due to user request") }
    }
}
