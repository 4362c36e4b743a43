import MillBase
import Synchronization
import Testing

@testable import MillHTTPServer

/// Answers with what was asked.
private final class Echo: RequestHandler {
    let count = Mutex(0)

    func reply(to request: ServerRequest) -> ServerReply {
        count.withLock { $0 += 1 }
        return ServerReply(
            status: 200, contentType: "text/plain", body: Array("\(request.method) \(request.target) \(request.body.count);".utf8))
    }
}

@Suite(.timeLimit(.minutes(1))) struct RequestServerTests {
    private func withServer(_ change: (inout RequestServerOptions) -> Void = { _ in }, _ body: (HTTPClient, Echo) async throws -> Void)
        async throws
    {
        var options = RequestServerOptions(host: "127.0.0.1", port: 0)
        change(&options)
        let echo = Echo()
        let server = RequestServer(options, handler: echo)
        try await server.start()
        let client = HTTPClient(port: try #require(server.port))
        do { try await body(client, echo) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private func post(_ target: String, _ body: String, _ more: String = "") -> String {
        "POST \(target) HTTP/1.1\r\nhost: x\r\ncontent-length: \(body.utf8.count)\r\n\(more)\r\n\(body)"
    }

    @Test func oneConnectionHasManyRequests() async throws {
        try await withServer { (client, _) async throws in
            let text =
                post("/a", "12345") + "GET /b HTTP/1.1\r\nhost: x\r\n\r\n" + "HEAD /c HTTP/1.1\r\nhost: x\r\n\r\n"
                + post("/d", "1", "connection: close\r\n")
            let answer = try await client.exchange(text)
            #expect(answer.split(separator: "HTTP/1.1 200", omittingEmptySubsequences: false).count == 5, "\(answer)")
            #expect(answer.contains("POST /a 5;"))
            #expect(answer.contains("GET /b 0;"))
            #expect(!answer.contains("HEAD /c"))
            #expect(answer.hasSuffix("POST /d 1;"))
        }
    }

    @Test func bodiesComeInChunksToo() async throws {
        try await withServer { (client, _) async throws in
            let text =
                "POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
            #expect(try await client.exchange(text).hasSuffix("POST /a 5;"))
        }
    }

    @Test func bodiesThatAreTooLongAreRefused() async throws {
        try await withServer {
            $0.bodyBytesMax = 100
        } _: { (client, echo) async throws in
            #expect(try await client.exchange(post("/a", String(repeating: "x", count: 101))).hasPrefix("HTTP/1.1 413"))
            let chunk = "40\r\n" + String(repeating: "x", count: 64) + "\r\n"
            let chunked = "POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + chunk + chunk
            #expect(try await client.exchange(chunked).hasPrefix("HTTP/1.1 413"))
            #expect(
                try await client.exchange(post("/a", String(repeating: "x", count: 100), "connection: close\r\n")).hasSuffix("POST /a 100;")
            )
            #expect(echo.count.withLock { $0 } == 1)
        }
    }

    @Test func allBodiesTogetherAreBounded() async throws {
        try await withServer {
            $0.allBodiesBytesMax = 50
        } _: { (client, _) async throws in
            #expect(try await client.exchange(post("/a", String(repeating: "x", count: 51))).hasPrefix("HTTP/1.1 503"))
            // What was refused takes no room any more.
            for _ in 0..<3 {
                #expect(try await client.exchange(post("/a", String(repeating: "x", count: 50), "connection: close\r\n")).hasSuffix("50;"))
            }
        }
    }

    @Test func whatIsNoRequestIsRefused() async throws {
        try await withServer { (client, echo) async throws in
            #expect(try await client.exchange("\u{1}\u{2} nonsense\r\n\r\n").hasPrefix("HTTP/1.1 400"))
            let long =
                "GET / HTTP/1.1\r\nhost: x\r\n" + String(repeating: "a: " + String(repeating: "b", count: 1000) + "\r\n", count: 3000)
                + "\r\n"
            #expect(try await client.exchange(long).contains("200") == false)
            #expect(echo.count.withLock { $0 } == 0)
        }
    }

    @Test func aClientThatSaysNothingIsClosed() async throws {
        try await withServer {
            $0.clientTimeout = .milliseconds(50)
        } _: { (client, _) async throws in
            #expect(try await client.exchange("") == "")
        }
    }

    @Test func aClientThatIsTooSlowIsToldSo() async throws {
        // Long enough for what it does send to arrive on a busy machine.
        try await withServer {
            $0.clientTimeout = .seconds(2)
        } _: { (client, _) async throws in
            #expect(try await client.exchange("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n12").hasPrefix("HTTP/1.1 408"))
        }
    }

    @Test func aConnectionThatIsIdleIsClosed() async throws {
        try await withServer {
            $0.idleTimeout = .milliseconds(50)
        } _: { (client, _) async throws in
            #expect(try await client.exchange("GET /a HTTP/1.1\r\nhost: x\r\n\r\n").hasSuffix("GET /a 0;"))
        }
    }

    @Test func aClientThatWaitsToBeAskedForItsBodyIsAsked() async throws {
        try await withServer { (client, _) async throws in
            let answer = try await client.exchange(post("/a", "123", "expect: 100-continue\r\nconnection: close\r\n"))
            #expect(answer.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"))
        }
    }
}
