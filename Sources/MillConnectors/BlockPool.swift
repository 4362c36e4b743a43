import Synchronization

/// A buffer that records are read or copied into, and that chunks and their strings point into.
///
/// The reader that got it writes it before the first chunk of it exists; then it is only read, until its last owner lets go and
/// its memory returns to the pool.
final class Block: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
    /// Bytes that may be filled; 64 more are there.
    let capacity: Int
    private let pool: BlockPool?

    fileprivate init(start: UnsafeMutableRawPointer, capacity: Int, pool: BlockPool?) {
        self.start = start
        self.capacity = capacity
        self.pool = pool
    }

    deinit {
        if let pool { pool.put(start, capacity) } else { start.deallocate() }
    }
}

/// Memory of blocks, kept for the next ones: fresh pages cost more than reading into them. Enough for what several workers hold
/// at once while rows go from one to the other. Safe from any thread.
final class BlockPool: Sendable {
    static let slackBytes = 64
    private static let keptBytesMax = 32 << 20

    private struct Free: @unchecked Sendable {
        /// Each belongs to nobody else.
        var blocks: [(start: UnsafeMutableRawPointer, capacity: Int)] = []
        var byteCount = 0
    }

    private let free = Mutex(Free())

    deinit {
        free.withLock { free in
            for block in free.blocks { block.start.deallocate() }
        }
    }

    /// A block of at least `capacity` bytes.
    func take(_ capacity: Int) -> Block {
        let kept = free.withLock { free -> (start: UnsafeMutableRawPointer, capacity: Int)? in
            // A much larger one stays for whoever needs its size.
            guard let index = free.blocks.lastIndex(where: { $0.capacity >= capacity && $0.capacity <= 2 * capacity }) else { return nil }
            free.byteCount -= free.blocks[index].capacity
            return free.blocks.remove(at: index)
        }
        if let kept { return Block(start: kept.start, capacity: kept.capacity, pool: self) }
        return Block(start: .allocate(byteCount: capacity + Self.slackBytes, alignment: 64), capacity: capacity, pool: self)
    }

    fileprivate func put(_ start: UnsafeMutableRawPointer, _ capacity: Int) {
        let refused = free.withLock { free -> Bool in
            guard free.byteCount + capacity <= Self.keptBytesMax else { return true }
            free.byteCount += capacity
            free.blocks.append((start, capacity))
            return false
        }
        if refused { start.deallocate() }
    }
}
