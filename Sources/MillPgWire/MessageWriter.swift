/// Backend messages as bytes, one after the other in one growable buffer.
///
/// Fed by the connection machine's messages and by the row encoder; the server hands the whole buffer to the socket in
/// one write and takes it back empty. A message's length word is patched when the message ends.
package struct MessageWriter: Sendable {
    package var bytes: [UInt8] = []
    private var lengthPosition = 0

    package init() {}

    package var isEmpty: Bool { bytes.isEmpty }
    package var count: Int { bytes.count }

    /// Empties the buffer, keeping its memory unless one huge row made it grow.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 20)
    }

    package mutating func begin(_ type: UInt8) {
        bytes.append(type)
        lengthPosition = bytes.count
        append(Int32(0))
    }

    /// Ends the message begun last: its length counts itself but not the type byte.
    package mutating func end() {
        patch(Int32(truncatingIfNeeded: bytes.count - lengthPosition), at: lengthPosition)
    }

    package mutating func append(_ byte: UInt8) { bytes.append(byte) }

    package mutating func append(_ value: Int16) {
        bytes.appendBigEndian(value)
    }

    package mutating func append(_ value: Int32) {
        bytes.appendBigEndian(value)
    }

    package mutating func append(_ value: UInt32) {
        bytes.appendBigEndian(value)
    }

    /// A string and its zero. A zero inside would end the field early, so the string is cut there.
    package mutating func append(cString: String) {
        bytes.append(contentsOf: cString.utf8.prefix { $0 != 0 })
        bytes.append(0)
    }

    package mutating func patch(_ value: Int32, at position: Int) {
        bytes.overwriteBigEndian(value, at: position)
    }
}

extension [UInt8] {
    /// Appends an integer in network order.
    @inlinable
    package mutating func appendBigEndian<T: FixedWidthInteger>(_ value: T) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }

    /// Replaces the bytes at `position`, which must exist, by an integer in network order.
    @inlinable
    package mutating func overwriteBigEndian<T: FixedWidthInteger>(_ value: T, at position: Int) {
        precondition(position >= 0 && position + MemoryLayout<T>.size <= count, "the bytes to overwrite exist")
        withUnsafeMutableBytes { buffer in
            buffer.storeBytes(of: value.bigEndian, toByteOffset: position, as: T.self)
        }
    }
}
