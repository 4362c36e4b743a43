import CRdkafka
import MillBase
import Synchronization

/// A librdkafka consumer without a group, shared by readers of different partitions.
///
/// librdkafka is safe from any thread; what is ours here is behind `state`. Transport errors never stop anything: librdkafka
/// tries again by itself, and the last error is kept as `status` until records come again.
final class KafkaClient: @unchecked Sendable {
    let handle: OpaquePointer
    private let shared: Shared

    /// Reached from librdkafka's threads.
    private final class Shared: Sendable {
        let state = Mutex(State())
    }

    private struct State {
        var status: String?
        /// Partitions that a reader of this client has.
        var taken: Set<String> = []
    }

    /// - Throws: 22023 for a property that librdkafka does not know or a value that it refuses.
    init(bootstrapServers: String, properties: [(name: String, value: String)]) throws(SQLError) {
        guard let configuration = rd_kafka_conf_new() else { throw SQLError(.outOfMemory, "out of memory") }
        let shared = Shared()
        self.shared = shared
        do throws(SQLError) {
            // Where a fetch is out of range the source must stop, not skip; the end of a partition tells how far a reader is when
            // its last offsets hold no records.
            let fixed = [
                ("bootstrap.servers", bootstrapServers), ("enable.auto.commit", "false"), ("enable.auto.offset.store", "false"),
                ("auto.offset.reset", "error"), ("enable.partition.eof", "true"),
            ]
            let defaults = [
                ("client.id", "millrace"), ("log_level", "0"), ("fetch.wait.max.ms", "100"), ("fetch.error.backoff.ms", "100"),
                ("reconnect.backoff.max.ms", "2000"), ("queued.max.messages.kbytes", "16384"),
            ]
            for (name, value) in defaults + properties.map({ ($0.name, $0.value) }) + fixed { try Self.set(configuration, name, value) }
        } catch {
            rd_kafka_conf_destroy(configuration)
            throw error
        }
        rd_kafka_conf_set_events(configuration, Int32(RD_KAFKA_EVENT_ERROR))
        rd_kafka_conf_set_opaque(configuration, Unmanaged.passUnretained(shared).toOpaque())
        rd_kafka_conf_set_background_event_cb(configuration) { _, event, opaque in
            if let opaque, let event, rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR {
                let text = rd_kafka_event_error_string(event).map { String(cString: $0) }
                // "All brokers are down" follows the reason why, which says more.
                let isSummary = rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN
                Unmanaged<Shared>.fromOpaque(opaque).takeUnretainedValue().state.withLock { state in
                    if !isSummary || state.status == nil { state.status = text }
                }
            }
            rd_kafka_event_destroy(event)
        }
        var reason = [CChar](repeating: 0, count: 512)
        guard let handle = rd_kafka_new(RD_KAFKA_CONSUMER, configuration, &reason, reason.count) else {
            rd_kafka_conf_destroy(configuration)
            throw SQLError(.invalidParameterValue, "could not set up the Kafka client: \(KafkaClient.text(reason))")
        }
        self.handle = handle
        // Errors go to librdkafka's own thread: nobody here polls the client itself.
        if let main = rd_kafka_queue_get_main(handle), let background = rd_kafka_queue_get_background(handle) {
            rd_kafka_queue_forward(main, background)
            rd_kafka_queue_destroy(main)
            rd_kafka_queue_destroy(background)
        }
    }

    deinit { rd_kafka_destroy(handle) }

    /// Properties of a client that is not needed.
    /// - Throws: as `init` does.
    static func check(_ properties: [(name: String, value: String)]) throws(SQLError) {
        guard let configuration = rd_kafka_conf_new() else { throw SQLError(.outOfMemory, "out of memory") }
        defer { rd_kafka_conf_destroy(configuration) }
        for (name, value) in properties { try set(configuration, name, value) }
    }

    private static func set(_ configuration: OpaquePointer, _ name: String, _ value: String) throws(SQLError) {
        var reason = [CChar](repeating: 0, count: 512)
        switch rd_kafka_conf_set(configuration, name, value, &reason, reason.count) {
        case RD_KAFKA_CONF_OK: return
        case RD_KAFKA_CONF_UNKNOWN:
            throw SQLError(
                .invalidParameterValue, "connector \"kafka\" has no option \"properties.\(name)\"",
                hint: "After \"properties.\" come the names of librdkafka's configuration.")
        default: throw SQLError(.invalidParameterValue, "invalid value for option \"properties.\(name)\": \(text(reason))")
        }
    }

    static func text(_ buffer: [CChar]) -> String { String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) }
    static func text(_ error: rd_kafka_resp_err_t) -> String { rd_kafka_err2str(error).map { String(cString: $0) } ?? "error \(error.rawValue)" }

    /// What is wrong with the connection now, if anything.
    var status: String? { shared.state.withLock { $0.status } }
    func setStatus(_ text: String?) { shared.state.withLock { $0.status = text } }

    /// Marks a partition as read here; false if it already is.
    func takePartition(_ name: String) -> Bool { shared.state.withLock { $0.taken.insert(name).inserted } }
    func releasePartition(_ name: String) { shared.state.withLock { _ = $0.taken.remove(name) } }

    /// Nobody reads a partition here.
    var isIdle: Bool { shared.state.withLock { $0.taken.isEmpty } }

    /// The partitions of a topic, none when the broker does not know it.
    func partitions(of topic: String, timeoutMillis: Int32) throws(KafkaFailure) -> [Int32] {
        guard let local = rd_kafka_topic_new(handle, topic, nil) else { throw KafkaFailure(code: rd_kafka_last_error()) }
        defer { rd_kafka_topic_destroy(local) }
        var found: UnsafePointer<rd_kafka_metadata>?
        let error = rd_kafka_metadata(handle, 0, local, &found, timeoutMillis)
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR, let found else { throw KafkaFailure(code: error) }
        defer { rd_kafka_metadata_destroy(found) }
        guard found.pointee.topic_cnt > 0 else { return [] }
        let entry = found.pointee.topics[0]
        switch entry.err {
        case RD_KAFKA_RESP_ERR_NO_ERROR: return (0..<Int(entry.partition_cnt)).map { entry.partitions[$0].id }.sorted()
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC: return []
        // LEADER_NOT_AVAILABLE among them: a topic that is being made, perhaps by this very request. Asking again tells.
        default: throw KafkaFailure(code: entry.err)
        }
    }

    /// The first offset and the one after the last.
    func watermarks(_ topic: String, _ partition: Int32, timeoutMillis: Int32) throws(KafkaFailure) -> (low: Int64, high: Int64) {
        var low: Int64 = 0
        var high: Int64 = 0
        let error = rd_kafka_query_watermark_offsets(handle, topic, partition, &low, &high, timeoutMillis)
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaFailure(code: error) }
        return (low, high)
    }

    /// For each partition the first offset at or after a time, or nil when there is none.
    func offsets(_ topic: String, _ partitions: [Int32], atMillis millis: Int64, timeoutMillis: Int32) throws(KafkaFailure) -> [Int32: Int64?] {
        guard !partitions.isEmpty, let list = rd_kafka_topic_partition_list_new(Int32(partitions.count)) else { return [:] }
        defer { rd_kafka_topic_partition_list_destroy(list) }
        for partition in partitions { rd_kafka_topic_partition_list_add(list, topic, partition).pointee.offset = millis }
        let error = rd_kafka_offsets_for_times(handle, list, timeoutMillis)
        guard error == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaFailure(code: error) }
        var found: [Int32: Int64?] = [:]
        for index in 0..<Int(list.pointee.cnt) {
            let entry = list.pointee.elems[index]
            guard entry.err == RD_KAFKA_RESP_ERR_NO_ERROR else { throw KafkaFailure(code: entry.err) }
            found[entry.partition] = .some(entry.offset >= 0 ? entry.offset : nil)
        }
        return found
    }
}

/// A request to the brokers that failed.
struct KafkaFailure: Error {
    var code: rd_kafka_resp_err_t

    /// Worth trying again within the time that the caller allows.
    var isTransient: Bool {
        switch code {
        case RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__TIMED_OUT, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, RD_KAFKA_RESP_ERR__WAIT_COORD,
            RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
            RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR__RESOLVE, RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
            true
        default: false
        }
    }
}
