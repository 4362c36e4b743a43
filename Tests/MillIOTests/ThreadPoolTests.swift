import MillIO
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct ThreadPoolTests {
    /// Notes which threads did the work.
    private final class Ledger: Sendable {
        private let threads = Mutex<[UInt]>([])
        private let done = Semaphore()

        func note() {
            threads.withLock { $0.append(UInt(bitPattern: pthread_self().hashValue)) }
            done.signal()
        }

        func wait(for count: Int) {
            for _ in 0..<count { done.wait() }
        }

        var distinct: Int { threads.withLock { Set($0).count } }
    }

    private func untilIdle(_ count: Int, _ pool: ThreadPool) {
        while pool.idleCount != count { sched_yield() }
    }

    @Test func aThreadThatHasDoneItsWorkDoesTheNext() throws {
        let pool = ThreadPool()
        let ledger = Ledger()
        for _ in 0..<100 {
            try pool.run { ledger.note() }
            ledger.wait(for: 1)
            untilIdle(1, pool)
        }
        #expect(ledger.distinct == 1)
    }

    @Test func workThatBlocksKeepsNoOtherWaiting() throws {
        let pool = ThreadPool(idleMax: 2)
        let ledger = Ledger()
        let gate = Semaphore()
        for _ in 0..<5 {
            try pool.run {
                ledger.note()
                gate.wait()
            }
        }
        ledger.wait(for: 5)
        #expect(ledger.distinct == 5)
        for _ in 0..<5 { gate.signal() }
        untilIdle(2, pool)
    }

    @Test func whatWorkHoldsIsLetGoOfWhenItIsDone() throws {
        final class Held: Sendable {}
        let pool = ThreadPool()
        let held = Mutex<Held?>(Held())
        weak let kept = held.withLock { $0 }
        try pool.run { [inner = held.withLock { $0.take() }] in _ = inner }
        untilIdle(1, pool)
        #expect(kept == nil)
    }

    /// Work is given again and again as threads' patience ends.
    @Test func noWorkIsLostAsThreadsEnd() throws {
        let pool = ThreadPool(idleMax: 3, patience: .microseconds(20))
        let ledger = Ledger()
        for round in 0..<3000 {
            try pool.run { ledger.note() }
            if round % 3 == 0 { ledger.wait(for: round == 0 ? 1 : 3) }
        }
        ledger.wait(for: 2)
        untilIdle(0, pool)
    }
}
