/// A bounds-checked cursor over one message's payload.
///
/// Every read that would pass the end throws; nothing here traps on what a client sent. Integers are big-endian.
package struct MessageReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int
    private let type: UInt8

    /// - Parameter type: the message's first byte, only for error texts; 0 for the startup packet.
    package init(_ bytes: ArraySlice<UInt8>, type: UInt8) {
        self.bytes = bytes
        self.position = bytes.startIndex
        self.type = type
    }

    package var remaining: Int { bytes.endIndex - position }

    package mutating func uint8() throws(PgWireError) -> UInt8 {
        guard remaining >= 1 else { throw .truncatedMessage(type) }
        defer { position += 1 }
        return bytes[position]
    }

    package mutating func uint16() throws(PgWireError) -> UInt16 {
        try UInt16(uint8()) << 8 | UInt16(uint8())
    }

    package mutating func int16() throws(PgWireError) -> Int16 {
        Int16(bitPattern: try uint16())
    }

    package mutating func uint32() throws(PgWireError) -> UInt32 {
        try UInt32(uint16()) << 16 | UInt32(uint16())
    }

    package mutating func int32() throws(PgWireError) -> Int32 {
        Int32(bitPattern: try uint32())
    }

    package mutating func int64() throws(PgWireError) -> Int64 {
        try Int64(bitPattern: UInt64(uint32()) << 32 | UInt64(uint32()))
    }

    /// The next `count` bytes.
    package mutating func take(_ count: Int) throws(PgWireError) -> ArraySlice<UInt8> {
        guard count >= 0, remaining >= count else { throw .truncatedMessage(type) }
        defer { position += count }
        return bytes[position..<position + count]
    }

    /// The bytes up to the next zero, which is consumed too.
    package mutating func cString() throws(PgWireError) -> ArraySlice<UInt8> {
        guard let end = bytes[position...].firstIndex(of: 0) else { throw .unterminatedString }
        defer { position = end + 1 }
        return bytes[position..<end]
    }

    /// A name: like `cString`, with bytes that are not UTF-8 replaced, so that it can be shown and compared.
    package mutating func name() throws(PgWireError) -> String {
        String(decoding: try cString(), as: UTF8.self)
    }

    /// A count before a list, whose elements take at least `elementBytesMin` bytes each.
    ///
    /// PostgreSQL reads it as unsigned in Bind. Checking it against what is left keeps a hostile count from reserving memory.
    package mutating func count(elementBytesMin: Int) throws(PgWireError) -> Int {
        let count = Int(try uint16())
        guard count * elementBytesMin <= remaining else { throw .truncatedMessage(type) }
        return count
    }

    package func finish() throws(PgWireError) {
        guard remaining == 0 else { throw .trailingBytes(type, count: remaining) }
    }
}
