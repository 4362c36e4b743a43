import MillIO
import MillKafkaWire
import Synchronization

/// What the coordinator of groups and transactions must remember: committed offsets and the state of every transactional producer.
/// All of it is in memory, as both are few; every change is an entry of one file, durable before it is acknowledged.
///
/// One file for both, so that a transaction's decision and the offsets it commits are one entry: they hold together or not at all.
///
/// Threading: any thread. A change is made and written under the lock and synced by the flusher, shared with whoever else waits.
///
/// After a write or sync that failed nobody knows what the file has: nothing is taken until all that is remembered has been written to another
/// file and that is durable, which is tried about once a second (`mend`).
final class CoordinatorLog: Flushable {
    typealias Completion = @Sendable (LogError?) -> Void

    private struct State {
        var content: CoordinatorState
        var file: any File
        var size: Int
        /// Bytes that are durable, and up to where a mark in the file says so.
        var durableSize: Int
        var markedSize = 0
        var waiters: [Completion] = []
        var failure: LogError?
        var isClosed = false
    }

    private static let rewriteBytesMin = 1 << 20
    private let state: Mutex<State>
    private let directory: String
    private let files: any FileSystem
    private let flusher: LogFlusher

    /// - Throws: `storage`; `corrupted` when something is damaged that was acknowledged.
    init(directory: String, files: any FileSystem, flusher: LogFlusher) throws(LogError) {
        self.directory = directory
        self.files = files
        self.flusher = flusher
        let path = Self.path(directory)
        let (file, bytes): (any File, WireBytes)
        do throws(IOFailure) {
            try files.createDirectory(directory)
            file = try files.open(path, .readWrite)
            bytes = try file.readAll()
        } catch {
            throw .storage(error)
        }
        let (content, kept) = try Self.replay(bytes, path)
        do throws(IOFailure) {
            if kept < bytes.count { try file.truncate(to: kept) }
            // A process may have ended between a write and its sync: from here on it is acted upon, and must not go with the machine.
            try file.sync()
            try files.syncDirectory(directory)
            state = Mutex(State(content: content, file: file, size: kept, durableSize: kept))
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

    /// Changes what is remembered by the entries that `body` gives. Its completion runs when they and all before them are durable, on any
    /// thread, and must not block.
    func update(_ body: (borrowing CoordinatorState) -> (entries: [CoordinatorEntry], completion: Completion)) {
        let (failure, completion): (LogError?, Completion?) = state.withLock { state in
            let (entries, completion) = body(state.content)
            if let failure = state.failure { return (failure, completion) }
            if entries.isEmpty {
                // What it was found to be may not be durable yet.
                if state.size > state.durableSize { state.waiters.append(completion) }
                return (nil, state.size > state.durableSize ? nil : completion)
            }
            let marks: [CoordinatorEntry] = state.durableSize > state.markedSize ? [.synced(upTo: Int64(state.durableSize))] : []
            let bytes = Self.encoded(marks + entries)
            do throws(IOFailure) {
                try state.file.writeAll(bytes, at: state.size)
            } catch {
                // Part of it may be there.
                do throws(IOFailure) { try state.file.truncate(to: state.size) } catch { state.failure = .storage(error) }
                return (.storage(error), completion)
            }
            for entry in entries { state.content.apply(entry) }
            state.size += bytes.count
            state.markedSize = state.durableSize
            state.waiters.append(completion)
            return (nil, nil)
        }
        if let completion { completion(failure) } else { flusher.schedule(self) }
    }

    /// Whether what is remembered is, or will be, what the file says.
    var isWell: Bool { state.withLock { $0.failure == nil } }

    /// Tries to get over a failure; returns at once, the work is done by the flusher.
    func mend() {
        if state.withLock({ $0.failure != nil && !$0.isClosed }) { flusher.schedule(self) }
    }

    func flush() {
        let (file, size, waiters, isWell) = state.withLock { state in
            defer { state.waiters = [] }
            return (state.file, state.size, state.waiters, state.failure == nil)
        }
        guard isWell else {
            let failure = state.withLock { state in
                if !state.isClosed { rewrite(&state) }
                return state.failure
            }
            // What was lost has been written anew with all the rest.
            for waiter in waiters { waiter(failure) }
            return
        }
        var failure: LogError?
        do throws(IOFailure) { try file.sync() } catch { failure = .storage(error) }
        state.withLock { state in
            if let failure { state.failure = failure } else { state.durableSize = size }
            if failure == nil, size > Self.rewriteBytesMin { rewriteIfMostlyDead(&state) }
        }
        for waiter in waiters { waiter(failure) }
    }

    /// Makes everything durable and takes nothing more; the flusher has ended before.
    func close() {
        flush()
        let waiters = state.withLock { state in
            state.isClosed = true
            state.failure = state.failure ?? .closed
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter(.closed) }
    }

    private func rewriteIfMostlyDead(_ state: inout State) {
        if state.size > 4 * Self.encoded(state.content.entries).count { rewrite(&state) }
    }

    /// Puts a file with no more than what is remembered in the place of the one that is there; then all of it is durable, and an earlier
    /// failure over.
    private func rewrite(_ state: inout State) {
        let live = Self.encoded(state.content.entries)
        let path = Self.path(directory)
        let file: any File
        do throws(IOFailure) {
            file = try files.open(path + ".new", .create)
            try file.writeAll(live)
            try file.sync()
        } catch {
            // The file that is there stays what it is, until another has taken its place.
            return
        }
        do throws(IOFailure) {
            try files.rename(path + ".new", to: path)
            try files.syncDirectory(directory)
            state.file = file
            (state.size, state.durableSize, state.markedSize) = (live.count, live.count, 0)
            state.failure = nil
        } catch {
            // Which of the two a start would find is open.
            state.failure = .storage(error)
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
    /// - Throws: `corrupted` for an entry that is whole and says nothing that we know, and for one that is not whole although it was durable.
    private static func replay(_ bytes: WireBytes, _ path: String) throws(LogError) -> (CoordinatorState, Int) {
        var content = CoordinatorState()
        var kept = 0
        while let payload = payload(bytes, at: kept) {
            var reader = WireReader(payload)
            do throws(WireError) { content.apply(try CoordinatorEntry(from: &reader)) } catch {
                throw .corrupted(path: path, reason: "the entry at byte \(kept) is of no known kind")
            }
            kept += frameBytes + payload.count
        }
        if isVouchedFor(kept, bytes) {
            throw .corrupted(path: path, reason: "the entry at byte \(kept) is not whole, and it was acknowledged")
        }
        return (content, kept)
    }

    private static let frameBytes = 8

    /// The payload of the entry at a place; nil when it is not whole.
    private static func payload(_ bytes: WireBytes, at place: Int) -> WireBytes? {
        guard bytes.count - place >= frameBytes else { return nil }
        var head = WireReader(bytes.slice(offset: place, count: frameBytes))
        guard let length = try? Int(head.int32()), let crc = try? head.uint32(),  // eight bytes are there
            length > 0, length <= bytes.count - place - frameBytes
        else { return nil }
        let payload = bytes.slice(offset: place + frameBytes, count: length)
        return payload.withUnsafeBytes { CRC32C.checksum($0) } == crc ? payload : nil
    }

    /// Whether a mark behind a place says that what is there was durable: then it is no torn tail.
    private static func isVouchedFor(_ place: Int, _ bytes: WireBytes) -> Bool {
        let markBytes = frameBytes + CoordinatorEntry.markBytes
        guard place + markBytes <= bytes.count else { return false }
        let candidates = bytes.withUnsafeBytes { memory in
            (place + 1..<max(bytes.count - markBytes + 1, place + 1)).filter {
                Int32(bigEndian: memory.loadUnaligned(fromByteOffset: $0, as: Int32.self)) == Int32(CoordinatorEntry.markBytes)
            }
        }
        return candidates.contains { candidate in
            guard let payload = payload(bytes, at: candidate) else { return false }
            var reader = WireReader(payload)
            guard case .synced(let end)? = try? CoordinatorEntry(from: &reader) else { return false }  // something else looks like one
            return end > place
        }
    }
}
