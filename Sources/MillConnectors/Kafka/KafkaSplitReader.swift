import CRdkafka
import MillBase
import MillConnectorKit

/// Records of one partition from a broker, through a librdkafka queue of its own.
///
/// `poll` takes what librdkafka has fetched and never waits. Offsets may have gaps (compaction, transaction markers); at the end of
/// a partition a chunk without records moves the position over a gap there. Owned by one worker; `onData` comes from librdkafka's
/// threads.
final class KafkaSplitReader: SplitReader {
    private static let messagesMax = 256
    /// A chunk of about this size is still in the cache when it is decoded, and its memory serves the next one.
    private static let chunkBytes = 512 << 10

    private let client: KafkaClient
    private let split: SourceSplit
    private let pool: BlockPool
    private let topic: OpaquePointer
    private let queue: OpaquePointer
    private let wake: Unmanaged<Wake>
    private let messages: UnsafeMutablePointer<UnsafeMutablePointer<rd_kafka_message_t>?>
    private var nextOffset: Int64
    /// Records and bytes of the last chunk: about as many come next.
    private var last = (count: 0, bytes: 0)
    /// Found behind records that had to be given first.
    private var failure: SQLError?
    private var isOpen = true

    private final class Wake: Sendable {
        let onData: @Sendable () -> Void
        init(_ onData: @escaping @Sendable () -> Void) { self.onData = onData }
    }

    let isFinished = false

    init(_ client: KafkaClient, _ split: SourceSplit, at offset: SplitOffset, pool: BlockPool, onData: @escaping @Sendable () -> Void) throws(SQLError) {
        guard let topic = rd_kafka_topic_new(client.handle, split.topic, nil) else {
            client.releasePartition(split.name)
            throw SQLError(.invalidParameterValue, "\"\(split.topic)\" is not a topic name")
        }
        guard let queue = rd_kafka_queue_new(client.handle) else {
            rd_kafka_topic_destroy(topic)
            client.releasePartition(split.name)
            throw SQLError(.outOfMemory, "out of memory")
        }
        let wake = Unmanaged.passRetained(Wake(onData))
        rd_kafka_queue_cb_event_enable(queue, { _, opaque in opaque.map { Unmanaged<Wake>.fromOpaque($0).takeUnretainedValue().onData() } }, wake.toOpaque())
        guard rd_kafka_consume_start_queue(topic, split.partition, offset.position, queue) == 0 else {
            let reason = KafkaClient.text(rd_kafka_last_error())
            rd_kafka_queue_cb_event_enable(queue, nil, nil)
            rd_kafka_queue_destroy(queue)
            rd_kafka_topic_destroy(topic)
            wake.release()
            client.releasePartition(split.name)
            throw SQLError(.connectionFailure, "could not read \"\(split.name)\": \(reason)")
        }
        self.client = client
        self.split = split
        self.pool = pool
        self.topic = topic
        self.queue = queue
        self.wake = wake
        messages = .allocate(capacity: Self.messagesMax)
        nextOffset = offset.position
    }

    deinit {
        close()
        messages.deallocate()
    }

    func close() {
        guard isOpen else { return }
        isOpen = false
        rd_kafka_queue_cb_event_enable(queue, nil, nil)
        rd_kafka_consume_stop(topic, split.partition)
        rd_kafka_queue_destroy(queue)
        rd_kafka_topic_destroy(topic)
        wake.release()
        client.releasePartition(split.name)
    }

    var highWatermark: SplitOffset? {
        guard isOpen else { return nil }
        var low: Int64 = 0
        var high: Int64 = 0
        guard rd_kafka_get_watermark_offsets(client.handle, split.topic, split.partition, &low, &high) == RD_KAFKA_RESP_ERR_NO_ERROR, high >= 0 else { return nil }
        return SplitOffset(high)
    }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        if let failure { throw failure }
        guard isOpen else { return nil }
        let maxBytes = min(maxBytes, Self.chunkBytes)
        var gathered = Gathered(at: nextOffset, pool: pool, expecting: last)
        var didGet = true
        while didGet, !gathered.isAtFailure, gathered.starts.count < maxRecords, gathered.byteCount < maxBytes {
            let wanted = min(maxRecords - gathered.starts.count, Self.messagesMax)
            let count = rd_kafka_consume_batch_queue(queue, 0, messages, wanted)
            var next = 0
            while next < count {
                next += gathered.take(messages + next, count - next)
                guard next < count else { break }
                if let other = messages[next] {
                    note(other, in: &gathered)
                    rd_kafka_message_destroy(other)
                }
                next += 1
            }
            didGet = count == wanted
        }
        if !gathered.starts.isEmpty { client.setStatus(nil) }
        guard let chunk = gathered.chunk(split, after: nextOffset) else {
            if let failure { throw failure }
            return nil
        }
        nextOffset = chunk.nextOffset.position
        last = (chunk.count, chunk.byteCount)
        return chunk
    }

    /// What the messages of one poll come to.
    private struct Gathered {
        let pool: BlockPool
        private let expected: (count: Int, bytes: Int)
        private var buffer: RecordBuffer?
        private(set) var starts: [UInt32] = []
        private var lengths: [Int32] = []
        private var positions: [Int64] = []
        private var times = RecordTimes()
        var nextOffset: Int64
        /// Behind a failure nothing may be given: the position would skip it.
        var isAtFailure = false

        var byteCount: Int { buffer?.count ?? 0 }

        init(at offset: Int64, pool: BlockPool, expecting expected: (count: Int, bytes: Int)) {
            self.pool = pool
            self.expected = expected
            nextOffset = offset
        }

        /// Takes and destroys messages up to the first that is no record; how many.
        mutating func take(_ messages: UnsafeMutablePointer<UnsafeMutablePointer<rd_kafka_message_t>?>, _ count: Int) -> Int {
            guard count > 0, messages[0]?.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else { return 0 }
            if buffer == nil { reserve() }
            guard let buffer else { return 0 }
            for index in 0..<count {
                guard let message = messages[index], message.pointee.err == RD_KAFKA_RESP_ERR_NO_ERROR else { return index }
                defer { rd_kafka_message_destroy(message) }
                guard !isAtFailure, message.pointee.offset >= nextOffset else { continue }
                var kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE
                let millis = rd_kafka_message_timestamp(message, &kind)
                starts.append(buffer.append(message.pointee.payload, message.pointee.len))
                lengths.append(message.pointee.payload == nil ? -1 : Int32(clamping: message.pointee.len))
                positions.append(message.pointee.offset)
                times.append(millis: kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : millis)
                nextOffset = message.pointee.offset + 1
            }
            return count
        }

        private mutating func reserve() {
            // Powers of two, so that the pool has one that fits.
            let bytes = max(expected.bytes + expected.bytes / 8, 64 << 10)
            buffer = RecordBuffer(capacity: 1 << (Int.bitWidth - (bytes - 1).leadingZeroBitCount), pool: pool)
            let count = expected.count + expected.count / 8
            starts.reserveCapacity(count)
            lengths.reserveCapacity(count)
            positions.reserveCapacity(count)
            times.reserveCapacity(count)
        }

        /// nil when there is nothing and the position did not move.
        func chunk(_ split: SourceSplit, after offset: Int64) -> RawChunk? {
            guard nextOffset != offset else { return nil }
            let buffer = self.buffer ?? RecordBuffer(capacity: 0, pool: pool)
            return RawChunk(
                bytes: UnsafeRawPointer(buffer.start), byteCount: buffer.count, starts: starts, lengths: lengths, positions: positions,
                timestamps: times.values, nextOffset: SplitOffset(nextOffset), partition: split.partition, owner: buffer)
        }
    }

    /// Of a message that is no record.
    private func note(_ message: UnsafeMutablePointer<rd_kafka_message_t>, in gathered: inout Gathered) {
        switch message.pointee.err {
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
            if failure == nil { gathered.nextOffset = max(gathered.nextOffset, message.pointee.offset) }
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
            failure = SQLError(
                .objectNotInPrerequisiteState, "offset \(gathered.nextOffset) of \"\(split.name)\" is out of range",
                detail: Self.detail(message), hint: "The broker no longer has these records, or the topic was made anew. Drop the source and create it again.")
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
            failure = SQLError(.undefinedObject, "topic \"\(split.topic)\" has no partition \(split.partition)", detail: Self.detail(message))
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR__AUTHENTICATION:
            failure = SQLError(.invalidAuthorization, "reading \"\(split.name)\" is not allowed", detail: Self.detail(message))
        case RD_KAFKA_RESP_ERR__BAD_MSG, RD_KAFKA_RESP_ERR__BAD_COMPRESSION, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_INVALID_MSG:
            failure = SQLError(.dataCorrupted, "the record at or after offset \(gathered.nextOffset) of \"\(split.name)\" cannot be read", detail: Self.detail(message))
        default: client.setStatus(Self.detail(message))
        }
        gathered.isAtFailure = failure != nil
    }

    private static func detail(_ message: UnsafeMutablePointer<rd_kafka_message_t>) -> String {
        rd_kafka_message_errstr(message).map { String(cString: $0) } ?? KafkaClient.text(message.pointee.err)
    }
}
