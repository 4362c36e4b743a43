#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Sixteen bytes that stand for a string: up to 12 bytes lie in the view itself, longer ones behind a pointer.
///
/// Layout: `low` is the length (lower 32 bits) and the first 4 bytes; `high` is the next 8 bytes, or the address of all
/// bytes when the length is over 12. Unused bytes are zero, so short strings compare as two words. A view never owns its
/// bytes: a `Column` keeps the heaps alive that its views point into, and state copies bytes into its own heap.
package struct StringView: Sendable, BitwiseCopyable {
    package var low: UInt64
    package var high: UInt64

    @inlinable package init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    package static let empty = StringView(low: 0, high: 0)
    package static let inlineBytesMax = 12

    @inlinable package var count: Int { Int(UInt32(truncatingIfNeeded: low)) }
    @inlinable package var isInline: Bool { UInt32(truncatingIfNeeded: low) <= 12 }
    /// Where the bytes of a long string are. Meaningless for a short one.
    @inlinable package var pointer: UnsafePointer<UInt8> { UnsafePointer(bitPattern: UInt(high)).unsafelyUnwrapped }

    /// A view of `count` bytes at `bytes`; the caller keeps them alive when they are more than 12.
    @inlinable package init(_ bytes: UnsafePointer<UInt8>, count: Int) {
        if count <= 12 {
            // Whole words that overlap instead of a loop: what is read twice lands on the same bits, or is shifted out.
            let first = UnsafeRawPointer(bytes)
            func word<T: FixedWidthInteger & BitwiseCopyable>(_ at: Int, _: T.Type) -> UInt64 {
                UInt64(truncatingIfNeeded: T(littleEndian: first.loadUnaligned(fromByteOffset: at, as: T.self)))
            }
            var start: UInt64 = 0
            high = 0
            if count >= 4 {
                start = word(0, UInt32.self)
                high = count >= 8 ? word(count - 8, UInt64.self) &>> UInt64(8 * (12 - count)) : word(count - 4, UInt32.self) >> UInt64(8 * (8 - count))
            } else if count > 0 {
                start = word(0, UInt8.self) | word(count >> 1, UInt8.self) &<< UInt64(8 * (count >> 1)) | word(count - 1, UInt8.self) &<< UInt64(8 * (count - 1))
            }
            low = UInt64(UInt32(truncatingIfNeeded: count)) | start &<< 32
        } else {
            let prefix = UnsafeRawPointer(bytes).loadUnaligned(as: UInt32.self)
            low = UInt64(UInt32(truncatingIfNeeded: count)) | UInt64(UInt32(littleEndian: prefix)) << 32
            high = UInt64(UInt(bitPattern: bytes))
        }
    }

    /// Calls `body` with the bytes, wherever they are.
    @inlinable package func withBytes<R, E: Error>(_ body: (UnsafeBufferPointer<UInt8>) throws(E) -> R) throws(E) -> R {
        if isInline {
            // The inline bytes are bytes 4 to 15 of the view itself.
            var copy = self
            let count = count
            return try withUnsafePointer(to: &copy) { (pointer) throws(E) -> R in
                try body(UnsafeBufferPointer(start: UnsafeRawPointer(pointer).advanced(by: 4).assumingMemoryBound(to: UInt8.self), count: count))
            }
        }
        return try body(UnsafeBufferPointer(start: pointer, count: count))
    }

    @inlinable package static func == (a: StringView, b: StringView) -> Bool {
        if a.low != b.low { return false }
        if a.isInline || a.high == b.high { return a.high == b.high }
        return memcmp(a.pointer, b.pointer, a.count) == 0
    }

    /// Bytewise order, which is also code point order for UTF-8: negative, zero or positive.
    package static func compare(_ a: StringView, _ b: StringView) -> Int {
        a.withBytes { left in
            b.withBytes { right in
                let order = memcmp(left.baseAddress!, right.baseAddress!, min(left.count, right.count))
                return order != 0 ? Int(order) : left.count - right.count
            }
        }
    }
}

extension String {
    package init(_ view: StringView) {
        self = view.withBytes { String(decoding: $0, as: UTF8.self) }
    }
}
