import MillKafkaWire

/// What consumer groups committed, durable before it is acknowledged.
///
/// Threading: any thread.
package final class GroupOffsets: Sendable {
    package struct Committed: Sendable, Hashable {
        package var offset: Int64
        package var leaderEpoch: Int32
        package var metadata: String
        package var committedMillis: Int64

        package init(offset: Int64, leaderEpoch: Int32, metadata: String, committedMillis: Int64) {
            self.offset = offset
            self.leaderEpoch = leaderEpoch
            self.metadata = metadata
            self.committedMillis = committedMillis
        }

        init(from reader: inout WireReader) throws(WireError) {
            offset = try reader.int64()
            leaderEpoch = try reader.int32()
            metadata = try reader.string(flexible: false)
            committedMillis = try reader.int64()
        }

        func write(to writer: inout WireWriter) {
            writer.int64(offset)
            writer.int32(leaderEpoch)
            writer.string(metadata, flexible: false)
            writer.int64(committedMillis)
        }
    }

    package typealias Place = PartitionPlace

    private let coordinator: CoordinatorLog

    init(_ coordinator: CoordinatorLog) { self.coordinator = coordinator }

    /// Stores a group's positions; `completion` runs when they are durable, on any thread, and must not block.
    package func commit(group: String, _ offsets: [(Place, Committed)], completion: @escaping @Sendable (LogError?) -> Void) {
        coordinator.update { _ in (offsets.map { .commit(group: group, $0.0, $0.1) }, completion) }
    }

    package func committed(group: String, _ place: Place) -> Committed? { coordinator.read { $0.groups[group]?[place] } }
    package func committed(group: String) -> [Place: Committed]? { coordinator.read { $0.groups[group] } }
    /// Groups that have committed something, sorted.
    package var groups: [String] { coordinator.read { $0.groups.keys.sorted() } }

    /// Whether a transaction that has not ended may still move the group's position there.
    package func hasPendingCommit(group: String, _ place: Place) -> Bool { coordinator.read { $0.hasPendingCommit(group: group, place) } }

    package func delete(group: String, completion: @escaping @Sendable (LogError?) -> Void) {
        coordinator.update { _ in ([.groupDeleted(group)], completion) }
    }

    /// The same; returns when it is durable, so not for an event loop.
    package func deleteAndWait(group: String) -> LogError? {
        let result = OneShot<LogError?>()
        delete(group: group) { result.set($0) }
        return result.wait()
    }

    /// Forgets all groups' positions in a topic that is gone, so that its successor is read from its beginning.
    func delete(topic: String, completion: @escaping @Sendable (LogError?) -> Void) {
        coordinator.update { _ in ([.topicDeleted(topic)], completion) }
    }
}
