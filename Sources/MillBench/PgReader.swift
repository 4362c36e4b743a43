import MillIO
import MillPgWire

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A client of the Postgres wire with as little of its own as there can be: a blocking socket, simple queries, answers of integers.
final class PgReader {
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
        var packet: [UInt8] = []
        packet.appendBigEndian(Int32(196_608))
        for word in ["user", "root", "database", "dev", ""] { packet += Array(word.utf8) + [0] }
        var whole: [UInt8] = []
        whole.appendBigEndian(Int32(packet.count + 4))
        try send(whole + packet)
        _ = try answer()
    }

    deinit { close(descriptor) }

    /// Runs statements; the last row's values, 0 for NULL.
    /// - Throws: `BenchFailure` with the server's message.
    @discardableResult
    func query(_ sql: String) throws -> [Int64] {
        var message = MessageWriter()
        message.begin(UInt8(ascii: "Q"))
        message.append(cString: sql)
        message.end()
        try send(message.bytes)
        return try answer()
    }

    private func send(_ bytes: [UInt8]) throws {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress! + done, bytes.count - done) }
            guard count > 0 else { throw BenchFailure("the server does not listen: \(systemMessage(errno))") }
            done += count
        }
    }

    /// Reads until the server is ready for the next query.
    private func answer() throws -> [Int64] {
        var row: [Int64] = []
        var failure: String?
        while true {
            let (type, body) = try message()
            switch type {
            case UInt8(ascii: "D"): row = try values(body)
            case UInt8(ascii: "E"): failure = String(decoding: body.map { $0 == 0 ? 32 : $0 }, as: UTF8.self)
            case UInt8(ascii: "Z"):
                if let failure { throw BenchFailure(failure) }
                return row
            default: break
            }
        }
    }

    private func values(_ body: ArraySlice<UInt8>) throws -> [Int64] {
        var reader = MessageReader(body, type: UInt8(ascii: "D"))
        return try (0..<Int(reader.int16())).map { _ in
            let length = Int(try reader.int32())
            return length < 0 ? 0 : Int64(String(decoding: try reader.take(length), as: UTF8.self)) ?? 0
        }
    }

    private func message() throws -> (type: UInt8, body: ArraySlice<UInt8>) {
        try receive(5)
        var header = MessageReader(received[position + 1..<position + 5], type: 0)
        let length = Int(try header.int32()) + 1
        try receive(length)
        defer { position += length }
        return (received[position], received[position + 5..<position + length])
    }

    /// Has `count` bytes from `position` on.
    private func receive(_ count: Int) throws {
        if position == received.count {
            received.removeAll(keepingCapacity: true)
            position = 0
        }
        while received.count - position < count {
            let got = read(descriptor, &chunk, chunk.count)
            guard got > 0 else { throw BenchFailure("the server closed the connection") }
            received += chunk[..<got]
        }
    }
}
