import MillBase
import Synchronization

/// One writer at a time for each table, first come, first served.
///
/// A transaction holds the locks it took until it gives all back. One that waits for a table whose writer waits, directly or through
/// others, for a table of its own would wait for ever: it gets 40P01 instead.
///
/// Threading: any thread.
final class WriteLocks: Sendable {
    private struct Waiter {
        var transaction: ObjectIdentifier
        /// Told whether it got the lock.
        var continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var holders: [ObjectID: ObjectIdentifier] = [:]
        var waiters: [ObjectID: [Waiter]] = [:]
        /// The table that a transaction waits for.
        var wanted: [ObjectIdentifier: ObjectID] = [:]

        /// Whether the holder of a table waits for one that `transaction` holds.
        func closesCircle(_ table: ObjectID, for transaction: ObjectIdentifier) -> Bool {
            var next: ObjectID? = table
            while let table = next, let holder = holders[table] {
                if holder == transaction { return true }
                next = wanted[holder]
            }
            return false
        }
    }

    private enum Answer {
        case held, waiting, deadlock
    }

    private let state = Mutex(State())

    /// Waits until a transaction holds a table's lock; at once when it does already.
    /// - Throws: 40P01; 57014 when it is cancelled before its turn.
    func lock(_ table: ObjectID, for transaction: OpenTransaction, unless cancellation: CancellationHook?) async throws(SQLError) {
        let id = ObjectIdentifier(transaction)
        var isDeadlock = false
        let isHeld: Bool = await withCheckedContinuation { continuation in
            let answer: Answer = state.withLock { state in
                guard let holder = state.holders[table] else {
                    state.holders[table] = id
                    return .held
                }
                if holder == id { return .held }
                if state.closesCircle(table, for: id) { return .deadlock }
                state.waiters[table, default: []].append(Waiter(transaction: id, continuation: continuation))
                state.wanted[id] = table
                return .waiting
            }
            switch answer {
            case .held: continuation.resume(returning: true)
            case .waiting: cancellation?.onCancel { [self] _ in giveUp(table, id) }
            case .deadlock:
                isDeadlock = true
                continuation.resume(returning: false)
            }
        }
        if isHeld { return }
        guard isDeadlock else { throw (cancellation?.reason ?? .userRequest).error }
        throw SQLError(
            .deadlockDetected, "deadlock detected", detail: "Each of several transactions waits for a table that another one writes to.",
            hint: "Run the transaction again, or write to tables in the same order everywhere.")
    }

    private func giveUp(_ table: ObjectID, _ transaction: ObjectIdentifier) {
        let waiter: Waiter? = state.withLock { state in
            guard let index = state.waiters[table]?.firstIndex(where: { $0.transaction == transaction }) else { return nil }
            state.wanted[transaction] = nil
            return state.waiters[table]?.remove(at: index)
        }
        waiter?.continuation.resume(returning: false)
    }

    /// Gives back all locks of a transaction, each to who waits the longest.
    func unlockAll(of transaction: OpenTransaction) {
        let id = ObjectIdentifier(transaction)
        let due: [Waiter] = state.withLock { state in
            var due: [Waiter] = []
            for table in state.holders.filter({ $0.value == id }).map(\.key) {
                guard let next = state.waiters[table]?.first else {
                    state.holders[table] = nil
                    state.waiters[table] = nil
                    continue
                }
                state.waiters[table]?.removeFirst()
                state.holders[table] = next.transaction
                state.wanted[next.transaction] = nil
                due.append(next)
            }
            return due
        }
        for waiter in due { waiter.continuation.resume(returning: true) }
    }
}
