import MillKafkaWire
import MillLog
import NIOCore

extension KafkaBroker {
    /// Answers at once when there is enough or something is wrong, else when appends have brought enough or time is up.
    ///
    /// Fetch sessions are declined by session id 0, which makes every fetch a full one.
    func fetch(_ request: FetchRequest, _ version: Int16, _ client: Client, _ reply: @escaping Reply) {
        let partitions = request.topics.flatMap { topic in
            topic.partitions.map { FetchWait.Part(topic: topic.topic, request: $0, partition: log.topic(named: topic.topic)?.partition($0.partition)) }
        }
        let wait = FetchWait(
            partitions, minBytes: Int(request.minBytes), isolation: ReadIsolation(level: request.isolationLevel), eventLoop: client.eventLoop
        ) { [self] in
            let fetched = fetched(request, version)
            guard version < 4, request.maxWaitMs > 0, fetched.isEmptyWithoutError else { return reply(response(fetched, version)) }
            // Only markers are left, which such a client does not see: it would ask again at once, and again.
            client.eventLoop.scheduleTask(in: .milliseconds(Int64(min(request.maxWaitMs, Self.markerWaitMillisMax)))) { [self] in
                reply(response(fetched, version))
            }
        }
        wait.start(maxWaitMillis: Int64(request.maxWaitMs))
    }

    private static let markerWaitMillisMax: Int32 = 500

    private func fetched(_ request: FetchRequest, _ version: Int16) -> FetchResponse {
        let isolation = ReadIsolation(level: request.isolationLevel)
        var left = min(Int(request.maxBytes), options.fetchBytesMax)
        var isFirst = true
        let responses = request.topics.map { topic in
            let found = log.topic(named: topic.topic)
            return FetchResponse.FetchableTopicResponse(topic: topic.topic, partitions: topic.partitions.map { part in
                guard let partition = found?.partition(part.partition) else { return failed(part.partition, .unknownTopicOrPartition) }
                // The first records are sent however long they are, so that a reader always gets on.
                let maxBytes = left > 0 || isFirst ? min(Int(part.partitionMaxBytes), max(left, 1)) : 0
                do throws(LogError) {
                    let slice = try maxBytes > 0 ? partition.read(from: part.fetchOffset, maxBytes: maxBytes, isolation: isolation) : nil
                    let records = try slice.map { slice throws(LogError) in try self.records(slice, part, maxBytes, version) } ?? WireBytes()
                    if records.count > 0 {
                        left -= records.count
                        isFirst = false
                    }
                    return FetchResponse.FetchableTopicResponse.PartitionData(
                        partitionIndex: part.partition, highWatermark: slice?.highWatermark ?? partition.highWatermark,
                        lastStableOffset: slice?.lastStableOffset ?? partition.lastStableOffset, logStartOffset: slice?.logStartOffset ?? partition.logStartOffset,
                        abortedTransactions: isolation == .committed ? (slice?.aborted ?? []).map { .init(producerID: $0.producerID, firstOffset: $0.firstOffset) } : nil,
                        records: records)
                } catch {
                    return failed(part.partition, KafkaErrorCode(error))
                }
            })
        }
        return FetchResponse(responses: responses)
    }

    /// A slice as the version has it: as it lies in the log, or as messages of the format that clients of versions 0 to 3 know.
    private func records(
        _ slice: LogSlice, _ part: FetchRequest.FetchTopic.FetchPartition, _ maxBytes: Int, _ version: Int16
    ) throws(LogError) -> WireBytes {
        guard version < 4 else { return slice.bytes }
        do throws(RecordError) {
            return try decoders.with(limit: log.options.decompressedBytesMax) { decoder throws(RecordError) in
                try MessageSet.messages(of: slice.batches, from: part.fetchOffset, magic: version < 2 ? 0 : 1, maxBytes: maxBytes, decoder)
            }
        } catch {
            throw LogError(error)
        }
    }

    private func failed(_ partition: Int32, _ error: KafkaErrorCode) -> FetchResponse.FetchableTopicResponse.PartitionData {
        .init(partitionIndex: partition, errorCode: error.rawValue, highWatermark: -1, lastStableOffset: -1, logStartOffset: -1, abortedTransactions: [], records: WireBytes())
    }
}

extension FetchResponse {
    fileprivate var isEmptyWithoutError: Bool {
        responses.allSatisfy { $0.partitions.allSatisfy { $0.errorCode == 0 && ($0.records?.count ?? 0) == 0 } }
    }
}

extension ReadIsolation {
    /// As the protocol numbers it.
    init(level: Int8) { self = level == 1 ? .committed : .uncommitted }
}

/// A fetch that waits for records.
///
/// Threading: `check` and what follows run on the connection's event loop; appends call from other threads and only post a
/// check there. That is what makes it Sendable.
final class FetchWait: @unchecked Sendable {
    struct Part {
        var topic: String
        var request: FetchRequest.FetchTopic.FetchPartition
        var partition: PartitionLog?
    }

    private let parts: [Part]
    private let minBytes: Int
    private let isolation: ReadIsolation
    private let eventLoop: any EventLoop
    private var answer: (() -> Void)?
    private var subscriptions: [LogSubscription] = []
    private var timer: Scheduled<Void>?

    init(_ parts: [Part], minBytes: Int, isolation: ReadIsolation, eventLoop: any EventLoop, answer: @escaping () -> Void) {
        self.parts = parts
        self.minBytes = minBytes
        self.isolation = isolation
        self.eventLoop = eventLoop
        self.answer = answer
    }

    func start(maxWaitMillis: Int64) {
        guard minBytes > 0, maxWaitMillis > 0, !isSatisfied else { return finish() }
        subscriptions = parts.compactMap { part in
            part.partition?.onAppend { [weak self] _ in
                guard let self else { return }
                eventLoop.execute { self.check() }
            }
        }
        // An append may have come between the check and the subscription.
        if isSatisfied { return finish() }
        // The timer holds the wait until it has been answered.
        timer = eventLoop.scheduleTask(in: .milliseconds(min(maxWaitMillis, 300_000))) { self.finish() }
    }

    private func check() {
        if answer != nil, isSatisfied { finish() }
    }

    /// Enough bytes are there, or something that the client must hear of.
    private var isSatisfied: Bool {
        var bytes = 0
        for part in parts {
            guard let found = part.partition?.bytesAvailable(from: part.request.fetchOffset, isolation: isolation) else { return true }
            bytes += min(found, max(Int(part.request.partitionMaxBytes), 1))
            if bytes >= minBytes { return true }
        }
        return false
    }

    private func finish() {
        guard let answer else { return }
        self.answer = nil
        for subscription in subscriptions { subscription.cancel() }
        subscriptions = []
        timer?.cancel()
        timer = nil
        answer()
    }
}
