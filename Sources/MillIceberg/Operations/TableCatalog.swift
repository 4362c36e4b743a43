/// Who knows where a table's newest metadata is, and changes it in one step: the embedded catalog, or any over REST.
///
/// Calls block. Threading: any thread.
package protocol TableCatalog: Sendable {
    /// - Throws: `missing` when there is no such table.
    func load(_ table: TableIdentifier) throws(IcebergError) -> LoadedTable
    /// Applies updates to a table if all requirements hold, wholly or not at all.
    ///
    /// - Throws: `commitConflict` when a requirement does not hold: nothing has changed. `commitUnknown` when it cannot be told whether
    ///   something has.
    func commit(_ table: TableIdentifier, requirements: [TableRequirement], updates: [TableUpdate]) throws(IcebergError) -> LoadedTable
}

/// A table as its catalog has it.
package struct LoadedTable: Sendable {
    package var metadata: TableMetadata
    /// Where that metadata lies; nil for a table that is staged.
    package var metadataLocation: String?
    /// What the catalog says about access: credentials, endpoints.
    package var config: [String: String]

    package init(metadata: TableMetadata, metadataLocation: String?, config: [String: String] = [:]) {
        self.metadata = metadata
        self.metadataLocation = metadataLocation
        self.config = config
    }
}
