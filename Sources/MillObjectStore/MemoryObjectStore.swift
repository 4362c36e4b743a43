package import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Objects in memory, for tests: any location, every condition, and faults where a test wants them.
///
/// Threading: any thread.
package final class MemoryObjectStore: ObjectStore {
    package enum Operation: String, Sendable, CaseIterable {
        case put, get, look, read, write, finish, list, remove
    }

    /// How an operation fails.
    package enum Fault: Hashable, Sendable {
        /// Nothing happens.
        case refused(Int32)
        /// It happens, and its answer is lost.
        case unanswered(Int32)
    }

    /// Decides by operation and location; nil lets it happen.
    package typealias Faults = @Sendable (Operation, String) -> Fault?

    private struct Stored {
        var bytes: [UInt8]
        var version: Int
    }

    private struct State {
        var objects: [String: Stored] = [:]
        /// Versions are given in the order of puts: tag and time of an object.
        var versions = 0
        var faults: Faults?
    }

    private let state = Mutex(State())

    package init() {}

    package func setFaults(_ faults: Faults?) { state.withLock { $0.faults = faults } }

    package func put(_ location: String, _ bytes: [UInt8], _ condition: PutCondition) throws(IOFailure) {
        try on(.put, location) { state throws(IOFailure) in
            let found = state.objects[location]
            let holds =
                switch condition {
                case .always: true
                case .isMissing: found == nil
                case .hasTag(let tag): found.map { Self.tag($0) } == tag
                }
            guard holds else {
                throw IOFailure(
                    "put", path: location, errorNumber: EEXIST,
                    detail: condition == .isMissing ? "there is an object already" : "it is another object by now")
            }
            state.versions += 1
            state.objects[location] = Stored(bytes: bytes, version: state.versions)
        }
    }

    package func get(_ location: String) throws(IOFailure) -> [UInt8] {
        try on(.get, location) { state throws(IOFailure) in try Self.found(location, "get", state).bytes }
    }

    package func look(at location: String) throws(IOFailure) -> ObjectEntry? {
        try on(.look, location) { state throws(IOFailure) in state.objects[location].map { Self.entry(location, $0) } }
    }

    package func openForReading(_ location: String) throws(IOFailure) -> any File {
        let bytes = try on(.look, location) { state throws(IOFailure) in try Self.found(location, "open", state).bytes }
        return MemoryObject(self, location, bytes)
    }

    package func openForWriting(_ location: String) throws(IOFailure) -> any ObjectWriter { MemoryObjectWriter(self, location) }

    package func list(_ prefix: String) throws(IOFailure) -> [ObjectEntry] {
        try on(.list, prefix) { state throws(IOFailure) in
            state.objects.filter { $0.key.utf8.starts(with: prefix.utf8) }.map { Self.entry($0.key, $0.value) }
                .sorted { $0.location.utf8.lexicographicallyPrecedes($1.location.utf8) }
        }
    }

    package func remove(_ locations: [String]) throws(IOFailure) {
        for location in locations { try on(.remove, location) { state throws(IOFailure) in state.objects[location] = nil } }
    }

    // MARK: Parts

    private static func found(_ location: String, _ operation: String, _ state: State) throws(IOFailure) -> Stored {
        guard let stored = state.objects[location] else {
            throw IOFailure(operation, path: location, errorNumber: ENOENT, detail: "there is no such object")
        }
        return stored
    }

    private static func tag(_ stored: Stored) -> String { "\"\(stored.version)\"" }

    private static func entry(_ location: String, _ stored: Stored) -> ObjectEntry {
        ObjectEntry(location: location, byteCount: stored.bytes.count, tag: tag(stored), modifiedMicros: Int64(stored.version))
    }

    private func on<T>(_ operation: Operation, _ location: String, _ body: (inout State) throws(IOFailure) -> T) throws(IOFailure) -> T {
        let fault = state.withLock { $0.faults }?(operation, location)
        if case .refused(let errorNumber) = fault { throw Self.away(operation, location, errorNumber) }
        let result: Result<T, IOFailure> = state.withLock { state in
            do throws(IOFailure) { return .success(try body(&state)) } catch { return .failure(error) }
        }
        if case .unanswered(let errorNumber) = fault { throw Self.away(operation, location, errorNumber) }
        return try result.get()
    }

    private static func away(_ operation: Operation, _ location: String, _ errorNumber: Int32) -> IOFailure {
        IOFailure(
            operation.rawValue, path: location, errorNumber: errorNumber, detail: "a fault of the test's: \(systemMessage(errorNumber))")
    }

    fileprivate func pass(_ operation: Operation, _ location: String) throws(IOFailure) {
        try on(operation, location) { _ throws(IOFailure) in }
    }

    fileprivate func finish(_ location: String, _ bytes: [UInt8]) throws(IOFailure) {
        try on(.finish, location) { state throws(IOFailure) in
            state.versions += 1
            state.objects[location] = Stored(bytes: bytes, version: state.versions)
        }
    }
}

private final class MemoryObject: File {
    private let store: MemoryObjectStore
    private let bytes: [UInt8]
    let path: String

    init(_ store: MemoryObjectStore, _ path: String, _ bytes: [UInt8]) {
        self.store = store
        self.path = path
        self.bytes = bytes
    }

    func size() -> Int { bytes.count }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int {
        try store.pass(.read, path)
        let count = max(0, min(buffer.count, bytes.count - offset))
        if count > 0 { buffer.copyBytes(from: bytes[offset..<offset + count]) }
        return count
    }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) {
        throw IOFailure("write", path: path, errorNumber: EBADF)
    }
    func truncate(to size: Int) throws(IOFailure) { throw IOFailure("truncate", path: path, errorNumber: EBADF) }
    func sync() {}
}

private final class MemoryObjectWriter: ObjectWriter {
    private let store: MemoryObjectStore
    /// Nil once finished or abandoned.
    private let written = Mutex<[UInt8]?>([])
    let path: String

    init(_ store: MemoryObjectStore, _ path: String) {
        self.store = store
        self.path = path
    }

    func size() -> Int { written.withLock { $0?.count ?? 0 } }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) {
        try store.pass(.write, path)
        let isTaken = written.withLock { written in
            guard written?.count == offset else { return false }
            written?.append(contentsOf: buffer)
            return true
        }
        guard isTaken else { throw IOFailure("write", path: path, errorNumber: EINVAL, detail: "an object is written from start to end") }
    }

    func finish() throws(IOFailure) {
        guard let bytes = written.withLock({ $0.take() }) else { throw IOFailure("finish", path: path, errorNumber: EBADF) }
        try store.finish(path, bytes)
    }

    func abandon() { written.withLock { $0 = nil } }
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int {
        throw IOFailure("read", path: path, errorNumber: EBADF)
    }
    func truncate(to size: Int) throws(IOFailure) { throw IOFailure("truncate", path: path, errorNumber: EBADF) }
    func sync() {}
}
