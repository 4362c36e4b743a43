import MillIO
import Synchronization

/// What goes wrong with a disk: operations that fail for a while, or all of them from some point on, which is where a process or a
/// machine ends.
final class Faults: Sendable {
    struct Passing: Sendable {
        var operation: MemoryFileSystem.Operation
        var path: String
        var errorNumber: Int32
        var times: Int
    }

    private struct State {
        /// Operations until the end; nil: none comes.
        var left: Int?
        var passing: Passing?
    }

    private let state = Mutex(State())

    init(_ files: MemoryFileSystem) { files.setFault { [self] in decide($0, $1) } }

    private func decide(_ operation: MemoryFileSystem.Operation, _ path: String) -> Int32? {
        state.withLock { state in
            if let left = state.left {
                guard left > 0 else { return 5 }
                state.left = left - 1
            }
            guard let passing = state.passing, passing.times > 0, passing.operation == operation, path.contains(passing.path) else { return nil }
            state.passing?.times -= 1
            return passing.errorNumber
        }
    }

    /// Everything fails after so many operations.
    func end(after operations: Int) { state.withLock { $0.left = operations } }
    func pass(_ passing: Passing?) { state.withLock { $0.passing = passing } }
    func clear() { state.withLock { $0 = State() } }
    var isAtEnd: Bool { state.withLock { $0.left == 0 } }
}
