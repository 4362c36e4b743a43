/// The 32-bit hash of the specification's bucket transform: Murmur3, x86 variant, seed 0.
///
/// Source: Iceberg specification, appendix B, whose vectors are the tests; A. Appleby, MurmurHash3.
package enum Murmur3 {
    private static let first: UInt32 = 0xCC9E_2D51
    private static let second: UInt32 = 0x1B87_3593

    /// Integers of any width, dates and times hash as eight bytes, lowest first, so that widening a column keeps its buckets.
    @inline(__always) package static func hash(_ value: Int64) -> Int32 {
        let bits = UInt64(bitPattern: value)
        var hash = mix(0, UInt32(truncatingIfNeeded: bits))
        hash = mix(hash, UInt32(truncatingIfNeeded: bits >> 32))
        return finish(hash, byteCount: 8)
    }

    package static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> Int32 {
        var hash: UInt32 = 0
        let wholeWords = bytes.count / 4
        for word in 0..<wholeWords {
            hash = mix(hash, UInt32(littleEndian: UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: word * 4, as: UInt32.self)))
        }
        var tail: UInt32 = 0
        for index in (wholeWords * 4..<bytes.count).reversed() { tail = tail << 8 | UInt32(bytes[index]) }
        if bytes.count % 4 != 0 { hash ^= scramble(tail) }
        return finish(hash, byteCount: bytes.count)
    }

    @inline(__always) private static func scramble(_ word: UInt32) -> UInt32 {
        let product = word &* first
        return (product << 15 | product >> 17) &* second
    }

    @inline(__always) private static func mix(_ hash: UInt32, _ word: UInt32) -> UInt32 {
        let mixed = hash ^ scramble(word)
        return (mixed << 13 | mixed >> 19) &* 5 &+ 0xE654_6B64
    }

    @inline(__always) private static func finish(_ hash: UInt32, byteCount: Int) -> Int32 {
        var result = hash ^ UInt32(truncatingIfNeeded: byteCount)
        result = (result ^ result >> 16) &* 0x85EB_CA6B
        result = (result ^ result >> 13) &* 0xC2B2_AE35
        return Int32(bitPattern: result ^ result >> 16)
    }
}
