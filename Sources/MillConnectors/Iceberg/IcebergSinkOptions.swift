import MillBase
import MillCatalogClient
import MillIceberg

/// What CREATE SINK says of an Iceberg table: RisingWave's names, and a few of our own.
struct IcebergSinkOptions: Sendable {
    var catalog: RESTCatalogOptions
    var table: TableIdentifier
    var createsTable: Bool
    /// Of a table that the sink makes; empty for none.
    var partitionBy: String
    /// As `partitionBy`: by what rows of a file are sorted.
    var orderKey: String
    /// Data files end at this size; nil for what the table says.
    var targetFileBytes: Int?
    /// Whether the keys of the table may be another sink's so far.
    var takesOver: Bool
    var maintenance: IcebergSinkMaintenance
    /// Whether `s3.*` options are among the catalog's.
    var hasS3Options: Bool

    /// - Throws: 22023 for an option that is missing, unknown or wrong; 0A000 for what other systems have and this one has not.
    init(_ given: [String: String]) throws(SQLError) {
        var options = ConnectorOptions(connector: "iceberg", given)
        try Self.checkKind(&options)
        table = try options.icebergTable()
        catalog = try options.icebergCatalog()
        hasS3Options = catalog.properties.keys.contains { $0.hasPrefix("s3.") }
        createsTable = try options.flag("create_table_if_not_exists") ?? false
        partitionBy = try options.take("partition_by") ?? ""
        orderKey = try options.take("order_key") ?? ""
        takesOver = try options.flag("take_over") ?? false
        let megabytes = try options.number("target_file_size_mb", or: "compaction.target_file_size_mb", 1...65_536)
        targetFileBytes = megabytes.map { Int($0) << 20 }
        maintenance = try IcebergSinkMaintenance(&options)
        try options.finish()
    }

    private static func checkKind(_ options: inout ConnectorOptions) throws(SQLError) {
        // What the relation's changes are is the engine's business, and the catalog's name is one for people.
        for option in ["type", "force_append_only", "primary_key", "catalog.name"] { _ = try options.take(option) }
        let mode = try options.take("write_mode") ?? "merge-on-read"
        guard mode.lowercased() == "merge-on-read" else {
            guard mode.lowercased() == "copy-on-write" else {
                throw options.invalid("write_mode", mode, expected: "merge-on-read")
            }
            throw SQLError(
                .featureNotSupported, "write_mode \"\(mode)\" is not supported",
                hint: "Leave it out: rows are deleted by delete files, and compaction writes files anew without them.")
        }
    }
}

extension ConnectorOptions {
    /// - Throws: 22023 for a value that is neither true nor false.
    mutating func flag(_ name: String) throws(SQLError) -> Bool? {
        guard let text = try take(name) else { return nil }
        switch text.lowercased() {
        case "true", "t", "on", "1": return true
        case "false", "f", "off", "0": return false
        default: throw invalid(name, text, expected: "true or false")
        }
    }

    /// - Throws: 22023 for a value that is no number of the range.
    mutating func number(_ name: String, or other: String? = nil, _ range: ClosedRange<Int64>) throws(SQLError) -> Int64? {
        let text = if let other { try take(name, other) } else { try take(name) }
        guard let text else { return nil }
        guard let number = Int64(text), range.contains(number) else {
            throw invalid(name, text, expected: "a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
