import CFile
import MillBase
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

package func systemMessage(_ errorNumber: Int32) -> String { String(cString: strerror(errorNumber)) }

/// The machine's own files.
package struct LocalFileSystem: FileSystem {
    package init() {}

    package func open(_ path: String, _ mode: OpenMode) throws(IOFailure) -> any File {
        let flags: Int32 =
            switch mode {
            case .read: O_RDONLY
            case .readWrite: O_RDWR | O_CREAT
            case .create: O_RDWR | O_CREAT | O_TRUNC
            }
        let descriptor = retryingInterrupted { unsafeOpen(path, flags | O_CLOEXEC, 0o644) }
        guard descriptor >= 0 else { throw IOFailure("open", path: path, errorNumber: errno) }
        return LocalFile(path: path, descriptor: descriptor)
    }

    package func list(_ directory: String) throws(IOFailure) -> [String] {
        guard let handle = opendir(directory) else { throw IOFailure("list", path: directory, errorNumber: errno) }
        defer { closedir(handle) }
        var names: [String] = []
        while true {
            // Only this tells an error from the end: a file that is not listed counts as one that is not there.
            errno = 0
            guard let entry = readdir(handle) else { break }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if name != "." && name != ".." { names.append(name) }
        }
        guard errno == 0 else { throw IOFailure("list", path: directory, errorNumber: errno) }
        return names.sorted()
    }

    package func createDirectory(_ path: String) throws(IOFailure) {
        if mkdir(path, 0o755) == 0 { return }
        switch errno {
        case EEXIST:
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { throw IOFailure("create directory", path: path, errorNumber: ENOTDIR) }
        case ENOENT:
            guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { throw IOFailure("create directory", path: path, errorNumber: ENOENT) }
            try createDirectory(String(path[..<slash]))
            guard mkdir(path, 0o755) == 0 || errno == EEXIST else { throw IOFailure("create directory", path: path, errorNumber: errno) }
        default: throw IOFailure("create directory", path: path, errorNumber: errno)
        }
    }

    package func remove(_ path: String) throws(IOFailure) {
        if unlink(path) == 0 || errno == ENOENT { return }
        guard errno == EISDIR || errno == EPERM else { throw IOFailure("remove", path: path, errorNumber: errno) }
        for name in try list(path) { try remove(path + "/" + name) }
        guard rmdir(path) == 0 || errno == ENOENT else { throw IOFailure("remove", path: path, errorNumber: errno) }
    }

    package func rename(_ from: String, to: String) throws(IOFailure) {
        guard unsafeRename(from, to) == 0 else { throw IOFailure("rename", path: from, errorNumber: errno) }
    }

    package func syncDirectory(_ path: String) throws(IOFailure) {
        let descriptor = unsafeOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw IOFailure("open", path: path, errorNumber: errno) }
        defer { close(descriptor) }
        guard retryingInterrupted({ fsync(descriptor) }) == 0 else { throw IOFailure("sync", path: path, errorNumber: errno) }
    }

    package func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    package func look(at path: String) throws(IOFailure) -> FileStatus? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw IOFailure("stat", path: path, errorNumber: errno)
        }
        #if canImport(Glibc)
        let modified = status.st_mtim
        #else
        let modified = status.st_mtimespec
        #endif
        return FileStatus(
            isDirectory: status.st_mode & S_IFMT == S_IFDIR, byteCount: Int(status.st_size),
            modifiedNanos: Int64(modified.tv_sec) &* 1_000_000_000 &+ Int64(modified.tv_nsec), number: UInt64(status.st_ino))
    }

    package func link(_ from: String, to: String) throws(IOFailure) {
        guard unsafeLink(from, to) == 0 else { throw IOFailure("link", path: to, errorNumber: errno) }
    }

    package func lock(_ directory: String) throws(IOFailure) -> any FileLock {
        let descriptor = unsafeOpen(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw IOFailure("open", path: directory, errorNumber: errno) }
        let lock = LocalFileLock(descriptor)
        guard retryingInterrupted({ flock(descriptor, LOCK_EX) }) == 0 else { throw IOFailure("lock", path: directory, errorNumber: errno) }
        return lock
    }
}

/// A lock that the system ties to a descriptor: closing lets go.
private final class LocalFileLock: FileLock {
    private let descriptor: Int32
    init(_ descriptor: Int32) { self.descriptor = descriptor }
    deinit { close(descriptor) }
}

/// The libc functions whose names the methods above shadow.
private func unsafeLink(_ from: String, _ to: String) -> Int32 { link(from, to) }
private func unsafeOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
private func unsafeRename(_ from: String, _ to: String) -> Int32 { rename(from, to) }

private func retryingInterrupted<T: BinaryInteger>(_ call: () -> T) -> T {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}

final class LocalFile: File {
    let path: String
    private let descriptor: Int32
    /// Of the same file, for writes past the page cache; nil before the first one, -1 where there are none.
    private let direct = Mutex<Int32?>(nil)

    init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit {
        if let direct = direct.withLock({ $0 }), direct >= 0 { close(direct) }
        close(descriptor)
    }

    func size() throws(IOFailure) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw IOFailure("stat", path: path, errorNumber: errno) }
        return Int(status.st_size)
    }

    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int {
        var done = 0
        while done < buffer.count {
            let count = retryingInterrupted { pread(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(offset + done)) }
            guard count >= 0 else { throw IOFailure("read", path: path, errorNumber: errno) }
            if count == 0 { break }
            done += count
        }
        return done
    }

    func prefetch(at offset: Int, count: Int) { mill_file_prefetch(descriptor, off_t(offset), off_t(count)) }

    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) { try write(buffer, at: offset, by: descriptor) }

    private func write(_ buffer: UnsafeRawBufferPointer, at offset: Int, by descriptor: Int32) throws(IOFailure) {
        var done = 0
        while done < buffer.count {
            let count = retryingInterrupted { pwrite(descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(offset + done)) }
            guard count > 0 else { throw IOFailure("write", path: path, errorNumber: count == 0 ? ENOSPC : errno) }
            done += count
        }
    }

    func writeBlocks(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) {
        precondition(
            (offset | buffer.count | Int(bitPattern: buffer.baseAddress)) % fileBlockBytes == 0, "blocks are whole and lie at their places")
        let direct = direct.withLock { direct in
            let opened = direct ?? mill_file_open_direct(descriptor)
            direct = opened
            return opened
        }
        guard direct >= 0 else { return try write(buffer, at: offset) }
        do throws(IOFailure) { try write(buffer, at: offset, by: direct) } catch {
            // Some file systems take the flag and refuse the write, or one that does not lie as they want it.
            guard error.errorNumber == EINVAL else { throw error }
            self.direct.withLock { $0 = -1 }
            close(direct)
            try write(buffer, at: offset)
        }
    }

    func truncate(to size: Int) throws(IOFailure) {
        guard retryingInterrupted({ ftruncate(descriptor, off_t(size)) }) == 0 else { throw IOFailure("truncate", path: path, errorNumber: errno) }
    }

    func reserve(_ size: Int) throws(IOFailure) {
        let errorNumber = mill_file_reserve(descriptor, off_t(size))
        guard errorNumber == 0 else { throw IOFailure("reserve", path: path, errorNumber: errorNumber) }
    }

    func sync() throws(IOFailure) {
        guard retryingInterrupted({ fdatasync(descriptor) }) == 0 else { throw IOFailure("sync", path: path, errorNumber: errno) }
    }
}
