import MillIO
import MillObjectStore
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// An object store over any file system, for `file://` locations: in memory for most tests, on disk for exchange with other programs.
final class FileSystemStore: ObjectStore {
    let files: any FileSystem
    private let removed = Mutex<[String]>([])

    init(_ files: any FileSystem = MemoryFileSystem()) { self.files = files }

    /// What was removed, in order.
    var removals: [String] { removed.withLock { $0 } }

    private func path(_ location: String) -> String { location.hasPrefix("file://") ? String(location.dropFirst(7)) : location }

    private func directory(of path: String) -> String { path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "/" }

    func put(_ location: String, _ bytes: [UInt8], _ condition: PutCondition) throws(IOFailure) {
        let path = path(location)
        if condition == .isMissing, files.exists(path) { throw IOFailure("put", path: location, errorNumber: EEXIST) }
        try files.createDirectory(directory(of: path))
        let file = try files.open(path, .create)
        let result: Result<Void, IOFailure> = bytes.withUnsafeBytes { bytes in
            do throws(IOFailure) { return .success(try file.write(bytes, at: 0)) } catch { return .failure(error) }
        }
        try result.get()
    }

    func get(_ location: String) throws(IOFailure) -> [UInt8] {
        let file = try files.open(path(location), .read)
        var bytes = [UInt8](repeating: 0, count: try file.size())
        let result: Result<Int, IOFailure> = bytes.withUnsafeMutableBytes { target in
            do throws(IOFailure) { return .success(try file.read(at: 0, into: target)) } catch { return .failure(error) }
        }
        _ = try result.get()
        return bytes
    }

    func look(at location: String) throws(IOFailure) -> ObjectEntry? {
        guard files.exists(path(location)) else { return nil }
        return ObjectEntry(location: location, byteCount: try files.open(path(location), .read).size(), tag: nil, modifiedMicros: 0)
    }

    func openForReading(_ location: String) throws(IOFailure) -> any File { try files.open(path(location), .read) }

    func openForWriting(_ location: String) throws(IOFailure) -> any ObjectWriter {
        try files.createDirectory(directory(of: path(location)))
        return Writer(try files.open(path(location), .create), self, location)
    }

    func list(_ prefix: String) throws(IOFailure) -> [ObjectEntry] {
        let root = path(prefix)
        var result: [ObjectEntry] = []
        func walk(_ directory: String) throws(IOFailure) {
            for name in try files.list(directory) {
                let path = directory + "/" + name
                if (try? files.list(path)) != nil {
                    try walk(path)
                } else {
                    result.append(
                        ObjectEntry(location: "file://" + path, byteCount: try files.open(path, .read).size(), tag: nil, modifiedMicros: 0))
                }
            }
        }
        try walk(root)
        return result
    }

    func remove(_ locations: [String]) throws(IOFailure) {
        removed.withLock { $0 += locations }
        for location in locations { try files.remove(path(location)) }
    }

    private final class Writer: ObjectWriter {
        let path: String
        private let file: any File
        private let store: FileSystemStore

        init(_ file: any File, _ store: FileSystemStore, _ path: String) { (self.file, self.store, self.path) = (file, store, path) }

        func finish() throws(IOFailure) { try file.sync() }
        func abandon() { try? store.remove([path]) }
        func size() throws(IOFailure) -> Int { try file.size() }
        func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int {
            try file.read(at: offset, into: buffer)
        }
        func prefetch(at offset: Int, count: Int) {}
        func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) { try file.write(buffer, at: offset) }
        func truncate(to size: Int) throws(IOFailure) { try file.truncate(to: size) }
        func sync() throws(IOFailure) { try file.sync() }
    }
}
