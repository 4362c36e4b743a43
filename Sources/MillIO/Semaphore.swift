#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// POSIX semaphore.
package final class Semaphore: @unchecked Sendable {
    // Safe to share: sem_t is made for it, and its address is fixed for the object's life.
    private let handle: UnsafeMutablePointer<sem_t>

    package init() {
        handle = .allocate(capacity: 1)
        sem_init(handle, 0, 0)
    }

    deinit {
        sem_destroy(handle)
        handle.deallocate()
    }

    package func signal() { sem_post(handle) }

    package func wait() {
        while sem_wait(handle) != 0, errno == EINTR {}
    }

    /// - Returns: false when nobody signalled within that time.
    package func wait(atMost duration: Duration) -> Bool {
        var deadline = timespec()
        clock_gettime(CLOCK_REALTIME, &deadline)
        let end = Duration.seconds(deadline.tv_sec) + .nanoseconds(deadline.tv_nsec) + duration
        deadline.tv_sec = time_t(end.components.seconds)
        deadline.tv_nsec = Int(end.components.attoseconds / 1_000_000_000)
        while sem_timedwait(handle, &deadline) != 0 {
            guard errno == EINTR else { return false }
        }
        return true
    }
}
