import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A server on a port that the system chose: reads one request a connection after the other and answers with bytes that a closure gives.
/// What those bytes are not, the connection's end says.
final class LoopbackServer: Sendable {
    let port: UInt16
    private let listener: Int32
    private let connections = Mutex(0)

    /// - Parameter answer: the bytes for a request; nil closes the connection, empty leaves it without an answer until the client goes.
    init(_ answer: @escaping @Sendable (_ head: String, _ body: [UInt8]) -> [UInt8]?) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard isBound else { throw IOFailure("listen", path: "127.0.0.1", errorNumber: errno) }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        _ = try PinnedThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else {
                    // Only here: elsewhere the number might be another's by the next call.
                    close(listener)
                    return
                }
                connections.withLock { $0 += 1 }
                _ = try? PinnedThread { Self.serve(connection, answer) }  // Without a thread the client sees its connection end.
            }
        }
    }

    /// Connections that were made so far.
    var connectionCount: Int { connections.withLock { $0 } }
    var url: String { "http://127.0.0.1:\(port)" }

    /// Ends the accepting thread.
    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private static func serve(_ connection: Int32, _ answer: (String, [UInt8]) -> [UInt8]?) {
        defer { close(connection) }
        var bytes: [UInt8] = []
        while true {
            while let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) {
                let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
                let field = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
                let count = field.flatMap { Int($0.dropFirst("content-length:".count).filter { $0 != " " }) } ?? 0
                guard bytes.count - end.upperBound >= count else { break }
                let body = Array(bytes[end.upperBound..<end.upperBound + count])
                bytes.removeFirst(end.upperBound + count)
                guard let reply = answer(head, body) else { return }
                guard send(connection, reply) else { return }
            }
            var part = [UInt8](repeating: 0, count: 64 << 10)
            let count = read(connection, &part, part.count)
            guard count > 0 else { return }
            bytes += part[..<count]
        }
    }

    private static func send(_ connection: Int32, _ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { write($0, sent, connection) }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ connection: Int32) -> Int {
        guard let base = bytes.baseAddress else { return 0 }
        return unsafeSend(connection, base + start, bytes.count - start)
    }
}

/// The libc function whose name a method above shadows. A client that has gone is an error, not a signal.
private func unsafeSend(_ connection: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    send(connection, bytes, count, Int32(MSG_NOSIGNAL))
}

/// An answer in HTTP.
func reply(_ status: String, _ body: String = "", _ headers: String = "") -> [UInt8] {
    Array("HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)".utf8)
}
