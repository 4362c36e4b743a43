import MillBase
import MillPgWire
import NIOCore
import Synchronization
import Testing

@testable import MillPgServer

/// `#expect(a == b)` for an `a` that waits: the macro does not take `try await` inside every closure.
private func expectEqual<T: Equatable>(_ value: T, _ expected: T, at location: SourceLocation = #_sourceLocation) {
    #expect(value == expected, sourceLocation: location)
}

/// The server over a real loopback socket, with a fake backend behind it.
struct PgServerTests {
    private func withServer(
        _ change: (inout PgServerOptions) -> Void = { _ in }, _ body: (_ port: Int, _ backend: FakeBackend) async throws -> Void
    ) async throws {
        var options = PgServerOptions(host: "127.0.0.1", port: 0)
        change(&options)
        let backend = FakeBackend()
        let server = PgServer(options, backend: backend)
        try await server.start()
        let port = try #require(server.port)
        do {
            try await body(port, backend)
        } catch {
            await server.shutdown()
            throw error
        }
        await server.shutdown()
        #expect(server.connectionCount == 0)
    }

    // MARK: Startup

    @Test func clientsAreWelcomedAfterEncryptionIsRefused() async throws {
        try await withServer { port, _ in
            try await WireClient.raw(port) { client in
                try await client.send([0, 0, 0, 8, 4, 210, 22, 48])
                expectEqual(try await client.byte(), UInt8(ascii: "N"))
                try await client.send([0, 0, 0, 8, 4, 210, 22, 47])
                expectEqual(try await client.byte(), UInt8(ascii: "N"))
                try await client.send(startup: ["user", "me", "database", "any", "application_name", "test"])
                let lines = try await client.untilReady()
                #expect(lines.first == "R")
                #expect(lines.suffix(2) == ["K", "Z I"])
                for line in [
                    "S server_version=14.0 (Millrace)", "S TimeZone=Etc/UTC", "S application_name=test", "S session_authorization=me",
                ] {
                    #expect(lines.contains(line))
                }
            }
        }
    }

    @Test func newerProtocolIsNegotiated() async throws {
        try await withServer { port, _ in
            try await WireClient.raw(port) { client in
                try await client.send(startup: ["user", "me"], version: 3 << 16 | 2)
                expectEqual(try await client.next(2), ["v", "R"])
            }
        }
    }

    @Test func refusedUserGetsAFatalError() async throws {
        try await withServer { port, _ in
            try await WireClient.raw(port) { client in
                try await client.send(startup: ["user", "nobody"])
                expectEqual(try await client.untilReady(), ["E FATAL 28000 role \"nobody\" does not exist"])
                #expect(client.isClosed)
            }
        }
    }

    @Test func localhostListensOnBothFamilies() async throws {
        try await withServer({ $0.host = "localhost" }) { port, _ in
            try await WireClient.ready(port) { expectEqual(try await $0.query("one").count, 4) }
        }
    }

    @Test func connectionsOverTheLimitAreTurnedAway() async throws {
        try await withServer({ $0.connectionsMax = 1 }) { port, _ in
            try await WireClient.ready(port) { _ in
                try await WireClient.raw(port) { expectEqual(try await $0.untilReady(), ["E FATAL 53300 sorry, too many clients already"]) }
            }
        }
    }

    @Test func silentClientsAreDropped() async throws {
        try await withServer({ $0.startupTimeout = .milliseconds(20) }) { port, _ in
            try await WireClient.raw(port) {
                expectEqual(try await $0.untilReady(), ["E FATAL 57014 canceling authentication due to timeout"])
            }
        }
    }

    @Test func idleSessionsEnd() async throws {
        try await withServer({ $0.idleTimeout = .milliseconds(20) }) { port, _ in
            try await WireClient.ready(port) {
                expectEqual(try await $0.untilReady(), ["E FATAL 57P05 terminating connection due to idle-session timeout"])
            }
        }
    }

    @Test func aSessionSetsItsOwnIdleLimit() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) {
                expectEqual(try await $0.query("idle"), ["C IDLE", "Z I"])
                expectEqual(try await $0.untilReady(), ["E FATAL 25P03 terminating connection due to idle-in-transaction timeout"])
            }
        }
    }

    // MARK: Simple query

    @Test func simpleQueryReturnsRows() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                expectEqual(try await client.query("one"), ["T one:23", "D 1", "C SELECT 1", "Z I"])
                expectEqual(try await client.query("weights"), ["T n:20", "D 0", "D 0", "D 2", "D 2", "D 2", "C SELECT 5", "Z I"])
                expectEqual(try await client.query(""), ["I", "Z I"])
                expectEqual(try await client.query("nothing"), ["C NOTHING", "Z I"])
            }
        }
    }

    @Test func severalStatementsStopAtTheFirstError() async throws {
        try await withServer { port, backend in
            try await WireClient.ready(port) { client in
                expectEqual(
                    try await client.query("one; set TimeZone Asia/Tokyo; fail; one"),
                    [
                        "T one:23", "D 1", "C SELECT 1", "S TimeZone=Asia/Tokyo", "C SET",
                        "E ERROR 42P01 relation \"x\" does not exist at 31", "Z I",
                    ])
                #expect(
                    backend.log.all == ["execute one", "close one", "execute set TimeZone Asia/Tokyo", "close set", "failed", "settle"])
                expectEqual(try await client.query("one; syntax"), ["E ERROR 42601 syntax error at or near \"syntax\" at 6", "Z I"])
            }
        }
    }

    @Test func noticesComeBeforeTheTag() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) {
                expectEqual(try await $0.query("notice"), ["N NOTICE 00000 take care", "C NOTICE", "Z I"])
            }
        }
    }

    @Test func blocksFailAndEnd() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                let expected: [(query: String, lines: [String])] = [
                    ("begin", ["C BEGIN", "Z T"]),
                    ("late", ["T n:20", "D 0", "D 1", "E ERROR 22012 division by zero", "Z E"]),
                    ("one", ["E ERROR 25P02 current transaction is aborted", "Z E"]),
                    ("commit", ["C COMMIT", "Z I"]),
                    ("conflict", ["E ERROR 40001 could not serialize access", "Z I"]),
                ]
                for (query, lines) in expected { expectEqual(try await client.query(query), lines) }
            }
        }
    }

    @Test func commitThatFailsAtSyncComesAfterTheTag() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(WireClient.parse("conflict") + WireClient.bind() + WireClient.execute() + WireClient.sync)
                expectEqual(try await client.untilReady(), ["1", "2", "C CONFLICT", "E ERROR 40001 could not serialize access", "Z I"])
            }
        }
    }

    @Test func largeResultsArriveWhole() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                let lines = try await client.query("rows 50000")
                #expect(lines.count == 50_003)
                #expect(lines[1] == "D 0" && lines[50_000] == "D 49999" && lines[50_001] == "C SELECT 50000")
            }
        }
    }

    // MARK: Extended protocol

    @Test func parametersAndResultsInBothFormats() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(
                    WireClient.parse("echo", types: [.int4, .text, .numeric]) + WireClient.describe("S")
                        + WireClient.bind(
                            formats: [.binary, .text, .binary],
                            values: [[0, 0, 0, 5], Array("hey".utf8), [0, 1, 0, 0, 0, 0, 0, 0, 0, 7]],
                            results: [.text, .text, .binary])
                        + WireClient.execute() + WireClient.sync)
                expectEqual(
                    try await client.untilReady(),
                    ["1", "t 23 25 1700", "T p1:23 p2:25 p3:1700", "2", "D 5,hey,0.1.0.0.0.0.0.0.0.7", "C SELECT 1", "Z I"])
            }
        }
    }

    @Test func everyTypeHasItsBinaryAndTextForm() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(
                    WireClient.parse("types") + WireClient.bind(results: [.binary]) + WireClient.execute() + WireClient.sync)
                let lines = try await client.untilReady()
                #expect(
                    lines[2]
                        == "D 1,ff.fe,80.0.0.0,80.0.0.0.0.0.0.0,3f.c0.0.0,bf.d0.0.0.0.0.0.0,0.2.0.0.40.0.0.2.0.7b.11.94,"
                        + "a string over twelve bytes,0.ff,0.0.0.1,0.0.0.0.0.0.0.1,0.0.0.0.0.0.0.2,7f.ff.ff.ff.ff.ff.ff.ff,"
                        + "0.0.0.0.0.0.0.3.0.0.0.2.0.0.0.1,1.7b.7d")
                #expect(lines[3] == "D " + Array(repeating: "NULL", count: 15).joined(separator: ","))
                let text = try await client.query("types")
                #expect(
                    text[1]
                        == "D t,-2,-2147483648,-9223372036854775808,1.5,-0.25,-123.45,a string over twelve bytes,\\x00ff,2000-01-02,"
                        + "00:00:00.000001,2000-01-01 00:00:00.000002,infinity,1 mon 2 days 00:00:00.000003,{}")
            }
        }
    }

    @Test func rowLimitsSuspendThePortal() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(
                    WireClient.parse("weights") + WireClient.bind() + WireClient.execute(limit: 3) + WireClient.execute(limit: 2)
                        + WireClient.execute(limit: 9) + WireClient.sync)
                expectEqual(try await client.untilReady(), ["1", "2", "D 0", "D 0", "D 2", "s", "D 2", "D 2", "s", "C SELECT 0", "Z I"])
            }
        }
    }

    @Test func portalsAreClosedAtSync() async throws {
        try await withServer { port, backend in
            try await WireClient.ready(port) { client in
                try await client.send(
                    WireClient.parse("rows 10") + WireClient.bind(portal: "p") + WireClient.execute("p", limit: 1) + WireClient.sync)
                _ = try await client.untilReady()
                #expect(backend.log.all == ["execute rows 10", "settle", "close rows"])
                try await client.send(WireClient.execute("p") + WireClient.sync)
                expectEqual(try await client.untilReady(), ["E ERROR 34000 portal \"p\" does not exist", "Z I"])
            }
        }
    }

    @Test func errorSkipsToSync() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(
                    WireClient.parse("  fail") + WireClient.bind() + WireClient.execute() + WireClient.sync + WireClient.parse("one; one")
                        + WireClient.sync)
                expectEqual(try await client.untilReady(), ["E ERROR 42P01 relation \"x\" does not exist at 3", "Z I"])
                expectEqual(
                    try await client.untilReady(), ["E ERROR 42601 cannot insert multiple commands into a prepared statement at 6", "Z I"])
            }
        }
    }

    @Test func badParametersFailAtBind() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(
                    WireClient.parse("echo", types: [.int4]) + WireClient.bind(formats: [.binary], values: [[1]]) + WireClient.sync)
                expectEqual(try await client.untilReady(), ["1", "E ERROR 22P03 incorrect binary data format in bind parameter", "Z I"])
            }
        }
    }

    @Test func emptyStatementAndFlush() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(
                    WireClient.parse("") + WireClient.describe("S") + WireClient.bind() + WireClient.execute() + WireClient.flush)
                expectEqual(try await client.next(5), ["1", "t", "n", "2", "I"])
                try await client.send(WireClient.sync)
                expectEqual(try await client.untilReady(), ["Z I"])
            }
        }
    }

    // MARK: Cancel, end, hostile input

    @Test func cancelByKeyStopsTheStatement() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(WireClient.message("Q", Array("live\0".utf8)))
                // The rows come before the statement ends, so the statement is running when the cancel is sent.
                expectEqual(try await client.next(3), ["T n:20", "D 0", "D 1"])
                let key = client.key
                for secret in [key.secret &+ 1, key.secret] {
                    try await WireClient.raw(port) { other in
                        var bytes: [UInt8] = [0, 0, 0, 16, 4, 210, 22, 46]
                        bytes.appendBigEndian(key.processID)
                        bytes.appendBigEndian(secret)
                        try await other.send(bytes)
                        expectEqual(try await other.next(), nil)
                    }
                }
                expectEqual(try await client.untilReady(), ["E ERROR 57014 canceling statement due to user request", "Z I"])
                expectEqual(try await client.query("one").count, 4)
            }
        }
    }

    @Test func clientThatDoesNotReadHoldsItsOwnStatementOnly() async throws {
        try await withServer { port, backend in
            try await WireClient.ready(port) { slow in
                try await slow.send(WireClient.message("Q", Array("endless\0".utf8)))
                _ = try await slow.next(3)
                try await WireClient.ready(port) { other in
                    for _ in 0..<5 {
                        let lines = try await other.query("rows 20000")
                        #expect(lines.count == 20_003)
                    }
                }
                // What both sockets and the buffers between them hold: some megabytes at 80 KB a batch.
                let pulls = backend.log.pulls.load(ordering: .relaxed)
                #expect((1...1000).contains(pulls))
            }
        }
    }

    @Test func shutdownEndsIdleAndRunningConnections() async throws {
        let server = PgServer(PgServerOptions(host: "127.0.0.1", port: 0), backend: FakeBackend())
        try await server.start()
        let port = try #require(server.port)
        let end = "E FATAL 57P01 terminating connection due to administrator command"
        try await WireClient.ready(port) { idle in
            try await WireClient.ready(port) { running in
                try await running.send(WireClient.message("Q", Array("live\0".utf8)))
                _ = try await running.next(3)
                async let stopped: Void = server.shutdown()
                expectEqual(try await running.untilReady(), [end])
                expectEqual(try await idle.untilReady(), [end])
                await stopped
            }
        }
        #expect(server.connectionCount == 0)
    }

    @Test func shutdownDoesNotWaitForAStatementThatDoesNotStop() async throws {
        var options = PgServerOptions(host: "127.0.0.1", port: 0)
        options.drainTimeout = .milliseconds(10)
        options.closeTimeout = .milliseconds(10)
        let backend = FakeBackend()
        let server = PgServer(options, backend: backend)
        try await server.start()
        let port = try #require(server.port)
        try await WireClient.ready(port) { client in
            try await client.send(WireClient.message("Q", Array("deaf\0".utf8)))
            while !backend.log.all.contains("deaf") { await Task.yield() }
            await server.shutdown()
            expectEqual(try await client.untilReady().last, "E FATAL 57P01 terminating connection due to administrator command")
        }
        #expect(server.connectionCount == 1)
        #expect(backend.log.all.contains("terminate"))
        backend.log.hearing.continuation.yield()
        while server.connectionCount > 0 { await Task.yield() }
        #expect(backend.log.all.last == "close session")
    }

    @Test func leavingClientCancelsItsStatement() async throws {
        try await withServer { port, backend in
            try await WireClient.ready(port) { client in
                try await client.send(WireClient.message("Q", Array("live\0".utf8)))
                _ = try await client.next(3)
            }
            // Shutdown waits for the connection; it only ends because the statement was cancelled.
            _ = backend
        }
    }

    @Test func randomBytesEndOnlyTheirConnection() async throws {
        try await withServer { port, _ in
            var generator = SystemRandomNumberGenerator()
            let seed = generator.next()
            var random = seed
            func nextByte() -> UInt8 {
                random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: random >> 56)
            }
            for _ in 0..<30 {
                try await WireClient.raw(port) { client in
                    try await client.send([0xFF] + (0..<64).map { _ in nextByte() })
                    let lines = try await client.untilReady()
                    #expect(lines.count == 1 && lines[0].hasPrefix("E FATAL 08P01"), "seed \(seed): \(lines)")
                }
                try await WireClient.ready(port) { client in
                    try await client.send([0xFF] + (0..<64).map { _ in nextByte() })
                    let lines = try await client.untilReady()
                    #expect(lines.count == 1 && lines[0].hasPrefix("E FATAL 08P01"), "seed \(seed): \(lines)")
                }
            }
            try await WireClient.ready(port) { client in
                let lines = try await client.query("one")
                #expect(lines.count == 4)
            }
        }
    }

    @Test func messagesOverTheLimitEndTheConnection() async throws {
        try await withServer({ $0.messageBytesMax = 100 }) { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send([UInt8(ascii: "Q"), 0, 0, 0, 101])
                expectEqual(try await client.untilReady(), ["E FATAL 08P01 invalid message length 101"])
            }
        }
    }

    @Test func functionCallAndCopyMessagesAreAnswered() async throws {
        try await withServer { port, _ in
            try await WireClient.ready(port) { client in
                try await client.send(WireClient.message("d", [1, 2]) + WireClient.message("c", []) + WireClient.message("F", [0]))
                let lines = try await client.untilReady()
                #expect(lines == ["E ERROR 0A000 function calls by the fast path are not supported", "Z I"])
            }
        }
    }
}
