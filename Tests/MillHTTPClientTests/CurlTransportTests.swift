import MillHTTPClient
import MillIO
import MillTestKit
import Synchronization
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct CurlTransportTests {
    private let transport = CurlTransport()

    @Test func methodsHeadersAndBodiesArriveAsTheyAre() throws {
        let server = try LoopbackServer { head, body in
            reply("201 Made", head + "\n\n" + String(decoding: body, as: UTF8.self), "X-Seen: yes\r\n")
        }
        defer { server.stop() }
        for method in ["GET", "PUT", "POST", "DELETE", "PATCH"] {
            let body = method == "GET" ? "" : "body of \(method)"
            let request = HTTPRequest(
                method, server.url + "/a%2Fb/../c?x=1", headers: ["X-One": "1", "X-Empty": ""], body: Array(body.utf8))
            let response = try transport.send(request)
            let echo = String(decoding: response.body, as: UTF8.self)
            #expect(response.status == 201 && response.headers["x-seen"] == "yes")
            #expect(echo.hasPrefix("\(method) /a%2Fb/../c?x=1 HTTP/1.1"))
            #expect(echo.contains("X-One: 1") && echo.contains("X-Empty:") && echo.hasSuffix(body))
            #expect(!echo.contains("Expect:") && !echo.contains("Content-Type:"))
        }
    }

    @Test func emptyBodiesOfPutHaveALength() throws {
        let server = try LoopbackServer { head, _ in reply("200 OK", head) }
        defer { server.stop() }
        let echo = String(decoding: try transport.send(HTTPRequest("PUT", server.url)).body, as: UTF8.self)
        #expect(echo.contains("Content-Length: 0"))
    }

    @Test func headsHaveALengthAndNoBody() throws {
        let server = try LoopbackServer { _, _ in Array("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nETag: \"x\"\r\n\r\n".utf8) }
        defer { server.stop() }
        let response = try transport.send(HTTPRequest("HEAD", server.url))
        #expect(response.headers["content-length"] == "12345" && response.headers["etag"] == "\"x\"" && response.byteCount == 0)
    }

    @Test func connectionsAreUsedAgain() throws {
        let server = try LoopbackServer { _, _ in reply("200 OK", "x") }
        defer { server.stop() }
        for _ in 0..<20 { _ = try transport.send(HTTPRequest("GET", server.url)) }
        #expect(server.connectionCount == 1)
    }

    @Test func aLargeBodyGoesUpAndComesDownIntoABuffer() throws {
        let server = try LoopbackServer { _, body in
            Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
        }
        defer { server.stop() }
        let sent = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        var received = [UInt8](repeating: 0, count: sent.count)
        let response = try received.withUnsafeMutableBytes { try transport.send(HTTPRequest("PUT", server.url, body: sent), receiving: $0) }
        #expect(response.byteCount == sent.count && response.body.isEmpty)
        #expect(received == sent)
    }

    @Test func longerAnswersThanAllowedAreRefused() throws {
        let server = try LoopbackServer { head, _ in
            reply(head.contains("/no") ? "404 No" : "200 OK", String(repeating: "x", count: 100_000))
        }
        defer { server.stop() }
        let whole = #expect(throws: IOFailure.self) { try transport.send(HTTPRequest("GET", server.url, responseBytesMax: 99_999)) }
        #expect(whole?.errorNumber == EFBIG)
        var small = [UInt8](repeating: 0, count: 10)
        let cut = #expect(throws: IOFailure.self) {
            try small.withUnsafeMutableBytes { _ = try transport.send(HTTPRequest("GET", server.url), receiving: $0) }
        }
        #expect(cut?.errorNumber == EFBIG)
        // What a refusal says does not go where the object should.
        let refusal = try small.withUnsafeMutableBytes { try transport.send(HTTPRequest("GET", server.url + "/no"), receiving: $0) }
        #expect(refusal.status == 404 && refusal.body.count == 100_000)
    }

    @Test func aServerThatIsNotThereWasSentNothing() throws {
        let server = try LoopbackServer { _, _ in nil }
        let url = server.url
        server.stop()
        let failure = #expect(throws: IOFailure.self) { try transport.send(HTTPRequest("GET", url + "/x?secret=1")) }
        #expect(failure.map { RetryPolicy.isUnsent($0) } == true)
        #expect(failure?.path == url + "/x" && failure?.detail?.isEmpty == false)
    }

    @Test func aConnectionThatEndsMayHaveHadItsEffect() throws {
        let gone = try LoopbackServer { _, _ in nil }
        defer { gone.stop() }
        let failure = #expect(throws: IOFailure.self) { try transport.send(HTTPRequest("POST", gone.url, body: [1])) }
        #expect(failure?.errorNumber == ECONNRESET)
        let short = try LoopbackServer { head, _ in
            head.contains("HTTP") ? Array("HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhalf".utf8) : nil
        }
        defer { short.stop() }
        let timeouts = HTTPTimeouts(total: .milliseconds(300))
        let cut = #expect(throws: IOFailure.self) { try transport.send(HTTPRequest("GET", short.url, timeouts: timeouts)) }
        #expect([ECONNRESET, ETIMEDOUT].contains(cut?.errorNumber ?? 0))
    }

    @Test func silenceEndsByTheTotalTimeout() throws {
        let silent = try LoopbackServer { _, _ in [] }
        defer { silent.stop() }
        let failure = #expect(throws: IOFailure.self) {
            try transport.send(HTTPRequest("GET", silent.url, timeouts: HTTPTimeouts(total: .milliseconds(200))))
        }
        #expect(failure?.errorNumber == ETIMEDOUT)
    }

    @Test func cancellingEndsARequest() throws {
        let cancellation = Cancellation()
        let silent = try LoopbackServer { _, _ in
            cancellation.cancel()
            return []
        }
        defer { silent.stop() }
        let failure = #expect(throws: IOFailure.self) { try transport.send(HTTPRequest("GET", silent.url, cancellation: cancellation)) }
        #expect(failure?.errorNumber == ECANCELED)
    }

    @Test func redirectsAreAnswers() throws {
        let server = try LoopbackServer { _, _ in reply("307 Elsewhere", "", "Location: http://127.0.0.1:1/\r\n") }
        defer { server.stop() }
        #expect(try transport.send(HTTPRequest("GET", server.url)).status == 307)
    }

    @Test func whatWouldSmuggleHeadersInIsRefused() throws {
        for request in [
            HTTPRequest("GET", "http://127.0.0.1/", headers: ["X": "1\r\nY: 2"]),
            HTTPRequest("GET", "http://127.0.0.1/", headers: ["X\n": "1"]),
            HTTPRequest("GET", "http://127.0.0.1/ HTTP/1.1\r\nX: 1"), HTTPRequest("GET X", "http://127.0.0.1/"),
            HTTPRequest("GET", "file:///etc/hostname"),
            HTTPRequest("GET", "nonsense:"),
        ] {
            let failure = #expect(throws: IOFailure.self) { try transport.send(request) }
            #expect(failure?.errorNumber == EINVAL, "\(request.url): \(String(describing: failure))")
        }
    }

    @Test func answersThatAreNoHTTPAreErrorsWhateverTheyAre() throws {
        let seed = UInt64.random(in: 0 ... .max)
        let random = SeededSource(seed)
        let server = try LoopbackServer { head, _ in
            if head.contains("/endless") {
                return Array("HTTP/1.1 200 OK\r\n".utf8) + Array(String(repeating: "X: y\r\n", count: 100_000).utf8)
            }
            if head.contains("/wrong") { return Array("HTTP/1.1 200 OK\r\nContent-Length: -5\r\nContent-Length: 7\r\n\r\n".utf8) }
            return (0..<64).map { _ in UInt8(truncatingIfNeeded: random.next()) } + Array("\r\n\r\n".utf8)
        }
        defer { server.stop() }
        let timeouts = HTTPTimeouts(total: .milliseconds(300))
        for path in ["/endless", "/wrong"] + (0..<20).map({ "/\($0)" }) {
            #expect(throws: IOFailure.self, "\(path), seed \(seed)") {
                try transport.send(HTTPRequest("GET", server.url + path, timeouts: timeouts))
            }
        }
        // It goes on with another.
        let sane = try LoopbackServer { _, _ in reply("200 OK", "x") }
        defer { sane.stop() }
        #expect(try transport.send(HTTPRequest("GET", sane.url)).body == Array("x".utf8))
    }

    @Test func manyThreadsShareIt() throws {
        let server = try LoopbackServer { head, _ in reply("200 OK", String(head.split(separator: " ")[1])) }
        defer { server.stop() }
        let right = Atomic(0)
        let threads = try (0..<8).map { thread in
            try PinnedThread {
                for index in 0..<25 {
                    let path = "/\(thread)-\(index)"
                    guard let response = try? transport.send(HTTPRequest("GET", server.url + path)) else { continue }
                    if response.body == Array(path.utf8) { right.add(1, ordering: .relaxed) }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(right.load(ordering: .relaxed) == 200)
    }
}
