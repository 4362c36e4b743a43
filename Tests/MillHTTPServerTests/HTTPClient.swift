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
        let channel = try await ClientBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Collector(answer)) }
            }
            .connect(host: "127.0.0.1", port: port).get()
        if !bytes.isEmpty { try? await channel.writeAndFlush(ByteBuffer(bytes: bytes)) }  // The server may have closed before.
        if isAll { try? await channel.close(mode: .output).get() }  // The same.
        return try await answer.futureResult.get()
    }

    func exchange(_ text: String) async throws -> String { try await exchange(Array(text.utf8)) }

    func get(_ target: String) async throws -> String { try await exchange("GET \(target) HTTP/1.1\r\nhost: localhost\r\n\r\n") }
}

private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let answer: EventLoopPromise<String>
    private var received = ""

    init(_ answer: EventLoopPromise<String>) { self.answer = answer }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { received += String(buffer: unwrapInboundIn(data)) }
    func channelInactive(context: ChannelHandlerContext) { answer.succeed(received) }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
