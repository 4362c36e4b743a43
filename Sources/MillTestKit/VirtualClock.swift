package import MillIO
import Synchronization

/// Time that stands still until a test moves it.
package final class VirtualClock: Clock {
    private struct State {
        var nanos: UInt64 = 1_000_000_000
        var lastSleeper = 0
        /// Who sleeps, until when.
        var sleepers: [Int: (deadline: UInt64, continuation: CheckedContinuation<Void, any Error>)] = [:]
        /// Who waits for the next sleeper.
        var watchers: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    package init() {}

    package var nowMicros: Int64 { 1_700_000_000_000_000 + Int64(clamping: monotonicNanos / 1000) }
    package var monotonicNanos: UInt64 { state.withLock { $0.nanos } }

    package func sleep(for duration: Duration) async throws {
        let id = state.withLock { state in
            state.lastSleeper += 1
            return state.lastSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let watchers = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                    // The handler below may have run before there was anything to resume.
                    guard !Task.isCancelled else {
                        continuation.resume(throwing: CancellationError())
                        return []
                    }
                    state.sleepers[id] = (state.nanos + UInt64(duration / .nanoseconds(1)), continuation)
                    defer { state.watchers = [] }
                    return state.watchers
                }
                for watcher in watchers { watcher.resume() }
            }
        } onCancel: {
            state.withLock { $0.sleepers.removeValue(forKey: id) }?.continuation.resume(throwing: CancellationError())
        }
    }

    /// The thread that would block moves the time itself.
    package func pause(for duration: Duration) { advance(by: duration) }

    /// Returns when somebody sleeps.
    package func untilSleeping() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isSleeping = state.withLock { state in
                if state.sleepers.isEmpty { state.watchers.append(continuation) }
                return !state.sleepers.isEmpty
            }
            if isSleeping { continuation.resume() }
        }
    }

    /// Wakes everybody whose time has come.
    package func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.nanos += UInt64(duration / .nanoseconds(1))
            let now = state.nanos
            let due = state.sleepers.filter { $0.value.deadline <= now }
            for id in due.keys { state.sleepers[id] = nil }
            return due.values.map(\.continuation)
        }
        for continuation in due { continuation.resume() }
    }
}
