package import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Objects as files. A location is as `FileLocation` says.
///
/// An object is written to a file beside its place, whose name listings leave out, synced, given its name in one step, and the directory
/// synced: it is seen whole or not at all, also after a power cut. Conditions are decided by the file system between processes: a name that
/// must be free is taken by a link; a tag is compared while the directory is locked, which every writer of this kind does. A tag is the
/// file's number, size and time of change: objects of one size that replaced each other within a tick of the file system's clock (some
/// milliseconds) can look the same. Who needs to tell those apart puts under new names by `isMissing`.
///
/// What a crash leaves is files under their first names, until `removeLeftovers`. Directories are made as needed and stay when empty.
///
/// Threading: any thread.
package struct LocalObjectStore: ObjectStore {
    /// Names of files that are being written begin with this. No object's may; readers of Hive's and Spark's kind pass over it, too.
    static let temporaryPrefix = ".millrace-"
    private static let depthMax = 64
    private static let getBytesMax = 512 << 20
    private static let listCountMax = 5_000_000

    private let files: any FileSystem
    private let random: any RandomSource
    private let root: String?
    private let known = KnownDirectories()

    /// - Parameter root: an absolute path; nothing outside is read or written. Nil for no bound.
    package init(environment: Environment, root: String? = nil) {
        files = environment.files
        random = environment.random
        self.root = root
    }

    package func put(_ location: String, _ bytes: [UInt8], _ condition: PutCondition) throws(IOFailure) {
        let place = try objectPlace(location, "put")
        // Cheaper than writing in vain; decided again below.
        if condition == .isMissing, try files.look(at: place.path) != nil { throw Self.unmet(location, condition) }
        let temporary = try makeTemporary(for: place)
        do throws(IOFailure) {
            try bytes.withUnsafeBufferPointer { (bytes) throws(IOFailure) in try temporary.write(UnsafeRawBufferPointer(bytes), at: 0) }
            try publish(temporary, place, condition, location)
        } catch {
            try? files.remove(temporary.path)  // What stays is a leftover like a crash's.
            throw error
        }
    }

    package func get(_ location: String) throws(IOFailure) -> [UInt8] {
        let file = try files.open(FileLocation(location, "get", root: root).path, .read)
        let size = try file.size()
        guard size <= Self.getBytesMax else {
            throw IOFailure(
                "get", path: location, errorNumber: EFBIG, detail: "it has \(size) bytes, at most \(Self.getBytesMax) are read whole")
        }
        var bytes = [UInt8](repeating: 0, count: size)
        let count = try bytes.withUnsafeMutableBufferPointer { (bytes) throws(IOFailure) in
            try file.read(at: 0, into: UnsafeMutableRawBufferPointer(bytes))
        }
        bytes.removeLast(size - count)
        return bytes
    }

    package func look(at location: String) throws(IOFailure) -> ObjectEntry? {
        let place = try FileLocation(location, "look at", root: root)
        guard let status = try files.look(at: place.path), !status.isDirectory else { return nil }
        return Self.entry(location, status)
    }

    package func openForReading(_ location: String) throws(IOFailure) -> any File {
        try files.open(FileLocation(location, "open", root: root).path, .read)
    }

    package func openForWriting(_ location: String) throws(IOFailure) -> any ObjectWriter {
        let place = try objectPlace(location, "write")
        return LocalObjectWriter(self, try makeTemporary(for: place), place, location)
    }

    package func list(_ prefix: String) throws(IOFailure) -> [ObjectEntry] {
        var place = try FileLocation(prefix, "list", root: root)
        // Not what is beside the root and begins like it.
        if place.path == root { place.path += "/" }
        var entries: [ObjectEntry] = []
        try walk(place.directory, of: place, depth: 0) { path, status throws(IOFailure) in
            guard !status.isDirectory else { return }
            entries.append(Self.entry(place.location(of: path), status))
            guard entries.count <= Self.listCountMax else {
                throw IOFailure("list", path: prefix, errorNumber: EFBIG, detail: "there are more than \(Self.listCountMax) objects")
            }
        }
        return entries.sorted { $0.location.utf8.lexicographicallyPrecedes($1.location.utf8) }
    }

    /// All are tried, whatever fails.
    /// - Throws: the first failure.
    package func remove(_ locations: [String]) throws(IOFailure) {
        var directories: Set<String> = []
        var failure: IOFailure?
        for location in locations {
            do throws(IOFailure) {
                if let directory = try remove(location) { directories.insert(directory) }
            } catch { failure = failure ?? error }
        }
        for directory in directories.sorted() { try files.syncDirectory(directory) }
        if let failure { throw failure }
    }

    /// - Returns: the directory that it was in; nil when it was not there.
    private func remove(_ location: String) throws(IOFailure) -> String? {
        let place = try objectPlace(location, "remove")
        guard let status = try files.look(at: place.path) else { return nil }
        guard !status.isDirectory else { throw IOFailure("remove", path: location, errorNumber: EISDIR) }
        let lock = try files.lock(place.directory)
        try withExtendedLifetime(lock) { () throws(IOFailure) in try files.remove(place.path) }
        return place.directory
    }

    /// Removes what writers that ended left under a directory. Nobody else may be writing there, or only what is younger.
    /// - Returns: how many files that were.
    @discardableResult
    package func removeLeftovers(under location: String, olderThanMicros: Int64 = .max) throws(IOFailure) -> Int {
        let place = try FileLocation(location.hasSuffix("/") ? location : location + "/", "clean", root: root)
        var leftovers: [String] = []
        try walk(place.directory, of: place, depth: 0, isForLeftovers: true) { path, status throws(IOFailure) in
            if status.modifiedNanos / 1000 < olderThanMicros { leftovers.append(path) }
        }
        for path in leftovers { try files.remove(path) }
        return leftovers.count
    }

    // MARK: Parts

    private func objectPlace(_ location: String, _ operation: String) throws(IOFailure) -> FileLocation {
        let place = try FileLocation(location, operation, root: root)
        guard !place.name.isEmpty, !place.name.hasPrefix(Self.temporaryPrefix) else {
            throw IOFailure(
                operation, path: location, errorNumber: EINVAL,
                detail: "an object's name is not empty and does not begin with \"\(Self.temporaryPrefix)\"")
        }
        return place
    }

    private static func entry(_ location: String, _ status: FileStatus) -> ObjectEntry {
        ObjectEntry(location: location, byteCount: status.byteCount, tag: tag(status), modifiedMicros: status.modifiedNanos / 1000)
    }

    private static func tag(_ status: FileStatus) -> String { "\(status.number)-\(status.byteCount)-\(status.modifiedNanos)" }

    private static func unmet(_ location: String, _ condition: PutCondition) -> IOFailure {
        IOFailure(
            "put", path: location, errorNumber: EEXIST,
            detail: condition == .isMissing ? "there is an object already" : "it is another object by now")
    }

    private func makeTemporary(for place: FileLocation) throws(IOFailure) -> any File {
        let name = Self.temporaryPrefix + String(random.next(), radix: 16)
        let path = (place.directory == "/" ? "" : place.directory) + "/" + name
        if known.contains(place.directory) {
            do throws(IOFailure) { return try files.open(path, .create) } catch {
                // Somebody removed the directory since.
                guard error.errorNumber == ENOENT else { throw error }
            }
        }
        try files.createDurableDirectory(place.directory)
        known.insert(place.directory)
        return try files.open(path, .create)
    }

    /// Makes a written file durable and gives it its name.
    func publish(_ temporary: any File, _ place: FileLocation, _ condition: PutCondition, _ location: String) throws(IOFailure) {
        try temporary.sync()
        let lock = try files.lock(place.directory)
        try withExtendedLifetime(lock) { () throws(IOFailure) in
            switch condition {
            case .always: try files.rename(temporary.path, to: place.path)
            case .isMissing:
                do throws(IOFailure) { try files.link(temporary.path, to: place.path) } catch {
                    throw error.errorNumber == EEXIST ? Self.unmet(location, condition) : error
                }
                try files.remove(temporary.path)
            case .hasTag(let tag):
                guard let status = try files.look(at: place.path), Self.tag(status) == tag else { throw Self.unmet(location, condition) }
                try files.rename(temporary.path, to: place.path)
            }
        }
        try files.syncDirectory(place.directory)
    }

    func discard(_ temporary: any File) { try? files.remove(temporary.path) }  // What stays is a leftover like a crash's.

    /// Visits what lies under a directory and whose path begins with the place's; what goes away meanwhile is passed over.
    private func walk(
        _ directory: String, of place: FileLocation, depth: Int, isForLeftovers: Bool = false,
        _ visit: (String, FileStatus) throws(IOFailure) -> Void
    ) throws(IOFailure) {
        guard depth < Self.depthMax else { throw IOFailure("list", path: directory, errorNumber: ELOOP) }
        let names: [String]
        do throws(IOFailure) { names = try files.list(directory) } catch {
            if error.errorNumber == ENOENT || error.errorNumber == ENOTDIR { return }
            throw error
        }
        for name in names {
            let path = (directory == "/" ? "" : directory) + "/" + name
            let isTemporary = name.hasPrefix(Self.temporaryPrefix)
            guard path.utf8.starts(with: place.path.utf8), let status = try files.look(at: path) else { continue }
            if status.isDirectory {
                try walk(path, of: place, depth: depth + 1, isForLeftovers: isForLeftovers, visit)
            } else if isTemporary == isForLeftovers {
                try visit(path, status)
            }
        }
    }
}

/// Directories that are there and durable: making sure of it costs a sync.
private final class KnownDirectories: Sendable {
    private static let countMax = 10_000
    private let known = Mutex<Set<String>>([])

    func contains(_ directory: String) -> Bool { known.withLock { $0.contains(directory) } }

    func insert(_ directory: String) {
        known.withLock { known in
            if known.count >= Self.countMax { known.removeAll() }
            known.insert(directory)
        }
    }
}
