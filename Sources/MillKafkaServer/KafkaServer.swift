package import Logging
package import MillLog
import NIOCore
import NIOPosix
import Synchronization

/// The embedded broker's listeners.
///
/// `start` binds, `stop` closes every connection; the log stays its owner's, who closes it after. Appends by the engine wake
/// the server's waiting fetches, and the other way round, as both use the same partitions.
package final class KafkaServer: Sendable {
    /// Where a listener answers.
    package struct BoundAddress: Sendable, Hashable, CustomStringConvertible {
        /// As configured, such as `localhost`.
        package var host: String
        package var port: Int
        package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    private struct Running {
        var channels: [any Channel] = []
        var clients: [ObjectIdentifier: any Channel] = [:]
        var ticks: RepeatedTask?
        var isStopping = false
    }

    private let options: KafkaServerOptions
    private let logger: Logger
    private let loops: MultiThreadedEventLoopGroup
    private let pool: NIOThreadPool
    private let broker: KafkaBroker
    private let running = Mutex(Running())

    package init(log: Log, options: KafkaServerOptions = KafkaServerOptions(), logger: Logger = Logger(label: "millrace.kafka")) {
        self.options = options
        self.logger = logger
        loops = MultiThreadedEventLoopGroup(numberOfThreads: options.eventLoops)
        pool = NIOThreadPool(numberOfThreads: 2)
        broker = KafkaBroker(log: log, options: options, logger: logger, pool: pool)
    }

    /// Open connections.
    package var connectionCount: Int { running.withLock { $0.clients.count } }

    /// Binds all listeners and begins to answer; one address for each listener.
    /// - Throws: NIO's error when an address cannot be bound; nothing listens then, and `stop` is still due.
    package func start() async throws -> [BoundAddress] {
        pool.start()
        var bound: [BoundAddress] = []
        for listener in options.listeners {
            let hosts = listener.host == "localhost" ? ["127.0.0.1", "::1"] : [listener.host]
            var port = listener.port
            for (index, host) in hosts.enumerated() {
                do {
                    let channel = try await bind(host, port, listener)
                    running.withLock { $0.channels.append(channel) }
                    port = channel.localAddress?.port ?? port
                } catch where index > 0 {
                    // A machine without IPv6 still has its other loopback address.
                    logger.debug("not listening", metadata: ["address": "\(host):\(port)", "error": "\(error)"])
                }
            }
            bound.append(BoundAddress(host: listener.host, port: port))
        }
        let groups = broker.groups
        let task = loops.next().scheduleRepeatedTask(initialDelay: .milliseconds(100), delay: .milliseconds(100)) { _ in groups.tick() }
        running.withLock { $0.ticks = task }
        return bound
    }

    private func bind(_ host: String, _ port: Int, _ listener: KafkaListener) async throws -> any Channel {
        try await ServerBootstrap(group: loops)
            .serverChannelOption(.backlog, value: 256)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 16 << 10, maximum: 1 << 20))
            .childChannelInitializer { [broker, options, logger, weak self] channel in
                self?.track(channel)
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(KafkaConnection(broker: broker, listener: listener, options: options, logger: logger))
                }
            }
            .bind(host: host, port: port).get()
    }

    private func track(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let isLate = running.withLock { running in
            running.clients[id] = channel
            return running.isStopping
        }
        if isLate { channel.close(promise: nil) }
        channel.closeFuture.whenComplete { [weak self] _ in self?.running.withLock { _ = $0.clients.removeValue(forKey: id) } }
    }

    /// Closes the listeners and all connections. The server cannot be started again.
    package func stop() async {
        let (open, ticks) = running.withLock { running in
            running.isStopping = true
            defer { running.channels = [] }
            return (running.channels + Array(running.clients.values), running.ticks)
        }
        ticks?.cancel()
        for channel in open {
            // A channel that is closed already is what was wanted.
            try? await channel.close().get()
        }
        do {
            try await pool.shutdownGracefully()
            try await loops.shutdownGracefully()
        } catch {
            logger.warning("kafka server did not stop cleanly", metadata: ["error": "\(error)"])
        }
    }
}
