import NIOCore
import NIOPosix

/// Sends bytes and gives all that comes back until the server closes the connection.
struct HTTPClient {
    var port: Int

    /// - Parameters:
    ///   - bytes: sent as they are; an answer is expected all the same when they are no request.
    ///   - isAll: says to the server that nothing more comes.
    func exchange(_ bytes: [UInt8], isAll: Bool = false) async throws -> String {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let answer = loop.makePromise(of: String.self)
        _ = try await ClientBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Exchange(bytes, isAll: isAll, answer)) }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return try await answer.futureResult.get()
    }

    func exchange(_ text: String) async throws -> String { try await exchange(Array(text.utf8)) }

    func get(_ target: String) async throws -> String { try await exchange("GET \(target) HTTP/1.1\r\nhost: localhost\r\n\r\n") }
}

/// Sends as soon as it is connected, on the socket's thread: a test's own may be kept from going on for longer than a server waits.
private final class Exchange: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let bytes: [UInt8]
    private let isAll: Bool
    private let answer: EventLoopPromise<String>
    private var received = ""

    init(_ bytes: [UInt8], isAll: Bool, _ answer: EventLoopPromise<String>) {
        self.bytes = bytes
        self.isAll = isAll
        self.answer = answer
    }

    // The server may have closed before.
    func channelActive(context: ChannelHandlerContext) {
        if !bytes.isEmpty { context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil) }
        if isAll { context.close(mode: .output, promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { received += String(buffer: unwrapInboundIn(data)) }
    func channelInactive(context: ChannelHandlerContext) { answer.succeed(received) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
