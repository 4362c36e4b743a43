import Logging
import MillBase
import MillKafkaWire
import MillLog

extension KafkaBroker {
    private static let topicResource: Int8 = 2
    private static let brokerResource: Int8 = 4
    static let topicSource: Int8 = 1
    private static let brokerSource: Int8 = 4
    static let defaultSource: Int8 = 5

    /// A topic's settings, those without an effect only if they are set.
    func settings(_ config: TopicConfig) -> [(name: String, value: String, isSet: Bool)] {
        Set(TopicConfig.names).union(config.values.keys).sorted().map { name in
            let set = config.values[name]
            return (name, set ?? TopicConfig.defaultValue(of: name, log.options) ?? "", set != nil)
        }
    }

    /// Says in our log which settings change nothing here.
    func noteWithoutEffect(_ config: TopicConfig, topic: String) {
        let names = config.values.keys.filter { !TopicConfig.hasEffect($0) }.sorted()
        if !names.isEmpty {
            logger.notice("topic settings have no effect", metadata: ["topic": "\(topic)", "settings": "\(names.joined(separator: ", "))"])
        }
    }

    func describeConfigs(_ request: DescribeConfigsRequest, _ version: Int16, _ reply: Reply) {
        typealias Result = DescribeConfigsResponse.DescribeConfigsResult
        let results = request.resources.map { resource -> Result in
            func refused(_ error: KafkaErrorCode, _ message: String) -> Result {
                .init(
                    errorCode: error.rawValue, errorMessage: message, resourceType: resource.resourceType,
                    resourceName: resource.resourceName)
            }
            var found: [Result.DescribeConfigsResourceResult]
            switch resource.resourceType {
            case Self.topicResource:
                guard let topic = log.topic(named: resource.resourceName) else {
                    return refused(.unknownTopicOrPartition, "there is no such topic")
                }
                found = settings(topic.config).map {
                    .init(
                        name: $0.name, value: $0.value, configSource: $0.isSet ? Self.topicSource : Self.defaultSource,
                        isDefault: !$0.isSet, documentation: nil)
                }
            case Self.brokerResource:
                found = brokerSettings.map {
                    .init(name: $0.0, value: $0.1, readOnly: true, configSource: Self.brokerSource, documentation: nil)
                }
            default: return refused(.invalidRequest, "only topics and brokers have settings")
            }
            if let wanted = resource.configurationKeys.map(Set.init) { found.removeAll { !wanted.contains($0.name) } }
            return .init(errorMessage: nil, resourceType: resource.resourceType, resourceName: resource.resourceName, configs: found)
        }
        reply(response(DescribeConfigsResponse(results: results), version))
    }

    private var brokerSettings: [(String, String)] {
        [
            ("auto.create.topics.enable", String(options.autoCreatesTopics)), ("broker.id", String(options.nodeID)),
            ("default.replication.factor", "1"),
            ("log.retention.bytes", "-1"), ("log.retention.ms", "-1"), ("log.segment.bytes", String(log.options.segmentBytesMax)),
            ("message.max.bytes", String(log.options.batchBytesMax)), ("num.partitions", String(options.defaultPartitions)),
        ]
    }

    /// Replaces all of a topic's settings.
    func alterConfigs(_ request: AlterConfigsRequest, _ version: Int16, _ reply: @escaping Reply) {
        blocking { [self] in
            let responses = request.resources.map { resource -> AlterConfigsResponse.AlterConfigsResourceResponse in
                let (error, message) = alter(resource.resourceType, resource.resourceName, validateOnly: request.validateOnly) {
                    _ throws(LogError) in
                    var config = TopicConfig()
                    for setting in resource.configs { try config.set(setting.name, to: setting.value) }
                    return config
                }
                return .init(
                    errorCode: error.rawValue, errorMessage: message, resourceType: resource.resourceType,
                    resourceName: resource.resourceName)
            }
            reply(response(AlterConfigsResponse(responses: responses), version))
        }
    }

    /// Changes the settings that are named.
    func alterConfigsByStep(_ request: IncrementalAlterConfigsRequest, _ version: Int16, _ reply: @escaping Reply) {
        blocking { [self] in
            let responses = request.resources.map { resource -> IncrementalAlterConfigsResponse.AlterConfigsResourceResponse in
                let (error, message) = alter(resource.resourceType, resource.resourceName, validateOnly: request.validateOnly) {
                    old throws(LogError) in
                    var config = old
                    for step in resource.configs { try apply(step, to: &config) }
                    return config
                }
                return .init(
                    errorCode: error.rawValue, errorMessage: message, resourceType: resource.resourceType,
                    resourceName: resource.resourceName)
            }
            reply(response(IncrementalAlterConfigsResponse(responses: responses), version))
        }
    }

    /// The operations are 0 set, 1 delete, and for lists 2 append and 3 subtract.
    private func apply(_ step: IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig, to config: inout TopicConfig)
        throws(LogError)
    {
        switch step.configOperation {
        case 0: try config.set(step.name, to: step.value)
        case 1: try config.set(step.name, to: nil)
        case 2, 3:
            guard step.name == "cleanup.policy", let value = step.value else { throw .invalidConfig(name: step.name, reason: "is no list") }
            let current = config.values[step.name] ?? TopicConfig.defaultValue(of: step.name, log.options) ?? ""
            let given = value.split(separator: ",")
            let kept = current.split(separator: ",").filter { !given.contains($0) }
            try config.set(step.name, to: (step.configOperation == 2 ? kept + given : kept).joined(separator: ","))
        default: throw .invalidConfig(name: step.name, reason: "cannot be changed by operation \(step.configOperation)")
        }
    }

    private func alter(
        _ type: Int8, _ name: String, validateOnly: Bool, _ change: (TopicConfig) throws(LogError) -> TopicConfig
    ) -> (KafkaErrorCode, String?) {
        guard type == Self.topicResource else {
            return (.invalidRequest, "only topics' settings can be changed; the broker's are options of the program")
        }
        do throws(LogError) {
            guard let topic = log.topic(named: name) else { throw .unknownTopic(name) }
            if validateOnly {
                _ = try change(topic.config)
            } else {
                try log.alterTopic(named: name, change)
                noteWithoutEffect(topic.config, topic: name)
            }
            return (.none, nil)
        } catch {
            return (KafkaErrorCode(error), error.sqlError.message)
        }
    }
}
