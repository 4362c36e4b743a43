import MillBase
import MillKafkaWire
import MillLog

extension KafkaBroker {
    private typealias CreateResult = CreateTopicsResponse.CreatableTopicResult

    func createTopics(_ request: CreateTopicsRequest, _ version: Int16, _ reply: @escaping Reply) {
        blocking { [self] in
            var seen: Set<String> = []
            let results = request.topics.map { wanted in
                seen.insert(wanted.name).inserted
                    ? create(wanted, validateOnly: request.validateOnly) : refused(wanted.name, .invalidRequest, "the topic is named twice")
            }
            reply(response(CreateTopicsResponse(topics: results), version))
        }
    }

    private func refused(_ name: String, _ error: KafkaErrorCode, _ message: String) -> CreateTopicsResponse.CreatableTopicResult {
        .init(name: name, errorCode: error.rawValue, errorMessage: message)
    }

    private func create(_ wanted: CreateTopicsRequest.CreatableTopic, validateOnly: Bool) -> CreateTopicsResponse.CreatableTopicResult {
        guard wanted.replicationFactor == -1 || wanted.replicationFactor == 1 || !wanted.assignments.isEmpty else {
            return refused(wanted.name, .invalidReplicationFactor, "there is one broker, so the replication factor is 1")
        }
        guard wanted.assignments.allSatisfy({ $0.brokerIDs == [options.nodeID] }) else {
            return refused(wanted.name, .invalidReplicaAssignment, "there is one broker, \(options.nodeID)")
        }
        let count = !wanted.assignments.isEmpty ? wanted.assignments.count : wanted.numPartitions == -1 ? options.defaultPartitions : Int(wanted.numPartitions)
        do throws(LogError) {
            let config = try topicConfig(wanted)
            if validateOnly {
                guard Topic.isLegalName(wanted.name) else { throw .invalidTopicName(wanted.name) }
                guard count >= 1 else { throw .invalidPartitionCount(count) }
                if log.topic(named: wanted.name) != nil { throw .topicExists(wanted.name) }
                return .init(name: wanted.name, errorMessage: nil, numPartitions: Int32(clamping: count), replicationFactor: 1, configs: configs(config))
            }
            let topic = try log.createTopic(name: wanted.name, partitions: count, config: config)
            return .init(name: topic.name, topicID: topic.id, errorMessage: nil, numPartitions: Int32(clamping: count), replicationFactor: 1, configs: configs(config))
        } catch {
            return refused(wanted.name, KafkaErrorCode(error), error.sqlError.message)
        }
    }

    private func topicConfig(_ wanted: CreateTopicsRequest.CreatableTopic) throws(LogError) -> TopicConfig {
        var config = TopicConfig()
        for setting in wanted.configs { try config.set(setting.name, to: setting.value) }
        noteWithoutEffect(config, topic: wanted.name)
        return config
    }

    private func configs(_ config: TopicConfig) -> [CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs] {
        settings(config).map { .init(name: $0.name, value: $0.value, configSource: $0.isSet ? Self.topicSource : Self.defaultSource) }
    }

    func deleteTopics(_ request: DeleteTopicsRequest, _ version: Int16, _ reply: @escaping Reply) {
        blocking { [self] in
            let wanted = version >= 6 ? request.topics : request.topicNames.map { .init(name: $0) }
            reply(response(DeleteTopicsResponse(responses: wanted.map(delete)), version))
        }
    }

    private func delete(_ wanted: DeleteTopicsRequest.DeleteTopicState) -> DeleteTopicsResponse.DeletableTopicResult {
        func refused(_ error: KafkaErrorCode, _ message: String) -> DeleteTopicsResponse.DeletableTopicResult {
            .init(name: wanted.name, topicID: wanted.topicID, errorCode: error.rawValue, errorMessage: message)
        }
        guard let topic = wanted.name.map({ log.topic(named: $0) }) ?? log.topic(id: wanted.topicID) else {
            return refused(wanted.name == nil ? .unknownTopicID : .unknownTopicOrPartition, "there is no such topic")
        }
        guard !topic.isInternal else { return refused(.invalidRequest, "the topic is internal") }
        do throws(LogError) { try log.deleteTopic(named: topic.name) } catch { return refused(KafkaErrorCode(error), error.sqlError.message) }
        return .init(name: topic.name, topicID: topic.id, errorMessage: nil)
    }

    func createPartitions(_ request: CreatePartitionsRequest, _ version: Int16, _ reply: @escaping Reply) {
        blocking { [self] in
            let results = request.topics.map { wanted -> CreatePartitionsResponse.CreatePartitionsTopicResult in
                do throws(LogError) {
                    if request.validateOnly {
                        guard let topic = log.topic(named: wanted.name) else { throw .unknownTopic(wanted.name) }
                        guard Int(wanted.count) > topic.partitions.count else { throw .invalidPartitionCount(Int(wanted.count)) }
                    } else {
                        try log.growTopic(named: wanted.name, toPartitions: Int(wanted.count))
                    }
                    return .init(name: wanted.name, errorMessage: nil)
                } catch {
                    return .init(name: wanted.name, errorCode: KafkaErrorCode(error).rawValue, errorMessage: error.sqlError.message)
                }
            }
            reply(response(CreatePartitionsResponse(results: results), version))
        }
    }

    func deleteRecords(_ request: DeleteRecordsRequest, _ version: Int16, _ reply: @escaping Reply) {
        blocking { [self] in
            let topics = request.topics.map { topic in
                DeleteRecordsResponse.DeleteRecordsTopicResult(name: topic.name, partitions: topic.partitions.map { part in
                    guard let partition = log.topic(named: topic.name)?.partition(part.partitionIndex) else {
                        return .init(partitionIndex: part.partitionIndex, lowWatermark: -1, errorCode: KafkaErrorCode.unknownTopicOrPartition.rawValue)
                    }
                    do throws(LogError) {
                        // -1 is all there is.
                        let low = try partition.deleteRecords(before: part.offset == -1 ? partition.highWatermark : part.offset)
                        return .init(partitionIndex: part.partitionIndex, lowWatermark: low)
                    } catch {
                        return .init(partitionIndex: part.partitionIndex, lowWatermark: -1, errorCode: KafkaErrorCode(error).rawValue)
                    }
                })
            }
            reply(response(DeleteRecordsResponse(topics: topics), version))
        }
    }
}
