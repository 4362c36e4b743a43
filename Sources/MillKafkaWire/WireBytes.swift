#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A block of raw memory that frames, log slices and decompressed batches live in.
///
/// `slackBytes` readable zero bytes follow the content, so that a vectorised decoder may read past the last value.
///
/// Threading: filled by the one owner that made it and not written once it is shared, with one exception: the partition
/// that appends a batch writes its base offset into the header, and until then nobody else has the block. That rule is
/// what makes it Sendable.
package final class WireBuffer: @unchecked Sendable {
    package static let slackBytes = 64

    package let base: UnsafeMutableRawPointer
    package let capacity: Int
    /// Bytes of content; the rest of the capacity is uninitialised.
    package private(set) var count: Int
    /// Where the memory goes in the end; nil: back to the system.
    private let pool: WireBufferPool?

    package convenience init(capacity: Int) {
        precondition(capacity >= 0, "a buffer's capacity is not negative")
        self.init(memory: Self.allocate(capacity), capacity: capacity, pool: nil)
    }

    /// - Parameter memory: of `allocate` with that capacity.
    init(memory: UnsafeMutableRawPointer, capacity: Int, pool: WireBufferPool?) {
        base = memory
        self.capacity = capacity
        self.pool = pool
        count = 0
        memset(base + capacity, 0, Self.slackBytes)
    }

    deinit {
        if let pool { pool.put(base, capacity) } else { base.deallocate() }
    }

    static func allocate(_ capacity: Int) -> UnsafeMutableRawPointer { .allocate(byteCount: capacity + slackBytes, alignment: 16) }

    package convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(capacity: bytes.count)
        append(bytes)
    }

    package convenience init(_ bytes: some Collection<UInt8>) {
        self.init(capacity: bytes.count)
        UnsafeMutableRawBufferPointer(start: base, count: capacity).copyBytes(from: bytes)
        count = bytes.count
    }

    /// Adds bytes; the capacity must suffice.
    package func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count <= capacity - count, "a buffer is never filled past its capacity")
        guard let source = bytes.baseAddress else { return }
        memcpy(base + count, source, bytes.count)
        count += bytes.count
    }

    /// Lets the content be written through `base` and says how much there is now. The slack after it is cleared.
    package func setCount(_ newCount: Int) {
        precondition(newCount >= 0 && newCount <= capacity, "a buffer's content stays within its capacity")
        count = newCount
        memset(base + newCount, 0, Self.slackBytes)
    }

    package var bytes: WireBytes { WireBytes(self, offset: 0, count: count) }
}

/// A range of a `WireBuffer`, which it keeps alive.
package struct WireBytes: Sendable, Equatable {
    /// Nil only for the empty value.
    package let buffer: WireBuffer?
    package let offset: Int
    package let count: Int

    package init() {
        buffer = nil
        offset = 0
        count = 0
    }

    package init(_ buffer: WireBuffer, offset: Int, count: Int) {
        precondition(offset >= 0 && count >= 0 && offset <= buffer.count && count <= buffer.count - offset, "a slice lies within its buffer")
        self.buffer = buffer
        self.offset = offset
        self.count = count
    }

    package init(_ bytes: some Collection<UInt8>) { self = WireBuffer(bytes).bytes }

    /// The memory itself; valid while this value, or its buffer, is alive.
    package var unsafeBytes: UnsafeRawBufferPointer {
        guard let buffer else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: buffer.base + offset, count: count)
    }

    /// Writes through to the buffer: only for the owner that has not shared it yet.
    package var unsafeMutableBytes: UnsafeMutableRawBufferPointer {
        guard let buffer else { return UnsafeMutableRawBufferPointer(start: nil, count: 0) }
        return UnsafeMutableRawBufferPointer(start: buffer.base + offset, count: count)
    }

    package func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try withExtendedLifetime(buffer) { try body(unsafeBytes) }
    }

    package func slice(offset start: Int, count: Int) -> WireBytes {
        precondition(start >= 0 && count >= 0 && start <= self.count && count <= self.count - start, "a slice lies within its parent")
        guard let buffer else { return self }
        return WireBytes(buffer, offset: offset + start, count: count)
    }

    package var array: [UInt8] { withUnsafeBytes { Array($0) } }

    package static func == (a: WireBytes, b: WireBytes) -> Bool {
        guard a.count == b.count else { return false }
        return a.withUnsafeBytes { x in b.withUnsafeBytes { y in x.count == 0 || memcmp(x.baseAddress!, y.baseAddress!, x.count) == 0 } }
    }
}

/// A topic's or another object's id: 128 bits, big-endian on the wire.
package struct WireUUID: Hashable, Sendable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64 = 0, low: UInt64 = 0) {
        self.high = high
        self.low = low
    }

    package var isZero: Bool { high == 0 && low == 0 }

    /// - Parameter text: as `description` gives it; nil for any other.
    package init?(_ text: String) {
        guard text.utf8.count == 32, let high = UInt64(text.prefix(16), radix: 16), let low = UInt64(text.suffix(16), radix: 16) else { return nil }
        self.init(high: high, low: low)
    }

    /// 32 hexadecimal digits.
    package var description: String {
        func hex(_ word: UInt64) -> String {
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        return hex(high) + hex(low)
    }
}
