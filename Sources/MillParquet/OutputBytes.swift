#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Bytes that grow at their end: pages, headers and footers are put together here.
///
/// Loops ask for `room` once and write through the pointer: a variable of a class in a loop is checked with every access.
/// 64 bytes past the end may be written, so that a loop may store whole words.
final class OutputBytes {
    private(set) var base: UnsafeMutableRawPointer
    private(set) var count = 0
    private var capacity: Int

    static let slackBytes = 64

    init(capacity: Int = 4096) {
        self.capacity = max(capacity, 64)
        base = Self.reallocate(nil, self.capacity)
    }

    deinit { free(base) }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    /// Where the next `extra` bytes go, not yet counted.
    func room(_ extra: Int) -> UnsafeMutableRawPointer {
        if count + extra > capacity { grow(to: count + extra) }
        return base + count
    }

    private func grow(to needed: Int) {
        capacity = max(needed, capacity * 2)
        base = Self.reallocate(base, capacity)
    }

    /// The C library moves large pieces without copying them.
    private static func reallocate(_ memory: UnsafeMutableRawPointer?, _ capacity: Int) -> UnsafeMutableRawPointer {
        // As Swift's own allocation does. There is no error to give instead: whoever asked writes through the address, and one who only
        // found out at the page's end would have written somewhere by then. What is asked for is within the bounds of pages and groups.
        guard let grown = realloc(memory, capacity + slackBytes) else { fatalError("out of memory: a page of a Parquet file needs \(capacity) bytes; restart goes on from the last checkpoint") }
        return grown
    }

    /// Counts bytes written to `room`.
    func advance(_ written: Int) {
        assert(count + written <= capacity, "what is counted was asked for")
        count += written
    }

    /// Forgets the bytes from `count` on, keeps the memory.
    func truncate(to count: Int) {
        precondition(count <= self.count, "bytes are only taken away")
        self.count = count
    }

    func append(_ byte: UInt8) {
        room(1).storeBytes(of: byte, as: UInt8.self)
        count += 1
    }

    func append(_ source: UnsafeRawBufferPointer) {
        guard let start = source.baseAddress, source.count > 0 else { return }
        room(source.count).copyMemory(from: start, byteCount: source.count)
        count += source.count
    }

    func append(_ source: [UInt8]) { source.withUnsafeBytes { append($0) } }

    func appendLittleEndian<T: FixedWidthInteger & BitwiseCopyable>(_ value: T) {
        room(MemoryLayout<T>.size).storeBytes(of: value.littleEndian, as: T.self)
        count += MemoryLayout<T>.size
    }

    /// Seven bits a byte, lowest first.
    func appendVarint(_ value: UInt64) {
        let target = room(10)
        var rest = value
        var written = 0
        while rest >= 0x80 {
            target.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: written, as: UInt8.self)
            rest >>= 7
            written += 1
        }
        target.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: written, as: UInt8.self)
        count += written + 1
    }

    /// Small magnitudes of either sign in few bytes.
    func appendZigzag(_ value: Int64) { appendVarint(UInt64(bitPattern: value &<< 1 ^ value >> 63)) }
}
