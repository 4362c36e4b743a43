import MillBase

/// Limits and addresses of the Postgres listener.
package struct PgServerOptions: Sendable {
    /// An address or a name; `localhost` listens on 127.0.0.1 and, where there is one, ::1.
    package var host: String
    /// 0 lets the system choose; `PgServer.addresses` tells which.
    package var port: Int
    /// Connections at once; one more is refused with 53300.
    package var connectionsMax = 1000
    /// Bytes of one message from a client.
    package var messageBytesMax = Limits.statementBytesMax * 4
    /// How long a client may take from connecting to its startup message.
    package var startupTimeout = Duration.seconds(60)
    /// How long a session may wait for its client's next message; nil is for ever.
    package var idleTimeout: Duration?
    /// How long a shutdown waits for running statements before it closes their connections.
    package var drainTimeout = Duration.seconds(5)
    /// How long it then waits for the tasks of the closed connections.
    package var closeTimeout = Duration.seconds(1)
    /// Bytes of rows gathered before they are written, and so what a slow client holds in memory at most.
    package var chunkBytes = 64 << 10

    package init(host: String = "localhost", port: Int = 4566) {
        self.host = host
        self.port = port
    }
}
