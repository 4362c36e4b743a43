import MillBase
import MillCatalogClient
import MillIceberg

/// What CREATE SOURCE says of an Iceberg table: names of RisingWave, Spark and Flink where these have one.
struct IcebergSourceOptions: Sendable {
    enum Catalog: Sendable {
        case rest(RESTCatalogOptions)
        /// One that is attached under this name, or this server's own.
        case attached(String)
    }

    var catalog: Catalog
    var table: TableIdentifier
    /// Whether it begins with what the table has, or with what is added from now on.
    var startsWhole: Bool
    /// Between two questions to the catalog.
    var interval: Duration
    var skipsDeletes: Bool
    var skipsOverwrites: Bool

    /// - Throws: 22023 for an option that is missing, unknown or wrong; 0A000 for what other systems have and this one has not.
    init(_ given: ConnectorOptions) throws(SQLError) {
        var options = given
        table = try options.icebergTable()
        let name = try options.take("catalog.name")
        if options.has("catalog.uri") {
            catalog = .rest(try options.icebergCatalog())
        } else {
            guard let name, !name.isEmpty else {
                throw SQLError(
                    .invalidParameterValue, "option \"catalog.uri\" of connector \"iceberg\" is missing",
                    hint: "Set it to where the catalog speaks Iceberg's REST protocol, or catalog.name to one that SHOW CATALOGS lists.")
            }
            catalog = .attached(name)
        }
        let mode = try options.take("scan.startup.mode") ?? "earliest"
        switch mode.lowercased() {
        case "earliest", "initial": startsWhole = true
        case "latest": startsWhole = false
        default: throw options.invalid("scan.startup.mode", mode, expected: "earliest or latest")
        }
        let text = try options.take("monitor-interval") ?? "5s"
        guard let time = SettingDuration(text), (100...86_400_000).contains(time.milliseconds) else {
            throw options.invalid("monitor-interval", text, expected: "a time from 100ms to 1d, such as '10s'")
        }
        interval = .milliseconds(time.milliseconds)
        skipsDeletes = try options.flag("streaming-skip-delete-snapshots") ?? false
        skipsOverwrites = try options.flag("streaming-skip-overwrite-snapshots") ?? false
        try options.finish()
    }
}
