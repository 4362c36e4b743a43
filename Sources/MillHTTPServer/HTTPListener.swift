import Logging
import MillBase
import NIOCore
import NIOPosix
import Synchronization

/// An address that clients connect to: lets so many in, and knows them all, so that stopping ends them.
final class HTTPListener: Sendable {
    private struct State {
        var listeners: [any Channel] = []
        var clients: [ObjectIdentifier: any Channel] = [:]
        var isStopping = false
    }

    private let connectionsMax: Int
    private let group: any EventLoopGroup
    private let logger: Logger
    private let setUp: @Sendable (any Channel) throws -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - group: the threads that sockets live on; the process-wide ones when nil.
    ///   - setUp: puts a client's handlers into its channel, on its event loop.
    init(connectionsMax: Int, group: (any EventLoopGroup)?, logger: Logger, setUp: @escaping @Sendable (any Channel) throws -> Void) {
        self.connectionsMax = connectionsMax
        self.group = group ?? MultiThreadedEventLoopGroup.singleton
        self.logger = logger
        self.setUp = setUp
    }

    /// The port of the first address; nil before `start`.
    var port: Int? { state.withLock { $0.listeners.first?.localAddress?.port } }

    /// Open connections.
    var connectionCount: Int { state.withLock { $0.clients.count } }

    /// Listens; `localhost` means 127.0.0.1 and, where there is one, ::1.
    /// - Throws: 58030 when the address cannot be bound.
    func start(host: String, port: Int) async throws(SQLError) {
        let isLocal = host == "localhost"
        let first = try await listen(on: isLocal ? "127.0.0.1" : host, port: port)
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
    func stop() async {
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
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelInitializer { [setUp, weak self] channel in
                    guard let self, self.admit(channel) else { return channel.close() }
                    return channel.eventLoop.makeCompletedFuture { try setUp(channel) }
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
            guard !state.isStopping, state.clients.count < connectionsMax else { return false }
            state.clients[id] = channel
            return true
        }
        if isAdmitted {
            channel.closeFuture.whenComplete { [weak self] _ in self?.state.withLock { _ = $0.clients.removeValue(forKey: id) } }
        }
        return isAdmitted
    }
}
