package import Logging
package import MillBase
package import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A request, whole.
package struct ServerRequest: Sendable {
    /// As in the request line: `GET`.
    package var method: String
    /// As in the request line: path and query.
    package var target: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
}

/// A response, whole.
package struct ServerReply: Sendable {
    package var status: Int
    package var contentType: String
    package var body: [UInt8]

    package init(status: Int, contentType: String = "application/json", body: [UInt8]) {
        (self.status, self.contentType, self.body) = (status, contentType, body)
    }
}

/// Whoever answers requests. Called on threads that may block, several at once.
package protocol RequestHandler: Sendable {
    func reply(to request: ServerRequest) -> ServerReply
}

/// Where a request server answers, and its limits.
package struct RequestServerOptions: Sendable {
    /// An address or a name; `localhost` listens on 127.0.0.1 and, where there is one, ::1.
    package var host: String
    /// 0 lets the system choose; `RequestServer.port` tells which.
    package var port: Int
    /// Connections at once; one more is closed.
    package var connectionsMax = 256
    /// Bytes of a request's body; more is 413.
    package var bodyBytesMax = 16 << 20
    /// Bytes of all bodies that are being received or answered; a request beyond it is 503.
    package var allBodiesBytesMax = 256 << 20
    /// How long a client may take from one sign of life to the next within a request, and to take an answer.
    package var clientTimeout = Duration.seconds(30)
    /// How long a connection may be idle between requests.
    package var idleTimeout = Duration.seconds(120)
    /// Requests that are answered at once; others wait for a thread.
    package var threadCount = 8

    package init(host: String = "localhost", port: Int) { (self.host, self.port) = (host, port) }
}

/// HTTP/1.1 for programs: connections are kept, bodies are bounded, and answers are made on threads of their own.
///
/// Threading: any thread.
package final class RequestServer: Sendable {
    private let options: RequestServerOptions
    private let listener: HTTPListener
    private let threads: NIOThreadPool

    /// - Parameter group: the threads that sockets live on; the process-wide ones when nil.
    package init(
        _ options: RequestServerOptions, handler: any RequestHandler, group: (any EventLoopGroup)? = nil,
        logger: Logger = Logger(label: "millrace.http")
    ) {
        self.options = options
        let threads = NIOThreadPool(numberOfThreads: options.threadCount)
        self.threads = threads
        let room = BodyRoom(options.allBodiesBytesMax)
        listener = HTTPListener(connectionsMax: options.connectionsMax, group: group, logger: logger) { channel in
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(HTTPResponseEncoder())
            try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
            try pipeline.addHandler(RequestConnection(options, room, threads, handler))
        }
    }

    /// The port of the first address; nil before `start`.
    package var port: Int? { listener.port }

    /// Open connections.
    package var connectionCount: Int { listener.connectionCount }

    /// Listens and begins to answer.
    /// - Throws: 58030 when the address cannot be bound.
    package func start() async throws(SQLError) {
        threads.start()
        try await listener.start(host: options.host, port: options.port)
    }

    /// Closes the listeners and all connections, and returns when the last answer under way is made.
    package func stop() async {
        await listener.stop()
        try? await threads.shutdownGracefully()  // Nothing of ours fails when it has stopped.
    }
}

/// Room for the bodies of all requests together.
final class BodyRoom: Sendable {
    private let left: Mutex<Int>

    init(_ byteCount: Int) { left = Mutex(byteCount) }

    func take(_ byteCount: Int) -> Bool {
        left.withLock { left in
            guard left >= byteCount else { return false }
            left -= byteCount
            return true
        }
    }

    func giveBack(_ byteCount: Int) { left.withLock { $0 += byteCount } }
}
