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
            if validateOnly {
                guard Topic.isLegalName(wanted.name) else { throw .invalidTopicName(wanted.name) }
                guard count >= 1 else { throw .invalidPartitionCount(count) }
                if log.topic(named: wanted.name) != nil { throw .topicExists(wanted.name) }
                return .init(name: wanted.name, errorMessage: nil, numPartitions: Int32(clamping: count), replicationFactor: 1)
            }
            let topic = try log.createTopic(name: wanted.name, partitions: count)
            return .init(name: topic.name, topicID: topic.id, errorMessage: nil, numPartitions: Int32(clamping: count), replicationFactor: 1)
        } catch {
            return refused(wanted.name, KafkaErrorCode(error), error.sqlError.message)
        }
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

    // MARK: Configuration, read only

    private static let topicResource: Int8 = 2
    private static let brokerResource: Int8 = 4
    private static let defaultSource: Int8 = 5

    func describeConfigs(_ request: DescribeConfigsRequest, _ version: Int16, _ reply: Reply) {
        let results = request.resources.map { resource -> DescribeConfigsResponse.DescribeConfigsResult in
            func refused(_ error: KafkaErrorCode, _ message: String) -> DescribeConfigsResponse.DescribeConfigsResult {
                .init(errorCode: error.rawValue, errorMessage: message, resourceType: resource.resourceType, resourceName: resource.resourceName)
            }
            let values: [(String, String)]
            switch resource.resourceType {
            case Self.topicResource:
                guard log.topic(named: resource.resourceName) != nil else { return refused(.unknownTopicOrPartition, "there is no such topic") }
                values = topicSettings
            case Self.brokerResource: values = brokerSettings
            default: return refused(.invalidRequest, "only topics and brokers have settings")
            }
            let wanted = resource.configurationKeys.map(Set.init)
            return .init(
                errorMessage: nil, resourceType: resource.resourceType, resourceName: resource.resourceName,
                configs: values.filter { wanted?.contains($0.0) ?? true }.map {
                    .init(name: $0.0, value: $0.1, readOnly: true, configSource: Self.defaultSource, documentation: nil)
                })
        }
        reply(response(DescribeConfigsResponse(results: results), version))
    }

    private var topicSettings: [(String, String)] {
        [
            ("cleanup.policy", "delete"), ("compression.type", "producer"), ("max.message.bytes", String(log.options.batchBytesMax)),
            ("message.timestamp.type", "CreateTime"), ("min.insync.replicas", "1"), ("retention.bytes", "-1"), ("retention.ms", "-1"),
            ("segment.bytes", String(log.options.segmentBytesMax)),
        ]
    }

    private var brokerSettings: [(String, String)] {
        [
            ("auto.create.topics.enable", String(options.autoCreatesTopics)), ("broker.id", String(options.nodeID)), ("default.replication.factor", "1"),
            ("log.retention.bytes", "-1"), ("log.retention.ms", "-1"), ("log.segment.bytes", String(log.options.segmentBytesMax)),
            ("message.max.bytes", String(log.options.batchBytesMax)), ("num.partitions", String(options.defaultPartitions)),
        ]
    }
}
