import MillBase
import Synchronization

/// Mutual exclusion across awaits, first come, first served.
final class AsyncLock: Sendable {
    private struct State {
        var isHeld = false
        var waiters: [Waiter] = []
        var lastNumber: UInt64 = 0
    }

    private struct Waiter {
        var number: UInt64
        /// Told whether it got the lock.
        var continuation: CheckedContinuation<Bool, Never>
    }

    private let state = Mutex(State())

    func lock() async {
        _ = await isHeld(unless: nil)
    }

    /// - Throws: 57014 when it is cancelled before its turn.
    func lock(unless cancellation: CancellationHook) async throws(SQLError) {
        guard await isHeld(unless: cancellation) else { throw (cancellation.reason ?? .userRequest).error }
    }

    /// Waits for its turn; false when it was cancelled before.
    private func isHeld(unless cancellation: CancellationHook?) async -> Bool {
        await withCheckedContinuation { continuation in
            let number: UInt64? = state.withLock { state in
                guard state.isHeld else {
                    state.isHeld = true
                    return nil
                }
                state.lastNumber += 1
                state.waiters.append(Waiter(number: state.lastNumber, continuation: continuation))
                return state.lastNumber
            }
            if let number { cancellation?.onCancel { [self] _ in giveUp(number) } } else { continuation.resume(returning: true) }
        }
    }

    private func giveUp(_ number: UInt64) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
        }
        waiter?.continuation.resume(returning: false)
    }

    func unlock() {
        let next: Waiter? = state.withLock { state in
            if state.waiters.isEmpty {
                state.isHeld = false
                return nil
            }
            return state.waiters.removeFirst()
        }
        next?.continuation.resume(returning: true)
    }
}
