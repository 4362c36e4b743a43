import MillKafkaWire

/// A partition by name.
package struct PartitionPlace: Sendable, Hashable, Comparable {
    package var topic: String
    package var partition: Int32

    package init(topic: String, partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    package static func < (a: PartitionPlace, b: PartitionPlace) -> Bool { (a.topic, a.partition) < (b.topic, b.partition) }

    init(from reader: inout WireReader) throws(WireError) {
        topic = try reader.string(flexible: false)
        partition = try reader.int32()
    }

    func write(to writer: inout WireWriter) {
        writer.string(topic, flexible: false)
        writer.int32(partition)
    }
}

/// What `CoordinatorLog` remembers: the sum of its entries.
struct CoordinatorState {
    private(set) var groups: [String: [PartitionPlace: GroupOffsets.Committed]] = [:]
    /// By transactional id.
    private(set) var transactions: [String: TransactionState] = [:]
    /// Transactional ids by their producer's present id.
    private(set) var producers: [Int64: String] = [:]

    mutating func apply(_ entry: CoordinatorEntry) {
        switch entry {
        case .commit(let group, let place, let committed): groups[group, default: [:]][place] = committed
        case .groupDeleted(let group): groups[group] = nil
        case .topicDeleted(let topic):
            groups = groups.mapValues { $0.filter { $0.key.topic != topic } }.filter { !$0.value.isEmpty }
            for id in transactions.keys { transactions[id]?.forget(topic: topic) }
        case .transaction(var transaction):
            if transaction.phase == .prepareCommit {
                for (group, offsets) in transaction.offsets { groups[group, default: [:]].merge(offsets) { _, new in new } }
            }
            if transaction.phase != .ongoing { transaction.offsets = [:] }
            if let old = transactions[transaction.id], old.producerID != transaction.producerID { producers[old.producerID] = nil }
            transactions[transaction.id] = transaction
            producers[transaction.producerID] = transaction.id
        case .transactionForgotten(let id):
            if let old = transactions.removeValue(forKey: id) { producers[old.producerID] = nil }
        case .synced: break
        }
    }

    /// The fewest entries whose sum this is.
    var entries: [CoordinatorEntry] {
        groups.flatMap { group, offsets in offsets.map { .commit(group: group, $0.key, $0.value) } }
            + transactions.values.map { .transaction($0) }
    }

    /// - Throws: `unknownProducer`, `staleProducerEpoch`, `noTransaction`.
    func check(_ batch: RecordBatch, belongsTo place: PartitionPlace) throws(LogError) {
        guard let id = producers[batch.producerID], let transaction = transactions[id] else { throw .unknownProducer(batch.producerID) }
        guard batch.producerEpoch == transaction.producerEpoch else {
            throw .staleProducerEpoch(current: transaction.producerEpoch, found: batch.producerEpoch)
        }
        guard transaction.phase == .ongoing, transaction.partitions.contains(place) else {
            throw .noTransaction(producerID: batch.producerID)
        }
    }

    /// Whether a transaction that has not ended may still move a group's position there.
    func hasPendingCommit(group: String, _ place: PartitionPlace) -> Bool {
        transactions.values.contains { $0.offsets[group]?[place] != nil }
    }
}

/// One change, as `offsets.log` holds it (docs/internals/log.md).
enum CoordinatorEntry {
    case commit(group: String, PartitionPlace, GroupOffsets.Committed)
    case groupDeleted(String)
    case topicDeleted(String)
    /// The whole of a transactional producer's state; in phase `prepareCommit` its offsets become the groups'.
    case transaction(TransactionState)
    case transactionForgotten(String)
    /// A mark: so many of the file's first bytes were durable when it was written.
    case synced(upTo: Int64)

    /// Of a mark.
    static let markBytes = 9

    func write(to writer: inout WireWriter) {
        switch self {
        case .commit(let group, let place, let committed):
            writer.int8(1)
            writer.string(group, flexible: false)
            place.write(to: &writer)
            committed.write(to: &writer)
        case .groupDeleted(let group):
            writer.int8(2)
            writer.string(group, flexible: false)
        case .topicDeleted(let topic):
            writer.int8(3)
            writer.string(topic, flexible: false)
        case .transaction(let transaction):
            writer.int8(4)
            transaction.write(to: &writer)
        case .transactionForgotten(let id):
            writer.int8(5)
            writer.string(id, flexible: false)
        case .synced(let end):
            writer.int8(6)
            writer.int64(end)
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        switch try reader.int8() {
        case 1:
            let group = try reader.string(flexible: false)
            self = .commit(group: group, try PartitionPlace(from: &reader), try GroupOffsets.Committed(from: &reader))
        case 2: self = .groupDeleted(try reader.string(flexible: false))
        case 3: self = .topicDeleted(try reader.string(flexible: false))
        case 4: self = .transaction(try TransactionState(from: &reader))
        case 5: self = .transactionForgotten(try reader.string(flexible: false))
        case 6: self = .synced(upTo: try reader.int64())
        default: throw .invalidLength(offset: 0, length: 0)
        }
    }
}
