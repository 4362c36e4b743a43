import MillIO
import Synchronization
import Testing

@testable import MillConnectors

@Suite struct BlockPoolTests {
    /// What another thread wrote lies in another processor's cache.
    @Test func aThreadIsGivenWhatItWroteBefore() throws {
        let pool = BlockPool()
        let mine = address(of: pool)
        let other = Mutex(0)
        try PinnedThread { other.withLock { $0 = address(of: pool) } }.join()
        #expect(other.withLock { $0 } != mine)
        #expect(address(of: pool) == mine)
    }

    /// Blocks of another size fill the pool, as after a backfill.
    @Test func blocksOfASizeThatNobodyAsksForMakeRoom() {
        let pool = BlockPool()
        do {
            let large = (0..<40).map { _ in pool.take(1 << 20) }
            #expect(large.count == 40)
        }
        let small = address(of: pool)
        #expect(address(of: pool) == small)
    }

    /// Where the block was that this thread is given, and gives back.
    private func address(of pool: BlockPool) -> Int { Int(bitPattern: pool.take(1000).start) }
}
