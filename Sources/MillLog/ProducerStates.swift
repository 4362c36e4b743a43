import MillKafkaWire

/// What a partition remembers of each idempotent producer, so that a batch sent twice is stored once.
///
/// A producer numbers its records per partition. The last five batches are remembered, which is how many a client may
/// have under way: a repeat of one of them is acknowledged with its first offset, the next in sequence is stored,
/// anything else is refused. A producer we do not know may start anywhere, as in Kafka since 2.5: its state expired, not
/// its data.
struct ProducerStates: Sendable, Equatable {
    static let batchesKept = 5

    struct Batch: Sendable, Equatable {
        var firstSequence: Int32
        var lastSequence: Int32
        var baseOffset: Int64
    }

    struct Producer: Sendable, Equatable {
        var epoch: Int16
        var lastAppendMillis: Int64
        /// Oldest first; empty when a marker was the first of its epoch.
        var batches: [Batch]
    }

    enum Verdict: Equatable {
        case append
        /// Stored already, from this offset on.
        case duplicate(baseOffset: Int64, lastOffset: Int64)
    }

    private(set) var producers: [Int64: Producer] = [:]

    /// - Throws: `outOfOrderSequence`, `staleProducerEpoch`.
    func check(_ batch: RecordBatch) throws(LogError) -> Verdict {
        guard batch.hasProducer, let known = producers[batch.producerID] else { return .append }
        guard batch.producerEpoch >= known.epoch else { throw .staleProducerEpoch(current: known.epoch, found: batch.producerEpoch) }
        let first = batch.baseSequence
        if batch.producerEpoch > known.epoch {
            guard first == 0 else { throw .outOfOrderSequence(expected: 0, found: first) }
            return .append
        }
        guard let last = known.batches.last else { return .append }
        if let same = known.batches.first(where: { $0.firstSequence == first && $0.lastSequence == batch.lastSequence }) {
            return .duplicate(baseOffset: same.baseOffset, lastOffset: same.baseOffset + Int64(batch.lastOffsetDelta))
        }
        let expected = RecordBatch.sequence(last.lastSequence, after: 1)
        guard first == expected else { throw .outOfOrderSequence(expected: expected, found: first) }
        return .append
    }

    mutating func record(_ batch: RecordBatch, baseOffset: Int64, nowMillis: Int64) {
        guard batch.hasProducer else { return }
        var producer = producers[batch.producerID] ?? Producer(epoch: batch.producerEpoch, lastAppendMillis: nowMillis, batches: [])
        if producer.epoch != batch.producerEpoch { producer = Producer(epoch: batch.producerEpoch, lastAppendMillis: nowMillis, batches: []) }
        if !batch.isControl {
            if producer.batches.count == Self.batchesKept { producer.batches.removeFirst() }
            producer.batches.append(Batch(firstSequence: batch.baseSequence, lastSequence: batch.lastSequence, baseOffset: baseOffset))
        }
        producer.lastAppendMillis = nowMillis
        producers[batch.producerID] = producer
    }

    /// Forgets producers that have been silent since then, but for those with an open transaction.
    mutating func expire(before millis: Int64, keeping transactions: borrowing TransactionIndex) {
        guard producers.contains(where: { $0.value.lastAppendMillis < millis }) else { return }
        for (id, producer) in producers where producer.lastAppendMillis < millis && !transactions.isOpen(id) { producers[id] = nil }
    }

    func write(to writer: inout WireWriter) {
        writer.int32(Int32(producers.count))
        for (id, producer) in producers.sorted(by: { $0.key < $1.key }) {
            writer.int64(id)
            writer.int16(producer.epoch)
            writer.int64(producer.lastAppendMillis)
            writer.int8(Int8(producer.batches.count))
            for batch in producer.batches {
                writer.int32(batch.firstSequence)
                writer.int32(batch.lastSequence)
                writer.int64(batch.baseOffset)
            }
        }
    }

    init() {}

    init(from reader: inout WireReader) throws(WireError) {
        for _ in 0..<max(0, try reader.int32()) {
            let id = try reader.int64()
            var producer = Producer(epoch: try reader.int16(), lastAppendMillis: try reader.int64(), batches: [])
            for _ in 0..<max(0, try reader.int8()) {
                producer.batches.append(Batch(firstSequence: try reader.int32(), lastSequence: try reader.int32(), baseOffset: try reader.int64()))
            }
            producers[id] = producer
        }
    }
}
