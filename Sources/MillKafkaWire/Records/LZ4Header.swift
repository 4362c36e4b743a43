/// The frame header of LZ4 as Kafka's clients wrote it in message format 0: its checksum covers the magic number, too.
///
/// Layout (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md): magic number (4 bytes), flags, block sizes, content size (8, if
/// bit 3 of the flags is set), dictionary id (4, bit 0), then one byte of checksum over all but the magic number.
enum LZ4Header {
    private static let magic: [UInt8] = [0x04, 0x22, 0x4D, 0x18]

    /// The frame with the checksum that the format asks for; unchanged when it is no frame.
    static func repaired(_ frame: UnsafeRawBufferPointer) -> [UInt8] {
        var bytes = [UInt8](frame)
        guard bytes.count > 6, bytes.starts(with: magic) else { return bytes }
        let end = 6 + (bytes[4] & 0x08 != 0 ? 8 : 0) + (bytes[4] & 0x01 != 0 ? 4 : 0)
        guard end < bytes.count else { return bytes }
        bytes[end] = UInt8(truncatingIfNeeded: xxHash32(bytes[4..<end]) >> 8)
        return bytes
    }

    /// xxHash32 with seed 0 of fewer than 16 bytes (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
    static func xxHash32(_ input: ArraySlice<UInt8>) -> UInt32 {
        precondition(input.count < 16, "a frame descriptor is short")
        let primes: [UInt32] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1]
        var hash = primes[4] &+ UInt32(input.count)
        var rest = input
        while rest.count >= 4 {
            let lane = rest.prefix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            hash = rotated(hash &+ lane &* primes[2], 17) &* primes[3]
            rest = rest.dropFirst(4)
        }
        for byte in rest { hash = rotated(hash &+ UInt32(byte) &* primes[4], 11) &* primes[0] }
        hash = (hash ^ hash >> 15) &* primes[1]
        hash = (hash ^ hash >> 13) &* primes[2]
        return hash ^ hash >> 16
    }

    private static func rotated(_ value: UInt32, _ bits: UInt32) -> UInt32 { value << bits | value >> (32 - bits) }
}
