import CRdkafka

/// A Kafka cluster inside the test process: librdkafka's own, on ports that the system chooses.
final class MockCluster: @unchecked Sendable {
    private let producer: OpaquePointer
    private let cluster: OpaquePointer
    let bootstrapServers: String

    init(brokers: Int32 = 1) {
        producer = Self.makeProducer(nil)
        cluster = rd_kafka_mock_cluster_new(producer, brokers)
        bootstrapServers = String(cString: rd_kafka_mock_cluster_bootstraps(cluster))
    }

    deinit {
        rd_kafka_mock_cluster_destroy(cluster)
        rd_kafka_destroy(producer)
    }

    private static func makeProducer(_ servers: String?) -> OpaquePointer {
        let configuration = rd_kafka_conf_new()
        rd_kafka_conf_set(configuration, "log_level", "0", nil, 0)
        rd_kafka_conf_set(configuration, "linger.ms", "1", nil, 0)
        if let servers { rd_kafka_conf_set(configuration, "bootstrap.servers", servers, nil, 0) }
        var reason = [CChar](repeating: 0, count: 256)
        return rd_kafka_new(RD_KAFKA_PRODUCER, configuration, &reason, reason.count)
    }

    func createTopic(_ name: String, partitions: Int32) {
        rd_kafka_mock_topic_create(cluster, name, partitions, 1)
    }

    /// Produces to a partition and waits for the acknowledgement; nil is a tombstone.
    func produce(_ topic: String, _ partition: Int32, _ values: [String?], millis: Int64 = 1000) {
        Self.produce(to: bootstrapServers, topic, partition, values, millis: millis)
    }

    /// The same to any broker.
    static func produce(to bootstrapServers: String, _ topic: String, _ partition: Int32, _ values: [String?], millis: Int64 = 1000) {
        let client = makeProducer(bootstrapServers)
        for (index, value) in values.enumerated() {
            var bytes = Array((value ?? "").utf8) + [0]
            bytes.withUnsafeMutableBytes { buffer in
                topic.withCString { name in
                    var units = (0..<5).map { _ in rd_kafka_vu_t() }
                    units[0].vtype = RD_KAFKA_VTYPE_TOPIC
                    units[0].u.cstr = name
                    units[1].vtype = RD_KAFKA_VTYPE_PARTITION
                    units[1].u.i32 = partition
                    units[2].vtype = RD_KAFKA_VTYPE_VALUE
                    units[2].u.mem.ptr = value == nil ? nil : buffer.baseAddress
                    units[2].u.mem.size = value == nil ? 0 : buffer.count - 1
                    units[3].vtype = RD_KAFKA_VTYPE_MSGFLAGS
                    units[3].u.i = RD_KAFKA_MSG_F_COPY
                    units[4].vtype = RD_KAFKA_VTYPE_TIMESTAMP
                    units[4].u.i64 = millis + Int64(index)
                    let error = rd_kafka_produceva(client, units, units.count)
                    precondition(error == nil, "the mock cluster takes every record")
                }
            }
        }
        rd_kafka_flush(client, 10_000)
        rd_kafka_destroy(client)
    }
}
