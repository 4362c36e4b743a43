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
    /// How it was chosen; nil for memory that is new or that another thread wrote.
    private let reuse: FillTimes.Reuse?

    fileprivate init(_ memory: BlockPool.Memory, _ reuse: FillTimes.Reuse?, pool: BlockPool) {
        start = memory.start
        capacity = memory.capacity
        writer = memory.writer
        self.reuse = reuse
        self.pool = pool
    }

    /// For who writes so much of it at once: how long that took, so that the pool gives what is faster.
    func filled(byteCount: Int, nanoseconds: UInt64) {
        guard let reuse, byteCount >= BlockPool.timedBytesMin else { return }
        pool.fillTimes.note(reuse, nanosPerByte: Double(nanoseconds) / Double(byteCount))
    }

    deinit { pool.put(BlockPool.Memory(start: start, capacity: capacity, writer: writer)) }
}

/// Memory of blocks, kept for the next ones: fresh pages cost more than reading into them. Enough for what several workers hold
/// at once while rows go from one to the other. Safe from any thread.
///
/// A thread is given what it wrote before: writing over what another processor has written takes up to twenty times as long. Of that, what was
/// put back last is in its own cache. But a peer may have read it, and where processors lie far apart, it then takes three times as long as what
/// no cache holds any more. A host moves them from one second to the next, so whoever fills blocks says how long it took.
final class BlockPool: Sendable {
    static let slackBytes = 64
    private static let keptBytesMax = 32 << 20
    /// Of a thread's own, so much is put back after the oldest before that is given: no cache of a peer holds it then.
    private static let waitingBytes = 4 << 20
    /// Of less, calling the system is what takes the time.
    static let timedBytesMin = 64 << 10

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

        /// One that a thread wrote; when as much is kept as may be, of all.
        func index(fitting capacity: Int, for writer: pthread_t, _ reuse: FillTimes.Reuse) -> Int? {
            // A much larger one stays for whoever needs its size.
            func fits(_ block: Memory) -> Bool { block.capacity >= capacity && block.capacity <= 2 * capacity }
            func isOwn(_ block: Memory) -> Bool { block.writer == writer && fits(block) }
            let isFull = byteCount + capacity > BlockPool.keptBytesMax
            switch reuse {
            case .newest:
                if let newest = blocks.lastIndex(where: isOwn) { return newest }
            case .oldest:
                let waiting = blocks.reduce(0) { isOwn($1) ? $0 + $1.capacity : $0 }
                if isFull || waiting >= BlockPool.waitingBytes, let oldest = blocks.firstIndex(where: isOwn) { return oldest }
            }
            return isFull ? blocks.firstIndex(where: fits) : nil
        }
    }

    fileprivate let fillTimes: FillTimes
    private let free = Mutex(Free())

    init(_ fillTimes: FillTimes = .ofProcess) { self.fillTimes = fillTimes }

    deinit {
        free.withLock { free in
            for block in free.blocks { block.start.deallocate() }
        }
    }

    /// A block of at least `capacity` bytes, for this thread to fill.
    func take(_ capacity: Int) -> Block {
        let writer = pthread_self()
        // Small ones nobody times, and there may be thousands of them.
        let reuse = capacity < Self.timedBytesMin ? .newest : fillTimes.next()
        let kept = free.withLock { free -> Memory? in
            guard let index = free.index(fitting: capacity, for: writer, reuse) else { return nil }
            free.byteCount -= free.blocks[index].capacity
            return free.blocks.remove(at: index)
        }
        if var kept {
            let isOwn = kept.writer == writer
            kept.writer = writer
            return Block(kept, isOwn ? reuse : nil, pool: self)
        }
        let start = UnsafeMutableRawPointer.allocate(byteCount: capacity + Self.slackBytes, alignment: 64)
        return Block(Memory(start: start, capacity: capacity, writer: writer), nil, pool: self)
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
