import MillBase
import Testing

@testable import MillPgWire

struct FrontendDecoderTests {
    private func message(_ type: Character, _ body: [UInt8]) -> [UInt8] {
        var bytes = Array(String(type).utf8)
        bytes.appendBigEndian(Int32(body.count + 4))
        return bytes + body
    }

    private func startup(_ version: UInt32, _ body: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendBigEndian(Int32(body.count + 8))
        bytes.appendBigEndian(version)
        return bytes + body
    }

    private func text(_ strings: String...) -> [UInt8] {
        strings.flatMap { Array($0.utf8) + [0] }
    }

    private func decode(_ bytes: [UInt8]) throws -> FrontendMessage? {
        var decoder = FrontendDecoder(messageBytesMax: 1 << 20)
        decoder.append(bytes)
        return try decoder.nextMessage()
    }

    private var bindBody: [UInt8] {
        text("p", "s") + [0, 2, 0, 0, 0, 1] + [0, 2, 0, 0, 0, 1, 0x37, 0xFF, 0xFF, 0xFF, 0xFF] + [0, 1, 0, 1]
    }

    /// One valid message of each kind with what it means.
    private var valid: [([UInt8], FrontendMessage)] {
        [
            (message("Q", text("select 1")), .query(QueryMessage("select 1"))),
            (
                message("P", text("s", "select $1") + [0, 1, 0, 0, 0, 23]),
                .parse(ParseMessage(name: "s", "select $1", parameterTypes: [.int4]))
            ),
            (
                message("B", bindBody),
                .bind(
                    BindMessage(
                        portal: "p", statement: "s", parameterFormats: [.text, .binary], values: [[0x37], nil], resultFormats: [.binary]))
            ),
            (message("D", text("Ss")), .describe(.statement("s"))),
            (message("D", text("P")), .describe(.portal(""))),
            (message("E", text("p") + [0, 0, 0, 9]), .execute(ExecuteMessage(portal: "p", rowLimit: 9))),
            (message("E", text("") + [0, 0, 0, 0]), .execute(ExecuteMessage())),
            (message("C", text("Pp")), .close(.portal("p"))),
            (message("H", []), .flush),
            (message("S", []), .sync),
            (message("X", []), .terminate),
            (message("F", [1, 2, 3]), .functionCall),
            (message("d", [1]), .copy), (message("c", []), .copy), (message("f", text("no")), .copy),
            (message("p", text("secret")), .password(text("secret"))),
        ]
    }

    @Test func everyMessageIsDecoded() throws {
        for (bytes, expected) in valid { #expect(try decode(bytes) == expected) }
    }

    @Test func messagesArriveInPiecesOfAnySize() throws {
        let all = valid.flatMap(\.0)
        for size in [1, 2, 3, 7, 64] {
            var decoder = FrontendDecoder(messageBytesMax: 1 << 20)
            var decoded: [FrontendMessage] = []
            var rest = all[...]
            while !rest.isEmpty {
                decoder.append(rest.prefix(size))
                rest = rest.dropFirst(size)
                while let message = try decoder.nextMessage() { decoded.append(message) }
            }
            #expect(decoded == valid.map(\.1))
            #expect(decoder.bufferedBytes == 0)
        }
    }

    @Test func everyTruncationOfAMessageWaitsForMore() throws {
        for (bytes, _) in valid {
            for length in bytes.indices { #expect(try decode(Array(bytes[..<length])) == nil) }
        }
    }

    @Test func everyTruncationOfABodyIsRefused() {
        for (bytes, expected) in valid {
            guard !["F", "d", "c", "f", "p"].contains(Character(Unicode.Scalar(bytes[0]))) else { continue }
            let body = bytes[5...]
            for length in 0..<body.count {
                let cut = message(Character(Unicode.Scalar(bytes[0])), Array(body.prefix(length)))
                #expect(throws: PgWireError.self, "\(expected) cut to \(length) bytes") { try decode(cut) }
            }
            #expect(throws: PgWireError.self) { try decode(message(Character(Unicode.Scalar(bytes[0])), body + [0])) }
        }
    }

    @Test func lengthsAreCheckedBeforeTheBodyComes() {
        for length: [UInt8] in [[0, 0, 0, 3], [0xFF, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF], [0, 0x10, 0, 1]] {
            #expect(throws: PgWireError.self) { try decode([UInt8(ascii: "Q")] + length) }
        }
        #expect(throws: PgWireError.unknownMessageType(0x7A)) { try decode([0x7A]) }
    }

    @Test func hostileCountsAreRefused() {
        #expect(throws: PgWireError.self) { try decode(message("P", text("", "") + [0xFF, 0xFF])) }
        #expect(throws: PgWireError.self) { try decode(message("B", text("", "") + [0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFE, 0, 0])) }
        #expect(throws: PgWireError.self) { try decode(message("B", text("", "") + [0, 1, 0, 2, 0, 0, 0, 0])) }
    }

    @Test func startupPacketsAreDecoded() throws {
        let cases: [([UInt8], StartupPacket)] = [
            (startup(80_877_103, []), .ssl),
            (startup(80_877_104, []), .gssEncryption),
            (startup(80_877_102, [0, 0, 0, 5, 0, 0, 0, 6]), .cancel(CancelKey(processID: 5, secret: 6))),
            (startup(3 << 16, text("user", "root") + [0]), .startup(StartupMessage(user: "root", database: "root"))),
            (startup(3 << 16, [0]), .startup(StartupMessage(user: "root", database: "root"))),
            (
                startup(3 << 16 | 2, text("user", "u", "database", "d", "_pq_.x", "1", "options", "-c a=b\\ c --d-e=f -q", "g", "h") + [0]),
                .startup(
                    StartupMessage(
                        minorVersion: 2, user: "u", database: "d", settings: [.init("a", "b c"), .init("d_e", "f"), .init("g", "h")],
                        protocolExtensions: ["_pq_.x"]))
            ),
        ]
        for (bytes, expected) in cases {
            var decoder = FrontendDecoder(messageBytesMax: 100)
            for length in 1..<bytes.count {
                decoder = FrontendDecoder(messageBytesMax: 100)
                decoder.append(bytes[..<length])
                #expect(try decoder.nextStartupPacket() == nil)
            }
            decoder = FrontendDecoder(messageBytesMax: 100)
            decoder.append(bytes)
            #expect(try decoder.nextStartupPacket() == expected)
        }
    }

    @Test func badStartupPacketsAreRefused() {
        let cases: [[UInt8]] = [
            Array("GET / HTTP/1.1".utf8), [0, 0, 0, 7], [0xFF, 0xFF, 0xFF, 0xFF], startup(2 << 16, [0]), startup(3 << 16, []),
            startup(3 << 16, text("user")), startup(3 << 16, text("user", "x") + [0, 0]), startup(80_877_102, [0, 0, 0, 5]),
            startup(80_877_103, [1]), [0, 0, 0x27, 0x11],
        ]
        for bytes in cases {
            var decoder = FrontendDecoder(messageBytesMax: 100)
            decoder.append(bytes)
            #expect(throws: PgWireError.self, "\(bytes)") { try decoder.nextStartupPacket() }
        }
    }

    @Test func randomBytesNeverTrapTheDecoder() {
        var generator = SplitMix(seed: 99)
        for round in 0..<4000 {
            var decoder = FrontendDecoder(messageBytesMax: 1000)
            var bytes = (0..<Int.random(in: 0...200, using: &generator)).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            if round % 2 == 0 {
                // A known type and a fitting length, so that the random bytes reach the body's decoder.
                let body = bytes
                bytes = message("QPBDECHSXFdcfp".randomElement(using: &generator) ?? "Q", body)
            }
            decoder.append(bytes)
            do {
                while try decoder.nextMessage() != nil {}
            } catch {
                continue
            }
        }
    }
}
