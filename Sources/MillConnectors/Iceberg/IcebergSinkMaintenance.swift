import MillBase
import MillIceberg

/// What a sink does for its table beside writing to it.
///
/// A table that the sink made is looked after unless the options say otherwise. Of a table that others made only what the options ask for
/// is done: its history may be somebody's.
struct IcebergSinkMaintenance: Sendable {
    /// The property of tables that a sink made.
    static let madeHere = "millrace.made-by-sink"

    private var compacts: Bool?
    private var expires: Bool?
    private var intervalSeconds: Int64?
    private var ageMillis: Int64?
    private var retainLast: Int64?
    private var snapshotsMax: Int64?
    private var graceSeconds: Int64?
    private var targetMegabytes: Int64?

    init(_ options: inout ConnectorOptions) throws(SQLError) {
        compacts = try options.flag("enable_compaction")
        expires = try options.flag("enable_snapshot_expiration")
        intervalSeconds = try options.number("compaction_interval_sec", 0...86_400 * 365)
        ageMillis = try options.number("snapshot_expiration_max_age_millis", 0...Int64.max / 1_000_000)
        retainLast = try options.number("snapshot_expiration_retain_last", 1...1_000_000)
        snapshotsMax = try options.number("snapshots_max", 1...1_000_000)
        graceSeconds = try options.number("expired_files_grace_sec", 0...86_400 * 365)
    }

    /// - Parameter properties: the table's: what they say of history and sizes counts unless an option says it.
    func settings(_ properties: [String: String], targetFileBytes: Int?) -> TableMaintenance.Settings {
        let isOurs = properties[Self.madeHere] == "true"
        var result = TableMaintenance.Settings()
        if compacts ?? isOurs {
            var compaction = TableMaintenance.Settings.frequentCompaction
            compaction.take(properties)
            if let targetFileBytes { compaction.targetFileBytes = Int64(targetFileBytes) }
            result.compaction = compaction
        }
        let namesHistory = ["history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"].contains { properties[$0] != nil }
        if expires ?? (isOurs || namesHistory), properties["gc.enabled"] != "false" {
            var expiry = isOurs ? TableMaintenance.Settings.frequentExpiry : SnapshotExpiry.Settings()
            expiry.take(properties)
            // Whoever says how long snapshots stay knows how many these are.
            if namesHistory { expiry.keepMax = nil }
            if let ageMillis { expiry.age = .milliseconds(ageMillis) }
            if let retainLast { expiry.keepMin = Int(retainLast) }
            if let snapshotsMax { expiry.keepMax = Int(snapshotsMax) }
            result.expiry = expiry
        }
        result.findsOrphans = isOurs && result.expiry != nil
        if let intervalSeconds { result.compactionInterval = .seconds(intervalSeconds) }
        if let graceSeconds { result.grace = .seconds(graceSeconds) }
        return result
    }
}
