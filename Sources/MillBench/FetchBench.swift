import CRdkafka
import MillBase
import MillConnectorKit
import MillConnectors
import MillDataflow
package import MillIO

/// `millrace bench fetch`: reading a topic from a broker over TCP, by the Kafka source's reader and by librdkafka's own consumer.
///
/// Both read the same records of one partition in this process, one after the other, and nothing is decoded: the reader's chunks and
/// librdkafka's messages are let go as they come. What a reader costs is the processor time of this process meanwhile, librdkafka's
/// threads included; the broker is a process of its own.
package struct FetchBench: Sendable {
    package enum Reader: String, Sendable, CaseIterable {
        /// `SplitReader` as a source on a worker has it.
        case source
        /// A loop over `rd_kafka_consume_batch` with the same properties, which copies each value into one buffer.
        case librdkafka
    }

    package var records: Int
    package var seed: UInt64
    /// `host:port` of a broker; nil starts one.
    package var broker: String?
    /// For the broker's data; made anew and removed afterwards.
    package var directory: String

    package init(records: Int, seed: UInt64, broker: String?, directory: String) {
        self.records = records
        self.seed = seed
        self.broker = broker
        self.directory = directory
    }

    package struct Result: Sendable {
        package var reader: Reader
        package var records: Int
        package var bytes: Int
        package var seconds: Double
        package var cpuSeconds: Double

        package var recordsPerCPUSecond: Int { Int(Double(records) / cpuSeconds) }

        package var json: String {
            """
            {"reader": "\(reader.rawValue)", "records": \(records), "bytes": \(bytes), "seconds": \(seconds), "cpu_seconds": \(cpuSeconds), \
            "records_per_cpu_second": \(recordsPerCPUSecond)}
            """
        }
    }

    /// Produces the records, then has each reader read them, `runs` times in turn.
    package func run(runs: Int, _ environment: Environment, report: (Result) -> Void) throws {
        guard !environment.files.exists(directory) else { throw BenchFailure("\(directory) is there already") }
        defer { try? environment.files.remove(directory) }  // What is measured does not depend on it.
        let server = try broker == nil ? ServerProcess(directory: directory, hasPg: false, environment: environment) : nil
        defer { server?.stop() }
        let address = broker ?? server?.kafkaAddress ?? ""
        // A name of its own: another broker may keep what earlier runs made.
        let topic = "fetch-\(environment.clock.nowMicros)"
        try fill(topic, address)
        for _ in 0..<runs {
            for reader in Reader.allCases {
                let before = ProcessUsage.now.cpuSeconds
                let start = environment.clock.monotonicNanos
                let bytes = try reader == .source ? readAsSource(topic, address, environment) : readByLibrdkafka(topic, address)
                let seconds = Double(environment.clock.monotonicNanos - start) / 1e9
                report(Result(reader: reader, records: records, bytes: bytes, seconds: seconds, cpuSeconds: ProcessUsage.now.cpuSeconds - before))
            }
        }
    }

    private func fill(_ topic: String, _ address: String) throws {
        let bids = NumberedBids(seed: seed)
        let producer = try KafkaProducer(address, topic: topic)
        var done = 0
        while done < records {
            let count = min(producer.recordsMax, records - done)
            try producer.produce(count) { bids.record(done + $0) }
            done += count
        }
        try producer.flush()
    }

    /// Bytes of the values.
    private func readAsSource(_ topic: String, _ address: String, _ environment: Environment) throws -> Int {
        let options = ["connector": "kafka", "topic": topic, "properties.bootstrap.server": address]
        let connector = try SourceConnectors.make(options, environment: environment, embedded: nil).connector
        guard let (split, origin) = try connector.resolveOrigin().first(where: { $0.key.partition == 0 }) else { throw BenchFailure("the broker has no topic \(topic)") }
        let hasData = Semaphore()
        let reader = try connector.openReader(split, at: origin) { hasData.signal() }
        defer { reader.close() }
        var left = records
        var bytes = 0
        while left > 0 {
            guard let chunk = try reader.poll(maxRecords: Self.pollRecordsMax, maxBytes: Self.pollBytesMax) else {
                guard hasData.wait(atMost: .seconds(Self.patienceSeconds)) else { throw silence(left) }
                continue
            }
            left -= chunk.count
            // Without the newline after each.
            bytes += chunk.byteCount - chunk.count
        }
        return bytes
    }

    private static let pollRecordsMax = 8192
    private static let pollBytesMax = 64 << 20

    private func readByLibrdkafka(_ topicName: String, _ address: String) throws -> Int {
        guard let configuration = rd_kafka_conf_new() else { throw BenchFailure("out of memory") }
        for (name, value) in [("bootstrap.servers", address), ("fetch.wait.max.ms", "100"), ("queued.max.messages.kbytes", "16384")] {
            rd_kafka_conf_set(configuration, name, value, nil, 0)
        }
        guard let handle = rd_kafka_new(RD_KAFKA_CONSUMER, configuration, nil, 0) else { throw BenchFailure("librdkafka makes no consumer") }
        defer { rd_kafka_destroy(handle) }
        guard let topic = rd_kafka_topic_new(handle, topicName, nil) else { throw BenchFailure("librdkafka refuses topic \(topicName)") }
        defer { rd_kafka_topic_destroy(topic) }
        guard rd_kafka_consume_start(topic, 0, Int64(RD_KAFKA_OFFSET_BEGINNING)) == 0 else { throw BenchFailure("librdkafka does not begin to read") }
        defer { rd_kafka_consume_stop(topic, 0) }
        let messages = UnsafeMutablePointer<UnsafeMutablePointer<rd_kafka_message_t>?>.allocate(capacity: Self.batchMax)
        defer { messages.deallocate() }
        var left = records
        var bytes = 0
        // Whoever reads records looks at them: they lie in the cache of the thread that fetched them.
        let buffer = UnsafeMutableRawPointer.allocate(byteCount: Self.bufferBytes, alignment: 64)
        defer { buffer.deallocate() }
        var at = 0
        while left > 0 {
            // It waits until it has as many as asked for.
            let count = rd_kafka_consume_batch(topic, 0, Int32(Self.patienceSeconds) * 1000, messages, min(left, Self.batchMax))
            guard count > 0 else { throw silence(left) }
            for index in 0..<count {
                guard let message = messages[index] else { continue }
                if message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR {
                    left -= 1
                    bytes += message.pointee.len
                    if at + message.pointee.len > Self.bufferBytes { at = 0 }
                    (buffer + at).copyMemory(from: message.pointee.payload, byteCount: message.pointee.len)
                    at += message.pointee.len
                }
                rd_kafka_message_destroy(message)
            }
        }
        return bytes
    }

    private static let batchMax = 1024
    /// More than any record.
    private static let bufferBytes = 512 << 10
    private static let patienceSeconds = 30

    private func silence(_ left: Int) -> BenchFailure { BenchFailure("the broker gave nothing for \(Self.patienceSeconds) s, \(left) records before the end") }
}
