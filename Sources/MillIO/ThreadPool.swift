import Synchronization

/// Threads for work that may block and is often short, such as a query: to start one costs more than many a query does.
///
/// As many as there is work; one that has done its work waits for more, a few at most and not for ever.
package final class ThreadPool: Sendable {
    package typealias Work = @Sendable () -> Void

    /// A thread as who has work for it sees it.
    private final class Member: Sendable {
        private let work: Mutex<Work?>
        private let arrived = Semaphore()

        init(_ work: @escaping Work) { self.work = Mutex(work) }

        func give(_ work: @escaping Work) {
            self.work.withLock { $0 = work }
            arrived.signal()
        }

        /// What was given, once: what it holds is let go of before the thread waits for more.
        func perform() {
            let work = work.withLock { $0.take() }
            work?()
        }

        /// Whether there is work within that time.
        func wait(atMost patience: Duration) -> Bool { arrived.wait(atMost: patience) }

        /// For what is on its way.
        func wait() { arrived.wait() }
    }

    /// What the threads share; they do not keep the pool.
    private final class Shared: Sendable {
        let idleMax: Int
        let patience: Duration
        let state = Mutex(State())

        struct State {
            /// The one that was used last is used first: what it works with is in a cache still.
            var idle: [Member] = []
            var isClosed = false
        }

        init(idleMax: Int, patience: Duration) {
            self.idleMax = idleMax
            self.patience = patience
        }

        func serve(_ member: Member) {
            repeat { member.perform() } while hasMore(member)
        }

        private func hasMore(_ member: Member) -> Bool {
            let waits = state.withLock { state in
                guard !state.isClosed, state.idle.count < idleMax else { return false }
                state.idle.append(member)
                return true
            }
            guard waits else { return false }
            if member.wait(atMost: patience) { return true }
            let isGiven = state.withLock { state in
                guard let place = state.idle.firstIndex(where: { $0 === member }) else { return true }
                state.idle.remove(at: place)
                return false
            }
            if isGiven { member.wait() }
            return isGiven
        }
    }

    private let shared: Shared

    /// - Parameters:
    ///   - idleMax: how many threads wait for work; others end with theirs.
    ///   - patience: how long they wait.
    package init(idleMax: Int = 4, patience: Duration = .seconds(10)) { shared = Shared(idleMax: idleMax, patience: patience) }

    /// Threads that wait end; others do when their work is done.
    deinit {
        let idle = shared.state.withLock { state in
            defer { state.idle = [] }
            state.isClosed = true
            return state.idle
        }
        for member in idle { member.give {} }
    }

    package var idleCount: Int { shared.state.withLock { $0.idle.count } }

    /// Begins the work at once, on a thread that does nothing else meanwhile.
    package func run(_ work: @escaping Work) throws(ThreadFailure) {
        if let member = shared.state.withLock({ $0.idle.popLast() }) { return member.give(work) }
        let member = Member(work)
        _ = try PinnedThread { [shared] in shared.serve(member) }
    }
}
