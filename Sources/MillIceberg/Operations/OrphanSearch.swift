import MillIO
package import MillObjectStore

/// Objects below a table's directories that no snapshot and no metadata names: what failed writers left.
package enum OrphanSearch {
    /// - Parameters:
    ///   - prefix: only locations that begin with it are looked at; it has to lie below the table's.
    ///   - olderThanMicros: younger objects may belong to a commit under way, and are left alone.
    ///   - metadataFiles: locations of the table's metadata files as its catalog has them, the current one among them.
    /// - Returns: the orphans, sorted. Nothing is removed.
    package static func find(_ table: IcebergTable, prefix: String, olderThanMicros: Int64, metadataFiles: [String]) throws(IcebergError)
        -> [ObjectEntry]
    {
        let metadata = table.metadata
        let places = [metadata.dataLocation, metadata.metadataDirectory, metadata.location]
        guard places.contains(where: { prefix.hasPrefix($0) }) else {
            throw .badRequest("\"\(prefix)\" does not lie below the table's location \"\(metadata.location)\"")
        }
        var named = Set(metadataFiles).union(metadata.metadataLog.map(\.metadataFile)).union(metadata.statisticsFiles)
        var manifests: [String: ManifestFile] = [:]
        for snapshot in metadata.snapshots {
            if let list = snapshot.manifestList { named.insert(list) }
            for manifest in try table.manifests(of: snapshot) { manifests[manifest.path] = manifest }
        }
        for manifest in manifests.values {
            named.insert(manifest.path)
            for entry in try table.entries(of: manifest) { named.insert(entry.file.path) }
        }
        let objects: [ObjectEntry]
        do throws(IOFailure) { objects = try table.store.list(prefix) } catch { throw .io(error) }
        return objects.filter { !named.contains($0.location) && $0.modifiedMicros < olderThanMicros }
    }
}
