import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A connection over TCP whose calls wait, for clients with as little of their own as there can be. One thread.
final class BlockingSocket {
    /// So long the other side may be silent.
    private static let patienceSeconds = 60

    private let descriptor: Int32
    private var received: [UInt8] = []
    private var position = 0
    private var chunk = [UInt8](repeating: 0, count: 16 << 10)

    /// - Parameter address: `host:port`, the host by its IPv4 number.
    init(_ address: String) throws {
        let parts = address.split(separator: ":")
        var target = sockaddr_in()
        target.sin_family = sa_family_t(AF_INET)
        guard parts.count == 2, let port = UInt16(parts[1]), inet_pton(AF_INET, String(parts[0]), &target.sin_addr) == 1 else {
            throw BenchFailure("\"\(address)\" is no address")
        }
        target.sin_port = port.bigEndian
        #if canImport(Glibc)
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
        descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        let status = withUnsafePointer(to: &target) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        guard status == 0 else { throw BenchFailure("could not connect to \(address): \(systemMessage(errno))") }
        func set(_ option: Int32, _ value: some BitwiseCopyable, _ level: Int32 = SOL_SOCKET) throws {
            let status = withUnsafeBytes(of: value) { setsockopt(descriptor, level, option, $0.baseAddress, socklen_t($0.count)) }
            guard status == 0 else { throw BenchFailure("could not set option \(option) of a connection to \(address): \(systemMessage(errno))") }
        }
        // What is sent would otherwise wait until what was sent before has arrived.
        try set(TCP_NODELAY, Int32(1), Int32(IPPROTO_TCP))
        try set(SO_RCVTIMEO, timeval(tv_sec: Self.patienceSeconds, tv_usec: 0))
        try set(SO_SNDTIMEO, timeval(tv_sec: Self.patienceSeconds, tv_usec: 0))
        #if canImport(Darwin)
        try set(SO_NOSIGPIPE, Int32(1))
        #endif
    }

    deinit { close(descriptor) }

    /// Returns when the system has taken all. With `more` it may wait for what comes next, to send both at once.
    func send(_ bytes: UnsafeRawBufferPointer, more: Bool = false) throws {
        #if canImport(Glibc)
        let flags = Int32(MSG_NOSIGNAL) | (more ? Int32(MSG_MORE) : 0)
        #else
        let flags: Int32 = 0
        #endif
        var rest = bytes
        while let start = rest.baseAddress, !rest.isEmpty {
            let count = sendto(descriptor, start, rest.count, flags, nil, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure("the server does not listen") }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    /// The next `count` bytes, 0 to 64 MiB.
    func receive(_ count: Int) throws -> ArraySlice<UInt8> {
        guard (0...64 << 20).contains(count) else { throw BenchFailure("the server announces \(count) bytes") }
        if position == received.count {
            received.removeAll(keepingCapacity: true)
            position = 0
        }
        while received.count - position < count {
            let got = read(descriptor, &chunk, chunk.count)
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else { throw failure("the server does not answer") }
            guard got > 0 else { throw BenchFailure("the server closed the connection") }
            received += chunk[..<got]
        }
        defer { position += count }
        return received[position..<position + count]
    }

    /// After a call that has just failed.
    private func failure(_ text: String) -> BenchFailure {
        BenchFailure("\(text)\(errno == EAGAIN ? " within \(Self.patienceSeconds) s" : ": \(systemMessage(errno))")")
    }

    /// Whether there is something to be received.
    var hasArrived: Bool {
        if position < received.count { return true }
        var one = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&one, 1, 0) > 0
    }
}
