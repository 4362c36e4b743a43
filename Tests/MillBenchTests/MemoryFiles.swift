import MillIO
import Synchronization

/// Files that live as long as the test.
final class MemoryFiles: FileSystem {
    private let contents = Mutex<[String: MemoryFile]>([:])

    func lines(_ path: String) -> [String] {
        let bytes = contents.withLock { $0[path]?.bytes ?? [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    func open(_ path: String, _ mode: OpenMode) -> any File {
        contents.withLock { files in
            let file = MemoryFile(path: path)
            files[path] = file
            return file
        }
    }
    func list(_ directory: String) -> [String] { [] }
    func createDirectory(_ path: String) {}
    func remove(_ path: String) {}
    func rename(_ from: String, to: String) {}
    func syncDirectory(_ path: String) {}
    func exists(_ path: String) -> Bool { contents.withLock { $0[path] != nil } }
    func look(at path: String) -> FileStatus? { nil }
    func link(_ from: String, to: String) {}
    func lock(_ directory: String) throws(IOFailure) -> any FileLock { throw IOFailure("lock", path: directory, errorNumber: 0) }
}

final class MemoryFile: File {
    let path: String
    private let content = Mutex<[UInt8]>([])
    init(path: String) { self.path = path }

    var bytes: [UInt8] { content.withLock { $0 } }
    func size() -> Int { bytes.count }
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int { 0 }
    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) {
        content.withLock { content in
            precondition(content.count == offset, "the generator writes from front to back")
            content += buffer
        }
    }
    func truncate(to size: Int) {}
    func sync() {}
}
