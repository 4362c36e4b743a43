/// Cuts the bytes of a connection into startup packets and messages.
///
/// Fed by the socket in pieces of any size; the connection takes packets until the startup message, messages from then
/// on. A length is checked before its body is waited for, so a hostile length never reserves memory.
package struct FrontendDecoder: Sendable {
    /// Bytes of one message at most, its length word included.
    private let messageBytesMax: Int
    private var buffer: [UInt8] = []
    private var start = 0

    package init(messageBytesMax: Int) {
        self.messageBytesMax = messageBytesMax
    }

    /// Bytes received and not yet taken.
    package var bufferedBytes: Int { buffer.count - start }

    package mutating func append(_ bytes: some Collection<UInt8>) {
        if start == buffer.count {
            buffer.removeAll(keepingCapacity: buffer.capacity <= 1 << 16)
            start = 0
        } else if start > 1 << 16, start > buffer.count / 2 {
            buffer.removeSubrange(..<start)
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next startup packet, or nil until more bytes come.
    package mutating func nextStartupPacket() throws(PgWireError) -> StartupPacket? {
        guard bufferedBytes >= 4 else { return nil }
        let length = word(at: start)
        guard length >= 8, length <= StartupPacket.bytesMax else { throw .invalidLength(length, limit: StartupPacket.bytesMax) }
        guard bufferedBytes >= length else { return nil }
        defer { start += length }
        return try StartupPacket(decoding: buffer[start + 4..<start + length])
    }

    /// The next message, or nil until more bytes come.
    package mutating func nextMessage() throws(PgWireError) -> FrontendMessage? {
        guard bufferedBytes >= 1 else { return nil }
        let type = buffer[start]
        guard FrontendMessage.isKnown(type) else { throw .unknownMessageType(type) }
        guard bufferedBytes >= 5 else { return nil }
        let length = word(at: start + 1)
        guard length >= 4, length <= messageBytesMax else { throw .invalidLength(length, limit: messageBytesMax) }
        guard bufferedBytes >= length + 1 else { return nil }
        defer { start += length + 1 }
        return try FrontendMessage(type: type, decoding: buffer[start + 5..<start + 1 + length])
    }

    /// The signed big-endian word at `position`, which is in the buffer.
    private func word(at position: Int) -> Int {
        var value: UInt32 = 0
        for byte in buffer[position..<position + 4] { value = value << 8 | UInt32(byte) }
        return Int(Int32(bitPattern: value))
    }
}
