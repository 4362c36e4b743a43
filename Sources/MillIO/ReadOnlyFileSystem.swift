import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Files of another file system for reading only: what is written, cut or removed is so for who uses this value, in memory, and the files
/// stay as they are.
///
/// So a data directory can be opened the way a start opens it, and be left as it was.
///
/// Threading: any thread.
package final class ReadOnlyFileSystem: FileSystem {
    private let base: any FileSystem
    /// Files that were made here.
    private let made = MemoryFileSystem()
    private let state = Mutex(State())

    private struct State {
        var made: Set<String> = []
        var removed: Set<String> = []
    }

    package init(_ base: any FileSystem) { self.base = base }

    private func isMade(_ path: String) -> Bool { state.withLock { $0.made.contains(path) } }
    private func isRemoved(_ path: String) -> Bool { state.withLock { $0.removed.contains(path) } }

    package func open(_ path: String, _ mode: OpenMode) throws(IOFailure) -> any File {
        if mode != .create, !isMade(path) {
            guard !isRemoved(path) else { throw IOFailure("open", path: path, errorNumber: ENOENT) }
            if base.exists(path) { return PatchedFile(try base.open(path, .read)) }
            guard mode == .readWrite else { throw IOFailure("open", path: path, errorNumber: ENOENT) }
        }
        if let slash = path.lastIndex(of: "/") { try made.createDirectory(String(path[..<slash])) }
        state.withLock { state in
            state.made.insert(path)
            state.removed.remove(path)
        }
        return try made.open(path, mode == .read ? .read : mode)
    }

    package func list(_ directory: String) throws(IOFailure) -> [String] {
        let (made, removed) = state.withLock { ($0.made, $0.removed) }
        let prefix = directory + "/"
        let fresh = made.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count).prefix { $0 != "/" }) }
        let present = base.exists(directory) ? try base.list(directory).filter { !removed.contains(prefix + $0) } : []
        return Set(present + fresh).sorted()
    }

    package func createDirectory(_ path: String) throws(IOFailure) { try made.createDirectory(path) }

    package func remove(_ path: String) throws(IOFailure) {
        state.withLock { state in
            state.made.remove(path)
            state.removed.insert(path)
        }
    }

    package func rename(_ from: String, to: String) throws(IOFailure) {
        guard isMade(from) else { throw IOFailure("rename", path: from, errorNumber: EROFS) }
        if let slash = to.lastIndex(of: "/") { try made.createDirectory(String(to[..<slash])) }
        try made.rename(from, to: to)
        state.withLock { state in
            state.made.remove(from)
            state.made.insert(to)
            state.removed.remove(to)
        }
    }

    package func syncDirectory(_ path: String) {}

    package func exists(_ path: String) -> Bool {
        let (made, removed) = state.withLock { ($0.made, $0.removed) }
        if made.contains(path) || made.contains(where: { $0.hasPrefix(path + "/") }) { return true }
        return !removed.contains(path) && base.exists(path)
    }

    package func look(at path: String) throws(IOFailure) -> FileStatus? {
        if isMade(path) { return try made.look(at: path) }
        return isRemoved(path) ? nil : try base.look(at: path)
    }

    package func link(_ from: String, to: String) throws(IOFailure) {
        guard !exists(to) else { throw IOFailure("link", path: to, errorNumber: EEXIST) }
        guard isMade(from) else { throw IOFailure("link", path: from, errorNumber: EROFS) }
        if let slash = to.lastIndex(of: "/") { try made.createDirectory(String(to[..<slash])) }
        try made.link(from, to: to)
        state.withLock { state in
            state.made.insert(to)
            state.removed.remove(to)
        }
    }

    /// Who writes only here needs nobody's leave.
    package func lock(_ directory: String) throws(IOFailure) -> any FileLock {
        try made.createDirectory(directory)
        return try made.lock(directory)
    }
}

/// A file that is read, with what was written to it here.
private final class PatchedFile: File {
    private let base: any File
    private let state = Mutex(State())

    private struct State {
        /// Bytes of the file that still count; nil for all.
        var kept: Int?
        var patches: [(offset: Int, bytes: [UInt8])] = []
    }

    init(_ base: any File) { self.base = base }

    var path: String { base.path }

    /// Bytes of the file that count.
    private func stored(_ state: State) throws(IOFailure) -> Int {
        if let kept = state.kept { return kept }
        return try base.size()
    }

    func size() throws(IOFailure) -> Int {
        let state = state.withLock { $0 }
        return state.patches.reduce(try stored(state)) { max($0, $1.offset + $1.bytes.count) }
    }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int {
        let state = state.withLock { $0 }
        let count = max(min(buffer.count, try size() - offset), 0)
        let stored = max(min(count, try stored(state) - offset), 0)
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<stored])
        let found = stored == 0 ? 0 : try base.read(at: offset, into: part)
        for index in found..<count { buffer[index] = 0 }
        for patch in state.patches {
            let range = max(patch.offset, offset)..<max(min(patch.offset + patch.bytes.count, offset + count), max(patch.offset, offset))
            for place in range { buffer[place - offset] = patch.bytes[place - patch.offset] }
        }
        return count
    }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) {
        let bytes = Array(buffer)
        state.withLock { $0.patches.append((offset, bytes)) }
    }

    func truncate(to size: Int) throws(IOFailure) {
        let stored = try base.size()
        state.withLock { state in
            state.kept = min(state.kept ?? stored, size)
            state.patches = state.patches.compactMap { patch in
                patch.offset >= size ? nil : (patch.offset, Array(patch.bytes.prefix(size - patch.offset)))
            }
        }
    }

    func sync() {}
}
