import Logging
import MillBase
import MillKafkaWire
import MillLog
import Synchronization

extension KafkaBroker {
    /// Appends each partition's batch; the response leaves when all of them are durable.
    func produce(_ request: ProduceRequest, _ version: Int16, _ reply: @escaping Reply) {
        let answersNothing = request.acks == 0
        var places: [(topic: Int, partition: Int)] = []
        var responses: [ProduceResponse.TopicProduceResponse] = []
        for (topic, data) in request.topicData.enumerated() {
            responses.append(.init(name: data.name, partitionResponses: data.partitionData.map { .init(index: $0.index, logAppendTimeMs: -1, errorMessage: nil) }))
            places += data.partitionData.indices.map { (topic, $0) }
        }
        let gather = ProduceGather(responses, pending: places.count) { [self] responses in
            reply(answersNothing ? .nothing : response(ProduceResponse(responses: responses), version))
        }
        if places.isEmpty { return gather.finish() }
        for (topic, partition) in places {
            let data = request.topicData[topic]
            let part = data.partitionData[partition]
            append(data.name, part.index, part.records, request, version) { result in gather.complete(topic, partition, result) }
        }
    }

    private func append(
        _ topicName: String, _ index: Int32, _ records: WireBytes?, _ request: ProduceRequest, _ version: Int16,
        _ done: @escaping @Sendable (Result<PartitionLog.Appended, ProduceFault>) -> Void
    ) {
        guard (-1...1).contains(request.acks) else { return done(.failure(ProduceFault(code: .invalidRequiredAcks, message: "acks is none of -1, 0 and 1"))) }
        guard let topic = topicOrNew(topicName), let partition = topic.partition(index) else {
            return done(.failure(ProduceFault(code: .unknownTopicOrPartition, message: nil)))
        }
        guard let records, records.count > 0 else { return done(.failure(ProduceFault(code: .invalidRecord, message: "no records"))) }
        let batches: WireBytes
        do throws(LogError) { batches = try recordBatches(records, version) } catch { return done(.failure(ProduceFault(error))) }
        partition.append(batches) { result in done(result.mapError(ProduceFault.init)) }
    }

    /// What is appended: the records as they came, or the message sets of versions before 3 as one batch.
    private func recordBatches(_ records: WireBytes, _ version: Int16) throws(LogError) -> WireBytes {
        guard version < 3, MessageSet.isFormat(of: records) else { return records }
        let limit = log.options.decompressedBytesMax
        do throws(RecordError) {
            return try decoders.with(limit: limit) { decoder throws(RecordError) in try MessageSet.batch(from: records, decoder, bytesMax: limit) }
        } catch {
            throw LogError(error)
        }
    }

    private func topicOrNew(_ name: String) -> Topic? {
        if let topic = log.topic(named: name) { return topic }
        guard options.autoCreatesTopics else { return nil }
        do throws(LogError) { return try log.topic(named: name, creatingWithPartitions: options.defaultPartitions) } catch {
            logger.warning("could not create a topic", metadata: ["topic": "\(name)", "error": "\(error.sqlError.message)"])
            return nil
        }
    }
}

struct ProduceFault: Error {
    var code: KafkaErrorCode
    var message: String?

    init(code: KafkaErrorCode, message: String?) {
        self.code = code
        self.message = message
    }

    init(_ error: LogError) { self.init(code: KafkaErrorCode(error), message: error.sqlError.message) }
}

/// Collects a produce request's results, which come from several flushes.
private final class ProduceGather: Sendable {
    private struct State {
        var responses: [ProduceResponse.TopicProduceResponse]
        var pending: Int
    }

    private let state: Mutex<State>
    private let done: @Sendable ([ProduceResponse.TopicProduceResponse]) -> Void

    init(_ responses: [ProduceResponse.TopicProduceResponse], pending: Int, done: @escaping @Sendable ([ProduceResponse.TopicProduceResponse]) -> Void) {
        state = Mutex(State(responses: responses, pending: pending))
        self.done = done
    }

    func finish() { done(state.withLock { $0.responses }) }

    func complete(_ topic: Int, _ partition: Int, _ result: Result<PartitionLog.Appended, ProduceFault>) {
        let isLast = state.withLock { state in
            switch result {
            case .success(let appended):
                state.responses[topic].partitionResponses[partition].baseOffset = appended.baseOffset
                state.responses[topic].partitionResponses[partition].logStartOffset = appended.logStartOffset
                state.responses[topic].partitionResponses[partition].logAppendTimeMs = appended.appendedAtMillis ?? -1
            case .failure(let fault):
                state.responses[topic].partitionResponses[partition].errorCode = fault.code.rawValue
                state.responses[topic].partitionResponses[partition].errorMessage = fault.message
                state.responses[topic].partitionResponses[partition].baseOffset = -1
            }
            state.pending -= 1
            return state.pending == 0
        }
        if isLast { finish() }
    }
}
