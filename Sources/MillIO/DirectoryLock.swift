package import MillBase

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Holds a directory for one process: a second one is refused while this value lives. The system lets go when the process ends,
/// however it ends.
package final class DirectoryLock: Sendable {
    private let descriptor: Int32

    /// - Throws: 55000 when another process holds it, 58030 when the lock file cannot be made.
    package init(_ directory: String) throws(SQLError) {
        let path = directory + "/lock"
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw IOFailure("open", path: path, errorNumber: errno).sqlError }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw SQLError(
                .objectNotInPrerequisiteState, "the data directory \"\(directory)\" is in use by another process",
                hint: "Stop it, or give this one a directory of its own with --data-dir.")
        }
    }

    deinit { close(descriptor) }

    /// Whether a process holds the directory now; nothing is made or taken.
    package static func isHeld(_ directory: String) -> Bool {
        let descriptor = open(directory + "/lock", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0
    }
}
