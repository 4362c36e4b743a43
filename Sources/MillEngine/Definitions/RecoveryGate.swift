import MillBase
import Synchronization

/// Closed while the state of an earlier process comes back: statements that need views, tables or sources wait here, and definitions do.
///
/// Threading: any thread; waiting costs none.
final class RecoveryGate: Sendable {
    private enum State {
        case closed(RecoveryStatus.Phase)
        case open
        case failed(SQLError)
    }

    private struct Waiters {
        var state: State
        var continuations: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastNumber: UInt64 = 0
    }

    private let waiters: Mutex<Waiters>

    init(isOpen: Bool) { waiters = Mutex(Waiters(state: isOpen ? .open : .closed(.finding))) }

    var isOpen: Bool { waiters.withLock { if case .open = $0.state { true } else { false } } }

    /// How far it is; nil once it is open or has failed.
    var phase: RecoveryStatus.Phase? { waiters.withLock { if case .closed(let phase) = $0.state { phase } else { nil } } }

    /// Why it will not open any more.
    var failure: SQLError? { waiters.withLock { if case .failed(let error) = $0.state { error } else { nil } } }

    func enter(_ phase: RecoveryStatus.Phase) {
        waiters.withLock { if case .closed = $0.state { $0.state = .closed(phase) } }
    }

    func open() { settle(.open) }

    /// Who waits, and who comes later, gets the error. The first one stays.
    func fail(_ error: SQLError) { settle(.failed(error)) }

    private func settle(_ state: State) {
        let waiting: [CheckedContinuation<Void, Never>] = waiters.withLock { waiters in
            guard case .closed = waiters.state else { return [] }
            waiters.state = state
            defer { waiters.continuations = [:] }
            return Array(waiters.continuations.values)
        }
        for continuation in waiting { continuation.resume() }
    }

    /// - Throws: 57014 when it is cancelled before the gate opens, and why it never will.
    func pass(unless cancellation: CancellationHook) async throws(SQLError) {
        await withCheckedContinuation { continuation in
            let number: UInt64? = waiters.withLock { waiters in
                guard case .closed = waiters.state else { return nil }
                waiters.lastNumber += 1
                waiters.continuations[waiters.lastNumber] = continuation
                return waiters.lastNumber
            }
            if let number { cancellation.onCancel { [self] _ in giveUp(number) } } else { continuation.resume() }
        }
        if let failure { throw failure }
        if !isOpen { throw (cancellation.reason ?? .userRequest).error }
    }

    private func giveUp(_ number: UInt64) {
        waiters.withLock { $0.continuations.removeValue(forKey: number) }?.resume()
    }
}
