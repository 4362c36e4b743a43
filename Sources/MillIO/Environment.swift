package import MillBase

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The only door to files, clock and randomness. Everything that touches the outside takes one of these, so a test can
/// run the whole program against a simulated disk and clock from a seed.
package struct Environment: Sendable {
    package var files: any FileSystem
    package var clock: any Clock
    package var random: any RandomSource

    package init(files: any FileSystem, clock: any Clock, random: any RandomSource) {
        self.files = files
        self.clock = clock
        self.random = random
    }
}

/// Wall and monotonic time.
package protocol Clock: Sendable {
    /// Microseconds since 1970-01-01T00:00:00Z; may jump.
    var nowMicros: Int64 { get }
    /// Nanoseconds from an arbitrary start; never goes back.
    var monotonicNanos: UInt64 { get }
    /// Returns once the time has passed.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    func sleep(for duration: Duration) async throws
    /// Blocks this thread until the time has passed: for threads that may wait, never a worker's or a task's.
    func pause(for duration: Duration)
}

extension Clock {
    package func pause(for duration: Duration) { _ = Semaphore().wait(atMost: duration) }
}

package protocol RandomSource: Sendable {
    func next() -> UInt64
}

/// A file operation that failed: what was tried, on which path, and the system's error number.
package struct IOFailure: Error, Sendable, Hashable, CustomStringConvertible, SQLErrorConvertible {
    package var operation: String
    package var path: String
    package var errorNumber: Int32
    /// What a store on the far side of a network said; nil where the system's words are all there is.
    package var detail: String?

    package init(_ operation: String, path: String, errorNumber: Int32, detail: String? = nil) {
        self.operation = operation
        self.path = path
        self.errorNumber = errorNumber
        self.detail = detail
    }

    package var description: String { "could not \(operation) \"\(path)\": \(detail ?? systemMessage(errorNumber))" }
    /// No room is left on the disk, or of what this user may take of it.
    package var isDiskFull: Bool { errorNumber == ENOSPC || errorNumber == EDQUOT }
    /// 53100 when the disk is full, else 58030.
    package var sqlError: SQLError {
        isDiskFull ? SQLError(.diskFull, description, hint: "It goes on by itself when there is room again.") : SQLError(.ioError, description)
    }
}

/// Paths are plain strings with `/` between the parts.
package protocol FileSystem: Sendable {
    func open(_ path: String, _ mode: OpenMode) throws(IOFailure) -> any File
    /// The names in a directory, sorted.
    func list(_ directory: String) throws(IOFailure) -> [String]
    /// Makes a directory and its missing parents; an existing one is fine.
    func createDirectory(_ path: String) throws(IOFailure)
    /// Removes a file, or a directory with all that is in it; a missing one is fine.
    func remove(_ path: String) throws(IOFailure)
    /// Replaces `to` atomically.
    func rename(_ from: String, to: String) throws(IOFailure)
    /// Makes creations, renames and removals in a directory durable.
    func syncDirectory(_ path: String) throws(IOFailure)
    func exists(_ path: String) -> Bool
    /// What a path names, links followed; nil when there is nothing.
    func look(at path: String) throws(IOFailure) -> FileStatus?
    /// Gives a file a second name, in one step with finding that name free: `EEXIST` when it is not.
    func link(_ from: String, to: String) throws(IOFailure)
    /// Waits until no other holder, of this process or another, has the directory, and has it until the value is released. The system
    /// lets go when the process ends. It hinders nobody who does not ask.
    func lock(_ directory: String) throws(IOFailure) -> any FileLock
}

package protocol FileLock: AnyObject, Sendable {}

/// What a path names.
package struct FileStatus: Hashable, Sendable {
    package var isDirectory: Bool
    package var byteCount: Int
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    package var modifiedNanos: Int64
    /// Which file of its disk it is: a file that took another's name has another.
    package var number: UInt64

    package init(isDirectory: Bool, byteCount: Int, modifiedNanos: Int64, number: UInt64) {
        self.isDirectory = isDirectory
        self.byteCount = byteCount
        self.modifiedNanos = modifiedNanos
        self.number = number
    }
}

extension FileSystem {
    /// Makes a directory and its missing parents, and makes them durable: without that a power cut takes with the directory what is in it.
    package func createDurableDirectory(_ path: String) throws(IOFailure) {
        var missing: [String] = []
        var place = path
        while !exists(place), Self.parent(of: place) != place {
            missing.append(place)
            place = Self.parent(of: place)
        }
        try createDirectory(path)
        for made in missing.reversed() { try syncDirectory(Self.parent(of: made)) }
        // An earlier process may have ended before that. A parent that cannot be read is one that somebody else has made.
        if missing.isEmpty { try? syncDirectory(Self.parent(of: path)) }
    }

    private static func parent(of path: String) -> String {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? path.dropLast() : path[...]
        guard let slash = trimmed.lastIndex(of: "/") else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }
}

package enum OpenMode: Sendable {
    case read
    /// Read and write; created when missing.
    case readWrite
    /// Read and write; emptied when it exists.
    case create
}

/// An open file. Offsets are explicit; one writer at a time, any number of readers. Closed when released.
package protocol File: AnyObject, Sendable {
    var path: String { get }
    func size() throws(IOFailure) -> Int
    /// Reads up to `buffer.count` bytes at `offset`; fewer only at the end of the file.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(IOFailure) -> Int
    /// Says that bytes will be read soon, so that the system may fetch them meanwhile. A hint.
    func prefetch(at offset: Int, count: Int)
    /// Writes all of `buffer` at `offset`.
    func write(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure)
    /// The same for whole blocks: `offset`, the count and the address are multiples of `fileBlockBytes`. Past the page cache where the
    /// system can, so that nothing is left for `sync` but what describes the file. Any write may follow any other.
    func writeBlocks(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure)
    /// Sets the size; gives back what `reserve` got beyond it.
    func truncate(to size: Int) throws(IOFailure)
    /// Finds room on the disk for `size` bytes, so that a write need not look for it while another thread syncs, nor fail for want of it.
    /// Content and size stay. Nothing happens where the system has no such thing.
    func reserve(_ size: Int) throws(IOFailure)
    /// Makes the file's content and size durable.
    func sync() throws(IOFailure)
}

/// What `File.writeBlocks` writes in: no disk or file system that we know has larger ones.
package let fileBlockBytes = 4096

extension File {
    package func reserve(_ size: Int) throws(IOFailure) {}
    package func prefetch(at offset: Int, count: Int) {}
    package func writeBlocks(_ buffer: UnsafeRawBufferPointer, at offset: Int) throws(IOFailure) { try write(buffer, at: offset) }
}
