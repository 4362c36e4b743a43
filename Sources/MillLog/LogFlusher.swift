import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Something with data to make durable.
protocol Flushable: AnyObject, Sendable {
    /// Makes durable what was written or queued before the call, and tells who waits. Never called twice at once.
    func flush()
}

/// The threads that write and sync files: a partition that has something to write is queued once, and everything that comes to it until
/// its turn comes shares one write and one fsync. So a lone producer waits for one fsync, and a hundred do too.
///
/// Threading: any thread may `schedule`; the lists are guarded by the pthread mutex, which is what makes it Sendable.
final class LogFlusher: @unchecked Sendable {
    let writer = BlockWriter()
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    /// nil before `head`.
    private var queue: [(any Flushable)?] = []
    private var head = 0
    private var queued: Set<ObjectIdentifier> = []
    private var busy: Set<ObjectIdentifier> = []
    private var stopping = false
    private var threads: [pthread_t] = []

    /// - Throws: `noThread` when the system starts none; fewer than were wanted do.
    init(threadCount: Int) throws(LogError) {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
        for _ in 0..<threadCount {
            var thread = pthread_t()
            let me = Unmanaged.passRetained(self)
            let status = pthread_create(&thread, nil, { argument in
                guard let argument else { return nil }
                Unmanaged<LogFlusher>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, me.toOpaque())
            guard status == 0 else {
                me.release()
                if threads.isEmpty { throw .noThread(ThreadFailure(errorNumber: status)) }
                break
            }
            threads.append(thread)
        }
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(condition)
        mutex.deallocate()
        condition.deallocate()
    }

    /// - Returns: false after `stop`: nobody will flush it.
    @discardableResult
    func schedule(_ target: any Flushable) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if stopping { return false }
        if queued.insert(ObjectIdentifier(target)).inserted {
            queue.append(target)
            // The thread that is at it looks again when it is done.
            if !isBusy(target) { pthread_cond_signal(condition) }
        }
        return true
    }

    /// Flushes what is queued and ends the threads.
    func stop() {
        pthread_mutex_lock(mutex)
        stopping = true
        let running = threads
        threads = []
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
        for thread in running {
            // Whoever is flushed may go with the flush, and what it belongs to.
            if pthread_equal(thread, pthread_self()) != 0 { pthread_detach(thread) } else { pthread_join(thread, nil) }
        }
    }

    private func run() {
        pthread_mutex_lock(mutex)
        while true {
            if let next = take() {
                var target: (any Flushable)? = consume next
                let id = target.map { ObjectIdentifier($0) }
                if let id { busy.insert(id) }
                // One that came while it was busy, and that this thread has now passed over.
                if queue[head...].contains(where: { $0.map(isBusy) == false }) { pthread_cond_signal(condition) }
                pthread_mutex_unlock(mutex)
                target?.flush()
                // Whoever lets go of it last may end this flusher, which takes the lock.
                target = nil
                pthread_mutex_lock(mutex)
                if let id { busy.remove(id) }
            } else if stopping, queue.count == head {
                break
            } else {
                pthread_cond_wait(condition, mutex)
            }
        }
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    private func isBusy(_ target: any Flushable) -> Bool { busy.contains(ObjectIdentifier(target)) }

    /// The next in the queue that no thread is flushing.
    private func take() -> (any Flushable)? {
        for index in head..<queue.count {
            guard let target = queue[index], !isBusy(target) else { continue }
            queue[index] = queue[head]
            queue[head] = nil
            head += 1
            if head == queue.count || head > 1024 {
                queue.removeFirst(head)
                head = 0
            }
            queued.remove(ObjectIdentifier(target))
            return target
        }
        return nil
    }
}

/// Waits for one value from another thread.
final class OneShot<Value: Sendable>: @unchecked Sendable {
    // The mutex guards `value`; a waiter and a setter are all there is.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>
    private var value: Value?

    init() {
        mutex = .allocate(capacity: 1)
        condition = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        pthread_cond_destroy(condition)
        mutex.deallocate()
        condition.deallocate()
    }

    func set(_ value: Value) {
        pthread_mutex_lock(mutex)
        self.value = value
        pthread_cond_signal(condition)
        pthread_mutex_unlock(mutex)
    }

    func wait() -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let value { return value }
            pthread_cond_wait(condition, mutex)
        }
    }
}
