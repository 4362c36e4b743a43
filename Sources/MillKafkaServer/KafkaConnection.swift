import Logging
import MillKafkaWire
import NIOCore

/// What a request gets.
enum KafkaReply: Sendable {
    case response(WireWriter)
    /// A produce with acks=0.
    case nothing
    case close
}

/// One client's connection: requests in, responses out in the order of the requests.
///
/// A request is handed to the broker as soon as it is complete, so appends keep their order and a later request may be done
/// before an earlier one; its response waits its turn. When too many requests or response bytes are outstanding, the socket
/// is not read until some are done.
///
/// Threading: lives on its event loop; replies come from any thread and hop there first. That is what makes it Sendable.
final class KafkaConnection: ChannelDuplexHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    private enum Slot {
        case waiting
        case done(ByteBuffer?)
    }

    private let broker: KafkaBroker
    private let listener: KafkaListener
    private let options: KafkaServerOptions
    private let logger: Logger
    private var assembler: FrameAssembler
    /// Responses owed, oldest first; the first one's number is `firstSlot`.
    private var slots: CircularBuffer<Slot> = []
    private var firstSlot = 0
    private var responseBytes = 0
    private var readIsHeld = false
    private var isClosed = false
    /// After version 0 of SaslHandshake the client's next frame is a bare token, without a header.
    private var expectsToken = false
    private var context: ChannelHandlerContext?
    private var client: KafkaBroker.Client?

    init(broker: KafkaBroker, listener: KafkaListener, options: KafkaServerOptions, logger: Logger) {
        self.broker = broker
        self.listener = listener
        self.options = options
        self.logger = logger
        assembler = FrameAssembler(bytesMax: options.requestBytesMax, pool: broker.frames)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let local = context.channel.localAddress
        let isWildcard = listener.host == "0.0.0.0" || listener.host == "::"
        client = KafkaBroker.Client(
            host: context.channel.remoteAddress?.ipAddress ?? "", advertisedHost: listener.advertisedHost ?? (isWildcard ? local?.ipAddress : nil) ?? listener.host,
            advertisedPort: Int32(clamping: listener.advertisedPort ?? local?.port ?? listener.port), eventLoop: context.eventLoop)
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelInactive(context: ChannelHandlerContext) {
        isClosed = true
        slots.removeAll()
        context.fireChannelInactive()
    }

    func read(context: ChannelHandlerContext) {
        if slots.count >= options.requestsInFlightMax || responseBytes >= options.responseBytesMax {
            readIsHeld = true
        } else {
            context.read()
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isClosed else { return }
        do {
            try assembler.feed(unwrapInboundIn(data)) { frame in try receive(frame) }
        } catch {
            refuse(error)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A client that went away; there is nobody to tell.
        logger.debug("kafka connection failed", metadata: ["error": "\(error)"])
        isClosed = true
        context.close(promise: nil)
    }

    private func refuse(_ error: any Error) {
        guard !isClosed else { return }
        isClosed = true
        logger.error("closing a kafka connection that sent no valid request", metadata: ["client": "\(client?.host ?? "")", "error": "\(error)"])
        context?.close(promise: nil)
    }

    private func receive(_ frame: WireBytes) throws {
        guard !isClosed, let client else { return }
        if expectsToken {
            expectsToken = false
            // Accepted, as SaslAuthenticate accepts it: an empty frame.
            var buffer = ByteBuffer()
            buffer.writeInteger(Int32(0))
            slots.append(.done(buffer))
            return sendDone()
        }
        var reader = WireReader(frame)
        let header = try RequestHeader(from: &reader)
        if header.apiKey == KafkaAPI.saslHandshake.rawValue, header.apiVersion == 0 { expectsToken = true }
        let number = firstSlot + slots.count
        slots.append(.waiting)
        let eventLoop = client.eventLoop
        try broker.handle(header, reader, from: client) { [weak self] reply in
            guard let self else { return }
            if eventLoop.inEventLoop {
                complete(number, header, reply)
            } else {
                eventLoop.execute { self.complete(number, header, reply) }
            }
        }
    }

    private func complete(_ number: Int, _ header: RequestHeader, _ reply: KafkaReply) {
        guard !isClosed, number >= firstSlot, let context else { return }
        let index = slots.index(slots.startIndex, offsetBy: number - firstSlot)
        switch reply {
        case .nothing: slots[index] = .done(nil)
        case .close: return refuse(WireError.unsupportedVersion(api: header.apiKey, version: header.apiVersion))
        case .response(let body): slots[index] = .done(Self.frame(header, body, context.channel.allocator))
        }
        sendDone()
    }

    /// Sends the responses that no earlier one holds back.
    private func sendDone() {
        guard let context else { return }
        var wrote = false
        while let first = slots.first, case .done(let buffer) = first {
            slots.removeFirst()
            firstSlot += 1
            guard let buffer else { continue }
            let count = buffer.readableBytes
            responseBytes += count
            context.write(wrapOutboundOut(buffer)).assumeIsolated().whenComplete { _ in
                self.responseBytes -= count
                self.resumeReading()
            }
            wrote = true
        }
        if wrote { context.flush() }
        resumeReading()
    }

    private func resumeReading() {
        guard readIsHeld, !isClosed, slots.count < options.requestsInFlightMax, responseBytes < options.responseBytesMax else { return }
        readIsHeld = false
        context?.read()
    }

    /// Length, response header, body.
    private static func frame(_ header: RequestHeader, _ body: WireWriter, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        let isFlexible = KafkaAPI(rawValue: header.apiKey)?.responseHeaderIsFlexible(version: header.apiVersion) ?? false
        let count = 4 + (isFlexible ? 1 : 0) + body.count
        var buffer = allocator.buffer(capacity: 4 + count)
        buffer.writeInteger(Int32(count))
        buffer.writeInteger(header.correlationID)
        if isFlexible { buffer.writeInteger(UInt8(0)) }
        body.forEachChunk { buffer.writeBytes($0) }
        return buffer
    }
}
