package import MillBase
package import MillColumnar
import MillDataflow
import MillIO
import Synchronization

/// Result batches from a query's thread to the session that reads them: bounded, so a slow client slows its own query and holds a
/// bounded number of batches. A brief query, which has run before it is read, has a channel without a bound.
///
/// The thread blocks when `capacity` batches wait; the reader awaits. Either side may end it: the thread by `finish`, the reader by
/// `cancel`, after which `send` says so and the thread stops.
package final class RowChannel: Sendable {
    private struct State {
        var batches: [DeltaBatch] = []
        var isFinished = false
        var failure: SQLError?
        var cancellation: CancellationReason?
        var reader: CheckedContinuation<DeltaBatch?, any Error>?
        var onCancel: (@Sendable () -> Void)?
        /// The thread waits for room.
        var senderWaits = false
    }

    private let state = Mutex(State())
    private let room = Semaphore()
    private let capacity: Int

    package init(capacity: Int = 16) { self.capacity = capacity }

    private enum Sent {
        case unwanted
        case stored
        case noRoom
        case to(CheckedContinuation<DeltaBatch?, any Error>)
    }

    /// Hands a batch over; false when nobody reads any more. Blocks the thread while the channel is full.
    func send(_ batch: DeltaBatch) -> Bool {
        while true {
            let sent: Sent = state.withLock { state in
                if state.cancellation != nil { return .unwanted }
                if let reader = state.reader {
                    state.reader = nil
                    return .to(reader)
                }
                guard state.batches.count < capacity else {
                    state.senderWaits = true
                    return .noRoom
                }
                state.batches.append(batch)
                return .stored
            }
            switch sent {
            case .unwanted: return false
            case .stored: return true
            case .noRoom: room.wait()
            // Which goes on when the lock is free again.
            case .to(let reader):
                reader.resume(returning: batch)
                return true
            }
        }
    }

    /// No more batches but `last`, for which there is always room; `failure` is thrown to the reader after the last one. Of several ends the
    /// first one counts.
    func finish(_ failure: SQLError? = nil, last: DeltaBatch? = nil) {
        let reader: CheckedContinuation<DeltaBatch?, any Error>? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.isFinished = true
            state.failure = failure
            defer { state.reader = nil }
            if state.reader == nil, state.cancellation == nil, let last { state.batches.append(last) }
            return state.reader
        }
        guard let reader else { return }
        if let last {
            reader.resume(returning: last)
        } else if let failure {
            reader.resume(throwing: failure)
        } else {
            reader.resume(returning: nil)
        }
    }

    /// Why nobody reads any more; nil while somebody does.
    var cancellation: CancellationReason? { state.withLock { $0.cancellation } }

    /// How to wake the thread when it waits for something else than room.
    func onCancel(_ wakeUp: @escaping @Sendable () -> Void) {
        let isLate = state.withLock { state in
            state.onCancel = wakeUp
            return state.cancellation != nil
        }
        if isLate { wakeUp() }
    }

    /// The next batch, nil at the end.
    package func next() async throws(SQLError) -> DeltaBatch? {
        do {
            return try await withCheckedThrowingContinuation { continuation in
                state.withLock { state in
                    if !state.batches.isEmpty {
                        continuation.resume(returning: state.batches.removeFirst())
                        if state.senderWaits {
                            state.senderWaits = false
                            room.signal()
                        }
                    } else if let failure = state.failure {
                        continuation.resume(throwing: failure)
                    } else if let reason = state.cancellation {
                        continuation.resume(throwing: reason.error)
                    } else if state.isFinished {
                        continuation.resume(returning: nil)
                    } else {
                        state.reader = continuation
                    }
                }
            }
        } catch {
            throw SQLError(any: error)
        }
    }

    /// Reads to the end and drops the rows.
    package func drain() async throws(SQLError) {
        while let _ = try await next() {}
    }

    /// Nobody will read on; a waiting reader gets 57014.
    package func cancel(_ reason: CancellationReason = .userRequest) {
        let wakeUp = state.withLock { state in
            state.cancellation = state.cancellation ?? reason
            state.batches.removeAll()
            state.reader?.resume(throwing: reason.error)
            state.reader = nil
            if state.senderWaits {
                state.senderWaits = false
                room.signal()
            }
            return state.onCancel
        }
        wakeUp?()
    }
}
