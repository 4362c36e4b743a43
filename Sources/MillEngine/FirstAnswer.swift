import MillBase
import Synchronization

/// Takes the first of several answers to one question; the others come to nothing.
final class FirstAnswer<T: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Result<T, SQLError>, Never>?>

    init(_ continuation: CheckedContinuation<Result<T, SQLError>, Never>) { self.continuation = Mutex(continuation) }

    func give(_ answer: Result<T, SQLError>) {
        let waiting = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: answer)
    }
}
