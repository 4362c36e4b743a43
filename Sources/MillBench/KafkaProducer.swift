import CRdkafka

/// A producer to partition 0 of one topic, by librdkafka, whose records keep their order.
///
/// It takes records by the thousand and waits when librdkafka's queue is full. One thread.
final class KafkaProducer: BidProducer {
    private let handle: OpaquePointer
    private let topic: OpaquePointer
    private let messages: UnsafeMutablePointer<rd_kafka_message_t>
    let recordsMax = 1000
    let tickMicros: UInt32 = 500

    /// - Parameter properties: librdkafka's, by their names there.
    init(_ servers: String, topic name: String, properties: [String: String] = [:]) throws {
        guard let configuration = rd_kafka_conf_new() else { throw BenchFailure("out of memory") }
        for (key, value) in properties.merging(["bootstrap.servers": servers], uniquingKeysWith: { given, _ in given }) {
            guard rd_kafka_conf_set(configuration, key, value, nil, 0) == RD_KAFKA_CONF_OK else { throw BenchFailure("librdkafka refuses \(key)=\(value)") }
        }
        guard let handle = rd_kafka_new(RD_KAFKA_PRODUCER, configuration, nil, 0), let topic = rd_kafka_topic_new(handle, name, nil) else {
            throw BenchFailure("librdkafka makes no producer")
        }
        self.handle = handle
        self.topic = topic
        messages = .allocate(capacity: recordsMax)
        messages.initialize(repeating: rd_kafka_message_t(), count: recordsMax)
    }

    deinit {
        rd_kafka_topic_destroy(topic)
        rd_kafka_destroy(handle)
        messages.deallocate()
    }

    /// Hands over `count` records, which librdkafka copies before this returns.
    func produce(_ count: Int, record: (Int) -> UnsafeMutableRawBufferPointer) throws {
        for index in 0..<count {
            let bytes = record(index)
            messages[index].payload = bytes.baseAddress
            messages[index].len = bytes.count
        }
        let taken = rd_kafka_produce_batch(topic, 0, Int32(RD_KAFKA_MSG_F_COPY | RD_KAFKA_MSG_F_BLOCK), messages, Int32(count))
        guard taken == count else { throw BenchFailure("the producer refused \(count - Int(taken)) of \(count) records") }
    }

    /// Waits until the broker has acknowledged everything.
    func flush() throws {
        guard rd_kafka_flush(handle, 60_000) == RD_KAFKA_RESP_ERR_NO_ERROR else { throw BenchFailure("the broker did not take all records within 60 s") }
    }
}
