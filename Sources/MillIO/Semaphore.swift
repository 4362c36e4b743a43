import CSemaphore

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
        let nanos = min(duration, .seconds(Self.secondsMax)) / .nanoseconds(1)
        return mill_semaphore_wait(handle, Int64(max(nanos, 0))) == 0
    }

    /// Nobody waits longer than ten years.
    private static let secondsMax = 315_360_000
}
