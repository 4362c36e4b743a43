import MillPgWire

/// A client of the Postgres wire with as little of its own as there can be: simple queries, answers of integers.
final class PgReader {
    private let socket: BlockingSocket

    /// - Parameter address: `host:port`, the host by its IPv4 number.
    init(_ address: String) throws {
        socket = try BlockingSocket(address)
        var packet: [UInt8] = []
        packet.appendBigEndian(Int32(196_608))
        for word in ["user", "root", "database", "dev", ""] { packet += Array(word.utf8) + [0] }
        var whole: [UInt8] = []
        whole.appendBigEndian(Int32(packet.count + 4))
        try send(whole + packet)
        _ = try answer()
    }

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

    private func send(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try socket.send($0) } }

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
        let header = Array(try socket.receive(5))
        var reader = MessageReader(header[1...], type: header[0])
        return (header[0], try socket.receive(Int(try reader.int32()) - 4))
    }
}
