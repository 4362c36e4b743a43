import MillBase
import MillColumnar
import MillConnectorKit
import MillDataflow
package import MillIO
import MillPlan

/// `millrace bench exchange`: what it costs to send a row to the worker that owns it, and to end an epoch on all workers.
///
/// Rows like Nexmark's bids come ready made, from as many splits as workers, and go through a chain of exchanges into a blackhole; a
/// chain of none is what the others are compared with. `rows` are measured in epochs of 100,000 rows a worker, `epochs` in those of one.
package struct ExchangeBench: Sendable {
    package enum Axis: String, Sendable, CaseIterable { case rows, epochs }

    package struct Point: Sendable {
        package var axis: Axis
        package var workers: Int
        package var exchanges: Int
    }

    package struct Result: Sendable {
        package var point: Point
        package var rows: Int
        package var epochs: Int
        package var seconds: Double
        package var cpuSeconds: Double

        package var cpuNanosPerRow: Double { cpuSeconds * 1e9 / Double(rows) }
        package var cpuMicrosPerEpoch: Double { cpuSeconds * 1e6 / Double(epochs) }
        package var microsPerEpoch: Double { seconds * 1e6 / Double(epochs) }

        package var json: String {
            """
            {"axis": "\(point.axis.rawValue)", "workers": \(point.workers), "exchanges": \(point.exchanges), "rows": \(rows), "epochs": \(epochs), \
            "seconds": \(seconds), "cpu_seconds": \(cpuSeconds)}
            """
        }
    }

    package static let points: [Point] = Axis.allCases.flatMap { axis in
        [1, 2, 4, 8, 16, 32, 64].flatMap { workers in
            (axis == .rows ? [0, 1, 2] : [0, 1, 4]).map { Point(axis: axis, workers: workers, exchanges: $0) }
        }
    }

    /// Rows of the points that measure rows; those that measure epochs take a thousandth, one a worker and epoch.
    package var rows: Int

    package init(rows: Int) { self.rows = rows }

    private static let job = ObjectID(1)
    private static let source = ObjectID(2)
    private static let epochRowsPerWorker = 100_000

    package func run(_ point: Point, environment: Environment) async throws -> Result {
        let perEpoch = (point.axis == .rows ? Self.epochRowsPerWorker : 1) * point.workers
        let connector = RowsConnector(rows: point.axis == .rows ? rows : max(rows / 1000, point.workers), splits: point.workers)
        let conductor = try Conductor(
            workerCount: point.workers, clock: environment.clock, options: Conductor.Options(recordsMin: perEpoch, recordsMax: perEpoch)
        ) { (id, worker, onData) throws(SQLError) in
            let input = SourceInput(
                definition: SourceDefinition(id: id, name: "rows", connector: connector, makeDecoder: { _ in RowsDecoder() }, origin: [:]),
                onData: onData, onRejects: { _, _ in })
            try input.add(connector.splits[worker.number])
            return input
        }
        let before = ProcessUsage.now.cpuSeconds
        let start = environment.clock.monotonicNanos
        try await conductor.attach(JobPlan(id: Self.job, name: "exchange", plan: Self.plan(point.exchanges)))
        let last = try await conductor.wait { $0.unfinishedSources.isEmpty && $0.epoch > .zero }
        let seconds = Double(environment.clock.monotonicNanos - start) / 1e9
        let cpu = ProcessUsage.now.cpuSeconds - before
        let counts = try await conductor.onWorkers { $0.blackhole(Self.job)?.rowCount ?? 0 }.results
        conductor.stop()
        precondition(counts.reduce(0, +) == connector.total, "an exchange loses no row")
        return Result(point: point, rows: connector.total, epochs: Int(last.epoch.number), seconds: seconds, cpuSeconds: cpu)
    }

    /// Rows change their owner in each exchange: the columns take turns.
    private static func plan(_ exchanges: Int) -> StreamPlan {
        var plan = StreamPlan()
        let relation = RelationReference(id: source, name: "rows", kind: .source)
        func add(_ operation: StreamOperation, _ inputs: [NodeIndex]) -> NodeIndex {
            plan.add(StreamNode(operation, inputs: inputs, schema: Rows.schema, properties: StreamProperties(appendOnly: true, distribution: .any)))
        }
        var node = add(.source(relation, columns: Array(Rows.schema.indices)), [])
        for exchange in 0..<exchanges { node = add(.exchange(.hash([exchange % 2])), [node]) }
        _ = add(.blackhole, [node])
        return plan
    }
}

/// Rows that cost nothing to make: slices of one batch.
private enum Rows {
    static let schema = [
        Field("auction", .int64), Field("bidder", .int64), Field("price", .int64), Field("channel", .varchar), Field("url", .varchar),
        Field("date_time", .timestamp), Field("extra", .varchar),
    ]

    static let full: DeltaBatch = {
        var random = SeededRandom(seed: 42)
        let columns = schema.map { field -> Column in
            let column = Column(field.type, capacity: Limits.batchRowsMax)
            for _ in 0..<Limits.batchRowsMax {
                let number = random.next() % 1_000_000
                switch field.name {
                case "channel": column.append("channel-\(number % 1000)")
                case "url": column.append("https://www.nexmark.com/item.htm?query=1&channel_id=\(number)")
                case "extra": column.append(String(repeating: "x", count: 40 + Int(number % 40)))
                default: column.append(Int64(number))
                }
            }
            return column
        }
        return DeltaBatch(columns: columns, count: Limits.batchRowsMax)
    }()
}

private final class RowsConnector: SourceConnector {
    let isBounded = true
    let splits: [SourceSplit]
    let perSplit: Int
    var total: Int { perSplit * splits.count }

    init(rows: Int, splits count: Int) {
        splits = (0..<count).map { SourceSplit(name: "rows/\($0)", topic: "rows", partition: Int32($0)) }
        perSplit = rows / count
    }

    func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] { [:] }
    func currentSplits() throws(SQLError) -> [SourceSplit] { splits }
    func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] { [:] }

    func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) -> any SplitReader {
        RowsReader(count: perSplit)
    }
}

/// Chunks without bytes; the decoder looks at their length alone.
private final class RowsReader: SplitReader {
    private let count: Int
    private var position = 0
    private let starts = Array(repeating: UInt32(0), count: Limits.batchRowsMax)
    private let lengths = Array(repeating: Int32(0), count: Limits.batchRowsMax)
    private let positions = Array(repeating: Int64(0), count: Limits.batchRowsMax)
    private let buffer = RowsBuffer()

    init(count: Int) { self.count = count }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        let step = min(count - position, maxRecords, Limits.batchRowsMax)
        guard step > 0 else { return nil }
        position += step
        let isFull = step == Limits.batchRowsMax
        return RawChunk(
            bytes: buffer.bytes, byteCount: 0, starts: isFull ? starts : Array(starts[..<step]), lengths: isFull ? lengths : Array(lengths[..<step]),
            positions: isFull ? positions : Array(positions[..<step]), timestamps: nil, nextOffset: SplitOffset(Int64(position)), owner: buffer)
    }

    var isFinished: Bool { position == count }
    var highWatermark: SplitOffset? { SplitOffset(Int64(count)) }
    func close() {}
}

private final class RowsBuffer {
    let bytes = UnsafeRawPointer(UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 8))
    deinit { bytes.deallocate() }
}

private final class RowsDecoder: Decoder {
    private var slices: [Int: DeltaBatch] = [:]

    func decode(_ chunk: RawChunk) -> DecodedChunk {
        if chunk.count == Rows.full.count { return DecodedChunk(batches: [Rows.full], rejects: []) }
        let slice = slices[chunk.count] ?? Rows.full.slice(0, chunk.count)
        slices[chunk.count] = slice
        return DecodedChunk(batches: [slice], rejects: [])
    }
}
