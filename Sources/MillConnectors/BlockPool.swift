import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A buffer that records are read or copied into, and that chunks and their strings point into.
///
/// The reader that got it writes it before the first chunk of it exists; then it is only read, until its last owner lets go and
/// its memory returns to the pool.
final class Block: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
    /// Bytes that may be filled; 64 more are there.
    let capacity: Int
    private let pool: BlockPool
    private let writer: pthread_t

    fileprivate init(_ memory: BlockPool.Memory, pool: BlockPool) {
        start = memory.start
        capacity = memory.capacity
        writer = memory.writer
        self.pool = pool
    }

    deinit { pool.put(BlockPool.Memory(start: start, capacity: capacity, writer: writer)) }
}

/// Memory of blocks, kept for the next ones: fresh pages cost more than reading into them. Enough for what several workers hold
/// at once while rows go from one to the other. Safe from any thread.
///
/// A thread is given what it wrote before: writing over what another processor has written or read last takes up to twenty times as long.
final class BlockPool: Sendable {
    static let slackBytes = 64
    private static let keptBytesMax = 32 << 20

    /// Belongs to nobody else.
    fileprivate struct Memory: @unchecked Sendable {
        var start: UnsafeMutableRawPointer
        var capacity: Int
        /// The thread that it was taken by.
        var writer: pthread_t
    }

    private struct Free {
        var blocks: [Memory] = []
        var byteCount = 0

        /// The one that was put back last of those that a thread wrote; when as much is kept as may be, of all.
        func index(fitting capacity: Int, for writer: pthread_t) -> Int? {
            // A much larger one stays for whoever needs its size.
            func fits(_ block: Memory) -> Bool { block.capacity >= capacity && block.capacity <= 2 * capacity }
            if let own = blocks.lastIndex(where: { $0.writer == writer && fits($0) }) { return own }
            return byteCount + capacity > BlockPool.keptBytesMax ? blocks.firstIndex(where: fits) : nil
        }
    }

    private let free = Mutex(Free())

    deinit {
        free.withLock { free in
            for block in free.blocks { block.start.deallocate() }
        }
    }

    /// A block of at least `capacity` bytes, for this thread to fill.
    func take(_ capacity: Int) -> Block {
        let writer = pthread_self()
        let kept = free.withLock { free -> Memory? in
            guard let index = free.index(fitting: capacity, for: writer) else { return nil }
            free.byteCount -= free.blocks[index].capacity
            return free.blocks.remove(at: index)
        }
        if var kept {
            kept.writer = writer
            return Block(kept, pool: self)
        }
        let start = UnsafeMutableRawPointer.allocate(byteCount: capacity + Self.slackBytes, alignment: 64)
        return Block(Memory(start: start, capacity: capacity, writer: writer), pool: self)
    }

    /// What was put back longest ago makes room: a thread that wrote it may have ended, or asks for another size now.
    fileprivate func put(_ memory: Memory) {
        let evicted = free.withLock { free -> [Memory] in
            guard memory.capacity <= Self.keptBytesMax else { return [memory] }
            var count = 0
            while free.byteCount + memory.capacity > Self.keptBytesMax {
                free.byteCount -= free.blocks[count].capacity
                count += 1
            }
            defer {
                free.blocks.removeFirst(count)
                free.byteCount += memory.capacity
                free.blocks.append(memory)
            }
            return Array(free.blocks[..<count])
        }
        for block in evicted { block.start.deallocate() }
    }
}
