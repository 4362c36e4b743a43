import MillBase
import MillLog

/// What CREATE SOURCE says about a Kafka topic, in the spellings of RisingWave and Flink.
struct KafkaSourceOptions: Sendable {
    /// Where a source begins in the partitions that exist when it is created.
    enum Startup: Sendable, Hashable {
        case earliest
        case latest
        /// The first record at or after this time, in milliseconds since 1970.
        case timestamp(millis: Int64)
    }

    var topic: String
    /// `host:port`, more after commas.
    var bootstrapServers: String
    var startup: Startup
    /// What of transactions is seen; `properties.isolation.level`, as of librdkafka.
    var isolation: ReadIsolation
    /// For librdkafka, under its names.
    var properties: [(name: String, value: String)]
    var notices: [String]

    init(_ options: ConnectorOptions) throws(SQLError) {
        var options = options
        topic = try options.require("topic", or: "kafka.topic", hint: "Set it to the topic to read.")
        guard !topic.contains(",") else {
            throw SQLError(.featureNotSupported, "a source reads one topic, not \"\(topic)\"", hint: "Create a source for each topic and UNION ALL them.")
        }
        guard Topic.isLegalName(topic) else { throw LogError.invalidTopicName(topic).sqlError }
        bootstrapServers = try options.require(
            "properties.bootstrap.server", or: "properties.bootstrap.servers", hint: "Set it to the brokers, such as 'localhost:9092'.")
        startup = try Self.startup(&options)
        let level = try options.take("properties.isolation.level")
        isolation = try Self.isolation(level, options)
        (properties, notices) = try Self.properties(options.takeAll(prefix: "properties."))
        if let level { properties.append(("isolation.level", level)) }
        try options.finish()
    }

    private static func isolation(_ level: String?, _ options: ConnectorOptions) throws(SQLError) -> ReadIsolation {
        switch level {
        case nil, "read_committed": return .committed
        case "read_uncommitted": return .uncommitted
        case let other?: throw options.invalid("properties.isolation.level", other, expected: "read_committed or read_uncommitted")
        }
    }

    private static func startup(_ options: inout ConnectorOptions) throws(SQLError) -> Startup {
        let mode = try options.take("scan.startup.mode")
        let time = try options.take("scan.startup.timestamp.millis", "scan.startup.timestamp-millis", "scan.startup.timestamp")
        let millis = try time.map { text throws(SQLError) in
            guard let value = Int64(text), value >= 0 else {
                throw options.invalid("scan.startup.timestamp.millis", text, expected: "milliseconds since 1970")
            }
            return value
        }
        switch mode?.lowercased() {
        case nil: return millis.map(Startup.timestamp) ?? .earliest
        case "earliest", "earliest-offset": return millis.map(Startup.timestamp) ?? .earliest
        case "latest", "latest-offset": return .latest
        case "timestamp":
            guard let millis else {
                throw SQLError(
                    .invalidParameterValue, "option \"scan.startup.timestamp.millis\" of connector \"kafka\" is missing",
                    hint: "scan.startup.mode 'timestamp' needs it: milliseconds since 1970.")
            }
            return .timestamp(millis: millis)
        case let other?: throw options.invalid("scan.startup.mode", other, expected: "earliest, latest or timestamp")
        }
    }

    /// Properties of the Java client and of other engines that change nothing here.
    private static let withoutEffect: Set<String> = [
        "key.deserializer", "value.deserializer", "key.serializer", "value.serializer", "max.poll.records", "interceptor.classes",
        "metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms", "default.api.timeout.ms",
        "exclude.internal.topics", "partition.discovery.interval.ms", "client.id.prefix", "group.id.prefix", "register.consumer.metrics",
        "sync.call.timeout", "auto.offset.reset", "enable.auto.commit", "auto.commit.interval.ms", "auto.register.schemas",
        "partition.assignment.strategy", "client.dns.lookup", "flink.partition-discovery.interval-millis",
    ]

    /// Properties of the Java client under librdkafka's name.
    private static let renamed = [
        "fetch.max.wait.ms": "fetch.wait.max.ms", "receive.buffer.bytes": "socket.receive.buffer.bytes", "send.buffer.bytes": "socket.send.buffer.bytes",
        "request.timeout.ms": "socket.timeout.ms",
    ]

    private static func properties(_ given: [String: String]) throws(SQLError) -> ([(name: String, value: String)], notices: [String]) {
        var properties: [(name: String, value: String)] = []
        var notices: [String] = []
        for (name, value) in given.sorted(by: { $0.key < $1.key }) {
            if withoutEffect.contains(name) {
                notices.append("option \"properties.\(name)\" has no effect")
            } else if name == "sasl.jaas.config" {
                throw SQLError(
                    .invalidParameterValue, "option \"properties.sasl.jaas.config\" is only for Java clients",
                    hint: "Set properties.sasl.username and properties.sasl.password.")
            } else {
                properties.append((renamed[name] ?? name, value))
            }
        }
        return (properties, notices)
    }
}
