import MillIO
import Synchronization

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
