/// Growable bytes that keys are encoded into; reused from row to row so that encoding allocates nothing.
///
/// Owned by one thread. Pointers into it hold until the next write.
package struct KeyBuffer: ~Copyable {
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    /// Bytes written since the last `removeAll`.
    package private(set) var count = 0

    package init(capacity: Int = 64) {
        self.capacity = max(capacity, 16)
        base = .allocate(byteCount: self.capacity, alignment: 8)
    }

    deinit { base.deallocate() }

    /// The bytes written so far.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    /// The bytes from `start` to `end`.
    package func slice(_ start: Int, _ end: Int) -> UnsafeRawBufferPointer {
        precondition(start >= 0 && start <= end && end <= count, "a slice lies in what was written")
        return UnsafeRawBufferPointer(start: base + start, count: end - start)
    }

    package mutating func removeAll() { count = 0 }

    /// Forgets what was written after the first `count` bytes: a common prefix is encoded once and kept.
    package mutating func truncate(to count: Int) {
        precondition(count >= 0 && count <= self.count, "truncation only shortens")
        self.count = count
    }

    package mutating func append(_ byte: UInt8) {
        reserve(1).storeBytes(of: byte, as: UInt8.self)
        count &+= 1
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        count &+= bytes.count
    }

    /// Room for `extra` more bytes, at the address returned; `advance` says how many were used.
    @inline(__always) mutating func reserve(_ extra: Int) -> UnsafeMutableRawPointer {
        if extra > capacity &- count { grow(extra) }
        return base + count
    }

    @inline(__always) mutating func advance(_ written: Int) { count &+= written }

    @inline(never) private mutating func grow(_ extra: Int) {
        capacity = max(capacity * 2, count + extra)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 8)
        larger.copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = larger
    }
}
