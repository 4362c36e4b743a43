package import MillBase

/// The warehouses of the catalog in this process, as whoever runs it hands them to queries.
package struct EmbeddedWarehouses: Sendable {
    package var names: @Sendable () throws(SQLError) -> [String]
    package var source: @Sendable (_ warehouse: String) -> IcebergCatalog.Source

    package init(
        names: @escaping @Sendable () throws(SQLError) -> [String], source: @escaping @Sendable (_ warehouse: String) -> IcebergCatalog.Source
    ) {
        self.names = names
        self.source = source
    }
}
