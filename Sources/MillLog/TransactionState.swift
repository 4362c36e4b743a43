import MillKafkaWire

/// One transactional producer, as its coordinator knows it.
///
///     empty --add partitions, add a group--> ongoing --end--> prepareCommit --markers durable--> completeCommit
///                                               |    \------> prepareAbort  --markers durable--> completeAbort
///                                               |                 ^                                   |
///                                               +--time is up-----+     next transaction: ongoing <---+
///
/// In a prepare phase the decision is durable and nothing can change it: a start goes on from there.
package struct TransactionState: Sendable, Equatable {
    package enum Phase: Int8, Sendable, CaseIterable {
        case empty
        case ongoing
        case prepareCommit
        case prepareAbort
        case completeCommit
        case completeAbort

        /// Kafka's name.
        package var name: String {
            switch self {
            case .empty: "Empty"
            case .ongoing: "Ongoing"
            case .prepareCommit: "PrepareCommit"
            case .prepareAbort: "PrepareAbort"
            case .completeCommit: "CompleteCommit"
            case .completeAbort: "CompleteAbort"
            }
        }

        /// The decision is made and its markers are not all written.
        var isPrepared: Bool { self == .prepareCommit || self == .prepareAbort }
    }

    package var id: String
    package var producerID: Int64
    package var producerEpoch: Int16
    /// The epoch before the last `initialize`: what a producer names that did not hear of it.
    var previousEpoch: Int16 = -1
    package var timeoutMillis: Int32
    package var phase = Phase.empty
    /// When the transaction began, in milliseconds; -1 when none is under way.
    package var startMillis: Int64 = -1
    var updateMillis: Int64
    package var partitions: Set<PartitionPlace> = []
    /// Groups whose positions the transaction may commit.
    var groups: Set<String> = []
    /// The positions to be, by group.
    var offsets: [String: [PartitionPlace: GroupOffsets.Committed]] = [:]

    init(id: String, producerID: Int64, producerEpoch: Int16, timeoutMillis: Int32, updateMillis: Int64) {
        self.id = id
        self.producerID = producerID
        self.producerEpoch = producerEpoch
        self.timeoutMillis = timeoutMillis
        self.updateMillis = updateMillis
    }

    mutating func forget(topic: String) {
        partitions = partitions.filter { $0.topic != topic }
        offsets = offsets.mapValues { $0.filter { $0.key.topic != topic } }
    }

    /// Starts a transaction unless one is under way.
    mutating func begin(nowMillis: Int64) {
        updateMillis = nowMillis
        guard phase != .ongoing else { return }
        phase = .ongoing
        startMillis = nowMillis
        partitions = []
        groups = []
        offsets = [:]
    }

    /// Refuses everything that the present instance may still send, so that its transaction can be ended in its stead.
    mutating func fence() {
        previousEpoch = -1
        // The last epoch is kept for this: `initialize` gives out a new id before it.
        producerEpoch = min(producerEpoch, Int16.max - 1) + 1
    }

    // MARK: Format (docs/internals/log.md)

    func write(to writer: inout WireWriter) {
        writer.string(id, flexible: false)
        writer.int64(producerID)
        writer.int16(producerEpoch)
        writer.int16(previousEpoch)
        writer.int32(timeoutMillis)
        writer.int8(phase.rawValue)
        writer.int64(startMillis)
        writer.int64(updateMillis)
        writer.array(partitions.sorted(), flexible: false) { $1.write(to: &$0) }
        writer.array(groups.sorted(), flexible: false) { $0.string($1, flexible: false) }
        writer.array(offsets.sorted { $0.key < $1.key }, flexible: false) { writer, group in
            writer.string(group.key, flexible: false)
            writer.array(group.value.sorted { $0.key < $1.key }, flexible: false) { writer, position in
                position.key.write(to: &writer)
                position.value.write(to: &writer)
            }
        }
    }

    init(from reader: inout WireReader) throws(WireError) {
        id = try reader.string(flexible: false)
        producerID = try reader.int64()
        producerEpoch = try reader.int16()
        previousEpoch = try reader.int16()
        timeoutMillis = try reader.int32()
        guard let phase = Phase(rawValue: try reader.int8()) else { throw .invalidLength(offset: 0, length: 0) }
        self.phase = phase
        startMillis = try reader.int64()
        updateMillis = try reader.int64()
        partitions = Set(try reader.array(flexible: false) { reader throws(WireError) in try PartitionPlace(from: &reader) })
        groups = Set(try reader.array(flexible: false) { reader throws(WireError) in try reader.string(flexible: false) })
        let pending = try reader.array(flexible: false) { reader throws(WireError) in
            let group = try reader.string(flexible: false)
            let positions = try reader.array(flexible: false) { reader throws(WireError) in
                (try PartitionPlace(from: &reader), try GroupOffsets.Committed(from: &reader))
            }
            return (group, Dictionary(positions) { _, new in new })
        }
        offsets = Dictionary(pending) { _, new in new }
    }
}
