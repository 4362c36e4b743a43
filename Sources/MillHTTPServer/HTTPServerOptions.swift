/// Where the HTTP listener answers, and its limits.
package struct HTTPServerOptions: Sendable {
    /// An address or a name; `localhost` listens on 127.0.0.1 and, where there is one, ::1.
    package var host: String
    /// 0 lets the system choose; `HTTPServer.port` tells which.
    package var port: Int
    /// Connections at once; one more is closed.
    package var connectionsMax = 64
    /// Bytes that a client may send: its request line and headers, and nothing much behind them.
    package var requestBytesMax = 16 << 10
    /// How long a client may take to send its request, and then to take the answer.
    package var clientTimeout = Duration.seconds(10)
    /// How long the program may take to say how it is.
    package var reportTimeout = Duration.seconds(5)

    package init(host: String = "localhost", port: Int = 8081) {
        self.host = host
        self.port = port
    }
}
