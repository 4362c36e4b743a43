import MillColumnar
import Testing

struct StringViewTests {
    /// Each length around those where words of other sizes are read.
    @Test func aViewHoldsTheBytesItWasMadeOf() {
        for count in 0...40 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: 0x81 &+ $0 &* 37) }
            let text = UnsafeMutablePointer<UInt8>.allocate(capacity: max(count, 1))
            defer { text.deallocate() }
            text.update(from: bytes, count: count)
            let view = StringView(text, count: count)
            #expect(view.count == count && view.withBytes { Array($0) } == bytes)
            #expect(view.isInline == (count <= 12))
            // What is behind a short one's bytes is zero, as the comparison by words needs it.
            guard count <= 12 else { continue }
            var (low, high) = (UInt64(count), UInt64(0))
            for (index, byte) in bytes.enumerated() {
                if index < 4 { low |= UInt64(byte) << UInt64(32 + 8 * index) } else { high |= UInt64(byte) << UInt64(8 * (index - 4)) }
            }
            #expect(view.low == low && view.high == high)
        }
    }
}
