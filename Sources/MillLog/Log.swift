package import MillIO
package import MillKafkaWire
import Synchronization

/// The embedded broker's data: all topics of one data directory, and what consumer groups committed.
///
/// Place in the path: the Kafka server appends and reads for its clients, the engine reads directly; both see the same
/// topics and the same high watermarks. One process at a time has the directory; the data directory's lock sees to that.
///
/// Threading: any thread. Creating, changing and deleting topics take turns under a mutex that is held across their file operations.
///
/// Layout, order of writes and recovery: docs/internals/log.md.
package final class Log: Sendable {
    package let directory: String
    package let environment: Environment
    package let options: LogOptions
    /// Committed offsets of consumer groups.
    package let groupOffsets: GroupOffsets
    package let transactions: Transactions
    /// What the start cut off torn partitions; for the server's log.
    package let truncatedTails: [TruncatedTail]
    let coordinator: CoordinatorLog
    let flusher: LogFlusher
    let tailBudget: TailBudget
    private let topics: TopicTable
    private let changes = Mutex(Changes())
    private let topicListeners = Mutex(TopicListeners())
    let maintenance = Maintenance()

    private struct TopicListeners {
        var all: [UInt64: @Sendable (String) -> Void] = [:]
        var next: UInt64 = 0
    }

    /// Guards creating and deleting.
    private struct Changes {
        var isClosed = false
    }

    /// Opens the log in `directory`, which is made when it is missing; the directory that holds it is the caller's to make
    /// durable.
    /// - Throws: `storage`; `corrupted` when a topic's description is damaged. A damaged partition does not keep the others from
    ///   opening: its `failure` says what is wrong.
    package init(environment: Environment, directory: String, options: LogOptions = LogOptions()) throws(LogError) {
        precondition(options.segmentBytesMax <= 1 << 30, "positions in a segment are 32 bits wide")
        self.environment = environment
        self.directory = directory
        self.options = options
        let files = environment.files
        let flusher = try LogFlusher(threadCount: options.flushThreads)
        let tailBudget = TailBudget(bytesMax: options.tailBytesMax)
        self.flusher = flusher
        self.tailBudget = tailBudget
        var found: [String: Topic] = [:]
        var tails: [TruncatedTail] = []
        do throws(LogError) {
            let names: [String]
            do throws(IOFailure) {
                try files.createDirectory(directory)
                if let slash = directory.lastIndex(of: "/"), slash != directory.startIndex { try files.syncDirectory(String(directory[..<slash])) }
                names = try files.list(directory)
                // A topic that was being made or deleted when the process ended.
                for name in names where name.hasPrefix("@new-") || name.hasPrefix("@deleted-") { try files.remove(directory + "/" + name) }
            } catch {
                throw .storage(error)
            }
            coordinator = try CoordinatorLog(directory: directory + "/@groups", files: files, flusher: flusher)
            do throws(IOFailure) { try files.syncDirectory(directory) } catch { throw .storage(error) }
            for name in names where Topic.isLegalName(name) {
                let path = directory + "/" + name
                guard files.exists(path + "/" + TopicMetadata.fileName) else { continue }
                let file = path + "/" + TopicMetadata.fileName
                let bytes: WireBytes
                do throws(IOFailure) { bytes = try files.open(file, .read).readAll() } catch { throw .storage(error) }
                let metadata = try TopicMetadata(bytes, path: file)
                guard metadata.name == name, metadata.partitionCount <= options.partitionsMax else {
                    throw .corrupted(path: file, reason: "it is of topic \"\(metadata.name)\" with \(metadata.partitionCount) partitions")
                }
                // A process may have ended between a rename and its sync: from here on what it renamed is acted upon.
                do throws(IOFailure) { try files.syncDirectory(path) } catch { throw .storage(error) }
                var partitions: [PartitionLog] = []
                for index in 0..<metadata.partitionCount {
                    let opened = try Self.openPartition(
                        index, of: metadata, in: directory, environment, options, flusher, coordinator, tailBudget)
                    tails += opened.tails
                    partitions.append(opened.partition)
                }
                found[name] = Topic(metadata, partitions: partitions)
            }
        } catch {
            flusher.stop()
            throw error
        }
        topics = TopicTable(found)
        truncatedTails = tails
        groupOffsets = GroupOffsets(coordinator)
        transactions = Transactions(coordinator, topics, environment)
        transactions.resume()
    }

    // MARK: Topics

    package func topic(named name: String) -> Topic? { topics.topic(named: name) }
    package func topic(id: WireUUID) -> Topic? { topics.topic(id: id) }
    /// Sorted by name.
    package var allTopics: [Topic] { topics.all }

    /// Makes a topic, durably.
    /// - Throws: `topicExists`, `invalidTopicName`, `invalidPartitionCount`, `storage`, `closed`.
    @discardableResult
    package func createTopic(
        name: String, partitions: Int = 1, isInternal: Bool = false, config: TopicConfig = TopicConfig()
    ) throws(LogError) -> Topic {
        guard Topic.isLegalName(name) else { throw .invalidTopicName(name) }
        guard partitions >= 1, partitions <= options.partitionsMax else { throw .invalidPartitionCount(partitions) }
        return try changing { () throws(LogError) in
            if topic(named: name) != nil { throw .topicExists(name) }
            let metadata = TopicMetadata(
                name: name, id: WireUUID(high: environment.random.next() | 1, low: environment.random.next()), partitionCount: partitions,
                isInternal: isInternal, createdMicros: environment.clock.nowMicros, config: config)
            try make(metadata)
            let topic = Topic(metadata, partitions: try openPartitions(0..<partitions, of: metadata))
            topics.insert(topic)
            tellListeners(name)
            return topic
        }
    }

    /// Calls `body` with a topic's name after it was made, deleted or has got partitions: on the thread that did so, which `body` must
    /// not keep. Ends with the subscription.
    package func onTopicChange(_ body: @escaping @Sendable (String) -> Void) -> LogSubscription {
        let id = topicListeners.withLock { listeners in
            listeners.next += 1
            listeners.all[listeners.next] = body
            return listeners.next
        }
        return LogSubscription { [weak self] in self?.topicListeners.withLock { $0.all[id] = nil } }
    }

    private func tellListeners(_ topic: String) {
        for listener in topicListeners.withLock({ Array($0.all.values) }) { listener(topic) }
    }

    /// The topic, made with one partition when there is none: for producers and readers that name a topic first.
    package func topic(named name: String, creatingWithPartitions partitions: Int) throws(LogError) -> Topic {
        if let topic = topic(named: name) { return topic }
        do throws(LogError) { return try createTopic(name: name, partitions: partitions) } catch {
            // Another connection was faster.
            if case .topicExists = error, let topic = topic(named: name) { return topic }
            throw error
        }
    }

    /// Removes a topic and its data. Readers that hold it fail with `unknownTopic` from then on.
    package func deleteTopic(named name: String) throws(LogError) {
        try changing { () throws(LogError) in
            guard let topic = topic(named: name) else { throw .unknownTopic(name) }
            let grave = directory + "/@deleted-\(topic.id)"
            do throws(IOFailure) { try environment.files.rename(directory + "/" + name, to: grave) } catch { throw .storage(error) }
            // From here on it has no place to write to. Should the sync fail, a crash may bring it back.
            topics.remove(named: name)
            for partition in topic.partitions { partition.stop(.unknownTopic(name)) }
            tellListeners(name)
            groupOffsets.delete(topic: name) { _ in }
            do throws(IOFailure) { try environment.files.syncDirectory(directory) } catch { throw .storage(error) }
            // What cannot be removed now goes at the next start.
            do throws(IOFailure) { try environment.files.remove(grave) } catch {}
        }
    }

    /// Adds partitions, up to `count` in all.
    package func growTopic(named name: String, toPartitions count: Int) throws(LogError) {
        guard count <= options.partitionsMax else { throw .invalidPartitionCount(count) }
        try changing { () throws(LogError) in
            guard let topic = topic(named: name) else { throw .unknownTopic(name) }
            let old = topic.partitions.count
            guard count > old else { throw .invalidPartitionCount(count) }
            let metadata = topic.metadata(partitionCount: count)
            do throws(IOFailure) {
                try makePartitions(old..<count, in: directory + "/" + name)
                try replace(metadata)
            } catch {
                throw .storage(error)
            }
            topic.add(try openPartitions(old..<count, of: metadata))
            tellListeners(name)
        }
    }

    /// Changes a topic's settings, durably; `change` gets those it has.
    package func alterTopic(named name: String, _ change: (TopicConfig) throws(LogError) -> TopicConfig) throws(LogError) {
        try changing { () throws(LogError) in
            guard let topic = topic(named: name) else { throw .unknownTopic(name) }
            let config = try change(topic.config)
            do throws(IOFailure) { try replace(topic.metadata(config: config)) } catch { throw .storage(error) }
            topic.adopt(config)
        }
    }

    /// Puts a topic's new description in the place of the old one.
    private func replace(_ metadata: TopicMetadata) throws(IOFailure) {
        let path = directory + "/" + metadata.name
        let new = try environment.files.open(path + "/" + TopicMetadata.fileName + ".new", .create)
        try new.writeAll(metadata.encoded())
        try new.sync()
        try environment.files.rename(new.path, to: path + "/" + TopicMetadata.fileName)
        try environment.files.syncDirectory(path)
    }

    private func changing<T>(_ body: () throws(LogError) -> T) throws(LogError) -> T {
        let result: Result<T, LogError> = changes.withLock { changes in
            guard !changes.isClosed else { return .failure(.closed) }
            do throws(LogError) { return .success(try body()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// A topic's files, complete before they get their name.
    private func make(_ metadata: TopicMetadata) throws(LogError) {
        let files = environment.files
        let cradle = directory + "/@new-\(metadata.id)"
        let path = directory + "/" + metadata.name
        do throws(IOFailure) {
            try files.createDirectory(cradle)
            try makePartitions(0..<metadata.partitionCount, in: cradle)
            let file = try files.open(cradle + "/" + TopicMetadata.fileName, .create)
            try file.writeAll(metadata.encoded())
            try file.sync()
            try files.syncDirectory(cradle)
            try files.rename(cradle, to: path)
            do throws(IOFailure) { try files.syncDirectory(directory) } catch {
                // Else the name would be taken by a topic that nobody knows, until the next start.
                try? files.rename(path, to: cradle)
                throw error
            }
        } catch {
            throw .storage(error)
        }
    }

    private func makePartitions(_ indexes: Range<Int>, in directory: String) throws(IOFailure) {
        for index in indexes {
            let place = directory + "/\(index)"
            // A leftover of an earlier attempt that did not get as far as the description.
            try environment.files.remove(place)
            try environment.files.createDirectory(place)
            _ = try PartitionLog.create(in: place, environment.files)
            try environment.files.syncDirectory(place)
        }
        try environment.files.syncDirectory(directory)
    }

    private func openPartitions(_ indexes: Range<Int>, of topic: TopicMetadata) throws(LogError) -> [PartitionLog] {
        var partitions: [PartitionLog] = []
        for index in indexes {
            let opened = try Self.openPartition(index, of: topic, in: directory, environment, options, flusher, coordinator, tailBudget)
            partitions.append(opened.partition)
        }
        return partitions
    }

    private static func openPartition(
        _ index: Int, of topic: TopicMetadata, in directory: String, _ environment: Environment, _ options: LogOptions, _ flusher: LogFlusher,
        _ coordinator: CoordinatorLog, _ tailBudget: TailBudget
    ) throws(LogError) -> (partition: PartitionLog, tails: [TruncatedTail]) {
        let place = directory + "/\(topic.name)/\(index)"
        let recovered = try PartitionLog.recover(place, environment.files, options, nowMillis: environment.clock.nowMicros / 1000)
        let partition = PartitionLog(
            topic: topic.name, index: Int32(index), directory: place, environment: environment, options: options, config: topic.config,
            flusher: flusher, coordinator: coordinator, tailBudget: tailBudget, recovered: recovered)
        return (partition, recovered.tails)
    }

    /// Makes everything durable and stops; later calls fail with `closed`.
    package func close() {
        let first = changes.withLock { changes in
            defer { changes.isClosed = true }
            return !changes.isClosed
        }
        guard first else { return }
        maintenance.stop()
        flusher.stop()
        for topic in allTopics { for partition in topic.partitions { partition.close() } }
        coordinator.close()
    }

    deinit { flusher.stop() }
}
