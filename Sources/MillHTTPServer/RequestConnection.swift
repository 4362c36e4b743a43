import NIOCore
import NIOHTTP1
import NIOPosix

/// One client, one request after the other.
///
/// While a request is answered nothing is read: what the client sends meanwhile waits in its socket, except for what was read with the
/// request, which is kept in its order. A client that is too slow, too long or not HTTP gets a 4xx and is closed. Confined to its event loop.
final class RequestConnection: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = Never
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case waiting
        case receiving(HTTPRequestHead, [UInt8])
        case answering
        /// Nothing more is taken; the connection ends when the answer is written.
        case closing
    }

    private let options: RequestServerOptions
    private let room: BodyRoom
    private let threads: NIOThreadPool
    private let handler: any RequestHandler
    private var state = State.waiting
    private var deadline: Scheduled<Void>?
    /// Bytes of `room` that this request's body has.
    private var roomTaken = 0
    /// Parts of later requests that came with the one that is being answered.
    private var waiting = CircularBuffer<HTTPServerRequestPart>()
    private var isReadHeld = false
    private var hasEnded = false

    init(_ options: RequestServerOptions, _ room: BodyRoom, _ threads: NIOThreadPool, _ handler: any RequestHandler) {
        self.options = options
        self.room = room
        self.threads = threads
        self.handler = handler
    }

    func channelActive(context: ChannelHandlerContext) {
        arm(context, options.clientTimeout) { $1.close(promise: nil) }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        state = .closing
        releaseRoom()
        context.fireChannelInactive()
    }

    func read(context: ChannelHandlerContext) {
        if case .answering = state { isReadHeld = true } else { context.read() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        if case .answering = state { waiting.append(part) } else { take(part, context) }
    }

    /// A client that has sent all it will may still want its answers.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        hasEnded = true
        switch state {
        case .waiting, .receiving: context.close(promise: nil)
        case .answering, .closing: break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch state {
        case .answering, .closing: context.close(promise: nil)
        case .waiting, .receiving:
            let isLong = (error as? HTTPParserError) == .headerOverflow
            refuse(isLong ? .requestHeaderFieldsTooLarge : .badRequest, context)
        }
    }

    // MARK: Receiving

    private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch (part, state) {
        case (.head(let head), .waiting):
            arm(context, options.clientTimeout) { $0.refuse(.requestTimeout, $1) }
            let announced = head.headers.first(name: "content-length").flatMap { Int($0) } ?? 0
            guard announced <= options.bodyBytesMax else { return refuse(.payloadTooLarge, context) }
            state = .receiving(head, [])
            if head.headers.first(name: "expect")?.lowercased() == "100-continue" {
                context.writeAndFlush(wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
            }
        case (.body(let bytes), .receiving(let head, var body)):
            guard body.count + bytes.readableBytes <= options.bodyBytesMax else { return refuse(.payloadTooLarge, context) }
            guard room.take(bytes.readableBytes) else { return refuse(.serviceUnavailable, context) }
            roomTaken += bytes.readableBytes
            arm(context, options.clientTimeout) { $0.refuse(.requestTimeout, $1) }
            state = .waiting  // Lets go of the bytes, so that they are not copied.
            body.append(contentsOf: bytes.readableBytesView)
            state = .receiving(head, body)
        case (.end, .receiving(let head, let body)): respond(head, body, context)
        default: break  // What follows a refusal.
        }
    }

    private func respond(_ head: HTTPRequestHead, _ body: [UInt8], _ context: ChannelHandlerContext) {
        state = .answering
        // However long it takes: stores are slow at times, and have deadlines of their own.
        deadline?.cancel()
        let request = ServerRequest(
            method: head.method.rawValue, target: head.uri, headers: head.headers.map { ($0.name, $0.value) }, body: body)
        let bound = NIOLoopBound((self, context, head), eventLoop: context.eventLoop)
        threads.runIfActive(eventLoop: context.eventLoop) { [handler] in handler.reply(to: request) }.whenComplete { result in
            let (connection, context, head) = bound.value
            connection.releaseRoom()
            guard case .answering = connection.state else { return }
            switch result {
            case .success(let reply): connection.answer(reply, head, context)
            case .failure: context.close(promise: nil)  // The server stops.
            }
        }
    }

    private func releaseRoom() {
        room.giveBack(roomTaken)
        roomTaken = 0
    }

    // MARK: Answering

    private func answer(_ reply: ServerReply, _ request: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let keeps = request.isKeepAlive && !hasEnded
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        arm(context, options.clientTimeout) { $1.close(promise: nil) }
        write(reply, withoutBody: request.method == .HEAD, keeps: keeps, context).whenComplete { result in
            let (connection, context) = bound.value
            guard case .success = result, keeps else { return context.close(promise: nil) }
            connection.next(context)
        }
    }

    private func next(_ context: ChannelHandlerContext) {
        guard case .answering = state else { return }
        state = .waiting
        arm(context, options.idleTimeout) { $1.close(promise: nil) }
        while !waiting.isEmpty {
            if case .answering = state { return }
            take(waiting.removeFirst(), context)
        }
        if case .answering = state { return }
        // It ended while it was answered.
        if hasEnded { return context.close(promise: nil) }
        guard isReadHeld else { return }
        isReadHeld = false
        context.read()
    }

    private func refuse(_ status: HTTPResponseStatus, _ context: ChannelHandlerContext) {
        if case .closing = state { return }
        state = .closing
        releaseRoom()
        arm(context, options.clientTimeout) { $1.close(promise: nil) }
        let text = "{\"error\":{\"message\":\"\(status.reasonPhrase)\",\"type\":\"BadRequestException\",\"code\":\(status.code)}}"
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        write(ServerReply(status: Int(status.code), body: Array(text.utf8)), withoutBody: false, keeps: false, context)
            .whenComplete { _ in bound.value.close(promise: nil) }
    }

    private func write(_ reply: ServerReply, withoutBody: Bool, keeps: Bool, _ context: ChannelHandlerContext) -> EventLoopFuture<Void> {
        var head = HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: reply.status))
        if reply.status != 204 {
            head.headers.add(name: "content-type", value: reply.contentType)
            head.headers.add(name: "content-length", value: String(reply.body.count))
        }
        if !keeps { head.headers.add(name: "connection", value: "close") }
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if !withoutBody, !reply.body.isEmpty {
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: reply.body)))), promise: nil)
        }
        return context.writeAndFlush(wrapOutboundOut(.end(nil)))
    }

    /// Lets something happen unless another deadline comes in its place before.
    private func arm(
        _ context: ChannelHandlerContext, _ timeout: Duration, _ body: @escaping (RequestConnection, ChannelHandlerContext) -> Void
    ) {
        deadline?.cancel()
        let bound = NIOLoopBound((self, context, body), eventLoop: context.eventLoop)
        deadline = context.eventLoop.scheduleTask(in: TimeAmount(timeout)) {
            let (connection, context, body) = bound.value
            body(connection, context)
        }
    }
}
