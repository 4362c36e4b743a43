import GRDB
package import MillIO
package import MillIceberg
import MillObjectStore

/// The tables of one warehouse of the embedded catalog, for the engine: no sockets and no tokens.
///
/// Threading: any thread; calls block.
package struct EmbeddedTables: TableCatalog {
    private let catalog: LakeCatalog
    private let warehouse: String

    /// - Parameter warehouse: by name; looked up with each call.
    package init(_ catalog: LakeCatalog, warehouse: String) {
        self.catalog = catalog
        self.warehouse = warehouse
    }

    package func load(_ table: TableIdentifier) throws(IcebergError) -> LoadedTable {
        try run("table \(table)") { warehouse in
            let (metadata, location) = try catalog.load(table, warehouse)
            return Self.loaded(metadata, location, warehouse)
        }
    }

    package func commit(_ table: TableIdentifier, requirements: [TableRequirement], updates: [TableUpdate]) throws(IcebergError)
        -> LoadedTable
    {
        try run("table \(table)") { warehouse in
            let (metadata, location) = try catalog.commit([TableChangeRequest(table, requirements, updates)], warehouse)[0]
            return Self.loaded(metadata, location, warehouse)
        }
    }

    /// Makes a table below the warehouse.
    ///
    /// - Returns: the table as it was made: identifiers of its fields are the catalog's.
    /// - Throws: `missing` without its namespace, `commitConflict` when there is one of that name.
    package func create(
        _ table: TableIdentifier, schema: IcebergSchema, spec: PartitionSpec = PartitionSpec(), properties: [String: String] = [:]
    ) throws(IcebergError) -> LoadedTable {
        try run("namespace \(table.namespace.joined(separator: "."))") { warehouse in
            var new = NewTable(table, schema)
            (new.spec, new.properties) = (spec, properties)
            let (metadata, location) = try catalog.create(new, in: warehouse, isStaged: false)
            return Self.loaded(metadata, location, warehouse)
        }
    }

    /// - Throws: `missing` without its parent, `commitConflict` when it is there already.
    package func create(namespace: [String], properties: [String: String] = [:]) throws(IcebergError) {
        try run("namespace \(namespace.dropLast().joined(separator: "."))") { try catalog.makeNamespace(namespace, properties, $0) }
    }

    /// All namespaces, at any depth.
    package func namespaces() throws(IcebergError) -> [[String]] {
        try run("namespaces") { warehouse in
            try catalog.database.read { database in
                try String.fetchAll(database, sql: "SELECT path FROM namespaces WHERE warehouse_id = ? ORDER BY path", arguments: [warehouse.id])
            }.map(CatalogName.levels)
        }
    }

    /// - Throws: `missing` without the namespace.
    package func tables(in namespace: [String]) throws(IcebergError) -> [TableIdentifier] {
        try run("namespace \(namespace.joined(separator: "."))") { warehouse in
            try catalog.database.read { database in
                let row = try NamespaceRow.get(namespace, warehouse, database)
                return try String.fetchAll(
                    database, sql: "SELECT name FROM entries WHERE namespace_id = ? AND kind = ? ORDER BY name",
                    arguments: [row.id, EntryRow.Kind.table.rawValue])
            }.map { TableIdentifier(namespace: namespace, name: $0) }
        }
    }

    /// A table with the store of its files.
    /// - Throws: `missing` when there is no such table.
    package func open(_ table: TableIdentifier, clock: any Clock, random: any RandomSource) throws(IcebergError) -> IcebergTable {
        let loaded = try load(table)
        let store = try run("table \(table)") { try catalog.store(of: $0) }
        return IcebergTable(table, metadata: loaded.metadata, catalog: self, store: store, clock: clock, random: random)
    }

    private static func loaded(_ table: TableMetadata, _ location: String?, _ warehouse: Warehouse) -> LoadedTable {
        LoadedTable(metadata: table, metadataLocation: location, config: warehouse.fileConfiguration(withKeys: true))
    }

    /// - Parameter wanted: what is missing when something is.
    private func run<T>(_ wanted: String, _ body: (Warehouse) throws -> T) throws(IcebergError) -> T {
        do {
            guard let found = try catalog.database.read({ try Warehouse.find(warehouse, $0) }) else {
                throw IcebergError.missing("catalog \"\(warehouse)\"")
            }
            return try body(found)
        } catch let error as IcebergError { throw error } catch let failure as IOFailure { throw .io(failure) } catch {
            let failure = CatalogFailure(any: error)
            switch failure.status {
            case 404: throw .missing("\(wanted) in catalog \"\(warehouse)\"")
            case 409: throw .commitConflict(failure.message)
            case 500, 507: throw .commitUnknown(failure.message)
            default: throw .badRequest(failure.message)
            }
        }
    }
}
