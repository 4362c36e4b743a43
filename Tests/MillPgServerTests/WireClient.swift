import MillBase
import MillPgWire
import NIOCore
import NIOPosix

/// A client that speaks raw bytes and shows what comes back as short lines.
final class WireClient {
    private let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
    private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
    private var buffer: [UInt8] = []
    private(set) var isClosed = false
    private(set) var key = CancelKey(processID: 0, secret: 0)

    private init(_ inbound: NIOAsyncChannelInboundStream<ByteBuffer>, _ outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>) {
        self.inbound = inbound.makeAsyncIterator()
        self.outbound = outbound
    }

    /// Connects and calls `body` before any startup.
    static func raw(_ port: Int, host: String = "127.0.0.1", _ body: (WireClient) async throws -> Void) async throws {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(host: host, port: port) { channel in
            channel.eventLoop.makeCompletedFuture { try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel) }
        }
        try await channel.executeThenClose { inbound, outbound in
            try await body(WireClient(inbound, outbound))
        }
    }

    /// Connects and calls `body` once the server is ready.
    static func ready(_ port: Int, host: String = "127.0.0.1", _ body: (WireClient) async throws -> Void) async throws {
        try await raw(port, host: host) { client in
            try await client.send(startup: ["user", "root"])
            _ = try await client.untilReady()
            try await body(client)
        }
    }

    func send(_ bytes: [UInt8]) async throws {
        try await outbound.write(ByteBuffer(bytes: bytes))
    }

    func send(startup strings: [String], version: UInt32 = 3 << 16) async throws {
        let body: [UInt8] = strings.flatMap { Array($0.utf8) + [UInt8(0)] } + [0]
        var bytes: [UInt8] = []
        bytes.appendBigEndian(Int32(body.count + 8))
        bytes.appendBigEndian(version)
        try await send(bytes + body)
    }

    func query(_ text: String) async throws -> [String] {
        try await send(Self.message("Q", Array(text.utf8) + [0]))
        return try await untilReady()
    }

    static func message(_ type: Character, _ body: [UInt8]) -> [UInt8] {
        var bytes = Array(String(type).utf8)
        bytes.appendBigEndian(Int32(body.count + 4))
        return bytes + body
    }

    static func parse(_ text: String, name: String = "", types: [PgOID] = []) -> [UInt8] {
        var body = Array(name.utf8) + [0] + Array(text.utf8) + [0]
        body.appendBigEndian(Int16(types.count))
        for type in types { body.appendBigEndian(type.rawValue) }
        return message("P", body)
    }

    static func bind(
        portal: String = "", statement: String = "", formats: [PgFormat] = [], values: [[UInt8]?] = [], results: [PgFormat] = []
    ) -> [UInt8] {
        var body = Array(portal.utf8) + [0] + Array(statement.utf8) + [0]
        body.appendBigEndian(Int16(formats.count))
        for format in formats { body.appendBigEndian(format.rawValue) }
        body.appendBigEndian(Int16(values.count))
        for value in values {
            body.appendBigEndian(Int32(value?.count ?? -1))
            body += value ?? []
        }
        body.appendBigEndian(Int16(results.count))
        for format in results { body.appendBigEndian(format.rawValue) }
        return message("B", body)
    }

    static func execute(_ portal: String = "", limit: Int32 = 0) -> [UInt8] {
        var body = Array(portal.utf8) + [0]
        body.appendBigEndian(limit)
        return message("E", body)
    }

    static func describe(_ object: String) -> [UInt8] { message("D", Array(object.utf8) + [0]) }
    static var sync: [UInt8] { message("S", []) }
    static var flush: [UInt8] { message("H", []) }

    /// One byte, as the answer to an SSL request is.
    func byte() async throws -> UInt8? {
        while buffer.isEmpty { guard try await fill() else { return nil } }
        return buffer.removeFirst()
    }

    /// The messages up to ReadyForQuery or the end of the connection.
    func untilReady() async throws -> [String] {
        var lines: [String] = []
        while let line = try await next() {
            lines.append(line)
            if line.hasPrefix("Z") { break }
        }
        return lines
    }

    /// The next `count` messages.
    func next(_ count: Int) async throws -> [String] {
        var lines: [String] = []
        while lines.count < count, let line = try await next() { lines.append(line) }
        return lines
    }

    /// The next message as a line; nil when the server closed.
    func next() async throws -> String? {
        while true {
            if buffer.count >= 5 {
                let length = buffer[1..<5].reduce(0) { $0 << 8 | Int($1) }
                if buffer.count > length {
                    defer { buffer.removeFirst(length + 1) }
                    return try line(buffer[0], Array(buffer[5..<length + 1]))
                }
            }
            guard try await fill() else { return nil }
        }
    }

    private func fill() async throws -> Bool {
        guard let bytes = try await inbound.next() else {
            isClosed = true
            return false
        }
        buffer += bytes.readableBytesView
        return true
    }

    private func line(_ type: UInt8, _ body: [UInt8]) throws -> String {
        var reader = MessageReader(body[...], type: type)
        let letter = String(UnicodeScalar(type))
        switch letter {
        case "Z": return "Z " + String(decoding: body, as: UTF8.self)
        case "C": return "C " + (try reader.name())
        case "S": return "S " + (try reader.name()) + "=" + (try reader.name())
        case "K":
            key = CancelKey(processID: try reader.int32(), secret: try reader.int32())
            return "K"
        case "E", "N":
            var fields: [String: String] = [:]
            while case let code = try reader.uint8(), code != 0 { fields[String(UnicodeScalar(code))] = try reader.name() }
            return "\(letter) \(fields["S"] ?? "") \(fields["C"] ?? "") \(fields["M"] ?? "")" + (fields["P"].map { " at \($0)" } ?? "")
        case "T":
            let count = try reader.uint16()
            var columns: [String] = []
            for _ in 0..<count {
                let name = try reader.name()
                _ = try reader.take(6)
                columns.append("\(name):\(try reader.uint32())")
                _ = try reader.take(8)
            }
            return "T " + columns.joined(separator: " ")
        case "D":
            let count = try reader.uint16()
            var values: [String] = []
            for _ in 0..<count {
                let length = try reader.int32()
                if length < 0 {
                    values.append("NULL")
                } else {
                    let bytes = try reader.take(Int(length))
                    let isText = bytes.allSatisfy { $0 >= 32 && $0 < 127 }
                    values.append(
                        isText ? String(decoding: bytes, as: UTF8.self) : bytes.map { String($0, radix: 16) }.joined(separator: "."))
                }
            }
            return "D " + values.joined(separator: ",")
        case "t":
            let count = try reader.uint16()
            return "t" + (try (0..<count).map { _ in " \(try reader.uint32())" }.joined())
        default: return letter
        }
    }
}
