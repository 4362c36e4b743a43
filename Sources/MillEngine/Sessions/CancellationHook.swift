package import MillBase
import Synchronization

/// Why a statement is stopped before its end.
package enum CancellationReason: Hashable, Sendable {
    case userRequest
    case statementTimeout

    package var error: SQLError {
        switch self {
        case .userRequest: SQLError(.queryCanceled, "canceling statement due to user request")
        case .statementTimeout: SQLError(.queryCanceled, "canceling statement due to statement timeout")
        }
    }
}

/// Lets a session's cancel reach a statement that waits for something else than rows.
///
/// The statement registers how to be woken, and looks at `reason` when it is.
package final class CancellationHook: Sendable {
    private struct State {
        var reason: CancellationReason?
        var wakeUps: [@Sendable (CancellationReason) -> Void] = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Nil until it is cancelled; the first reason stays.
    package var reason: CancellationReason? { state.withLock { $0.reason } }

    /// `wakeUp` runs at `cancel`, at once if that was before; it must not block.
    package func onCancel(_ wakeUp: @escaping @Sendable (CancellationReason) -> Void) {
        let late = state.withLock { state in
            if state.reason == nil { state.wakeUps.append(wakeUp) }
            return state.reason
        }
        if let late { wakeUp(late) }
    }

    /// The statement is past the point where a cancel could change it: what it registered is not called any more.
    /// - Returns: why it was cancelled, if a cancel came before.
    package func settle() -> CancellationReason? {
        state.withLock { state in
            state.wakeUps = []
            return state.reason
        }
    }

    package func cancel(_ reason: CancellationReason = .userRequest) {
        let (first, wakeUps) = state.withLock { state in
            let first = state.reason ?? reason
            state.reason = first
            defer { state.wakeUps = [] }
            return (first, state.wakeUps)
        }
        for wakeUp in wakeUps { wakeUp(first) }
    }
}
