import MillBase
package import MillKafkaWire
import MillIO
import Synchronization

/// A named list of partitions. Lives until it is deleted; one made later under the same name has another id.
package final class Topic: Sendable {
    package let name: String
    package let id: WireUUID
    /// The engine's own: clients may read it, not delete it.
    package let isInternal: Bool
    let createdMicros: Int64
    private let list: Mutex<[PartitionLog]>
    private let settings: Mutex<TopicConfig>

    init(_ metadata: TopicMetadata, partitions: [PartitionLog]) {
        name = metadata.name
        id = metadata.id
        isInternal = metadata.isInternal
        createdMicros = metadata.createdMicros
        settings = Mutex(metadata.config)
        list = Mutex(partitions)
    }

    package var config: TopicConfig { settings.withLock { $0 } }

    func adopt(_ config: TopicConfig) {
        settings.withLock { $0 = config }
        for partition in partitions { partition.adopt(config) }
    }

    /// What the topic's file says, with other settings or more partitions.
    func metadata(partitionCount: Int? = nil, config: TopicConfig? = nil) -> TopicMetadata {
        TopicMetadata(
            name: name, id: id, partitionCount: partitionCount ?? partitions.count, isInternal: isInternal, createdMicros: createdMicros,
            config: config ?? self.config)
    }

    /// In order; grows, never shrinks.
    package var partitions: [PartitionLog] { list.withLock { $0 } }

    /// Nil when there is no such partition.
    package func partition(_ index: Int32) -> PartitionLog? {
        list.withLock { index >= 0 && Int(index) < $0.count ? $0[Int(index)] : nil }
    }

    func add(_ partitions: [PartitionLog]) { list.withLock { $0 += partitions } }

    /// Kafka's rule: 1 to 249 of [A-Za-z0-9._-], and not a directory's own name.
    package static func isLegalName(_ name: String) -> Bool {
        guard (1...249).contains(name.utf8.count), name != ".", name != ".." else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): true
            default: false
            }
        }
    }
}

/// What `topic.meta` says (docs/internals/log.md).
struct TopicMetadata: Equatable {
    static let fileName = "topic.meta"
    private static let magic: Int64 = 0x4D49_4C4C_544F_5043  // MILLTOPC
    private static let version: Int32 = 2

    var name: String
    var id: WireUUID
    var partitionCount: Int
    var isInternal: Bool
    var createdMicros: Int64
    var config = TopicConfig()

    func encoded() -> WireBytes {
        var writer = WireWriter()
        writer.int64(Self.magic)
        writer.int32(Self.version)
        writer.uuid(id)
        writer.int32(Int32(partitionCount))
        writer.bool(isInternal)
        writer.int64(createdMicros)
        writer.string(name, flexible: false)
        writer.array(config.values.sorted { $0.key < $1.key }, flexible: false) { writer, setting in
            writer.string(setting.key, flexible: false)
            writer.string(setting.value, flexible: false)
        }
        return writer.finishWithChecksum()
    }

    init(name: String, id: WireUUID, partitionCount: Int, isInternal: Bool, createdMicros: Int64, config: TopicConfig) {
        self.name = name
        self.id = id
        self.partitionCount = partitionCount
        self.isInternal = isInternal
        self.createdMicros = createdMicros
        self.config = config
    }

    /// - Throws: `corrupted`, with `path`.
    init(_ bytes: WireBytes, path: String) throws(LogError) {
        guard let content = bytes.verifyingTrailingChecksum() else { throw .corrupted(path: path, reason: "its checksum does not fit") }
        var reader = WireReader(content)
        var settings: [(String, String)] = []
        do throws(WireError) {
            guard try reader.int64() == Self.magic else { throw WireError.invalidLength(offset: 0, length: 0) }
            let version = try reader.int32()
            // Version 1 had no settings.
            guard version == Self.version || version == 1 else { throw WireError.invalidLength(offset: 0, length: 0) }
            id = try reader.uuid()
            partitionCount = Int(try reader.int32())
            isInternal = try reader.bool()
            createdMicros = try reader.int64()
            name = try reader.string(flexible: false)
            if version > 1 {
                settings = try reader.array(flexible: false) { reader throws(WireError) in
                    (try reader.string(flexible: false), try reader.string(flexible: false))
                }
            }
            try reader.finish()
            guard partitionCount > 0 else { throw WireError.invalidLength(offset: 0, length: Int64(partitionCount)) }
        } catch {
            throw .corrupted(path: path, reason: "it is not a topic's description of version \(Self.version)")
        }
        do throws(LogError) { config = try TopicConfig(Dictionary(settings) { _, last in last }) } catch {
            throw .corrupted(path: path, reason: error.sqlError.message)
        }
    }
}
