import MillKafkaWire
import MillIO
import Synchronization

/// What consumer groups committed, durable before it is acknowledged; all of it in memory, as groups are few.
///
/// Threading: any thread. A commit is written under the lock and synced by the flusher, shared with whoever else waits.
package final class GroupOffsets: Flushable {
    package struct Committed: Sendable, Hashable {
        package var offset: Int64
        package var leaderEpoch: Int32
        package var metadata: String
        package var committedMillis: Int64

        package init(offset: Int64, leaderEpoch: Int32, metadata: String, committedMillis: Int64) {
            self.offset = offset
            self.leaderEpoch = leaderEpoch
            self.metadata = metadata
            self.committedMillis = committedMillis
        }
    }

    package struct Place: Sendable, Hashable, Comparable {
        package var topic: String
        package var partition: Int32

        package init(topic: String, partition: Int32) {
            self.topic = topic
            self.partition = partition
        }

        package static func < (a: Place, b: Place) -> Bool { (a.topic, a.partition) < (b.topic, b.partition) }
    }

    private typealias Groups = [String: [Place: Committed]]

    private struct State {
        var groups: Groups = [:]
        var file: any File
        var size: Int
        var waiters: [@Sendable (LogError?) -> Void] = []
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
            let (groups, kept) = Self.replay(try file.readAll())
            if kept < (try file.size()) {
                try file.truncate(to: kept)
                try file.sync()
            }
            try files.syncDirectory(directory)
            state = Mutex(State(groups: groups, file: file, size: kept))
        } catch {
            throw .storage(error)
        }
    }

    private static func path(_ directory: String) -> String { directory + "/offsets.log" }

    // MARK: Verbs

    /// Stores a group's positions; `completion` runs when they are durable, on any thread, and must not block.
    package func commit(group: String, _ offsets: [(Place, Committed)], completion: @escaping @Sendable (LogError?) -> Void) {
        append(completion) { state, writer in
            for (place, committed) in offsets {
                state.groups[group, default: [:]][place] = committed
                writer.entry { Self.write(group, place, committed, to: &$0) }
            }
        }
    }

    package func committed(group: String, _ place: Place) -> Committed? { state.withLock { $0.groups[group]?[place] } }
    package func committed(group: String) -> [Place: Committed]? { state.withLock { $0.groups[group] } }
    /// Groups that have committed something, sorted.
    package var groups: [String] { state.withLock { $0.groups.keys.sorted() } }

    package func delete(group: String, completion: @escaping @Sendable (LogError?) -> Void) {
        append(completion) { state, writer in
            state.groups[group] = nil
            writer.entry { $0.int8(2); $0.string(group, flexible: false) }
        }
    }

    /// The same; returns when it is durable, so not for an event loop.
    package func deleteAndWait(group: String) -> LogError? {
        let result = OneShot<LogError?>()
        delete(group: group) { result.set($0) }
        return result.wait()
    }

    /// Forgets all groups' positions in a topic that is gone, so that its successor is read from its beginning.
    func delete(topic: String, completion: @escaping @Sendable (LogError?) -> Void) {
        append(completion) { state, writer in
            state.groups = Self.without(topic, state.groups)
            writer.entry { $0.int8(3); $0.string(topic, flexible: false) }
        }
    }

    private static func without(_ topic: String, _ groups: Groups) -> Groups {
        groups.mapValues { $0.filter { $0.key.topic != topic } }.filter { !$0.value.isEmpty }
    }

    // MARK: Durability

    private func append(_ completion: @escaping @Sendable (LogError?) -> Void, _ body: (inout State, inout EntryWriter) -> Void) {
        let failure: LogError? = state.withLock { state in
            if let failure = state.failure { return failure }
            var entries = EntryWriter()
            body(&state, &entries)
            let bytes = entries.finish()
            do throws(IOFailure) {
                try state.file.writeAll(bytes, at: state.size)
            } catch {
                // Memory is ahead of the file now: what is answered later could be lost.
                state.failure = .storage(error)
                return state.failure
            }
            state.size += bytes.count
            state.waiters.append(completion)
            return nil
        }
        if let failure { completion(failure) } else { flusher.schedule(self) }
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
            var entries = EntryWriter()
            for (group, offsets) in state.groups {
                for (place, committed) in offsets { entries.entry { Self.write(group, place, committed, to: &$0) } }
            }
            let live = entries.finish()
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
                return .storage(error)
            }
        }
    }

    // MARK: Format (docs/internals/log.md)

    private struct EntryWriter {
        private var writer = WireWriter()

        mutating func entry(_ body: (inout WireWriter) -> Void) {
            var payload = WireWriter()
            body(&payload)
            let bytes = payload.finish()
            writer.int32(Int32(bytes.count))
            writer.uint32(bytes.withUnsafeBytes { CRC32C.checksum($0) })
            writer.raw(bytes)
        }

        func finish() -> WireBytes { writer.finish() }
    }

    private static func write(_ group: String, _ place: Place, _ committed: Committed, to writer: inout WireWriter) {
        writer.int8(1)
        writer.string(group, flexible: false)
        writer.string(place.topic, flexible: false)
        writer.int32(place.partition)
        writer.int64(committed.offset)
        writer.int32(committed.leaderEpoch)
        writer.string(committed.metadata, flexible: false)
        writer.int64(committed.committedMillis)
    }

    /// The state after all whole entries, and their bytes.
    private static func replay(_ bytes: WireBytes) -> (Groups, Int) {
        var groups: Groups = [:]
        var kept = 0
        while bytes.count - kept >= 8 {
            var head = WireReader(bytes.slice(offset: kept, count: 8))
            guard let length = try? Int(head.int32()), let crc = try? head.uint32(), length > 0, length <= bytes.count - kept - 8 else { break }  // a torn tail
            let payload = bytes.slice(offset: kept + 8, count: length)
            guard payload.withUnsafeBytes({ CRC32C.checksum($0) }) == crc else { break }
            var reader = WireReader(payload)
            do throws(WireError) { try apply(&reader, to: &groups) } catch { break }
            kept += 8 + length
        }
        return (groups, kept)
    }

    private static func apply(_ reader: inout WireReader, to groups: inout Groups) throws(WireError) {
        switch try reader.int8() {
        case 1:
            let group = try reader.string(flexible: false)
            let place = Place(topic: try reader.string(flexible: false), partition: try reader.int32())
            groups[group, default: [:]][place] = Committed(
                offset: try reader.int64(), leaderEpoch: try reader.int32(), metadata: try reader.string(flexible: false), committedMillis: try reader.int64())
        case 2: groups[try reader.string(flexible: false)] = nil
        case 3: groups = without(try reader.string(flexible: false), groups)
        default: throw .invalidLength(offset: 0, length: 0)
        }
    }
}
