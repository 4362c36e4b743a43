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
        let wait = FetchWait(partitions, minBytes: Int(request.minBytes), eventLoop: client.eventLoop) { [self] in
            reply(response(fetched(request), version))
        }
        wait.start(maxWaitMillis: Int64(request.maxWaitMs))
    }

    private func fetched(_ request: FetchRequest) -> FetchResponse {
        var left = min(Int(request.maxBytes), options.fetchBytesMax)
        var isFirst = true
        let responses = request.topics.map { topic in
            let found = log.topic(named: topic.topic)
            return FetchResponse.FetchableTopicResponse(topic: topic.topic, partitions: topic.partitions.map { part in
                guard let partition = found?.partition(part.partition) else { return failed(part.partition, .unknownTopicOrPartition) }
                // The first records are sent however long they are, so that a reader always gets on.
                let maxBytes = left > 0 || isFirst ? min(Int(part.partitionMaxBytes), max(left, 1)) : 0
                do throws(LogError) {
                    let slice = try maxBytes > 0 ? partition.read(from: part.fetchOffset, maxBytes: maxBytes) : nil
                    if let slice, !slice.isEmpty {
                        left -= slice.bytes.count
                        isFirst = false
                    }
                    let highWatermark = slice?.highWatermark ?? partition.highWatermark
                    return FetchResponse.FetchableTopicResponse.PartitionData(
                        partitionIndex: part.partition, highWatermark: highWatermark, lastStableOffset: highWatermark,
                        logStartOffset: slice?.logStartOffset ?? partition.logStartOffset, abortedTransactions: [], records: slice?.bytes ?? WireBytes())
                } catch {
                    return failed(part.partition, KafkaErrorCode(error))
                }
            })
        }
        return FetchResponse(responses: responses)
    }

    private func failed(_ partition: Int32, _ error: KafkaErrorCode) -> FetchResponse.FetchableTopicResponse.PartitionData {
        .init(partitionIndex: partition, errorCode: error.rawValue, highWatermark: -1, lastStableOffset: -1, logStartOffset: -1, abortedTransactions: [], records: WireBytes())
    }
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
    private let eventLoop: any EventLoop
    private var answer: (() -> Void)?
    private var subscriptions: [LogSubscription] = []
    private var timer: Scheduled<Void>?

    init(_ parts: [Part], minBytes: Int, eventLoop: any EventLoop, answer: @escaping () -> Void) {
        self.parts = parts
        self.minBytes = minBytes
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
            guard let found = part.partition?.bytesAvailable(from: part.request.fetchOffset) else { return true }
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
