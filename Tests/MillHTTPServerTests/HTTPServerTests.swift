import MillBase
import MillTestKit
import NIOHTTP1
import Synchronization
import Testing

@testable import MillHTTPServer

/// Says what a test wants it to.
private final class Reporter: HealthReporter {
    let report: Mutex<HealthReport>
    let questionCount = Mutex(0)
    private let isSilent: Bool

    init(_ report: HealthReport = HealthReport(state: .serving), isSilent: Bool = false) {
        self.report = Mutex(report)
        self.isSilent = isSilent
    }

    func healthReport() async -> HealthReport {
        questionCount.withLock { $0 += 1 }
        if isSilent { try? await Task.sleep(for: .seconds(1)) }  // Nobody cancels it.
        return report.withLock { $0 }
    }
}

@Suite(.timeLimit(.minutes(1))) struct HTTPServerTests {
    private func withServer(
        _ reporter: Reporter = Reporter(), _ change: (inout HTTPServerOptions) -> Void = { _ in }, _ body: (HTTPClient) async throws -> Void
    ) async throws {
        var options = HTTPServerOptions(host: "127.0.0.1", port: 0)
        change(&options)
        let server = HTTPServer(options, reporter: reporter)
        try await server.start()
        let client = HTTPClient(port: try #require(server.port))
        do { try await body(client) } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private func status(_ answer: String) -> Int? { answer.split(separator: " ").dropFirst().first.flatMap { Int($0) } }

    // MARK: What it says

    @Test func healthIs200OnlyWhileTheServerIsReady() async throws {
        let reporter = Reporter(HealthReport(state: .starting))
        try await withServer(reporter) { (client) async throws in
            #expect(try await status(client.get("/health")) == 503)
            reporter.report.withLock { $0.state = .serving }
            let answer = try await client.get("/health?verbose")
            #expect(status(answer) == 200)
            #expect(answer.hasSuffix("\r\n\r\n" + #"{"live":true,"ready":true,"state":"serving","reason":null,"jobs":[],"sinks":[]}"# + "\n"), "\(answer)")
            reporter.report.withLock { $0.state = .refusingWrites }
            #expect(try await status(client.get("/health")) == 503)
            #expect(try await status(client.get("/metrics")) == 200)
        }
    }

    @Test func jobsComeWithTheirReasons() {
        let job = HealthReport.Job(id: ObjectID(7), name: "a \"b\"\n\\", state: "retrying", reason: "é", sinceMicros: 5)
        let report = HealthReport(state: .serving, jobs: [job], sinks: [HealthReport.Job(id: ObjectID(8), name: "c", state: "running")])
        #expect(
            report.json == #"{"live":true,"ready":true,"state":"serving","reason":null,"jobs":["#
                + #"{"id":7,"name":"a \"b\"\u000a\\","state":"retrying","reason":"é","since_micros":5,"next_try_micros":null}],"#
                + #""sinks":[{"id":8,"name":"c","state":"running","reason":null,"since_micros":null,"next_try_micros":null}]}"#)
    }

    @Test func theCatalogsAddressIsToldWhileItRuns() {
        var report = HealthReport(state: .serving)
        report.catalogAddress = "localhost:8181"
        #expect(report.json == #"{"live":true,"ready":true,"state":"serving","reason":null,"catalog":"localhost:8181","jobs":[],"sinks":[]}"#)
    }

    @Test func metricsAreInPrometheusFormat() {
        let families = [
            MetricFamily("millrace_a_total", .counter, "Things.", 3), MetricFamily("millrace_none", .gauge, "Nothing.", []),
            MetricFamily("millrace_b", .gauge, "Others.", by: "name", [("x\"\\\n", 0.5), ("y", .infinity)]),
        ]
        #expect(
            MetricFamily.text(families) == """
                # HELP millrace_a_total Things.
                # TYPE millrace_a_total counter
                millrace_a_total 3
                # HELP millrace_b Others.
                # TYPE millrace_b gauge
                millrace_b{name="x\\"\\\\\\n"} 0.5
                millrace_b{name="y"} +Inf

                """)
    }

    @Test func headHasNoBody() async throws {
        try await withServer { (client) async throws in
            let answer = try await client.exchange("HEAD /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            #expect(status(answer) == 200)
            #expect(answer.hasSuffix("\r\n\r\n"))
        }
    }

    // MARK: What it refuses

    @Test func whatIsNotThereIsRefused() async throws {
        try await withServer { (client) async throws in
            #expect(try await status(client.get("/")) == 404)
            #expect(try await status(client.get("/healthy")) == 404)
            let answer = try await client.exchange("POST /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\nhi")
            #expect(status(answer) == 405)
            #expect(answer.contains("allow: GET, HEAD\r\n"))
        }
    }

    @Test func eachConnectionGetsOneAnswer() async throws {
        try await withServer { (client) async throws in
            let request = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: keep-alive\r\n\r\n"
            let answer = try await client.exchange(request + request + request)
            #expect(answer.split(separator: "HTTP/1.1 200").count == 1)
            #expect(answer.contains("connection: close\r\n"))
        }
    }

    @Test func aRequestThatIsTooLongOrNoneIsRefused() async throws {
        try await withServer { (client) async throws in
            let long = "GET /health HTTP/1.1\r\nx: " + String(repeating: "y", count: 20_000) + "\r\n\r\n"
            #expect(try await status(client.exchange(long)) == 431)
            #expect(try await status(client.exchange("hello\r\n\r\n")) == 400)
            #expect(try await status(client.exchange("GET /health HTTP/9.9\r\n\r\n")) == 400)
            #expect(try await status(client.get("/health")) == 200)
        }
    }

    @Test func aClientThatIsTooSlowIsRefused() async throws {
        try await withServer(Reporter()) { $0.clientTimeout = .milliseconds(20) } _: { (client) async throws in
            #expect(try await status(client.exchange("GET /health HT")) == 408)
            #expect(try await status(client.exchange("")) == 408)
        }
    }

    @Test func aServerThatDoesNotSayHowItIsIsNotReady() async throws {
        try await withServer(Reporter(isSilent: true)) { $0.reportTimeout = .milliseconds(20) } _: { (client) async throws in
            #expect(try await status(client.get("/health")) == 503)
        }
    }

    @Test func aClientThatSaysThatItHasSentAllGetsItsAnswer() async throws {
        try await withServer { (client) async throws in
            let request = Array("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n".utf8)
            #expect(try await status(client.exchange(request, isAll: true)) == 200)
            #expect(try await status(client.exchange(Array(request.dropLast(5)), isAll: true)) == 400)
        }
    }

    /// A program that does not answer is not asked by ever more tasks.
    @Test func whoComesWhileAReportIsMadeGetsTheSame() async throws {
        let reporter = Reporter(isSilent: true)
        let desk = HealthDesk(reporter)
        async let first = desk.healthReport()
        while reporter.questionCount.withLock({ $0 }) == 0 { await Task.yield() }
        async let second = desk.healthReport()
        _ = await (first, second)
        #expect(reporter.questionCount.withLock { $0 } == 1)
        _ = await desk.healthReport()
        #expect(reporter.questionCount.withLock { $0 } == 2)
    }

    @Test func moreConnectionsThanAllowedAreClosed() async throws {
        try await withServer(Reporter()) { options in
            options.connectionsMax = 0
        } _: { (client) async throws in
            #expect(try await client.get("/health") == "")
        }
    }

    @Test func randomBytesHarmNobody() async throws {
        let seed: UInt64 = 20_251_122
        var generator = SeededGenerator(seed: seed)
        let request = Array("GET /metrics HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".utf8)
        try await withServer(Reporter()) { $0.clientTimeout = .milliseconds(20) } _: { (client) async throws in
            for round in 0..<200 {
                var bytes = round % 2 == 0 ? request : (0..<Int.random(in: 1...300, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
                for _ in 0..<3 { bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator) }
                let answer = try await client.exchange(bytes)
                #expect(answer.isEmpty || (200..<600).contains(status(answer) ?? 0), "seed \(seed), round \(round): \(answer)")
            }
            #expect(try await status(client.get("/metrics")) == 200)
        }
    }
}
