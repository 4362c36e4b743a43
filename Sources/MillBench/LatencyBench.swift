import MillBase
import MillDataflow
package import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// `millrace bench latency`: how long after an event is due a reader sees it, at half of the rate that the machine can take.
///
/// The server is a process of its own. This one produces bids over the Kafka wire and asks the view, which counts and takes the
/// highest number by auction, over the Postgres wire. One partition keeps the order of events, so an answer must show
/// exactly the events up to its highest number, or the run fails. First events come as fast as they are taken: the rate at which they
/// became visible is the peak. Then they come evenly at the rate asked for.
///
/// An event's time begins when it is due, not when the generator got round to it, and ends when an answer with it has arrived; so the
/// generator's delays, its batching (by the millisecond), the log's fsync and the pause between two questions are all in it.
package struct LatencyBench: Sendable {
    /// What produces the events.
    package enum Client: String, Sendable, CaseIterable {
        /// librdkafka, as in most programs.
        case librdkafka
        /// `WireProducer`, which takes less of the machine that it loads, and so finds a higher peak.
        case wire
    }

    /// Of the measured part, at the even rate.
    package var seconds: Double
    /// Of looking for the peak.
    package var peakSeconds: Double
    /// Of rest after the peak, whose writes the disk is still at when they have long been acknowledged.
    package var settleSeconds: Double
    /// Events a second; half of the peak when nil.
    package var rate: Int?
    package var seed: UInt64
    package var workerCount: Int
    package var client: Client
    /// From one checkpoint of the server's state to the next, in milliseconds; nil is the server's own.
    package var checkpointMillis: Int?
    /// For the server's data; on the file system whose fdatasync is measured. Made anew and removed afterwards.
    package var directory: String

    package init(seconds: Double, peakSeconds: Double, settleSeconds: Double, rate: Int?, seed: UInt64, workerCount: Int, client: Client, directory: String) {
        self.seconds = seconds
        self.peakSeconds = peakSeconds
        self.settleSeconds = settleSeconds
        self.rate = rate
        self.seed = seed
        self.workerCount = workerCount
        self.client = client
        self.directory = directory
    }

    package struct Result: Sendable {
        package var client: Client
        /// Events a second; nil when a rate was given.
        package var peak: Int?
        package var rate: Int
        package var events: Int
        package var answers: Int
        /// From due to visible, in milliseconds.
        package var latency: Percentiles
        /// From question to answer, in milliseconds: in `latency`.
        package var asking: Percentiles
        /// How late the oldest event of each tick was when the tick's last had been handed over, in milliseconds: most of it is in `latency`.
        package var lateness: Percentiles
        /// fdatasync on the log's file system at the same time, in milliseconds: see `Probe.sync`.
        package var sync: Percentiles
        /// How late a thread was woken at the same time, in milliseconds: see `Probe.wake`.
        package var wake: Percentiles
        /// Processor time by the clock, in cores: what makes the load (with librdkafka's threads), what asks, the server.
        package var generatorCores: Double
        package var readerCores: Double
        package var serverCores: Double
        /// What anything else used meanwhile, the kernel's own threads among it: from a quarter of a core on, distrust the rest.
        package var otherCores: Double

        /// What p99 should stay under: 10 ms beside the disk.
        package var goalMillis: Double { 10 + sync.p99 }

        package var json: String {
            """
            {"client": "\(client.rawValue)", "rate": \(rate), "peak": \(peak.map(String.init) ?? "null"), "events": \(events), "answers": \(answers), \
            "latency_ms": \(latency.json), "asking_ms": \(asking.json), "lateness_ms": \(lateness.json), "fdatasync_ms": \(sync.json), "wake_ms": \(wake.json), \
            "goal_p99_ms": \(Self.text(goalMillis)), \
            "generator_cores": \(Self.text(generatorCores)), "reader_cores": \(Self.text(readerCores)), "server_cores": \(Self.text(serverCores)), \
            "other_cores": \(Self.text(otherCores))}
            """
        }

        private static func text(_ value: Double) -> String { String((value * 1000).rounded() / 1000) }
    }

    /// Load that is not measured, before the part that is: the rate has just changed.
    private static let warmUpSeconds = 1.0

    package func run(_ environment: Environment) throws -> Result {
        guard !environment.files.exists(directory) else { throw BenchFailure("\(directory) is there already") }
        try environment.files.createDirectory(directory)
        defer { try? environment.files.remove(directory) }  // What is measured does not depend on it.
        let server = try ServerProcess(
            directory: directory + "/server", workerCount: workerCount, checkpointMillis: checkpointMillis, environment: environment)
        defer { server.stop() }
        let session = try PgReader(server.pgAddress)
        try session.query(
            """
            CREATE SOURCE bid (\(NumberedBids.columns)) WITH (connector = 'kafka', topic = 'bid', \
            properties.bootstrap.server = '\(server.kafkaAddress)') FORMAT PLAIN ENCODE JSON;
            CREATE MATERIALIZED VIEW latest AS SELECT auction, count(*) AS bids, max(sequence) AS newest FROM bid GROUP BY auction
            """)
        let load = try BidLoad(server.kafkaAddress, client: client, seed: seed, clock: environment.clock)
        let watch = try ViewWatch(session, clock: environment.clock)
        defer { watch.stop() }
        // The source has yet to find the topic, which is new: once in a topic's life, so not measured.
        try load.produce(1)
        try finish(load, watch)
        let peak = rate == nil ? try findPeak(load, watch, environment.clock) : nil
        return try measure(rate ?? max((peak ?? 0) / 2, 1), peak, load, watch, server, environment)
    }

    /// Waits until all events are acknowledged and seen. What the watch has met says more than that nothing was acknowledged.
    private func finish(_ load: BidLoad, _ watch: ViewWatch) throws {
        do { try load.flush() } catch { throw watch.failure ?? error }
        try watch.wait(for: load.produced)
    }

    /// The rate at which events become visible that come as fast as they are taken, until the last of them is.
    private func findPeak(_ load: BidLoad, _ watch: ViewWatch, _ clock: any Clock) throws -> Int {
        let first = load.produced
        let start = clock.monotonicNanos
        try load.flood(seconds: peakSeconds)
        let end = try watch.wait(for: load.produced)
        usleep(UInt32(settleSeconds * 1e6))
        return Int(Double(load.produced - first) * 1e9 / Double(end.nanos - start))
    }

    /// Processor time used so far.
    private struct Usage {
        var nanos: UInt64
        var own: Double
        var reader: Double
        var server: Double
        var machine: Double

        init(_ watch: ViewWatch, _ server: ServerProcess, _ clock: any Clock) {
            nanos = clock.monotonicNanos
            own = ProcessUsage.now.cpuSeconds
            reader = watch.cpuSeconds
            self.server = server.cpuSeconds
            machine = ProcessUsage.machineCPUSeconds
        }
    }

    private func measure(
        _ rate: Int, _ peak: Int?, _ load: BidLoad, _ watch: ViewWatch, _ server: ServerProcess, _ environment: Environment
    ) throws -> Result {
        // While no event is due: where they were made between two, the generator has been 100 ms late.
        let syncProbe = try Probe.sync(directory + "/probe", environment)
        defer { _ = try? syncProbe.stop() }  // A run that fails says why; nobody asks for what it has measured.
        let wakeProbe = try Probe.wake(environment)
        defer { _ = try? wakeProbe.stop() }  // The same.
        let schedule = load.schedule(rate: rate)
        let first = schedule.first + Int(Double(rate) * Self.warmUpSeconds)
        _ = try load.produce(until: first, by: schedule)
        syncProbe.restart()
        wakeProbe.restart()
        let before = Usage(watch, server, environment.clock)
        let end = first + max(Int(Double(rate) * seconds), 1)
        let late = try load.produce(until: end, by: schedule)
        let after = Usage(watch, server, environment.clock)
        let (sync, wake) = (try syncProbe.stop(), try wakeProbe.stop())
        try finish(load, watch)
        var micros: [UInt32] = []
        micros.reserveCapacity(end - first)
        var asked: [UInt32] = []
        for answer in watch.answers where answer.visible > first && first + micros.count < end {
            asked.append(UInt32(clamping: (answer.nanos - answer.askedNanos) / 1000))
            for event in first + micros.count..<min(answer.visible, end) {
                micros.append(UInt32(clamping: (answer.nanos - min(schedule.dueNanos(event), answer.nanos)) / 1000))
            }
        }
        let wall = Double(after.nanos - before.nanos) / 1e9
        let own = after.own - before.own
        let reader = after.reader - before.reader
        let served = after.server - before.server
        return Result(
            client: client, peak: peak, rate: rate, events: end - first, answers: asked.count, latency: Percentiles(micros: micros), asking: Percentiles(micros: asked), lateness: Percentiles(micros: late),
            sync: sync, wake: wake, generatorCores: (own - reader) / wall, readerCores: reader / wall, serverCores: served / wall,
            otherCores: max(after.machine - before.machine - own - served, 0) / wall)
    }
}
