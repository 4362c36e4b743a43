import MillIO
import Synchronization
import Testing

@testable import MillConnectors

@Suite struct BlockPoolTests {
    /// What another thread wrote lies in another processor's cache.
    @Test func aThreadIsGivenWhatItWroteBefore() throws {
        let pool = BlockPool(FillTimes { _ in })
        let mine = address(of: pool)
        let other = Mutex(0)
        try PinnedThread { other.withLock { $0 = address(of: pool) } }.join()
        #expect(other.withLock { $0 } != mine)
        #expect(address(of: pool) == mine)
    }

    /// Blocks of another size fill the pool, as after a backfill.
    @Test func blocksOfASizeThatNobodyAsksForMakeRoom() {
        let pool = BlockPool(FillTimes { _ in })
        do {
            let large = (0..<40).map { _ in pool.take(1 << 20) }
            #expect(large.count == 40)
        }
        let small = address(of: pool)
        #expect(address(of: pool) == small)
    }

    /// As where a peer's processor has read what was put back last, and lies far from this one; and nearer again later.
    @Test func whatIsFasterToFillIsGiven() {
        let states = Mutex<[Bool]>([])
        let pool = BlockPool(FillTimes { isOldestFaster in states.withLock { $0.append(isOldestFaster) } })
        do {
            let blocks = (0..<6).map { _ in pool.take(1 << 20) }
            #expect(blocks.count == 6)
        }
        /// How many of the last takes were given what was put back last.
        func fill(takes: Int, last: Int, newestNanos: UInt64) -> Int {
            var before: UnsafeMutableRawPointer?
            var newestCount = 0
            for take in 0..<takes {
                let block = pool.take(1 << 20)
                let isNewest = block.start == before
                if isNewest, take >= takes - last { newestCount += 1 }
                before = block.start
                block.filled(byteCount: 1 << 20, nanoseconds: isNewest ? newestNanos : 150_000)
            }
            return newestCount
        }
        #expect(fill(takes: 200, last: 64, newestNanos: 80_000) >= 60)
        #expect(fill(takes: 200, last: 64, newestNanos: 300_000) <= 4)
        #expect(fill(takes: 1000, last: 64, newestNanos: 80_000) >= 60)
        #expect(states.withLock { $0 } == [true, false])
    }

    /// Where the block was that this thread is given, and gives back.
    private func address(of pool: BlockPool) -> Int { Int(bitPattern: pool.take(1000).start) }
}
