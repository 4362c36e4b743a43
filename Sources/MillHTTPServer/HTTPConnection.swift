import NIOCore
import NIOHTTP1

/// One client: one request, one answer, then the connection is closed, so that nobody keeps it for long.
///
/// A client that is too slow, too long or not HTTP gets a 4xx, or is closed when it does not take even that.
/// Confined to its event loop.
final class HTTPConnection: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case waiting
        /// The head is there, its end is not.
        case receiving(HTTPRequestHead)
        case asking
        case answered
    }

    private let options: HTTPServerOptions
    private let desk: HealthDesk
    private var state = State.waiting
    private var deadline: Scheduled<Void>?

    init(_ options: HTTPServerOptions, _ desk: HealthDesk) {
        self.options = options
        self.desk = desk
    }

    func channelActive(context: ChannelHandlerContext) {
        arm(context, options.clientTimeout) { $0.answer(.refused(.requestTimeout), $1) }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        state = .answered
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (unwrapInboundIn(data), state) {
        case (.head(let head), .waiting): state = .receiving(head)
        case (.end, .receiving(let head)): respond(to: head, context)
        default: break  // A body that nobody asked for, or a second request: never read further.
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch state {
        case .answered: context.close(promise: nil)
        default: answer(.refused(error is RequestTooLarge ? .requestHeaderFieldsTooLarge : .badRequest), context)
        }
    }

    /// A client that has sent all it will may still want its answer.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        switch state {
        case .waiting, .receiving: context.close(promise: nil)
        case .asking, .answered: break
        }
    }

    private func respond(to head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let route = HTTPRoute(head.method, head.uri)
        if case .refused(let refusal) = route { return answer(refusal, context) }
        state = .asking
        arm(context, options.reportTimeout) { connection, context in
            connection.answer(HTTPAnswer(status: .serviceUnavailable, body: "the server does not say how it is\n"), context)
        }
        let isHead = head.method == .HEAD
        let promise = context.eventLoop.makePromise(of: HealthReport.self)
        promise.completeWithTask { [desk] in await desk.healthReport() }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        promise.futureResult.whenSuccess { report in
            let (connection, context) = bound.value
            guard case .asking = connection.state else { return }
            connection.answer(route.answer(report), context, withoutBody: isHead)
        }
    }

    private func answer(_ answer: HTTPAnswer, _ context: ChannelHandlerContext, withoutBody: Bool = false) {
        if case .answered = state { return }
        state = .answered
        arm(context, options.clientTimeout) { $1.close(promise: nil) }
        var head = HTTPResponseHead(version: .http1_1, status: answer.status)
        head.headers.add(name: "content-type", value: answer.contentType)
        head.headers.add(name: "content-length", value: String(answer.body.utf8.count))
        head.headers.add(name: "connection", value: "close")
        head.headers.add(name: "cache-control", value: "no-store")
        if let allow = answer.allow { head.headers.add(name: "allow", value: allow) }
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !withoutBody { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: answer.body)))), promise: nil) }
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in bound.value.close(promise: nil) }
    }

    /// Lets something happen unless another deadline comes in its place before.
    private func arm(_ context: ChannelHandlerContext, _ timeout: Duration, _ body: @escaping (HTTPConnection, ChannelHandlerContext) -> Void) {
        deadline?.cancel()
        let bound = NIOLoopBound((self, context, body), eventLoop: context.eventLoop)
        deadline = context.eventLoop.scheduleTask(in: TimeAmount(timeout)) {
            let (connection, context, body) = bound.value
            body(connection, context)
        }
    }
}

/// A client sent more than a request may have.
struct RequestTooLarge: Error {}

/// Lets through so many bytes of a connection and no more.
final class RequestLimit: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var left: Int

    init(_ bytes: Int) { left = bytes }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard left >= 0 else { return }
        left -= unwrapInboundIn(data).readableBytes
        if left >= 0 { context.fireChannelRead(data) } else { context.fireErrorCaught(RequestTooLarge()) }
    }
}
