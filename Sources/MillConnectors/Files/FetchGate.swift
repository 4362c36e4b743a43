import MillBase
import MillIO
import Synchronization

/// Runs what waits for a store, so many at once, on threads of its own. Safe from any thread.
final class FetchGate: Sendable {
    /// What is to be done; with an error when no thread could be started, and nothing can be.
    typealias Body = @Sendable (SQLError?) -> Void

    private static let threadsMax = 8
    private struct State {
        var threadCount = 0
        var waiting: [Body] = []
    }
    private let state = Mutex(State())

    func run(_ body: @escaping Body) {
        let mayStart = state.withLock { state in
            guard state.threadCount < Self.threadsMax else {
                state.waiting.append(body)
                return false
            }
            state.threadCount += 1
            return true
        }
        guard mayStart else { return }
        do throws(ThreadFailure) {
            _ = try PinnedThread(stackBytes: 1 << 20) { [self] in
                body(nil)
                while let next = nextBody() { next(nil) }
            }
        } catch {
            state.withLock { $0.threadCount -= 1 }
            body(error.sqlError)
        }
    }

    private func nextBody() -> Body? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.threadCount -= 1
                return nil
            }
            return state.waiting.removeFirst()
        }
    }
}

/// The bytes of a far file from a position on, fetched before they are asked for: one block is read while the next one comes.
///
/// Read by one thread.
final class ReadAhead: Sendable {
    private struct State {
        var blocks: [ArraySlice<UInt8>] = []
        var fetchPosition: Int
        var isFetching = false
        var failure: SQLError?
        var isClosed = false
    }

    private static let blockBytes = 4 << 20
    private static let blocksMax = 2
    private let file: any File
    private let end: Int
    private let gate: FetchGate
    private let onData: @Sendable () -> Void
    private let state: Mutex<State>

    /// - Parameter onData: called when a read that found nothing would now find something.
    init(_ file: any File, from position: Int, to end: Int, gate: FetchGate, onData: @escaping @Sendable () -> Void) {
        self.file = file
        self.end = end
        self.gate = gate
        self.onData = onData
        state = Mutex(State(fetchPosition: position))
        fetch()
    }

    /// The next bytes, as many as are there and fit; 0 when none are there yet.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SQLError) -> Int {
        let (count, failure) = state.withLock { state -> (Int, SQLError?) in
            guard let block = state.blocks.first else { return (0, state.failure) }
            let count = min(block.count, buffer.count)
            buffer.copyBytes(from: block.prefix(count))
            if count == block.count { state.blocks.removeFirst() } else { state.blocks[0] = block.dropFirst(count) }
            return (count, nil)
        }
        if let failure { throw failure }
        fetch()
        return count
    }

    func close() {
        state.withLock { state in
            state.isClosed = true
            state.blocks = []
        }
    }

    private func fetch() {
        let position = state.withLock { state -> Int? in
            guard !state.isFetching, !state.isClosed, state.failure == nil, state.blocks.count < Self.blocksMax, state.fetchPosition < end
            else {
                return nil
            }
            state.isFetching = true
            return state.fetchPosition
        }
        guard let position else { return }
        gate.run { [self] failure in
            finish(failure.map { .failure($0) } ?? block(at: position))
            onData()
        }
    }

    private func block(at position: Int) -> Result<[UInt8], SQLError> {
        var bytes = [UInt8](repeating: 0, count: min(Self.blockBytes, end - position))
        do throws(IOFailure) {
            let count = try bytes.withUnsafeMutableBufferPointer { (bytes) throws(IOFailure) in
                try file.read(at: position, into: UnsafeMutableRawBufferPointer(bytes))
            }
            guard count == bytes.count else {
                return .failure(
                    SQLError(.objectNotInPrerequisiteState, "file \"\(file.path)\" was cut to less than \(end) bytes while it was read"))
            }
            return .success(bytes)
        } catch { return .failure(error.sqlError) }
    }

    private func finish(_ result: Result<[UInt8], SQLError>) {
        state.withLock { state in
            state.isFetching = false
            guard !state.isClosed else { return }
            switch result {
            case .success(let bytes):
                state.blocks.append(bytes[...])
                state.fetchPosition += bytes.count
            case .failure(let error): state.failure = error
            }
        }
        // A place is free while the first block is read.
        if case .success = result { fetch() }
    }
}
