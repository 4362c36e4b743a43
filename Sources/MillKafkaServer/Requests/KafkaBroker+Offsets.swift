import MillIO
import MillKafkaWire
import MillLog

extension KafkaBroker {
    private static let latest: Int64 = -1
    private static let earliest: Int64 = -2
    private static let largestTimestamp: Int64 = -3

    /// Offsets by name or time. Look-ups by time read from disk, so such requests leave the event loop.
    func listOffsets(_ request: ListOffsetsRequest, _ version: Int16, _ reply: @escaping Reply) {
        let needsReading = request.topics.contains { $0.partitions.contains { $0.timestamp != Self.latest && $0.timestamp != Self.earliest } }
        let isolation = ReadIsolation(level: request.isolationLevel)
        let work: @Sendable () -> Void = { [self] in
            let topics = request.topics.map { topic in
                ListOffsetsResponse.ListOffsetsTopicResponse(
                    name: topic.name, partitions: topic.partitions.map { part in
                        let found = listOffset(part, log.topic(named: topic.name)?.partition(part.partitionIndex), isolation)
                        return version == 0 ? Self.oldStyle(found) : found
                    })
            }
            reply(response(ListOffsetsResponse(topics: topics), version))
        }
        if needsReading { blocking(work) } else { work() }
    }

    /// Version 0 has a list of offsets and no times.
    private static func oldStyle(
        _ found: ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse
    ) -> ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse {
        var answer = found
        answer.oldStyleOffsets = found.offset >= 0 ? [found.offset] : []
        return answer
    }

    private func listOffset(
        _ request: ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition, _ partition: PartitionLog?, _ isolation: ReadIsolation
    ) -> ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse {
        typealias Answer = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse
        func answer(_ offset: Int64, _ timestamp: Int64 = -1, _ error: KafkaErrorCode = .none) -> Answer {
            Answer(partitionIndex: request.partitionIndex, errorCode: error.rawValue, timestamp: timestamp, offset: offset, leaderEpoch: offset >= 0 ? 0 : -1)
        }
        guard let partition else { return answer(-1, -1, .unknownTopicOrPartition) }
        do throws(LogError) {
            switch request.timestamp {
            case Self.latest: return answer(partition.readableEnd(isolation))
            case Self.earliest: return answer(partition.logStartOffset)
            case Self.largestTimestamp:
                let found = try partition.offsetOfMaxTimestamp()
                return answer(found?.offset ?? -1, found?.timestamp ?? -1)
            case 0...:
                let found = try partition.offset(forTimestamp: request.timestamp)
                return answer(found?.offset ?? -1, found?.timestamp ?? -1)
            default: return answer(-1, -1, .unsupportedVersion)
            }
        } catch {
            return answer(-1, -1, KafkaErrorCode(error))
        }
    }

    /// There is one leader epoch, 0, and it ends where the partition ends.
    func offsetForLeaderEpoch(_ request: OffsetForLeaderEpochRequest, _ version: Int16, _ reply: Reply) {
        let topics = request.topics.map { topic in
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic: topic.topic, partitions: topic.partitions.map { part in
                guard let partition = log.topic(named: topic.topic)?.partition(part.partition) else {
                    return .init(errorCode: KafkaErrorCode.unknownTopicOrPartition.rawValue, partition: part.partition, leaderEpoch: -1, endOffset: -1)
                }
                let isKnown = part.leaderEpoch == 0
                return .init(partition: part.partition, leaderEpoch: isKnown ? 0 : -1, endOffset: isKnown ? partition.highWatermark : -1)
            })
        }
        reply(response(OffsetForLeaderEpochResponse(topics: topics), version))
    }
}
