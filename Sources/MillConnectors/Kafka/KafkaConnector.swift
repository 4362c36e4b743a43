package import MillBase
package import MillConnectorKit
import MillKafkaWire
import MillLog
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// `connector = 'kafka'`: one topic of any broker; a split is a partition, named `topic/partition`.
///
/// When the bootstrap servers are listeners of the broker in this process, its log is read directly. Else one librdkafka consumer
/// reads all splits; a second reader of the same split (a new view that reads from the origin) gets a consumer of its own, because
/// librdkafka reads a partition once. One more only asks questions: on the connection of a reader they would wait behind its fetch.
///
/// Guarantees: `resolveOrigin` and the other questions answer or fail within `timeoutMillis` (08006 names broker and reason). An
/// offset out of range stops the reader with an error. Brokers that are away do not: `status` says what is wrong.
///
/// The source is the topic that its name meant first. Another one made later under that name is refused: in our log by its id, also when it
/// was made while the server was down; at another broker, whose client tells no ids, as soon as it is seen to reach less far.
package final class KafkaConnector: SourceConnector {
    private let options: KafkaSourceOptions
    private let embedded: EmbeddedBroker?
    private let timeoutMillis: Int
    private let pool = BlockPool()
    private let asking = Mutex<KafkaClient?>(nil)
    private let readers = Mutex<[KafkaClient]>([])
    private let ends = KnownEnds()
    /// Our own log's topic, once there was one.
    private let topicID = Mutex<WireUUID?>(nil)

    /// For the client that creates the source: properties that have no effect.
    package var notices: [String] { options.notices }

    package init(options: ConnectorOptions, embedded: EmbeddedBroker?, timeoutMillis: Int = 5000) throws(SQLError) {
        let options = try KafkaSourceOptions(options)
        self.options = options
        self.timeoutMillis = timeoutMillis
        let servers = options.bootstrapServers.split(separator: ",").map { $0.trimmed }
        let own = Set((embedded?.addresses ?? []).map { $0.lowercased() })
        self.embedded = servers.allSatisfy { own.contains($0.lowercased()) } ? embedded : nil
        // Wrong properties are the statement's error, not the first reader's.
        if self.embedded == nil { _ = try askingClient() } else { try KafkaClient.check(self.options.properties) }
    }

    package let isBounded = false

    /// What is wrong with the connection now, for SHOW JOBS; nil when all is well.
    package var status: String? { readers.withLock { $0.lazy.compactMap(\.status).first } ?? asking.withLock { $0?.status } }

    package var incarnation: String? { topicID.withLock { $0?.description } }

    package func expect(incarnation: String) {
        guard embedded != nil, let id = WireUUID(incarnation) else { return }
        topicID.withLock { $0 = id }
    }

    /// The topic in our own log; nil when there has been none yet.
    /// - Throws: 42704 when it was deleted, 55000 when another one has its name.
    private func topic(in log: Log) throws(SQLError) -> Topic? {
        let topic = log.topic(named: options.topic)
        let first = topicID.withLock { id in
            id = id ?? topic?.id
            return id
        }
        guard let first, topic?.id != first else { return topic }
        guard topic != nil else { throw SQLError(.undefinedObject, "topic \"\(options.topic)\" was deleted", hint: "Drop the source.") }
        throw SQLError(
            .objectNotInPrerequisiteState, "topic \"\(options.topic)\" was deleted and made anew",
            hint: "Drop the source and create it again.")
    }

    private func split(_ partition: Int32) -> SourceSplit {
        SourceSplit(name: "\(options.topic)/\(partition)", topic: options.topic, partition: partition)
    }

    private func makeClient() throws(SQLError) -> KafkaClient {
        try KafkaClient(bootstrapServers: options.bootstrapServers, properties: options.properties)
    }

    private func askingClient() throws(SQLError) -> KafkaClient {
        try asking.withLock { (asking) throws(SQLError) in
            if let asking { return asking }
            let client = try makeClient()
            asking = client
            return client
        }
    }

    /// A client that does not read the split yet, with the split marked as read.
    private func readingClient(_ split: SourceSplit) throws(SQLError) -> KafkaClient {
        try readers.withLock { (readers) throws(SQLError) in
            if let free = readers.first(where: { $0.takePartition(split.name) }) { return free }
            let client = try makeClient()
            _ = client.takePartition(split.name)
            readers.append(client)
            return client
        }
    }

    /// Lets go of the consumers that nobody reads with, but for one: each is a handful of threads and connections. Takes a moment, so not for
    /// a worker, whose next reader takes one of them.
    private func endIdleClients() {
        let idle = readers.withLock { readers in
            let idle = readers.filter(\.isIdle).dropFirst()
            readers.removeAll { client in idle.contains { $0 === client } }
            return idle
        }
        withExtendedLifetime(idle) {}  // They end without the lock.
    }

    /// Consumers that there are for reading.
    var readingClientCount: Int { readers.withLock { $0.count } }

    /// Repeats a question that failed for a passing reason until the time is up.
    private func ask<T>(_ question: (KafkaClient, _ timeoutMillis: Int32) throws(KafkaFailure) -> T) throws(SQLError) -> T {
        let client = try askingClient()
        let deadline = Self.nowMillis() + timeoutMillis
        while true {
            let left = deadline - Self.nowMillis()
            do throws(KafkaFailure) {
                let answer = try question(client, Int32(clamping: max(left, 1)))
                client.setStatus(nil)
                // What was wrong when a reader last heard of its broker may long have passed, and no record come since.
                readers.withLock { for reader in $0 { reader.setStatus(nil) } }
                endIdleClients()
                return answer
            } catch {
                guard error.isTransient, deadline - Self.nowMillis() > 100 else {
                    let reason = client.status ?? KafkaClient.text(error.code)
                    throw SQLError(
                        .connectionFailure, "could not reach topic \"\(options.topic)\" at Kafka broker \"\(options.bootstrapServers)\": \(reason)",
                        hint: "Check properties.bootstrap.server and that the broker is up.")
                }
            }
            usleep(50_000)
        }
    }

    private static func nowMillis() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }

    package func currentSplits() throws(SQLError) -> [SourceSplit] {
        if let embedded { return (try topic(in: embedded.log)?.partitions ?? []).map { split($0.index) } }
        return try ask { client, timeout throws(KafkaFailure) in try client.partitions(of: options.topic, timeoutMillis: timeout) }.map(split)
    }

    package func onSplitChange(_ body: @escaping @Sendable () -> Void) -> (any Sendable)? {
        embedded?.log.onTopicChange { [name = options.topic] topic in
            if topic == name { body() }
        }
    }

    package func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] {
        var origin: [SourceSplit: SplitOffset] = [:]
        if let embedded {
            for partition in try topic(in: embedded.log)?.partitions ?? [] {
                origin[split(partition.index)] = SplitOffset(try LogSplitReader.origin(of: partition, options.startup, options.isolation))
            }
            return origin
        }
        let splits = try currentSplits()
        var timed: [Int32: Int64?] = [:]
        if case .timestamp(let millis) = options.startup {
            timed = try ask { client, timeout throws(KafkaFailure) in
                try client.offsets(options.topic, splits.map(\.partition), atMillis: millis, timeoutMillis: timeout)
            }
        }
        for split in splits {
            if case .timestamp = options.startup, let offset = timed[split.partition] ?? nil {
                origin[split] = SplitOffset(offset)
                continue
            }
            let marks = try watermarks(split)
            origin[split] = SplitOffset(options.startup == .earliest ? marks.low : marks.high)
        }
        return origin
    }

    package func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] {
        var found: [SourceSplit: SplitOffset] = [:]
        for split in splits {
            if let embedded {
                guard let partition = try topic(in: embedded.log)?.partition(split.partition) else { continue }
                found[split] = SplitOffset(partition.readableEnd(options.isolation))
            } else {
                found[split] = SplitOffset(try watermarks(split).high)
            }
        }
        return found
    }

    private func watermarks(_ split: SourceSplit) throws(SQLError) -> (low: Int64, high: Int64) {
        let marks = try ask { client, timeout throws(KafkaFailure) in
            try client.watermarks(split.topic, split.partition, timeoutMillis: timeout)
        }
        try ends.note(SplitOffset(marks.high), of: split)
        return marks
    }

    package func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) -> any SplitReader {
        if let embedded {
            guard let partition = try topic(in: embedded.log)?.partition(split.partition) else {
                throw SQLError(.undefinedObject, "topic \"\(split.topic)\" has no partition \(split.partition)")
            }
            return LogSplitReader(partition, split, at: offset, isolation: options.isolation, pool: pool, onData: onData)
        }
        return try KafkaSplitReader(try readingClient(split), split, at: offset, pool: pool, onData: onData)
    }
}

extension Substring {
    /// Without spaces at either end.
    fileprivate var trimmed: Substring {
        var rest = self
        while rest.first == " " { rest.removeFirst() }
        while rest.last == " " { rest.removeLast() }
        return rest
    }
}
