import GRDB
package import MillIceberg

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
        try run(table) { warehouse in
            let (metadata, location) = try catalog.load(table, warehouse)
            return LoadedTable(metadata: metadata, metadataLocation: location, config: warehouse.fileConfiguration(withKeys: true))
        }
    }

    package func commit(_ table: TableIdentifier, requirements: [TableRequirement], updates: [TableUpdate]) throws(IcebergError)
        -> LoadedTable
    {
        try run(table) { warehouse in
            let (metadata, location) = try catalog.commit([TableChangeRequest(table, requirements, updates)], warehouse)[0]
            return LoadedTable(metadata: metadata, metadataLocation: location, config: warehouse.fileConfiguration(withKeys: true))
        }
    }

    private func run(_ table: TableIdentifier, _ body: (Warehouse) throws -> LoadedTable) throws(IcebergError) -> LoadedTable {
        do {
            guard let found = try catalog.database.read({ try Warehouse.find(warehouse, $0) }) else {
                throw IcebergError.missing("catalog \"\(warehouse)\"")
            }
            return try body(found)
        } catch let error as IcebergError { throw error } catch {
            let failure = CatalogFailure(any: error)
            switch failure.status {
            case 404: throw .missing("table \"\(table)\" in catalog \"\(warehouse)\"")
            case 409: throw .commitConflict(failure.message)
            case 500, 503: throw .commitUnknown(failure.message)
            default: throw .badRequest(failure.message)
            }
        }
    }
}
