package import Logging
package import MillBase
package import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// The HTTP listener: `/health` and `/metrics`.
///
/// Answers from the moment it is started, whatever the engine does meanwhile: all it knows it asks of a `HealthReporter`.
package final class HTTPServer: Sendable {
    private struct State {
        var listeners: [any Channel] = []
        var clients: [ObjectIdentifier: any Channel] = [:]
        var isStopping = false
    }

    private let options: HTTPServerOptions
    private let desk: HealthDesk
    private let group: any EventLoopGroup
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter group: the threads that sockets live on; the process-wide ones when nil.
    package init(
        _ options: HTTPServerOptions, reporter: any HealthReporter, group: (any EventLoopGroup)? = nil, logger: Logger = Logger(label: "millrace.http")
    ) {
        self.options = options
        desk = HealthDesk(reporter)
        self.group = group ?? MultiThreadedEventLoopGroup.singleton
        self.logger = logger
    }

    /// The port of the first address; nil before `start`.
    package var port: Int? { state.withLock { $0.listeners.first?.localAddress?.port } }

    /// Open connections.
    package var connectionCount: Int { state.withLock { $0.clients.count } }

    /// Listens and begins to answer.
    /// - Throws: 58030 when the address cannot be bound.
    package func start() async throws(SQLError) {
        let isLocal = options.host == "localhost"
        let first = try await listen(on: isLocal ? "127.0.0.1" : options.host, port: options.port)
        state.withLock { $0.listeners.append(first) }
        guard isLocal, let port = first.localAddress?.port else { return }
        do throws(SQLError) {
            let second = try await listen(on: "::1", port: port)
            state.withLock { $0.listeners.append(second) }
        } catch {
            // A machine without IPv6, or another program on that port of ::1: 127.0.0.1 serves.
            logger.info("not listening on ::1", metadata: ["port": "\(port)", "reason": "\(error.message)"])
        }
    }

    /// Closes the listeners and all connections.
    package func stop() async {
        let open = state.withLock { state in
            state.isStopping = true
            defer { state.listeners = [] }
            return state.listeners + Array(state.clients.values)
        }
        for channel in open { try? await channel.close().get() }  // One that is closed already is what was wanted.
    }

    private func listen(on host: String, port: Int) async throws(SQLError) -> any Channel {
        do {
            return try await ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 64)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.allowRemoteHalfClosure, value: true)
                .childChannelInitializer { [options, desk, weak self] channel in
                    guard let self, self.admit(channel) else { return channel.close() }
                    return channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        try pipeline.addHandler(RequestLimit(options.requestBytesMax))
                        try pipeline.addHandler(HTTPResponseEncoder())
                        try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)))
                        try pipeline.addHandler(HTTPConnection(options, desk))
                    }
                }
                .bind(host: host, port: port).get()
        } catch {
            throw SQLError(.ioError, "could not listen on \(host):\(port): \(error)")
        }
    }

    /// Counts a client; false when there is no room for it.
    private func admit(_ channel: any Channel) -> Bool {
        let id = ObjectIdentifier(channel)
        let isAdmitted = state.withLock { state in
            guard !state.isStopping, state.clients.count < options.connectionsMax else { return false }
            state.clients[id] = channel
            return true
        }
        if isAdmitted { channel.closeFuture.whenComplete { [weak self] _ in self?.state.withLock { _ = $0.clients.removeValue(forKey: id) } } }
        return isAdmitted
    }
}
