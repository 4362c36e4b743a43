import MillBase
import MillColumnar
import MillConnectors
import MillEngine
import MillIO
import MillKafkaWire
import MillLog

/// `millrace bench growth`: one thing grows while the rest stays, to see that no cost grows faster.
///
/// Each point is an engine of its own over an embedded log in memory: the views are there first, then the same number of records comes
/// in, spread over partitions, and FLUSH ends the measurement. Appending prepared batches to the log is in the figures.
package struct GrowthBench: Sendable {
    /// What a point is made of; records are `{"k": ..., "v": ...}` with keys drawn evenly.
    package struct Point: Sendable {
        package var axis: Axis
        package var keys = 10_000
        package var views = 1
        package var partitions = 1

        package var value: Int {
            switch axis {
            case .keys: keys
            case .views: views
            case .partitions: partitions
            }
        }
    }

    package enum Axis: String, Sendable, CaseIterable { case keys, views, partitions }

    package struct Result: Sendable {
        package var point: Point
        package var records: Int
        package var seconds: Double
        package var cpuSeconds: Double
        package var peakRSSBytes: Int
        package var groups: Int

        /// Records times views that a second of processor time takes in.
        package var updatesPerCPUSecond: Int { Int(Double(records * point.views) / cpuSeconds) }

        package var json: String {
            """
            {"axis": "\(point.axis.rawValue)", "value": \(point.value), "records": \(records), "views": \(point.views), "groups": \(groups), \
            "seconds": \(seconds), "cpu_seconds": \(cpuSeconds), "updates_per_cpu_second": \(updatesPerCPUSecond), "peak_rss_bytes": \(peakRSSBytes)}
            """
        }
    }

    package var records: Int
    package var seed: UInt64
    package var workerCount: Int

    package init(records: Int, seed: UInt64, workerCount: Int) {
        self.records = records
        self.seed = seed
        self.workerCount = workerCount
    }

    package static let points: [Point] =
        [10_000, 100_000, 1_000_000, 10_000_000].map { Point(axis: .keys, keys: $0) }
        + [1, 2, 5, 10, 20, 50].map { Point(axis: .views, views: $0) }
        + [1, 4, 16, 64].map { Point(axis: .partitions, partitions: $0) }

    private static let address = "embedded:0"
    private static let recordsPerBatch = 1000

    /// - Parameter point: with more than a million keys there are as many records as keys.
    package func run(_ point: Point) async throws -> Result {
        let records = max(records, point.keys > 1_000_000 ? point.keys : 0)
        var environment = Environment.system
        environment.files = MemoryFileSystem()
        let log = try Log(environment: environment, directory: "/log", options: LogOptions())
        defer { log.close() }
        let topic = try log.createTopic(name: "e", partitions: point.partitions)
        let batches = try makeBatches(point, records)
        let assembly = Assembly(environment: environment, embedded: EmbeddedBroker(log: log, addresses: [Self.address]))
        let engine = try Engine(environment: environment, options: Engine.Options(workerCount: workerCount), assembly: assembly)
        let session = Session(engine: engine, userName: "root", databaseName: "dev")
        try await session.run(
            """
            CREATE SOURCE e (k BIGINT, v BIGINT) WITH (connector = 'kafka', topic = 'e', properties.bootstrap.server = '\(Self.address)') \
            FORMAT PLAIN ENCODE JSON
            """)
        for view in 0..<point.views {
            try await session.run("CREATE MATERIALIZED VIEW v\(view) AS SELECT k, count(*) AS n, sum(v + \(view)) AS s FROM e GROUP BY k")
        }
        ProcessUsage.resetPeakMemory()
        let before = ProcessUsage.now.cpuSeconds
        let start = environment.clock.monotonicNanos
        for (number, batch) in batches.enumerated() { _ = try topic.partitions[number % point.partitions].appendAndWait(batch) }
        try await session.run("FLUSH")
        let seconds = Double(environment.clock.monotonicNanos - start) / 1e9
        let cpu = ProcessUsage.now.cpuSeconds - before
        let peak = ProcessUsage.peakMemoryBytes
        let groups = try await session.rows("SELECT count(*) FROM v0")[0].columns[0].values(Int64.self)[0]
        await engine.stop()
        return Result(point: point, records: records, seconds: seconds, cpuSeconds: cpu, peakRSSBytes: peak, groups: Int(groups))
    }

    private func makeBatches(_ point: Point, _ records: Int) throws -> [WireBytes] {
        var random = SeededRandom(seed: seed)
        var batches: [WireBytes] = []
        var builder = RecordBatchBuilder()
        for record in 0..<records {
            let text = "{\"k\": \(random.next() % UInt64(point.keys)), \"v\": \(record % 1000)}"
            builder.append(value: Array(text.utf8), timestamp: Int64(record))
            if Int(builder.recordCount) == Self.recordsPerBatch {
                batches.append(try builder.finish())
                builder = RecordBatchBuilder()
            }
        }
        if builder.recordCount > 0 { batches.append(try builder.finish()) }
        return batches
    }
}
