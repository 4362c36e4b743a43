import Synchronization

/// Lets a session's cancel reach a statement that waits for something else than rows.
///
/// The statement registers how to be woken, and looks at `isCancelled` when it is.
package final class CancellationHook: Sendable {
    private struct State {
        var isCancelled = false
        var wakeUps: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// `wakeUp` runs at `cancel`, at once if that was before; it must not block.
    package func onCancel(_ wakeUp: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            if !state.isCancelled { state.wakeUps.append(wakeUp) }
            return state.isCancelled
        }
        if isLate { wakeUp() }
    }

    /// The statement is past the point where a cancel could change it: what it registered is not called any more.
    /// - Returns: whether a cancel came before.
    package func settle() -> Bool {
        state.withLock { state in
            state.wakeUps = []
            return state.isCancelled
        }
    }

    package func cancel() {
        let wakeUps = state.withLock { state in
            state.isCancelled = true
            defer { state.wakeUps = [] }
            return state.wakeUps
        }
        for wakeUp in wakeUps { wakeUp() }
    }
}
