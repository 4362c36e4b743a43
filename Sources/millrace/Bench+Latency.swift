import ArgumentParser
import MillBench
import MillIO

extension Bench {
    struct Latency: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "How soon an event is seen, at half of the peak rate.",
            discussion: """
                A server of its own, bids over the Kafka wire, a grouped view, a reader over the Postgres wire. An event's time begins when it is due and \
                ends when an answer shows it. The goal is a p99 under 10 ms and the p99 of fdatasync on the same file system at the same time; \
                a goal that is missed is no error.
                """)

        @Option(help: "Seconds at the even rate that are measured.") var seconds = 10.0
        @Option(help: "Seconds of events as fast as they are taken, to find the peak.") var peakSeconds = 4.0
        @Option(help: "Seconds of rest after that, so that the disk is done with it.") var settleSeconds = 10.0
        @Option(help: "Events a second; half of the peak when left out.") var rate: Int?
        @Option(help: "Seed of the events.") var seed: UInt64 = 42
        @Option(help: "Threads that run the view.") var workers = 1
        @Option(help: "What produces the events: \"librdkafka\", as in most programs, or \"wire\", a producer of this program's own that takes less of the machine.")
        var client = LatencyBench.Client.librdkafka
        @Option(help: "Milliseconds from one checkpoint of the server's state to the next; the server's own when left out.") var checkpointInterval: Int?
        @Option(help: "Where the log is kept meanwhile, a directory that is not there yet; in the temporary directory when left out.") var dataDir: String?
        @Flag(help: "One JSON object on standard output.") var json = false

        func validate() throws {
            guard seconds > 0, seconds <= 600, peakSeconds > 0, peakSeconds <= 600, (0...600).contains(settleSeconds) else {
                throw ValidationError("seconds are more than 0 and up to 600")
            }
            guard rate ?? 1 > 0, rate ?? 1 <= 100_000_000 else { throw ValidationError("--rate takes 1 to 100000000") }
        }

        func run() async throws {
            var bench = LatencyBench(
                seconds: seconds, peakSeconds: peakSeconds, settleSeconds: settleSeconds, rate: rate, seed: seed, workerCount: workers,
                client: client, directory: dataDir ?? TemporaryDirectory.path("latency"))
            bench.checkpointMillis = checkpointInterval
            let result = try bench.run(.system)
            StandardOutput.write(json ? result.json + "\n" : result.text)
        }
    }
}

extension LatencyBench.Client: ExpressibleByArgument {}

extension LatencyBench.Result {
    fileprivate var text: String {
        func rounded(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
        return """
            rate        \(rate) events/s through \(client == .wire ? "a producer of this program's own" : client.rawValue)\(peak.map { ", half of the peak of \($0)" } ?? "")
            visible     median \(latency.median) ms, p99 \(latency.p99) ms, p99.9 \(latency.p999) ms, worst \(latency.worst) ms
            answering   median \(asking.median) ms, p99 \(asking.p99) ms, worst \(asking.worst) ms, \(answers) answers
            generator   p99 \(lateness.p99) ms late, worst \(lateness.worst) ms; \(rounded(generatorCores)) cores, the reader \(rounded(readerCores))
            server      \(rounded(serverCores)) cores, anything else on the machine \(rounded(otherCores))
            waking      p99 \(wake.p99) ms late, p99.9 \(wake.p999) ms, worst \(wake.worst) ms: a thread that only sleeps, beside all this
            fdatasync   median \(sync.median) ms, p99 \(sync.p99) ms, worst \(sync.worst) ms
            goal        p99 under \((goalMillis * 1000).rounded() / 1000) ms, 10 and fdatasync's p99: \(latency.p99 < goalMillis ? "met" : "missed")

            """
    }
}
