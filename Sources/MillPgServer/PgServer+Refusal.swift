import MillBase
import MillPgWire
import NIOCore

extension PgServer {
    /// The bytes that turn a client away before it said anything.
    func refusal(_ error: SQLError, _ channel: any Channel) -> ByteBuffer {
        var writer = MessageWriter()
        BackendMessage.errorResponse(ErrorResponse(.fatal, error)).encode(into: &writer)
        return channel.allocator.buffer(bytes: writer.bytes)
    }
}
