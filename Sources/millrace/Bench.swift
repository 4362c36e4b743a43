import ArgumentParser
import MillBench
import MillIO
import MillLog

struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measures this build.", subcommands: [Nexmark.self, Growth.self, Exchange.self, Latency.self, Fetch.self])

    struct Nexmark: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Nexmark queries over generated events.")

        @Option(help: "Queries, separated by commas.") var query = NexmarkQuery.all.map(\.name).joined(separator: ",")
        @Option(help: "A query of your own over person, auction and bid, in place of those.") var sql: String?
        @Option(help: "Events of all three streams together.") var events = 2_000_000
        @Option(help: "Seed of the events.") var seed: UInt64 = 42
        @Option(help: "Directory with the files, written when missing.") var input = "nexmark-data"
        @Option(help: "Read them as 'file', from 'memory', or from the embedded 'log'.") var source = "file"
        @Option(help: "Threads that run the queries.") var workers = 1
        @Option(help: "Runs of each query.") var runs = 1
        @Option(help: "Milliseconds from one checkpoint of state on the disk to the next; 0: none.") var checkpointInterval = 0
        @Flag(help: "One JSON object a line on standard output.") var json = false
        @Flag(help: "Wait for a line on standard input before each run; its end ends the program.") var paced = false
        @Flag(help: "Write the input and print the queries as statements instead of running them.") var statements = false

        func run() async throws {
            let queries = try sql.map { [NexmarkQuery(sql: $0)] } ?? namedQueries()
            guard let kind = NexmarkBench.Input(rawValue: source) else { throw ValidationError("--source takes file, memory or log") }
            let bench = NexmarkBench(
                events: events, seed: seed, input: kind, directory: input, workerCount: workers, queries: queries,
                checkpointInterval: checkpointInterval > 0 ? .milliseconds(checkpointInterval) : nil)
            StandardError.write("preparing \(events) events in \(input)\n")
            try bench.prepare(.system)
            if statements {
                let streams = NexmarkGenerator.Kind.allCases.filter { kind in queries.contains { $0.streams.contains(kind) } }
                for kind in streams { StandardOutput.write(bench.definition(of: kind) + ";\n") }
                for query in queries { StandardOutput.write("CREATE MATERIALIZED VIEW \(query.name) AS \(query.sql);\n") }
                return
            }
            let environment = try bench.runEnvironment(.system)
            let log = try await bench.openLog(.system)
            defer { log?.close() }
            let yardstick = try bench.decodeYardstick(.system)
            report(yardstick, yardstick)
            for query in queries {
                for _ in 0..<runs {
                    if paced, readLine() == nil { return }
                    report(try await bench.run(query, environment: environment, log: log), yardstick)
                }
            }
        }

        private func namedQueries() throws -> [NexmarkQuery] {
            let wanted = query.split(separator: ",").map(String.init)
            let queries = NexmarkQuery.all.filter { wanted.contains($0.name) }
            guard queries.count == wanted.count else {
                throw ValidationError("known queries are \(NexmarkQuery.all.map(\.name).joined(separator: ", "))")
            }
            return queries
        }

        private func report(_ result: NexmarkBench.Result, _ yardstick: NexmarkBench.Result) {
            if json {
                StandardOutput.write(result.json + "\n")
                return
            }
            let rate = Double(result.events) / result.cpuSeconds
            let ratio = rate / (Double(yardstick.events) / yardstick.cpuSeconds)
            func column(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
            StandardOutput.write(
                column(result.query, 10) + column("\(Int(rate / 1000))k events per CPU second", 30)
                    + column("\((ratio * 1000).rounded() / 10)% of the C++ decode", 26)
                    + column("\((result.seconds * 1000).rounded() / 1000) s", 10) + column("\(result.peakRSSBytes >> 20) MiB", 10)
                    + column("\(result.rowCount) rows", 16) + "\n")
        }
    }

    struct Growth: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "What more keys, views and partitions cost.",
            discussion: "Grouped counts over an embedded log in memory: keys from 10^4 to 10^7, 1 to 50 views on one source, 1 to 64 partitions.")

        @Option(help: "Records of each point; with 10^7 keys at least as many.") var records = 2_000_000
        @Option(help: "Seed of the records.") var seed: UInt64 = 42
        @Option(help: "Threads that run the views.") var workers = 1
        @Option(help: "What grows: keys, views or partitions; all of them in turn by default.") var axis: String?
        @Flag(help: "One JSON object a line on standard output.") var json = false

        func run() async throws {
            let only = try axis.map { name in
                guard let axis = GrowthBench.Axis(rawValue: name) else { throw ValidationError("--axis takes keys, views or partitions") }
                return axis
            }
            let bench = GrowthBench(records: records, seed: seed, workerCount: workers)
            for point in GrowthBench.points where only == nil || point.axis == only {
                let result = try await bench.run(point)
                StandardOutput.write(json ? result.json + "\n" : result.line)
            }
        }
    }

    struct Exchange: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "What sending rows between workers and ending an epoch cost.",
            discussion: "Ready-made rows through chains of exchanges, 1 to 64 workers: in large epochs, then one row a worker and epoch.")

        @Option(help: "Rows of each point; a thousandth of them where epochs are measured.") var rows = 20_000_000
        @Flag(help: "One JSON object a line on standard output.") var json = false

        func run() async throws {
            let bench = ExchangeBench(rows: rows)
            for point in ExchangeBench.points {
                let result = try await bench.run(point, environment: .system)
                StandardOutput.write(json ? result.json + "\n" : result.line)
            }
        }
    }
}

extension GrowthBench.Result {
    fileprivate var line: String {
        func column(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
        return column("\(point.value) \(point.axis.rawValue)", 22) + column("\(updatesPerCPUSecond / 1000)k updates per CPU second", 32)
            + column("\((seconds * 1000).rounded() / 1000) s", 10) + column("\(peakRSSBytes >> 20) MiB", 10) + column("\(groups) groups", 18) + "\n"
    }
}

extension ExchangeBench.Result {
    fileprivate var line: String {
        func column(_ text: String, _ width: Int) -> String { String(repeating: " ", count: max(0, width - text.count)) + text }
        func rounded(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
        let cost = switch point.axis {
        case .rows: column("\(rounded(cpuNanosPerRow)) CPU ns a row", 24)
        case .epochs: column("\(rounded(cpuMicrosPerEpoch)) CPU us an epoch", 24) + column("\(rounded(microsPerEpoch)) us an epoch", 20)
        }
        return column("\(point.workers) workers", 10) + column("\(point.exchanges) exchanges", 14) + cost + "\n"
    }
}
