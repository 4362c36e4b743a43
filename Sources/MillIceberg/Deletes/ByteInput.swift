/// A place in bytes of unknown origin: everything is asked for before it is taken.
struct ByteInput {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var remaining: Int { bytes.count - position }

    mutating func take(_ count: Int) throws(BadBytes) -> ArraySlice<UInt8> {
        guard count >= 0, count <= remaining else { throw BadBytes("it ends too early") }
        defer { position += count }
        return bytes[position..<position + count]
    }

    mutating func littleEndian<T: FixedWidthInteger & UnsignedInteger>() throws(BadBytes) -> T {
        var value: T = 0
        for (index, byte) in try take(MemoryLayout<T>.size).enumerated() { value |= T(byte) << T(8 * index) }
        return value
    }
}

extension [UInt8] {
    mutating func append<T: FixedWidthInteger>(littleEndian value: T) {
        Swift.withUnsafeBytes(of: value.littleEndian) { self += $0 }
    }
}
