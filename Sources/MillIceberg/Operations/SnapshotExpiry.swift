import MillIO
import MillObjectStore

/// Forgets old snapshots, and removes the files that only they had.
///
/// The catalog forgets first, files go afterwards: what a failure in between leaves is an orphan, never a snapshot without its files.
package struct SnapshotExpiry: Sendable {
    package struct Settings: Sendable {
        /// Snapshots of the main branch that stay whatever their age; `history.expire.min-snapshots-to-keep`.
        package var keepMin = 1
        /// Younger ones stay; `history.expire.max-snapshot-age-ms`.
        package var age: Duration = .seconds(5 * 24 * 3600)
        /// No more than so many stay for their age; nil for no bound. It takes nothing from `keepMin`.
        package var keepMax: Int?

        package init() {}

        /// What the table's properties say, where they do.
        package mutating func take(_ properties: [String: String]) {
            if let count = properties["history.expire.min-snapshots-to-keep"].flatMap({ Int($0) }), count > 0 { keepMin = count }
            if let millis = properties["history.expire.max-snapshot-age-ms"].flatMap({ Int64($0) }), millis >= 0 {
                age = .milliseconds(millis)
            }
        }
    }

    package struct Outcome: Hashable, Sendable {
        package var snapshots = 0
        package var filesRemoved = 0
        /// What only the forgotten snapshots had, when it was to stay a while.
        package var filesLeft: [String] = []

        package init() {}
    }

    package let settings: Settings

    package init(_ settings: Settings) { self.settings = settings }

    /// The snapshots that may go: not named by a branch or a tag, and neither young enough nor recent enough on a branch. What is on no
    /// branch, such as a snapshot that is staged to be published later, stays as long as it is young.
    package func expired(_ metadata: TableMetadata, nowMillis: Int64) -> [Int64] {
        let limit = nowMillis.minus(Int64(exactly: (settings.age / .milliseconds(1)).rounded()) ?? .max)
        var kept: Set<Int64> = []
        var onBranches: Set<Int64> = []
        for reference in metadata.references.values {
            kept.insert(reference.snapshotID)
            guard reference.isBranch else { continue }
            // A parent that leads back would be walked for ever. Each branch for itself: a tag on the way is no end of it.
            var walked: Set<Int64> = []
            var next = metadata.snapshot(id: reference.snapshotID)
            var place = 0
            let minimum = reference.minSnapshotsToKeep ?? settings.keepMin
            let oldest = reference.maxSnapshotAgeMillis.map { nowMillis.minus($0) } ?? limit
            var isKept = true
            while let snapshot = next, walked.insert(snapshot.id).inserted {
                isKept = isKept && (place < minimum || place < settings.keepMax ?? .max && snapshot.timestampMillis >= oldest)
                if isKept { kept.insert(snapshot.id) }
                place += 1
                next = snapshot.parentID.flatMap { metadata.snapshot(id: $0) }
            }
            onBranches.formUnion(walked)
        }
        return metadata.snapshots.filter { !kept.contains($0.id) && (onBranches.contains($0.id) || $0.timestampMillis < limit) }.map(\.id)
    }

    /// - Parameter removesFiles: false leaves the files to the caller, for readers that have begun by a snapshot that is forgotten now.
    package func run(_ table: IcebergTable, removesFiles: Bool = true) throws(IcebergError) -> (table: IcebergTable, outcome: Outcome) {
        var table = table
        try table.refresh()
        guard table.metadata.properties["gc.enabled"] != "false" else {
            throw .unsupported("expiring snapshots of a table with gc.enabled=false")
        }
        let before = table.metadata
        let gone = expired(before, nowMillis: table.clock.nowMicros / 1000)
        guard !gone.isEmpty else { return (table, Outcome()) }
        let doomed = Set(gone)
        // Found before they are forgotten: a manifest that cannot be read stops it here, with nothing lost.
        let files = try onlyReachable(
            from: before.snapshots.filter { doomed.contains($0.id) }, notFrom: before.snapshots.filter { !doomed.contains($0.id) }, table)
        let requirements =
            [TableRequirement.assertTableUUID(before.tableUUID)]
            + before.references.map { .assertRefSnapshotID(ref: $0.key, snapshotID: $0.value.snapshotID) }
        table.metadata = try table.catalog.commit(table.identifier, requirements: requirements, updates: [.removeSnapshots(gone)]).metadata
        var outcome = Outcome()
        outcome.snapshots = gone.count
        guard removesFiles else {
            outcome.filesLeft = files
            return (table, outcome)
        }
        do throws(IOFailure) { try table.store.remove(files) } catch { throw .io(error) }
        outcome.filesRemoved = files.count
        return (table, outcome)
    }

    private func onlyReachable(from doomed: [Snapshot], notFrom kept: [Snapshot], _ table: IcebergTable) throws(IcebergError) -> [String] {
        var keptManifests: [String: ManifestFile] = [:]
        var keptFiles: Set<String> = []
        for snapshot in kept {
            if let list = snapshot.manifestList { keptFiles.insert(list) }
            for manifest in try table.manifests(of: snapshot) { keptManifests[manifest.path] = manifest }
        }
        var lists: [String] = []
        var manifests: [String: ManifestFile] = [:]
        for snapshot in doomed {
            if let list = snapshot.manifestList, !keptFiles.contains(list) { lists.append(list) }
            for manifest in try table.manifests(of: snapshot) where keptManifests[manifest.path] == nil {
                manifests[manifest.path] = manifest
            }
        }
        var data: Set<String> = []
        for manifest in manifests.values {
            for entry in try table.entries(of: manifest) { data.insert(entry.file.path) }
        }
        if !data.isEmpty {
            for manifest in keptManifests.values where manifest.mayHaveLiveFiles && !data.isEmpty {
                for entry in try table.entries(of: manifest) where entry.isLive { data.remove(entry.file.path) }
            }
        }
        return data.sorted() + manifests.keys.sorted() + lists
    }
}
