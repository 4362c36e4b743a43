package import MillBase
import MillCatalogClient
import MillColumnar
package import MillConnectorKit
package import MillHTTPClient
package import MillIceberg
package import MillIO
import MillObjectStore

/// `connector = 'iceberg'`: the changes of a relation in a table of any catalog that speaks Iceberg's REST protocol, the one of this server
/// among them.
///
/// A commit is one snapshot with all epochs since the last, and sets the table's property `millrace.sink.NAME.epoch` in one step with it:
/// the property is what `SinkWriter.committedEpoch` reads, whatever becomes of old snapshots. It is also the fence: a commit is made only
/// while the property is what this writer left there (`IcebergSinkWriter`).
///
/// Files on this machine's disk are written only for a catalog that answers on this machine, and only below the table's own location.
package struct IcebergSink: SinkConnector {
    private let options: IcebergSinkOptions
    private let relation: SinkConnectors.Relation
    private let environment: Environment
    private let catalog: RESTCatalog

    /// - Parameter options: of CREATE SINK, without those that the engine took.
    /// - Throws: 22023, 0A000. Nothing is contacted yet.
    package init(
        _ options: [String: String], of relation: SinkConnectors.Relation, environment: Environment, transport: any HTTPTransport
    ) throws(SQLError) {
        self.options = try IcebergSinkOptions(options)
        self.relation = relation
        self.environment = environment
        catalog = RESTCatalog(self.options.catalog, transport: transport, environment: environment)
        var names: Set<String> = []
        for field in relation.fields where !names.insert(field.name).inserted {
            throw SQLError(
                .duplicateColumn, "\"\(relation.name)\" has two columns \"\(field.name)\"", hint: "Give one of them another name.")
        }
    }

    package func prepare() throws(SQLError) -> SinkTarget {
        var notices: [String] = []
        let loaded = try load(&notices)
        let table = try opened(loaded)
        let columns = try SinkColumns(relation, table)
        if let owner = table.metadata.properties[SinkProgress.ownerProperty], !options.takesOver {
            throw SQLError(
                .objectInUse, "the keys of table \"\(table.identifier)\" are kept by another sink",
                detail: "That sink is known as \(owner)."
                    + (relation.key == nil ? " What this one adds would come beside the rows of these keys." : ""),
                hint: "If that sink is still there, drop it; then create this one with take_over = 'true'.")
        }
        if relation.key == nil, SinkProgress.hasSinks(table.metadata) {
            notices.append("table \"\(table.identifier)\" has rows of another sink: those that this one sends as well are there twice")
        }
        do throws(IcebergError) {
            // What a file cannot be written of is found here: types, partitions.
            let writer = try DataFileWriter(table.metadata, columns.inputs, table.store, random: environment.random)
            if let reason = writer.unsortedReason {
                notices.append("rows are not sorted by the sort order of table \"\(table.identifier)\": \(reason)")
            }
            if let location = loaded.metadataLocation { try Self.look(at: location, table.store) }
        } catch { throw Self.failure(error, table.identifier) }
        if options.hasS3Options, Self.isLocal(table.metadata.location) {
            notices.append("options s3.* are ignored: table \"\(table.identifier)\" is at \"\(table.metadata.location)\"")
        }
        return SinkTarget(incarnation: table.metadata.tableUUID, notices: notices)
    }

    package func open(sink: SinkName, incarnation: String?) throws(SQLError) -> any SinkWriter {
        let loaded: LoadedTable
        do throws(IcebergError) { loaded = try catalog.load(options.table) } catch { throw Self.failure(error, options.table) }
        guard incarnation == nil || loaded.metadata.tableUUID == incarnation else {
            throw SQLError(
                .objectNotInPrerequisiteState, "table \"\(options.table)\" was dropped and made anew",
                hint: "Drop the sink and create it again: the new table then gets all rows. What the old one got is not sent to it.")
        }
        let table = try opened(loaded)
        let columns = try SinkColumns(relation, table)
        let progress = try SinkProgress(sink, table.metadata, keepsKeys: relation.key != nil, takesOver: options.takesOver)
        var settings = TableWriter.Settings(CommitSettings(pause: { [clock = environment.clock] in clock.pause(for: $0) }))
        settings.files.take(table.metadata.properties)
        if let bytes = options.targetFileBytes { settings.files.targetFileBytes = bytes }
        do throws(IcebergError) {
            let writer = try TableWriter(table, columns.inputs, key: relation.key, settings)
            let maintenance = TableMaintenance(
                options.maintenance.settings(table.metadata.properties, targetFileBytes: options.targetFileBytes), settings.commit,
                nowNanos: environment.clock.monotonicNanos)
            return IcebergSinkWriter(writer, columns, progress, maintenance)
        } catch { throw Self.failure(error, options.table) }
    }

    // MARK: The table

    private func load(_ notices: inout [String]) throws(SQLError) -> LoadedTable {
        do throws(IcebergError) {
            do throws(IcebergError) {
                let found = try catalog.load(options.table)
                if options.createsTable { notices += try ignored(found.metadata) }
                return found
            } catch {
                guard case .missing(let what) = error else { throw error }
                guard options.createsTable else { throw try missing(what) }
                return try makeTable()
            }
        } catch { throw Self.refusal(error, options.table) }
    }

    /// What the options say of a new table and a table that is there has otherwise.
    private func ignored(_ table: TableMetadata) throws(IcebergError) -> [String] {
        var notices: [String] = []
        if !options.partitionBy.isEmpty,
            try PartitionSpec(parsing: options.partitionBy, table.currentSchema).fields.map(\.name)
                != table.defaultPartitionSpec.fields.map(\.name)
        {
            notices.append("option partition_by is ignored: table \"\(options.table)\" exists and is partitioned otherwise")
        }
        if !options.orderKey.isEmpty,
            try SortOrder(parsing: options.orderKey, table.currentSchema).fields != table.defaultSortOrder.fields
        {
            notices.append("option order_key is ignored: table \"\(options.table)\" exists and is sorted otherwise")
        }
        return notices
    }

    /// Whether it is the table that is not there, or what it would be in.
    private func missing(_ what: String) throws(IcebergError) -> IcebergError {
        guard what.hasPrefix("table "), try !catalog.exists(namespace: options.table.namespace) else { return .missing(what) }
        return .missing("namespace \"\(options.table.namespace.joined(separator: "."))\" for table \"\(options.table.name)\"")
    }

    private func makeTable() throws(IcebergError) -> LoadedTable {
        let keyNames = (relation.key ?? []).map { relation.fields[$0] }
        var schema = IcebergSchema(columns: relation.fields, required: Set(keyNames.map(\.name)))
        // Floats identify nothing: the specification does not take them.
        if !keyNames.contains(where: { $0.type.isFloat }) {
            schema.identifierFieldIDs = keyNames.compactMap { schema.field(named: $0.name)?.id }
        }
        let spec = try PartitionSpec(parsing: options.partitionBy, schema)
        let order = try SortOrder(parsing: options.orderKey, schema)
        let properties = [
            IcebergSinkMaintenance.madeHere: "true", "write.parquet.compression-codec": "zstd",
            "write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "100",
        ]
        try makeNamespace()
        do throws(IcebergError) {
            return try catalog.create(options.table, schema: schema, spec: spec, order: order, properties: properties)
        } catch {
            // Another was faster.
            guard error.isConflict else { throw error }
            return try catalog.load(options.table)
        }
    }

    private func makeNamespace() throws(IcebergError) {
        for depth in 1...options.table.namespace.count {
            let namespace = Array(options.table.namespace.prefix(depth))
            guard try !catalog.exists(namespace: namespace) else { continue }
            do throws(IcebergError) { try catalog.create(namespace: namespace) } catch {
                guard error.isConflict else { throw error }
            }
        }
    }

    private func opened(_ loaded: LoadedTable) throws(SQLError) -> IcebergTable {
        let location = loaded.metadata.location
        var local: LocalObjectStore?
        if Self.isLocal(location) {
            guard options.catalog.isOnThisMachine else {
                throw SQLError(
                    .featureNotSupported, "table \"\(options.table)\" is at \"\(location)\", on the disk of the catalog's machine",
                    hint: "Use a table in an object store, or the catalog at localhost when it runs on this machine.")
            }
            local = LocalObjectStore(environment: environment, root: Self.path(location))
        }
        guard loaded.metadata.formatVersion >= 2 else {
            throw SQLError(
                .featureNotSupported, "table \"\(options.table)\" has format version \(loaded.metadata.formatVersion), which is only read",
                hint: "Upgrade the table to format version 2.")
        }
        do throws(IcebergError) {
            return IcebergTable(
                options.table, metadata: loaded.metadata, catalog: catalog,
                store: try catalog.store(for: options.table, loaded, local: local),
                clock: environment.clock, random: environment.random)
        } catch { throw Self.failure(error, options.table) }
    }

    private static func look(at location: String, _ store: any ObjectStore) throws(IcebergError) {
        do throws(IOFailure) {
            guard try store.look(at: location) != nil else { throw IOFailure("look at", path: location, errorNumber: 2) }
        } catch { throw .io(error) }
    }

    private static func isLocal(_ location: String) -> Bool { location.hasPrefix("file:") || location.hasPrefix("/") }

    /// Of a local location; stores check the rest.
    private static func path(_ location: String) -> String {
        let scheme = ["file://localhost/", "file:///", "file:/"].first { location.hasPrefix($0) }
        return scheme.map { "/" + location.dropFirst($0.count) } ?? location
    }
}
