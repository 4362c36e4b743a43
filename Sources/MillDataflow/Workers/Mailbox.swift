import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A queue with many senders and one receiving thread that sleeps while it is empty.
///
/// The semaphore counts "not empty" transitions, so a sender wakes the receiver once, not once per message.
package final class Mailbox<Message: Sendable>: Sendable {
    private let queue = Mutex<[Message]>([])
    private let wakeups: Semaphore

    package init() { wakeups = Semaphore() }

    package func send(_ message: Message) {
        let wasEmpty = queue.withLock { queue in
            queue.append(message)
            return queue.count == 1
        }
        if wasEmpty { wakeups.signal() }
    }

    /// All messages in order; waits until there is one.
    package func receive() -> [Message] {
        while true {
            let messages = take()
            if !messages.isEmpty { return messages }
            wakeups.wait()
        }
    }

    /// All messages that are there now, possibly none.
    package func take() -> [Message] {
        queue.withLock { queue in
            let messages = queue
            queue.removeAll(keepingCapacity: false)
            return messages
        }
    }
}

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
}
