import Synchronization

/// Memory of large buffers that were let go, for the next ones of their size: memory from the system has to be found and cleared
/// page by page, by whoever writes to it first.
///
/// Capacities from 64 KiB to 2 MiB are rounded up to powers of two and kept by them, up to a limit in all; others come from the system
/// and go back to it. Threading: any thread.
package final class WireBufferPool: Sendable {
    private struct Free: @unchecked Sendable {
        // Each piece of memory belongs to nobody else.
        var memory: [[UnsafeMutableRawPointer]] = Array(repeating: [], count: sizeCount)
        var byteCount = 0
    }

    private static let smallestBytes = 64 << 10
    private static let sizeCount = 6

    private let free = Mutex(Free())
    private let bytesMax: Int

    /// - Parameter bytesMax: of memory that nobody uses.
    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    deinit {
        for memory in free.withLock({ $0.memory.joined() }) { memory.deallocate() }
    }

    /// A buffer of at least `capacity` bytes and less than twice that.
    package func buffer(capacity: Int) -> WireBuffer {
        if let kept = kept(capacity: capacity) { return kept }
        let rounded = Self.size(of: capacity).map { Self.smallestBytes << $0 } ?? capacity
        return WireBuffer(memory: WireBuffer.allocate(rounded), capacity: rounded, pool: self)
    }

    /// The same when there is memory that nobody uses, else nil.
    package func kept(capacity: Int) -> WireBuffer? {
        guard let size = Self.size(of: capacity) else { return nil }
        let bytes = Self.smallestBytes << size
        let memory = free.withLock { free in
            let memory = free.memory[size].popLast()
            if memory != nil { free.byteCount -= bytes }
            return memory.map { Piece(memory: $0) }
        }
        return memory.map { WireBuffer(memory: $0.memory, capacity: bytes, pool: self) }
    }

    private struct Piece: @unchecked Sendable {
        // On its way to its one owner.
        let memory: UnsafeMutableRawPointer
    }

    /// For a buffer's end.
    func put(_ memory: UnsafeMutableRawPointer, _ capacity: Int) {
        let piece = Piece(memory: memory)
        let isKept = free.withLock { free in
            guard let size = Self.size(of: capacity), free.byteCount + capacity <= bytesMax else { return false }
            free.memory[size].append(piece.memory)
            free.byteCount += capacity
            return true
        }
        if !isKept { memory.deallocate() }
    }

    /// Which power of two holds a capacity; nil for those that are not kept.
    private static func size(of capacity: Int) -> Int? {
        guard capacity > smallestBytes / 2, capacity <= smallestBytes << (sizeCount - 1) else { return nil }
        return (0..<sizeCount).first { smallestBytes << $0 >= capacity }
    }
}
