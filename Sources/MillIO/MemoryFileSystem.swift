import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Files in memory that lose and tear what was not made durable, for tests of everything that survives a crash.
///
/// Every file and directory has a live side, which reads and lists see, and a durable side, which `sync` and
/// `syncDirectory` bring up to date. `crash` is a power cut: each write since the last sync is kept, lost or torn, each
/// directory entry since the last directory sync is kept or lost, by the given random numbers; files that were open answer
/// EIO from then on. `fault` decides about errors, and can count operations to cut the power at each in turn.
///
/// Threading: any thread; one lock around everything.
package final class MemoryFileSystem: FileSystem {
    package enum Operation: String, Sendable {
        case open, list, createDirectory, remove, rename, syncDirectory, read, write, truncate, reserve, sync, look, link, lock
    }

    /// The error number an operation on a path shall fail with; nil lets it happen.
    package typealias Fault = @Sendable (Operation, String) -> Int32?

    /// What a power cut may do to each unsynced write.
    private static let sectorBytes = 512

    private struct Node {
        var isDirectory: Bool
        var live: [UInt8] = []
        var durable: [UInt8] = []
        /// Changes since the last sync, in order.
        var pending: [Change] = []
        /// The number of changes of any file when it was last changed: the time of a disk without a clock.
        var modified: Int64 = 0
        var entries: [String: Int] = [:]
        var durableEntries: [String: Int] = [:]
    }

    fileprivate enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncate(size: Int)
    }

    private struct State {
        var nodes: [Int: Node] = [0: Node(isDirectory: true)]
        var nextNode = 1
        /// Counts crashes; a file opened before one is dead.
        var generation = 0
        var fault: Fault?
        var changes: Int64 = 0
        /// Directories that somebody has, and who waits for one.
        var locked: Set<String> = []
        var waiters: [Semaphore] = []
    }

    private let state = Mutex(State())

    package init() {}

    package func setFault(_ fault: Fault?) { state.withLock { $0.fault = fault } }

    /// Cuts the power and comes back with what the disk kept.
    package func crash(random: any RandomSource) {
        state.withLock { state in
            state.generation += 1
            for (id, node) in state.nodes {
                var node = node
                for change in node.pending {
                    switch random.next() % 3 {
                    case 0: Self.apply(change, to: &node.durable)
                    case 1: break
                    default: Self.applyTorn(change, to: &node.durable, random)
                    }
                }
                node.live = node.durable
                node.pending = []
                for name in Set(node.entries.keys).union(node.durableEntries.keys) where node.entries[name] != node.durableEntries[name] {
                    if random.next() % 2 == 0 { node.durableEntries[name] = node.entries[name] }
                }
                node.entries = node.durableEntries
                state.nodes[id] = node
            }
        }
    }

    private static func apply(_ change: Change, to bytes: inout [UInt8]) {
        switch change {
        case .write(let offset, let written):
            if bytes.count < offset + written.count { bytes.append(contentsOf: [UInt8](repeating: 0, count: offset + written.count - bytes.count)) }
            bytes.replaceSubrange(offset..<offset + written.count, with: written)
        case .truncate(let size):
            if size < bytes.count { bytes.removeLast(bytes.count - size) } else { bytes.append(contentsOf: [UInt8](repeating: 0, count: size - bytes.count)) }
        }
    }

    /// The file grows to its new size, but only some sectors of the write arrive.
    private static func applyTorn(_ change: Change, to bytes: inout [UInt8], _ random: any RandomSource) {
        guard case .write(let offset, let written) = change else { return }
        var start = 0
        while start < written.count {
            let end = min(written.count, start + sectorBytes - (offset + start) % sectorBytes)
            if random.next() % 2 == 0 { apply(.write(offset: offset + start, bytes: Array(written[start..<end])), to: &bytes) }
            start = end
        }
    }

    // MARK: FileSystem

    package func open(_ path: String, _ mode: OpenMode) throws(IOFailure) -> any File {
        try access(.open, path) { state throws(IOFailure) in
            let (parent, name) = try Self.parent(of: path, in: state, "open")
            let id: Int
            if let found = state.nodes[parent]?.entries[name] {
                guard state.nodes[found]?.isDirectory == false else { throw IOFailure("open", path: path, errorNumber: EISDIR) }
                id = found
                if case .create = mode { Self.change(.truncate(size: 0), &state, id) }
            } else {
                if case .read = mode { throw IOFailure("open", path: path, errorNumber: ENOENT) }
                id = Self.add(Node(isDirectory: false), name, to: parent, &state)
            }
            return MemoryFile(system: self, path: path, node: id, generation: state.generation)
        }
    }

    package func list(_ directory: String) throws(IOFailure) -> [String] {
        try access(.list, directory) { state throws(IOFailure) in
            guard let id = Self.find(directory, in: state), let node = state.nodes[id], node.isDirectory else {
                throw IOFailure("list", path: directory, errorNumber: ENOENT)
            }
            return node.entries.keys.sorted()
        }
    }

    package func createDirectory(_ path: String) throws(IOFailure) {
        try access(.createDirectory, path) { state throws(IOFailure) in
            var id = 0
            for name in Self.parts(path) {
                if let next = state.nodes[id]?.entries[name] {
                    guard state.nodes[next]?.isDirectory == true else { throw IOFailure("create directory", path: path, errorNumber: ENOTDIR) }
                    id = next
                } else {
                    id = Self.add(Node(isDirectory: true), name, to: id, &state)
                }
            }
        }
    }

    package func remove(_ path: String) throws(IOFailure) {
        try access(.remove, path) { state throws(IOFailure) in
            guard let (parent, name) = try? Self.parent(of: path, in: state, "remove") else { return }  // a missing parent: nothing to remove
            state.nodes[parent]?.entries[name] = nil
        }
    }

    package func rename(_ from: String, to: String) throws(IOFailure) {
        try access(.rename, from) { state throws(IOFailure) in
            let (source, oldName) = try Self.parent(of: from, in: state, "rename")
            let (target, newName) = try Self.parent(of: to, in: state, "rename")
            guard let id = state.nodes[source]?.entries[oldName] else { throw IOFailure("rename", path: from, errorNumber: ENOENT) }
            state.nodes[source]?.entries[oldName] = nil
            state.nodes[target]?.entries[newName] = id
        }
    }

    package func syncDirectory(_ path: String) throws(IOFailure) {
        try access(.syncDirectory, path) { state throws(IOFailure) in
            guard let id = Self.find(path, in: state), var node = state.nodes[id], node.isDirectory else {
                throw IOFailure("sync", path: path, errorNumber: ENOENT)
            }
            node.durableEntries = node.entries
            state.nodes[id] = node
        }
    }

    package func exists(_ path: String) -> Bool { state.withLock { Self.find(path, in: $0) != nil } }

    package func look(at path: String) throws(IOFailure) -> FileStatus? {
        try access(.look, path) { state throws(IOFailure) in
            guard let id = Self.find(path, in: state), let node = state.nodes[id] else { return nil }
            return FileStatus(isDirectory: node.isDirectory, byteCount: node.live.count, modifiedNanos: node.modified, number: UInt64(id))
        }
    }

    package func link(_ from: String, to: String) throws(IOFailure) {
        try access(.link, to) { state throws(IOFailure) in
            let (target, name) = try Self.parent(of: to, in: state, "link")
            guard let id = Self.find(from, in: state) else { throw IOFailure("link", path: from, errorNumber: ENOENT) }
            guard state.nodes[target]?.entries[name] == nil else { throw IOFailure("link", path: to, errorNumber: EEXIST) }
            state.nodes[target]?.entries[name] = id
        }
    }

    package func lock(_ directory: String) throws(IOFailure) -> any FileLock {
        let name = Self.parts(directory).joined(separator: "/")
        while true {
            let turn = Semaphore()
            let isMine: Bool = try access(.lock, directory) { state throws(IOFailure) in
                guard Self.find(directory, in: state) != nil else { throw IOFailure("lock", path: directory, errorNumber: ENOENT) }
                if state.locked.insert(name).inserted { return true }
                state.waiters.append(turn)
                return false
            }
            if isMine { return MemoryFileLock(self, name) }
            turn.wait()
        }
    }

    fileprivate func unlock(_ name: String) {
        let waiters = state.withLock { state in
            state.locked.remove(name)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.signal() }
    }

    // MARK: Parts

    private func access<T>(_ operation: Operation, _ path: String, _ body: (inout State) throws(IOFailure) -> T) throws(IOFailure) -> T {
        if let errorNumber = state.withLock({ $0.fault })?(operation, path) { throw IOFailure(operation.rawValue, path: path, errorNumber: errorNumber) }
        let result: Result<T, IOFailure> = state.withLock { state in
            do throws(IOFailure) { return .success(try body(&state)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    private static func parts(_ path: String) -> [String] { path.split(separator: "/").map(String.init).filter { $0 != "." } }

    private static func find(_ path: String, in state: borrowing State) -> Int? {
        var id = 0
        for name in parts(path) {
            guard let next = state.nodes[id]?.entries[name] else { return nil }
            id = next
        }
        return id
    }

    private static func parent(of path: String, in state: borrowing State, _ operation: String) throws(IOFailure) -> (node: Int, name: String) {
        let names = parts(path)
        guard let name = names.last, let node = find(names.dropLast().joined(separator: "/"), in: state), state.nodes[node]?.isDirectory == true else {
            throw IOFailure(operation, path: path, errorNumber: ENOENT)
        }
        return (node, name)
    }

    private static func add(_ node: Node, _ name: String, to parent: Int, _ state: inout State) -> Int {
        let id = state.nextNode
        state.nextNode += 1
        state.nodes[id] = node
        state.nodes[parent]?.entries[name] = id
        return id
    }

    private static func change(_ change: Change, _ state: inout State, _ id: Int) {
        guard var node = state.nodes.removeValue(forKey: id) else { return }
        apply(change, to: &node.live)
        node.pending.append(change)
        state.changes += 1
        node.modified = state.changes
        state.nodes[id] = node
    }

    fileprivate func onFile<T>(_ operation: Operation, _ file: MemoryFile, _ body: (inout [UInt8]) -> T) throws(IOFailure) -> T {
        try access(operation, file.path) { state throws(IOFailure) in
            guard state.generation == file.generation, state.nodes[file.node] != nil else {
                throw IOFailure(operation.rawValue, path: file.path, errorNumber: EIO)
            }
            return body(&state.nodes[file.node]!.live)  // looked up the line before
        }
    }

    fileprivate func change(_ operation: Operation, _ file: MemoryFile, _ change: Change) throws(IOFailure) {
        try access(operation, file.path) { state throws(IOFailure) in
            guard state.generation == file.generation else { throw IOFailure(operation.rawValue, path: file.path, errorNumber: EIO) }
            Self.change(change, &state, file.node)
        }
    }

    fileprivate func write(_ file: MemoryFile, _ bytes: [UInt8], at offset: Int) throws(IOFailure) { try change(.write, file, .write(offset: offset, bytes: bytes)) }
    fileprivate func truncate(_ file: MemoryFile, to size: Int) throws(IOFailure) { try change(.truncate, file, .truncate(size: size)) }

    fileprivate func sync(_ file: MemoryFile) throws(IOFailure) {
        try access(.sync, file.path) { state throws(IOFailure) in
            guard state.generation == file.generation, var node = state.nodes.removeValue(forKey: file.node) else {
                throw IOFailure("sync", path: file.path, errorNumber: EIO)
            }
            for change in node.pending { Self.apply(change, to: &node.durable) }
            node.pending = []
            state.nodes[file.node] = node
        }
    }
}

private final class MemoryFileLock: FileLock {
    private let system: MemoryFileSystem
    private let name: String

    init(_ system: MemoryFileSystem, _ name: String) {
        self.system = system
        self.name = name
    }

    deinit { system.unlock(name) }
}

private final class MemoryFile: File {
    let path: String
    let node: Int
    let generation: Int
    private let system: MemoryFileSystem

    init(system: MemoryFileSystem, path: String, node: Int, generation: Int) {
        self.system = system
        self.path = path
        self.node = node
        self.generation = generation
    }

    func size() throws(IOFailure) -> Int { try system.onFile(.read, self) { $0.count } }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int {
        try system.onFile(.read, self) { bytes in
            let count = max(0, min(buffer.count, bytes.count - offset))
            if count > 0 { bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) } }
            return count
        }
    }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) { try system.write(self, Array(buffer), at: offset) }
    func truncate(to size: Int) throws(IOFailure) { try system.truncate(self, to: size) }
    func reserve(_ size: Int) throws(IOFailure) { try system.onFile(.reserve, self) { _ in } }
    func sync() throws(IOFailure) { try system.sync(self) }
}
