import MillKafkaWire
import MillLog

extension KafkaBroker {
    /// What a client may do, one bit for each of Kafka's AclOperation codes, as a broker without authorisation says it.
    private static let topicOperations: Int32 = 0b1101_1111_1000
    private static let clusterOperations: Int32 = 0b1111_0010_0000 | 0b1_0000_0000_0000
    static let groupOperations: Int32 = 0b1_0100_1000
    /// Kafka's mark for "you did not ask".
    static let operationsNotAsked = Int32.min

    func apiVersions(error: KafkaErrorCode, version: Int16) -> KafkaReply {
        let keys = KafkaAPI.allCases.sorted { $0.rawValue < $1.rawValue }
        return response(
            ApiVersionsResponse(
                errorCode: error.rawValue,
                apiKeys: keys.map { .init(apiKey: $0.rawValue, minVersion: $0.versions.lowerBound, maxVersion: $0.versions.upperBound) }),
            version)
    }

    /// Topics and where they are; makes those that a client names and that do not exist, unless it asks not to.
    func metadata(_ request: MetadataRequest, _ version: Int16, _ client: Client, _ reply: @escaping Reply) {
        let asksForAll = request.topics == nil || (version == 0 && request.topics?.isEmpty == true)
        let mayCreate = options.autoCreatesTopics && (version < 4 || request.allowAutoTopicCreation)
        let isNew = mayCreate && (request.topics ?? []).contains { $0.name.map { log.topic(named: $0) == nil } ?? false }
        let work: @Sendable () -> Void = { [self] in
            let topics = asksForAll ? log.allTopics.map(describe) : (request.topics ?? []).map { describe($0, mayCreate: mayCreate) }
            let allowed = request.includeTopicAuthorizedOperations ? Self.topicOperations : Self.operationsNotAsked
            reply(response(
                MetadataResponse(
                    brokers: [.init(nodeID: options.nodeID, host: client.advertisedHost, port: client.advertisedPort, rack: nil)],
                    clusterID: options.clusterID, controllerID: options.nodeID,
                    topics: topics.map { topic in
                        var topic = topic
                        topic.topicAuthorizedOperations = allowed
                        return topic
                    },
                    clusterAuthorizedOperations: request.includeClusterAuthorizedOperations ? Self.clusterOperations : Self.operationsNotAsked),
                version))
        }
        // Making a topic waits for the disk.
        if isNew { blocking(work) } else { work() }
    }

    private func describe(_ request: MetadataRequest.MetadataRequestTopic, mayCreate: Bool) -> MetadataResponse.MetadataResponseTopic {
        guard let name = request.name else {
            guard let topic = log.topic(id: request.topicID) else {
                return .init(errorCode: KafkaErrorCode.unknownTopicID.rawValue, name: nil, topicID: request.topicID)
            }
            return describe(topic)
        }
        if let topic = log.topic(named: name) { return describe(topic) }
        guard mayCreate else {
            let error = Topic.isLegalName(name) ? KafkaErrorCode.unknownTopicOrPartition : .invalidTopic
            return .init(errorCode: error.rawValue, name: name)
        }
        do throws(LogError) { return describe(try log.topic(named: name, creatingWithPartitions: options.defaultPartitions)) } catch {
            return .init(errorCode: KafkaErrorCode(error).rawValue, name: name)
        }
    }

    private func describe(_ topic: Topic) -> MetadataResponse.MetadataResponseTopic {
        let nodes = [options.nodeID]
        return .init(
            name: topic.name, topicID: topic.id, isInternal: topic.isInternal,
            partitions: topic.partitions.map { partition in
                .init(partitionIndex: partition.index, leaderID: options.nodeID, leaderEpoch: 0, replicaNodes: nodes, isrNodes: nodes)
            })
    }

    func describeCluster(_ request: DescribeClusterRequest, _ version: Int16, _ client: Client, _ reply: Reply) {
        reply(response(
            DescribeClusterResponse(
                errorMessage: nil, clusterID: options.clusterID, controllerID: options.nodeID,
                brokers: [.init(brokerID: options.nodeID, host: client.advertisedHost, port: client.advertisedPort, rack: nil)],
                clusterAuthorizedOperations: request.includeClusterAuthorizedOperations ? Self.clusterOperations : Self.operationsNotAsked),
            version))
    }

    /// We are everybody's coordinator, for groups and for transactions.
    func findCoordinator(_ request: FindCoordinatorRequest, _ version: Int16, _ client: Client, _ reply: Reply) {
        let isKnown = (0...1).contains(request.keyType)
        let error = isKnown ? KafkaErrorCode.none : .invalidRequest
        let message = isKnown ? nil : "only groups and transactions have coordinators"
        let keys = version >= 4 ? request.coordinatorKeys : []
        reply(response(
            FindCoordinatorResponse(
                errorCode: error.rawValue, errorMessage: message, nodeID: options.nodeID, host: client.advertisedHost, port: client.advertisedPort,
                coordinators: keys.map {
                    .init(
                        key: $0, nodeID: options.nodeID, host: client.advertisedHost, port: client.advertisedPort, errorCode: error.rawValue,
                        errorMessage: message)
                }),
            version))
    }

    /// Partitions have one place to be.
    func listReassignments(_ request: ListPartitionReassignmentsRequest, _ version: Int16, _ reply: Reply) {
        reply(response(ListPartitionReassignmentsResponse(errorMessage: nil), version))
    }

    // MARK: Names and passwords

    private static let saslMechanisms = ["PLAIN"]

    /// Clients that are set up with a name and a password get in, as all others do: nobody is asked for one here.
    func saslHandshake(_ request: SaslHandshakeRequest, _ version: Int16, _ reply: Reply) {
        let error = Self.saslMechanisms.contains(request.mechanism) ? KafkaErrorCode.none : .unsupportedSASLMechanism
        reply(response(SaslHandshakeResponse(errorCode: error.rawValue, mechanisms: Self.saslMechanisms), version))
    }

    func saslAuthenticate(_ request: SaslAuthenticateRequest, _ version: Int16, _ reply: Reply) {
        reply(response(SaslAuthenticateResponse(errorMessage: nil), version))
    }
}
