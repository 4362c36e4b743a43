import MillIO
package import MillObjectStore

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Objects below a table's directories that no snapshot and no metadata names: what failed writers left.
///
/// What is found is going to be removed, so every doubt speaks for a file:
/// - Files are known by the last part of their names, which has a random number in it. The directories and the scheme before it are spelt
///   as each writer likes: `file:/x` and `file:///x`, `s3a:` and `s3:` are one place.
/// - Another table may have lain here before it was renamed or dropped, or lie further below. What its metadata files, found among the
///   objects, still name is no orphan.
/// - Objects are listed first and the table is loaded then: what was committed in between is known.
/// - An object of which the store does not say how old it is stays.
package enum OrphanSearch {
    /// Metadata files that are read to find other tables by them; of more nothing is an orphan.
    private static let metadataFilesMax = 1000

    /// - Parameters:
    ///   - prefix: only locations that begin with it are looked at; it has to lie below the table's.
    ///   - olderThanMicros: younger objects may belong to a commit under way, and are left alone.
    ///   - metadataFiles: locations of the table's metadata files as its catalog has them, the current one among them.
    /// - Returns: the orphans, sorted. Nothing is removed.
    package static func find(_ table: IcebergTable, prefix: String, olderThanMicros: Int64, metadataFiles: [String]) throws(IcebergError)
        -> [ObjectEntry]
    {
        let places = [table.metadata.dataLocation, table.metadata.metadataDirectory, table.metadata.location]
        guard places.contains(where: { prefix.hasPrefix($0) }) else {
            throw .badRequest("\"\(prefix)\" does not lie below the table's location \"\(table.metadata.location)\"")
        }
        let objects = try list(prefix, table)
        let metadataDirectory = table.metadata.metadataDirectory + "/"
        let others = metadataDirectory.hasPrefix(prefix) ? [] : try list(metadataDirectory, table)
        var table = table
        try table.refresh()
        var named = Set(metadataFiles.map(name))
        try add(table, to: &named) { _ in false }
        for other in try otherTables(table, (objects + others).map(\.location).filter { $0.hasSuffix(".metadata.json") }) {
            // Of a table that was dropped files may be gone.
            try add(other, to: &named) { $0.isOfMissingObject }
        }
        return objects.filter { $0.modifiedMicros > 0 && $0.modifiedMicros < olderThanMicros && !named.contains(name($0.location)) }
    }

    private static func list(_ prefix: String, _ table: IcebergTable) throws(IcebergError) -> [ObjectEntry] {
        do throws(IOFailure) { return try table.store.list(prefix) } catch { throw .io(error) }
    }

    private static func name(_ location: String) -> String {
        let end = location.utf8.lastIndex(of: UInt8(ascii: "/")).map { location.utf8.index(after: $0) } ?? location.startIndex
        return String(location[end...])
    }

    /// Adds the names of all that a table's metadata leads to.
    private static func add(
        _ table: IcebergTable, to named: inout Set<String>, passingOver isPassedOver: (IcebergError) -> Bool
    ) throws(IcebergError) {
        named.formUnion((table.metadata.metadataLog.map(\.metadataFile) + table.metadata.statisticsFiles).map(name))
        var manifests: [String: ManifestFile] = [:]
        for snapshot in table.metadata.snapshots {
            if let list = snapshot.manifestList { named.insert(name(list)) }
            do throws(IcebergError) {
                for manifest in try table.manifests(of: snapshot) { manifests[manifest.path] = manifest }
            } catch { guard isPassedOver(error) else { throw error } }
        }
        for manifest in manifests.values {
            named.insert(name(manifest.path))
            do throws(IcebergError) {
                for entry in try table.entries(of: manifest) { named.insert(name(entry.file.path)) }
            } catch { guard isPassedOver(error) else { throw error } }
        }
    }

    /// The newest states of other tables among metadata files.
    private static func otherTables(_ table: IcebergTable, _ locations: [String]) throws(IcebergError) -> [IcebergTable] {
        let own = Set(table.metadata.metadataLog.map { name($0.metadataFile) })
        let unknown = Set(locations).filter { !own.contains(name($0)) }
        guard unknown.count <= metadataFilesMax else {
            throw .unsupported("looking for orphans among more than \(metadataFilesMax) metadata files that are not in the table's log")
        }
        var newest: [String: TableMetadata] = [:]
        for location in unknown.sorted() {
            let bytes: [UInt8]
            do throws(IcebergError) { bytes = try table.read(location) } catch {
                guard error.isOfMissingObject else { throw error }
                continue
            }
            let found = try TableMetadata(bytes, location: location)
            let id = found.tableUUID.lowercased()
            let isNewest = found.lastUpdatedMillis >= newest[id]?.lastUpdatedMillis ?? .min
            if id != table.metadata.tableUUID.lowercased(), isNewest { newest[id] = found }
        }
        return newest.values.map { metadata in
            var other = table
            other.metadata = metadata
            return other
        }
    }
}

extension IcebergError {
    fileprivate var isOfMissingObject: Bool {
        if case .io(let failure) = self { failure.errorNumber == ENOENT } else { false }
    }
}
