package import Logging
package import MillBase
package import NIOCore
import NIOHTTP1

/// The HTTP listener: `/health` and `/metrics`.
///
/// Answers from the moment it is started, whatever the engine does meanwhile: all it knows it asks of a `HealthReporter`.
package final class HTTPServer: Sendable {
    private let options: HTTPServerOptions
    private let listener: HTTPListener

    /// - Parameter group: the threads that sockets live on; the process-wide ones when nil.
    package init(
        _ options: HTTPServerOptions, reporter: any HealthReporter, group: (any EventLoopGroup)? = nil,
        logger: Logger = Logger(label: "millrace.http")
    ) {
        self.options = options
        let desk = HealthDesk(reporter)
        listener = HTTPListener(connectionsMax: options.connectionsMax, group: group, logger: logger) { channel in
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(RequestLimit(options.requestBytesMax))
            try pipeline.addHandler(HTTPResponseEncoder())
            try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
            try pipeline.addHandler(HTTPConnection(options, desk))
        }
    }

    /// The port of the first address; nil before `start`.
    package var port: Int? { listener.port }

    /// Open connections.
    package var connectionCount: Int { listener.connectionCount }

    /// Listens and begins to answer.
    /// - Throws: 58030 when the address cannot be bound.
    package func start() async throws(SQLError) { try await listener.start(host: options.host, port: options.port) }

    /// Closes the listeners and all connections.
    package func stop() async { await listener.stop() }
}
