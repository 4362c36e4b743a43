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
    private let queue = Mutex(Queue())
    private let wakeups: Semaphore

    private struct Queue {
        var messages: [Message] = []
        var isClosed = false
    }

    package init() { wakeups = Semaphore() }

    /// - Returns: false when the mailbox is closed: nobody will see the message.
    @discardableResult
    package func send(_ message: Message) -> Bool {
        let (isTaken, wasEmpty) = queue.withLock { queue in
            guard !queue.isClosed else { return (false, false) }
            queue.messages.append(message)
            return (true, queue.messages.count == 1)
        }
        if wasEmpty { wakeups.signal() }
        return isTaken
    }

    /// Takes no more messages; returns those that nobody has received.
    package func close() -> [Message] {
        queue.withLock { queue in
            queue.isClosed = true
            defer { queue.messages = [] }
            return queue.messages
        }
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
            defer { queue.messages = [] }
            return queue.messages
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
