import MillKafkaWire
import Synchronization

/// All topics by name; what `Log` and `Transactions` look partitions up in.
final class TopicTable: Sendable {
    private let topics: Mutex<[String: Topic]>

    init(_ topics: [String: Topic]) { self.topics = Mutex(topics) }

    func topic(named name: String) -> Topic? { topics.withLock { $0[name] } }
    func topic(id: WireUUID) -> Topic? { topics.withLock { $0.values.first { $0.id == id } } }
    /// Sorted by name.
    var all: [Topic] { topics.withLock { $0.values.sorted { $0.name < $1.name } } }

    func insert(_ topic: Topic) { topics.withLock { $0[topic.name] = topic } }
    func remove(named name: String) { topics.withLock { $0[name] = nil } }
}
