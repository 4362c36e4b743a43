import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A file on its way to its name.
final class LocalObjectWriter: ObjectWriter {
    private struct Progress {
        var written = 0
        var isOpen = true
    }

    private let store: LocalObjectStore
    private let file: any File
    private let place: FileLocation
    private let location: String
    private let progress = Mutex(Progress())

    init(_ store: LocalObjectStore, _ file: any File, _ place: FileLocation, _ location: String) {
        self.store = store
        self.file = file
        self.place = place
        self.location = location
    }

    deinit { abandon() }

    var path: String { location }
    func size() -> Int { progress.withLock { $0.written } }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) {
        try check("write")
        let written = size()
        guard offset == written else {
            throw IOFailure(
                "write", path: location, errorNumber: EINVAL,
                detail: "an object is written from start to end: \(written) bytes are, the write is at \(offset)")
        }
        try file.write(buffer, at: offset)
        progress.withLock { $0.written += buffer.count }
    }

    func finish() throws(IOFailure) {
        try check("finish")
        do throws(IOFailure) { try store.publish(file, place, .always, location) } catch {
            abandon()
            throw error
        }
        progress.withLock { $0.isOpen = false }
    }

    func abandon() {
        let isOpen = progress.withLock { progress in
            defer { progress.isOpen = false }
            return progress.isOpen
        }
        if isOpen { store.discard(file) }
    }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int { throw writeOnly("read") }
    func truncate(to size: Int) throws(IOFailure) { throw writeOnly("truncate") }
    /// `finish` is what makes it durable.
    func sync() {}

    private func check(_ operation: String) throws(IOFailure) {
        guard progress.withLock({ $0.isOpen }) else {
            throw IOFailure(operation, path: location, errorNumber: EBADF, detail: "the object is finished or abandoned")
        }
    }

    private func writeOnly(_ operation: String) -> IOFailure {
        IOFailure(operation, path: location, errorNumber: EBADF, detail: "the object is being written from start to end")
    }
}
