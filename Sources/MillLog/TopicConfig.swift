/// A topic's settings, under Kafka's names. What is not set keeps everything.
///
/// Times of retention count from when the broker took a record: what a producer says about time deletes nothing.
package struct TopicConfig: Sendable, Hashable {
    /// What was set, by name, in Kafka's spelling of values.
    package private(set) var values: [String: String] = [:]

    /// Old segments go by `retention.ms` and `retention.bytes`.
    package private(set) var deletesOld = true
    /// Of records with the same key only the last one stays.
    package private(set) var isCompacted = false
    /// -1 is no limit; for each partition.
    package private(set) var retentionBytes = -1
    /// -1 is no limit.
    package private(set) var retentionMillis: Int64 = -1
    private var segmentBytesMax: Int?
    private var batchBytesMax: Int?
    package private(set) var segmentMillis: Int64 = 7 * 24 * 3600 * 1000
    /// How long compaction keeps a key's deletion, so that readers see it.
    package private(set) var deleteRetentionMillis: Int64 = 24 * 3600 * 1000
    /// Readers get the time at which the broker took a record, not the producer's.
    package private(set) var stampsAppends = false
    /// The share of bytes that must be new before compaction begins.
    package private(set) var dirtyRatioMin = 0.5

    package init() {}

    package init(_ values: [String: String]) throws(LogError) {
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { try set(name, to: value) }
    }

    func batchBytes(_ options: LogOptions) -> Int { min(batchBytesMax ?? options.batchBytesMax, options.batchBytesMax) }
    func segmentBytes(_ options: LogOptions) -> Int { min(segmentBytesMax ?? options.segmentBytesMax, options.segmentBytesMax) }

    /// What a setting is when it is not set; nil when there is no such setting.
    package static func defaultValue(of name: String, _ options: LogOptions) -> String? {
        switch name {
        case "segment.bytes": String(options.segmentBytesMax)
        case "max.message.bytes": String(options.batchBytesMax)
        default: defaults[name]
        }
    }

    /// The settings that have an effect, or one possible value, sorted.
    package static let names = (Array(defaults.keys) + ["segment.bytes", "max.message.bytes"]).sorted()

    private static let defaults = [
        "cleanup.policy": "delete", "compression.type": "producer", "delete.retention.ms": "86400000",
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5", "min.insync.replicas": "1", "retention.bytes": "-1", "retention.ms": "-1",
        "segment.ms": "604800000",
    ]

    /// Settings of Kafka that change nothing here: there are no replicas, and every record is synced.
    private static let withoutEffect: Set<String> = [
        "file.delete.delay.ms", "flush.messages", "flush.ms", "follower.replication.throttled.replicas", "index.interval.bytes",
        "leader.replication.throttled.replicas", "local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms",
        "message.downconversion.enable", "message.format.version", "message.timestamp.after.max.ms", "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms", "min.compaction.lag.ms", "preallocate", "remote.storage.enable", "segment.index.bytes",
        "segment.jitter.ms", "unclean.leader.election.enable",
    ]

    package static func hasEffect(_ name: String) -> Bool { !withoutEffect.contains(name) }

    /// Sets one setting, or for nil gives it its default back.
    /// - Throws: `invalidConfig`.
    package mutating func set(_ name: String, to value: String?) throws(LogError) {
        guard let value else {
            var rest = values
            rest[name] = nil
            self = try TopicConfig(rest)
            return
        }
        func refuse(_ reason: String) -> LogError { .invalidConfig(name: name, reason: reason) }
        func integer(_ range: ClosedRange<Int64>) throws(LogError) -> Int64 {
            guard let number = Int64(value), range.contains(number) else {
                throw refuse("takes \(range.lowerBound) to \(range.upperBound), not \"\(value)\"")
            }
            return number
        }
        func only(_ expected: String) throws(LogError) {
            guard value.lowercased() == expected.lowercased() else {
                throw refuse("is \(expected) in this broker and cannot be \"\(value)\"")
            }
        }
        switch name {
        case "cleanup.policy":
            let policies = Set(value.lowercased().split(separator: ",").map { String($0.filter { $0 != " " }) })
            guard !policies.isEmpty, policies.isSubset(of: ["delete", "compact"]) else {
                throw refuse("takes delete, compact or both, not \"\(value)\"")
            }
            deletesOld = policies.contains("delete")
            isCompacted = policies.contains("compact")
        case "retention.bytes": retentionBytes = Int(try integer(-1...Int64.max))
        case "retention.ms": retentionMillis = try integer(-1...Int64.max)
        // The least is small enough for tests of what happens between segments.
        case "segment.bytes": segmentBytesMax = Int(try integer(1024...1 << 30))
        case "segment.ms": segmentMillis = try integer(1...Int64.max)
        case "delete.retention.ms": deleteRetentionMillis = try integer(0...Int64.max)
        case "min.cleanable.dirty.ratio":
            guard let ratio = Double(value), (0...1).contains(ratio) else { throw refuse("takes 0 to 1, not \"\(value)\"") }
            dirtyRatioMin = ratio
        case "compression.type": try only("producer")
        case "message.timestamp.type":
            guard ["createtime", "logappendtime"].contains(value.lowercased()) else { throw refuse("takes CreateTime or LogAppendTime, not \"\(value)\"") }
            stampsAppends = value.lowercased() == "logappendtime"
        case "min.insync.replicas": try only("1")
        case "max.message.bytes": batchBytesMax = Int(try integer(0...Int64(Int32.max)))
        default: guard Self.withoutEffect.contains(name) else { throw refuse("does not exist") }
        }
        values[name] = value
    }
}
