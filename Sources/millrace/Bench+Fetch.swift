import ArgumentParser
import MillBench
import MillIO

extension Bench {
    struct Fetch: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Reading a topic over TCP, beside librdkafka's own consumer.",
            discussion: "One partition of 280-byte records from a broker of its own, or another one; nothing is decoded. Records per CPU second of the reader.")

        @Option(help: "Records in the topic.") var records = 3_000_000
        @Option(help: "Seed of the records.") var seed: UInt64 = 42
        @Option(help: "HOST:PORT of a broker to read from; one is started when left out.") var broker: String?
        @Option(help: "Runs of each reader, in turn.") var runs = 3
        @Flag(help: "One JSON object a line on standard output.") var json = false

        func validate() throws {
            guard (1...1_000_000_000).contains(records), runs > 0 else { throw ValidationError("--records takes 1 to 1000000000, --runs at least 1") }
        }

        func run() async throws {
            let bench = FetchBench(records: records, seed: seed, broker: broker, directory: TemporaryDirectory.path("fetch"))
            try bench.run(runs: runs, .system) { result in
                StandardOutput.write(json ? result.json + "\n" : result.line)
            }
        }
    }
}

extension FetchBench.Result {
    fileprivate var line: String {
        func column(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
        return column(reader.rawValue, 12) + column("\(recordsPerCPUSecond / 1000)k records per CPU second", 34)
            + column("\((seconds * 1000).rounded() / 1000) s", 10) + column("\(bytes >> 20) MiB", 10) + "\n"
    }
}
