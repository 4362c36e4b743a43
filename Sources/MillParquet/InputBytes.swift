/// A place in bytes that somebody else keeps: everything that is read out of a file goes through one, and asks before it takes.
struct InputBytes {
    let base: UnsafeRawPointer
    let count: Int
    private(set) var position = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        // An empty buffer may have no address; nothing is read from this one either.
        base = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 16).unsafelyUnwrapped
        count = bytes.count
    }

    var remaining: Int { count - position }
    var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base + position, count: remaining) }

    /// The next `length` bytes.
    mutating func take(_ length: Int) throws(Malformed) -> UnsafeRawBufferPointer {
        guard length >= 0 else { throw .badLength(length) }
        guard length <= remaining else { throw .cutShort }
        defer { position += length }
        return UnsafeRawBufferPointer(start: base + position, count: length)
    }

    mutating func byte() throws(Malformed) -> UInt8 {
        guard position < count else { throw .cutShort }
        defer { position += 1 }
        return base.load(fromByteOffset: position, as: UInt8.self)
    }

    mutating func littleEndian<T: FixedWidthInteger & BitwiseCopyable>(_: T.Type) throws(Malformed) -> T {
        guard MemoryLayout<T>.size <= remaining else { throw .cutShort }
        defer { position += MemoryLayout<T>.size }
        return T(littleEndian: base.loadUnaligned(fromByteOffset: position, as: T.self))
    }

    mutating func varint() throws(Malformed) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let byte = try byte()
            guard shift < 63 || byte <= 1 else { throw .valueOutOfRange }
            value |= UInt64(byte & 0x7F) &<< shift
            if byte < 0x80 { return value }
            shift += 7
            guard shift < 70 else { throw .valueOutOfRange }
        }
    }

    mutating func zigzag() throws(Malformed) -> Int64 {
        let value = try varint()
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }

    /// A varint that counts or measures something: at most `limit`.
    mutating func length(atMost limit: Int) throws(Malformed) -> Int {
        let value = try varint()
        guard value <= UInt64(limit) else { throw .badLength(Int(clamping: value)) }
        return Int(value)
    }
}
