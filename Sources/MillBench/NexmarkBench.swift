import CJSONDecode
import MillBase
import MillColumnar
import MillEngine
package import MillIO
import MillConnectors
import MillKafkaWire
import MillStore
package import MillLog

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// `millrace bench nexmark`: runs Nexmark queries over the same bounded input, one after another in this process, each in an engine
/// of its own, and says what each cost the process.
package struct NexmarkBench: Sendable {
    /// Where the events come from.
    package enum Input: String, Sendable, CaseIterable {
        /// JSON lines in files, through `connector = 'file'`; what other engines can read too.
        case file
        /// The same files held in memory.
        case memory
        /// Topics of an embedded log in `directory`, two partitions each, read without TCP.
        case log
    }

    package var events: Int
    package var seed: UInt64
    package var input: Input
    /// Where the files are, or are written when missing.
    package var directory: String
    package var workerCount: Int
    package var queries: [NexmarkQuery]
    /// From one checkpoint of state to the next; nil for state that is only in memory.
    package var checkpointInterval: Duration?

    package init(
        events: Int, seed: UInt64, input: Input, directory: String, workerCount: Int, queries: [NexmarkQuery], checkpointInterval: Duration? = nil
    ) {
        self.checkpointInterval = checkpointInterval
        self.events = events
        self.seed = seed
        self.input = input
        self.directory = directory
        self.workerCount = workerCount
        self.queries = queries
    }

    /// What one query cost.
    package struct Result: Sendable {
        package var query: String
        package var events: Int
        package var seconds: Double
        package var cpuSeconds: Double
        package var peakRSSBytes: Int
        package var rowCount: Int64
        package var checksum: UInt64
        package var workerCount: Int
        /// The last checkpoint's number and the bytes of all its files; nil without checkpoints.
        package var checkpoints: (number: UInt64, bytesOnDisk: Int)?

        package var json: String {
            let rate = Int(Double(events) / seconds)
            let perCore = Int(Double(events) / cpuSeconds)
            return """
                {"query": "\(query)", "events": \(events), "seconds": \(Self.text(seconds)), "cpu_seconds": \(Self.text(cpuSeconds)), \
                "events_per_second": \(rate), "events_per_second_per_core": \(perCore), "peak_rss_bytes": \(peakRSSBytes), \
                "rows": \(rowCount), "checksum": "\(String(checksum, radix: 16))", "workers": \(workerCount)\(checkpoints.map { ", \"checkpoints\": \($0.number), \"state_bytes_on_disk\": \($0.bytesOnDisk)" } ?? "")}
                """
        }

        private static func text(_ seconds: Double) -> String { String((seconds * 1_000_000).rounded() / 1_000_000) }
    }

    /// Writes the input files unless they are there; two parts a stream, so that two workers share them.
    package func prepare(_ environment: Environment) throws(IOFailure) {
        let marker = directory + "/nexmark-\(seed)-\(events).done"
        guard !environment.files.exists(marker) else { return }
        try environment.files.createDirectory(directory)
        // Files of another size are written over.
        for name in try environment.files.list(directory) where name.hasSuffix(".done") { try environment.files.remove("\(directory)/\(name)") }
        try NexmarkGenerator(seed: seed, events: events).writeFiles(to: directory, parts: 2, files: environment.files)
        _ = try environment.files.open(marker, .create)
    }

    /// The environment that queries run in: for `memory`, with the files copied into it.
    package func runEnvironment(_ environment: Environment) throws(IOFailure) -> Environment {
        guard input == .memory else { return environment }
        let memory = MemoryFileSystem()
        for kind in NexmarkGenerator.Kind.allCases {
            let folder = "\(directory)/\(kind.name)"
            try memory.createDirectory(folder)
            for name in try environment.files.list(folder) {
                let source = try environment.files.open("\(folder)/\(name)", .read)
                let size = try source.size()
                let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 64)
                defer { buffer.deallocate() }
                _ = try source.read(at: 0, into: buffer)
                try memory.open("\(folder)/\(name)", .create).write(UnsafeRawBufferPointer(buffer), at: 0)
            }
        }
        var copy = environment
        copy.files = memory
        return copy
    }

    /// Writes the events into topics unless they are there; nil unless the input is `log`. The caller closes the log.
    package func openLog(_ environment: Environment) async throws -> Log? {
        guard input == .log else { return nil }
        let log = try Log(environment: environment, directory: "\(directory)/log-\(seed)-\(events)")
        let complete = NexmarkGenerator.Kind.allCases.allSatisfy { kind in
            let count = (log.topic(named: kind.name)?.partitions ?? []).reduce(0) { $0 + Int($1.highWatermark) }
            return count == NexmarkGenerator(seed: seed, events: events).count(of: kind)
        }
        guard !complete else { return log }
        var partitions: [[PartitionLog]] = []
        for kind in NexmarkGenerator.Kind.allCases {
            if log.topic(named: kind.name) != nil { try log.deleteTopic(named: kind.name) }
            partitions.append(try log.createTopic(name: kind.name, partitions: 2).partitions)
        }
        let generator = NexmarkGenerator(seed: seed, events: events)
        var builders = partitions.map { $0.map { _ in RecordBatchBuilder() } }
        try generator.forEach { event, kind, bytes in
            let place = event / 1000 % 2
            builders[kind.rawValue][place].append(value: Array(bytes), timestamp: generator.time(of: event) / 1000)
            guard builders[kind.rawValue][place].recordCount == 1000 else { return }
            _ = try partitions[kind.rawValue][place].appendAndWait(builders[kind.rawValue][place].finish())
            builders[kind.rawValue][place] = RecordBatchBuilder()
        }
        for (kind, pair) in builders.enumerated() {
            for (place, builder) in pair.enumerated() where builder.recordCount > 0 {
                _ = try partitions[kind][place].appendAndWait(builder.finish())
            }
        }
        return log
    }

    /// CREATE SOURCE for a stream.
    package func definition(of kind: NexmarkGenerator.Kind) -> String {
        let options = input == .log
            ? "connector = 'kafka', topic = '\(kind.name)', properties.bootstrap.server = '\(Self.logAddress)', scan.startup.mode = 'earliest'"
            : "connector = 'file', path = '\(directory)/\(kind.name)'"
        return "CREATE SOURCE \(kind.name) (\(NexmarkQuery.columns(of: kind))) WITH (\(options)) FORMAT PLAIN ENCODE JSON"
    }

    /// By which the log is known to sources; nothing listens there.
    private static let logAddress = "embedded:0"

    package func run(_ query: NexmarkQuery, environment: Environment, log: Log?) async throws -> Result {
        let assembly = Assembly(environment: environment, embedded: log.map { EmbeddedBroker(log: $0, addresses: [Self.logAddress]) })
        let keeper = try stateKeeper()
        let engine = try Engine(environment: environment, options: Engine.Options(workerCount: workerCount), assembly: assembly, keeper: keeper)
        if keeper != nil { await engine.start() }
        let session = Session(engine: engine, userName: "root", databaseName: "dev")
        let generator = NexmarkGenerator(seed: seed, events: events)
        for kind in query.streams { try await session.run(definition(of: kind)) }
        ProcessUsage.resetPeakMemory()
        let before = ProcessUsage.now
        let start = environment.clock.monotonicNanos
        let measured = try await session.measure(query.sql)
        let seconds = Double(environment.clock.monotonicNanos - start) / 1e9
        let cpu = ProcessUsage.now.cpuSeconds - before.cpuSeconds
        let peak = ProcessUsage.peakMemoryBytes
        await engine.stop()
        return Result(
            query: query.name, events: query.streams.reduce(0) { $0 + generator.count(of: $1) }, seconds: seconds, cpuSeconds: cpu,
            peakRSSBytes: peak, rowCount: measured.rowCount, checksum: measured.checksum, workerCount: workerCount,
            checkpoints: keeper.map { ($0.lastReport?.number ?? 0, $0.lastReport?.bytesOnDisk ?? 0) })
    }

    /// An empty directory on the disk for state, when there are to be checkpoints.
    private func stateKeeper() throws -> StateKeeper? {
        guard let checkpointInterval else { return nil }
        let environment = Environment.system
        try environment.files.remove("\(directory)/state")
        return try StateKeeper(
            environment: environment, directory: "\(directory)/state", options: StateKeeper.Options(interval: checkpointInterval))
    }

    /// The yardstick: a plain C++ loop that decodes the bids of the same files into the same columns.
    package func decodeYardstick(_ environment: Environment) throws(IOFailure) -> Result {
        var rows = 0
        var cpu = 0.0
        var seconds = 0.0
        for name in try environment.files.list("\(directory)/bid") {
            let file = try environment.files.open("\(directory)/bid/\(name)", .read)
            let size = try file.size()
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size + 64, alignment: 64)
            defer { buffer.deallocate() }
            _ = try file.read(at: 0, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]))
            let before = ProcessUsage.now.cpuSeconds
            let start = environment.clock.monotonicNanos
            var checksum: UInt64 = 0
            rows += Int(mill_json_bench_bids(buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), size, &checksum))
            cpu += ProcessUsage.now.cpuSeconds - before
            seconds += Double(environment.clock.monotonicNanos - start) / 1e9
        }
        return Result(
            query: "cpp-decode", events: rows, seconds: seconds, cpuSeconds: cpu, peakRSSBytes: ProcessUsage.peakMemoryBytes, rowCount: Int64(rows),
            checksum: 0, workerCount: 1)
    }
}
