import MillIO
import MillKafkaWire
import Synchronization

/// What the coordinator of groups and transactions must remember: committed offsets and the state of every transactional producer.
/// All of it is in memory, as both are few; every change is an entry of one file, durable before it is acknowledged.
///
/// One file for both, so that a transaction's decision and the offsets it commits are one entry: they hold together or not at all.
///
/// Threading: any thread. A change is made and written under the lock and synced by the flusher, shared with whoever else waits.
final class CoordinatorLog: Flushable {
    typealias Completion = @Sendable (LogError?) -> Void

    private struct State {
        var content: CoordinatorState
        var file: any File
        var size: Int
        var waiters: [Completion] = []
        var failure: LogError?
    }

    private static let rewriteBytesMin = 1 << 20
    private let state: Mutex<State>
    private let directory: String
    private let files: any FileSystem
    private let flusher: LogFlusher

    init(directory: String, files: any FileSystem, flusher: LogFlusher) throws(LogError) {
        self.directory = directory
        self.files = files
        self.flusher = flusher
        do throws(IOFailure) {
            try files.createDirectory(directory)
            let file = try files.open(Self.path(directory), .readWrite)
            let (content, kept) = Self.replay(try file.readAll())
            if kept < (try file.size()) { try file.truncate(to: kept) }
            // A process may have ended between a write and its sync: from here on it is acted upon, and must not go with the machine.
            try file.sync()
            try files.syncDirectory(directory)
            state = Mutex(State(content: content, file: file, size: kept))
        } catch {
            throw .storage(error)
        }
    }

    private static func path(_ directory: String) -> String { directory + "/offsets.log" }

    func read<R>(_ body: (borrowing CoordinatorState) -> R) -> R { state.withLock { body($0.content) } }

    /// Whether a transactional batch for a partition belongs to a transaction that is under way there.
    func check(_ batch: RecordBatch, belongsTo place: PartitionPlace) throws(LogError) {
        let result: Result<Void, LogError> = state.withLock { state in
            do throws(LogError) { return .success(try state.content.check(batch, belongsTo: place)) } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Changes what is remembered by the entries that `body` gives. Its completion runs when they are durable, or at once when there are
    /// none, on any thread, and must not block.
    func update(_ body: (borrowing CoordinatorState) -> (entries: [CoordinatorEntry], completion: Completion)) {
        let (failure, completion): (LogError?, Completion?) = state.withLock { state in
            let (entries, completion) = body(state.content)
            if entries.isEmpty { return (nil, completion) }
            if let failure = state.failure { return (failure, completion) }
            let bytes = Self.encoded(entries)
            do throws(IOFailure) {
                try state.file.writeAll(bytes, at: state.size)
            } catch {
                // Part of it may be there. Where that cannot be cut off, what is in the file is unknown, so nothing more is promised.
                do throws(IOFailure) { try state.file.truncate(to: state.size) } catch { state.failure = .storage(error) }
                return (.storage(error), completion)
            }
            for entry in entries { state.content.apply(entry) }
            state.size += bytes.count
            state.waiters.append(completion)
            return (nil, nil)
        }
        if let completion { completion(failure) } else { flusher.schedule(self) }
    }

    func flush() {
        let (file, waiters, isLarge) = state.withLock { state in
            defer { state.waiters = [] }
            return (state.file, state.waiters, state.size > Self.rewriteBytesMin)
        }
        var failure: LogError?
        do throws(IOFailure) { try file.sync() } catch { failure = .storage(error) }
        if failure == nil, isLarge { failure = rewriteIfMostlyDead() }
        if let failure { state.withLock { $0.failure = failure } }
        for waiter in waiters { waiter(failure) }
    }

    private func rewriteIfMostlyDead() -> LogError? {
        state.withLock { state in
            let live = Self.encoded(state.content.entries)
            guard state.size > 4 * live.count else { return nil }
            let path = Self.path(directory)
            do throws(IOFailure) {
                let file = try files.open(path + ".new", .create)
                try file.writeAll(live)
                try file.sync()
                try files.rename(path + ".new", to: path)
                try files.syncDirectory(directory)
                state.file = file
                state.size = live.count
                return nil
            } catch {
                // The file that is there holds all of it, until another has taken its place.
                return error.isDiskFull && ["open", "write"].contains(error.operation) ? nil : .storage(error)
            }
        }
    }

    // MARK: Format (docs/internals/log.md)

    private static func encoded(_ entries: [CoordinatorEntry]) -> WireBytes {
        var writer = WireWriter()
        for entry in entries {
            var payload = WireWriter()
            entry.write(to: &payload)
            let bytes = payload.finish()
            writer.int32(Int32(bytes.count))
            writer.uint32(bytes.withUnsafeBytes { CRC32C.checksum($0) })
            writer.raw(bytes)
        }
        return writer.finish()
    }

    /// The state after all whole entries, and their bytes.
    private static func replay(_ bytes: WireBytes) -> (CoordinatorState, Int) {
        var content = CoordinatorState()
        var kept = 0
        while bytes.count - kept >= 8 {
            var head = WireReader(bytes.slice(offset: kept, count: 8))
            guard let length = try? Int(head.int32()), let crc = try? head.uint32(), length > 0, length <= bytes.count - kept - 8 else {
                break
            }  // a torn tail
            let payload = bytes.slice(offset: kept + 8, count: length)
            guard payload.withUnsafeBytes({ CRC32C.checksum($0) }) == crc else { break }
            var reader = WireReader(payload)
            do throws(WireError) { content.apply(try CoordinatorEntry(from: &reader)) } catch { break }
            kept += 8 + length
        }
        return (content, kept)
    }
}
