import MillBase
import MillConnectorKit
import MillIO
import MillObjectStore
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Where the files of a source lie. Calls block.
protocol FilePlace: Sendable {
    /// Reading takes long enough that no worker may wait for it.
    var isRemote: Bool { get }
    /// What is wrong that stops no split by itself; nil when all is well.
    var status: String? { get }
    /// What it says is not there.
    var pattern: String { get }
    /// The files now.
    func splits() throws(SQLError) -> [SourceSplit]
    /// Splits that were read before: what is in their places now may be something else.
    func expect(_ splits: [SourceSplit])
    /// Opens a split's file as it was when the split was found.
    /// - Throws: 55000 when it is another one by now.
    func open(_ split: SourceSplit) throws(SQLError) -> any File
    /// How many bytes it has; nil for one that is another by now, and says so when it is read.
    func byteCount(_ split: SourceSplit) throws(SQLError) -> Int?
}

/// Files of this machine.
struct LocalPlace: FilePlace {
    let pattern: String
    let files: any FileSystem
    let access: FileAccess?

    var isRemote: Bool { false }
    var status: String? { nil }

    func expect(_ splits: [SourceSplit]) {}

    func splits() throws(SQLError) -> [SourceSplit] {
        try access?.check(pattern)
        return try FilePattern(pattern).matches(in: files).map { SourceSplit(name: $0, topic: $0, partition: 0) }
    }

    func open(_ split: SourceSplit) throws(SQLError) -> any File {
        try access?.check(split.name)
        do throws(IOFailure) { return try files.open(split.name, .read) } catch { throw error.sqlError }
    }

    func byteCount(_ split: SourceSplit) throws(SQLError) -> Int? {
        let file = try open(split)
        do throws(IOFailure) { return try file.size() } catch { throw error.sqlError }
    }
}

/// Objects in S3. A split is an object with the tag it had when it was found: one that is put in its place later is never read for it, nor
/// taken for a new one.
final class StoredPlace: FilePlace {
    let pattern: String
    private let store: any ObjectStore
    private let known = Mutex(Known())

    private struct Known {
        /// By location: the split it was found as, and its size if that is known.
        var splits: [String: (split: SourceSplit, byteCount: Int?)] = [:]
        /// Locations with another object by now.
        var changed: Set<String> = []
    }

    init(pattern: String, store: any ObjectStore) {
        self.pattern = pattern
        self.store = store
    }

    var isRemote: Bool { true }

    var status: String? {
        known.withLock { known in
            known.changed.min().map { first in
                let others = known.changed.count > 1 ? ", and \(known.changed.count - 1) others" : ""
                return "object \"\(first)\"\(others) was replaced after it was found: its new content is not read"
            }
        }
    }

    func expect(_ splits: [SourceSplit]) {
        known.withLock { known in
            for split in splits where known.splits[split.topic] == nil { known.splits[split.topic] = (split, nil) }
        }
    }

    func splits() throws(SQLError) -> [SourceSplit] {
        let pattern = FilePattern(pattern)
        let entries: [ObjectEntry]
        do throws(IOFailure) { entries = try store.list(pattern.prefix) } catch { throw error.sqlError }
        let found = entries.filter { !$0.location.hasSuffix("/") && pattern.matches($0.location) }
        return known.withLock { known in
            known.changed = []
            return found.map { entry in
                let split = Self.split(of: entry)
                guard let earlier = known.splits[entry.location] else {
                    known.splits[entry.location] = (split, entry.byteCount)
                    return split
                }
                if earlier.split == split {
                    known.splits[entry.location]?.byteCount = entry.byteCount
                } else {
                    known.changed.insert(entry.location)
                }
                return earlier.split
            }
        }
    }

    private static func split(of entry: ObjectEntry) -> SourceSplit {
        let tag = entry.tag.map { "#" + $0.filter { $0 != "\"" } } ?? ""
        return SourceSplit(name: entry.location + tag, topic: entry.location, partition: 0)
    }

    func open(_ split: SourceSplit) throws(SQLError) -> any File {
        do throws(IOFailure) {
            // What is opened stays the same object; if it is the right one now, it was then.
            let file = try store.openForReading(split.topic)
            if let entry = try store.look(at: split.topic), Self.split(of: entry).name == split.name { return file }
        } catch {
            guard error.errorNumber == ENOENT else { throw error.sqlError }
            throw SQLError(
                .objectNotInPrerequisiteState, "object \"\(split.topic)\" was removed",
                hint: "Put it back, or drop the source and create it again.")
        }
        throw SQLError(
            .objectNotInPrerequisiteState, "object \"\(split.topic)\" was replaced after it was found as \"\(split.name)\"",
            hint: "Objects of a source must stay as they are. Drop the source and create it again.")
    }

    func byteCount(_ split: SourceSplit) throws(SQLError) -> Int? {
        let (count, isChanged) = known.withLock { ($0.splits[split.topic]?.byteCount, $0.changed.contains(split.topic)) }
        if isChanged { return nil }
        if let count { return count }
        do throws(IOFailure) {
            guard let entry = try store.look(at: split.topic), Self.split(of: entry) == split else { return nil }
            known.withLock { $0.splits[split.topic]?.byteCount = entry.byteCount }
            return entry.byteCount
        } catch { throw error.sqlError }
    }
}
