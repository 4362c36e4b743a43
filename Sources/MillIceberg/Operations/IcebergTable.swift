package import MillIO
package import MillObjectStore

/// A table that is read and changed: its newest metadata as far as known, its catalog and the store of its files.
///
/// Threading: a value; who shares it between threads shares copies.
package struct IcebergTable: Sendable {
    package let identifier: TableIdentifier
    package let catalog: any TableCatalog
    package let store: any ObjectStore
    package let random: any RandomSource
    package let clock: any Clock
    package var metadata: TableMetadata

    package init(
        _ identifier: TableIdentifier, metadata: TableMetadata, catalog: any TableCatalog, store: any ObjectStore, clock: any Clock,
        random: any RandomSource
    ) {
        self.identifier = identifier
        self.metadata = metadata
        self.catalog = catalog
        self.store = store
        self.clock = clock
        self.random = random
    }

    /// Asks the catalog for the newest metadata.
    package mutating func refresh() throws(IcebergError) {
        let loaded = try catalog.load(identifier).metadata
        guard loaded.tableUUID == metadata.tableUUID else { throw .commitConflict("the table was dropped and made anew") }
        metadata = loaded
    }

    /// The manifests of a snapshot; none without one.
    package func manifests(of snapshot: Snapshot?) throws(IcebergError) -> [ManifestFile] {
        guard let snapshot else { return [] }
        guard let list = snapshot.manifestList else {
            throw .unsupported("snapshot \(snapshot.id) of format version 1, which has no manifest list")
        }
        return try ManifestList.read(read(list), path: list)
    }

    package func entries(of manifest: ManifestFile) throws(IcebergError) -> [ManifestEntry] {
        guard manifest.keyMetadata == nil else { throw .unsupported("encrypted manifests") }
        guard let spec = metadata.partitionSpec(id: manifest.specID) else {
            throw .malformed(location: manifest.path, what: "its partition spec \(manifest.specID) is not one of the table's")
        }
        return try ManifestReader.entries(read(manifest.path), manifest, spec)
    }

    package func read(_ location: String) throws(IcebergError) -> [UInt8] {
        do throws(IOFailure) { return try store.get(location) } catch { throw .io(error) }
    }

    package func put(_ location: String, _ bytes: [UInt8]) throws(IcebergError) {
        do throws(IOFailure) { try store.put(location, bytes, .always) } catch { throw .io(error) }
    }

    /// A new place among the table's metadata.
    package func metadataPath(_ name: String) -> String { metadata.metadataDirectory + "/" + name }
}

extension TableMetadata {
    /// What the newest snapshot of a branch says that says anything under a key: how far a sink has come, whoever committed since.
    package func newestSummaryValue(_ key: String, branch: String = "main") -> String? {
        var next = snapshot(ofBranch: branch)
        // Parents are older; as many steps as there are snapshots reach the first, however they are linked.
        for _ in snapshots {
            guard let snapshot = next else { return nil }
            if let value = snapshot.summaryValue(key) { return value }
            next = snapshot.parentID.flatMap { self.snapshot(id: $0) }
        }
        return nil
    }

    /// Where data files go: `write.data.path`, or below the table.
    package var dataLocation: String { Self.trimmed(properties["write.data.path"] ?? Self.trimmed(location) + "/data") }
    /// Where manifests and metadata go.
    package var metadataDirectory: String { Self.trimmed(properties["write.metadata.path"] ?? Self.trimmed(location) + "/metadata") }

    private static func trimmed(_ location: String) -> String {
        var result = location
        while result.hasSuffix("/") && !result.hasSuffix("://") { result.removeLast() }
        return result
    }
}
