import CMemory
import Synchronization

/// What filling blocks took lately, by which of a thread's own was given. Which is faster tells whether processors lie near to each other or far
/// apart, so all pools share it, and memory of batches follows it. Safe from any thread.
final class FillTimes: Sendable {
    /// Which one a thread is given of those that it wrote before.
    enum Reuse { case newest, oldest }

    static let ofProcess = FillTimes(changed: mill_batch_caches_are_far)

    private struct State {
        /// Nanoseconds a byte, 0 before the first time.
        var newest = 0.0
        var oldest = 0.0
        var isOldestFaster = false
        /// How often the one that was faster has been noted since the other was.
        var notedCount = 0
        /// Blocks given since any was noted.
        var silentCount = 0

        var used: Reuse { isOldestFaster ? .oldest : .newest }
        var other: Reuse { isOldestFaster ? .newest : .oldest }
    }

    /// So often the one that was faster is used before the other is tried.
    private static let useMax = 31
    /// When so many have been given and nobody has said how long they took, nothing is known any more.
    private static let silentMax = 1024

    private let state = Mutex(State())
    private let changed: @Sendable (_ isOldestFaster: Bool) -> Void

    init(changed: @escaping @Sendable (_ isOldestFaster: Bool) -> Void) { self.changed = changed }

    /// What was faster; the other now and then, to see whether that has changed.
    func next() -> Reuse {
        state.withLock { state in
            state.silentCount += 1
            if state.silentCount > Self.silentMax {
                if state.isOldestFaster { changed(false) }
                state = State()
            }
            return state.notedCount < Self.useMax ? state.used : state.other
        }
    }

    func note(_ reuse: Reuse, nanosPerByte: Double) {
        state.withLock { state in
            let isUsed = reuse == state.used
            func mean(_ before: Double) -> Double {
                if before == 0 { return nanosPerByte }
                // What is tried seldom follows at once when it has become faster.
                if nanosPerByte < before, !isUsed { return (before + nanosPerByte) / 2 }
                // Of a thread that lost its processor meanwhile, not all is the memory's.
                return before + (min(nanosPerByte, 3 * before) - before) / 8
            }
            switch reuse {
            case .newest: state.newest = mean(state.newest)
            case .oldest: state.oldest = mean(state.oldest)
            }
            state.silentCount = 0
            state.notedCount = isUsed ? state.notedCount + 1 : 0
            let isOldestFaster = state.oldest > 0 && state.oldest < state.newest * (state.isOldestFaster ? 1 : 0.8)
            guard isOldestFaster != state.isOldestFaster else { return }
            state.isOldestFaster = isOldestFaster
            changed(isOldestFaster)
        }
    }
}
