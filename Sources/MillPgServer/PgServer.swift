package import Logging
package import MillBase
package import NIOCore
import NIOPosix
import Synchronization

/// The Postgres listener: accepts clients and serves each in a task of its own.
///
/// `start` binds, `addresses` tells where, `shutdown` ends every connection with 57P01 and returns when all are gone.
/// Sockets are NIO's; everything above bytes is `PgConnection`. No thread of the engine is ever blocked here.
package final class PgServer: Sendable {
    private typealias Client = NIOAsyncChannel<ByteBuffer, ByteBuffer>
    private typealias Listener = NIOAsyncChannel<Client, Never>

    private struct State {
        var listeners: [any Channel] = []
        var accepting: [Task<Void, Never>] = []
    }

    private let backend: any PgBackend
    private let options: PgServerOptions
    private let group: any EventLoopGroup
    private let logger: Logger
    private let registry = ConnectionRegistry()
    private let state = Mutex(State())

    /// - Parameter group: the threads that sockets live on; the process-wide ones when nil.
    package init(
        _ options: PgServerOptions, backend: any PgBackend, group: (any EventLoopGroup)? = nil,
        logger: Logger = Logger(label: "millrace.pg")
    ) {
        self.options = options
        self.backend = backend
        self.group = group ?? MultiThreadedEventLoopGroup.singleton
        self.logger = logger
    }

    /// Where clients are accepted. Empty before `start`.
    package var addresses: [SocketAddress] {
        state.withLock { $0.listeners.compactMap(\.localAddress) }
    }

    /// The port of the first address; nil before `start`.
    package var port: Int? { addresses.first?.port }

    /// Open connections.
    package var connectionCount: Int { registry.count }

    /// Listens and begins to accept; returns once clients can connect.
    ///
    /// - Throws: 58030 when an address cannot be bound.
    package func start() async throws(SQLError) {
        let isLocal = options.host == "localhost"
        let first = try await listen(on: isLocal ? "127.0.0.1" : options.host, port: options.port)
        accept(on: first)
        if isLocal, let port = first.channel.localAddress?.port {
            do {
                accept(on: try await listen(on: "::1", port: port))
            } catch {
                // A machine without IPv6, or another program on that port of ::1: 127.0.0.1 serves.
                logger.info("not listening on ::1", metadata: ["port": "\(port)", "reason": "\(error.message)"])
            }
        }
    }

    /// Stops accepting, ends every connection with 57P01 and waits until all are gone. After `drainTimeout` closes what is left;
    /// a statement that does not stop even then does not keep the server.
    package func shutdown() async {
        let (listeners, tasks) = state.withLock { state in
            defer { state = State() }
            return (state.listeners, state.accepting)
        }
        for listener in listeners { try? await listener.close().get() }  // Closing twice is no failure here.
        registry.terminateAll(SQLError(.adminShutdown, "terminating connection due to administrator command"))
        let registry = registry
        let drainTimeout = TimeAmount(options.drainTimeout)
        let closeTimeout = TimeAmount(options.closeTimeout)
        let loop = group.any()
        let ended = loop.makePromise(of: Void.self)
        Task {
            for task in tasks { await task.value }
            ended.succeed()
        }
        let closing = loop.scheduleTask(in: drainTimeout) {
            registry.closeAll()
            for task in tasks { task.cancel() }
        }
        let leaving = loop.scheduleTask(in: drainTimeout + closeTimeout) { ended.succeed() }
        try? await ended.futureResult.get()  // Nothing fails it.
        closing.cancel()
        leaving.cancel()
    }

    private func listen(on host: String, port: Int) async throws(SQLError) -> Listener {
        do {
            return try await ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 256)
                .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .bind(host: host, port: port) { channel in
                    channel.eventLoop.makeCompletedFuture { try Client(wrappingChannelSynchronously: channel) }
                }
        } catch {
            throw SQLError(.ioError, "could not listen on \(host):\(port): \(error)")
        }
    }

    private func accept(on listener: Listener) {
        let task = Task {
            do {
                try await listener.executeThenClose { clients in
                    try await withThrowingDiscardingTaskGroup { group in
                        for try await client in clients {
                            group.addTask { await self.serve(client) }
                        }
                    }
                }
            } catch {
                self.logger.debug("listener ended", metadata: ["reason": "\(error)"])
            }
        }
        state.withLock { state in
            state.listeners.append(listener.channel)
            state.accepting.append(task)
        }
    }

    private func serve(_ client: Client) async {
        let channel = client.channel
        do {
            try await client.executeThenClose { inbound, outbound in
                let handle: ConnectionHandle
                do throws(SQLError) {
                    handle = try registry.register(channel, limit: options.connectionsMax)
                } catch {
                    try await outbound.write(refusal(error, channel))
                    return
                }
                defer { registry.remove(handle) }
                channel.closeFuture.whenComplete { _ in handle.cancel() }
                let connection = PgConnection(
                    backend: backend, options: options, registry: registry, handle: handle, channel: channel, outbound: outbound,
                    logger: logger)
                do {
                    try await connection.run(inbound)
                } catch {
                    await connection.close()
                    throw error
                }
                await connection.close()
            }
        } catch {
            // A client that goes away in mid-statement is no fault of the server.
            logger.debug("connection ended", metadata: ["reason": "\(error)"])
        }
    }
}
