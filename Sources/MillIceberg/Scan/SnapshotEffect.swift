/// What one snapshot did to the rows of its table, for those who follow a table from snapshot to snapshot.
package enum SnapshotEffect: Sendable {
    /// It added rows, those of these files, and did nothing else.
    case added(ScanPlan)
    /// The rows are what they were: files were written anew.
    case none
    /// It took rows away, or changed them.
    case removed
}

extension IcebergTable {
    /// Told by the snapshot's manifests, not by what it calls itself: an `overwrite` that takes nothing away has added rows.
    ///
    /// The files are in the order of the snapshot's list, which never changes.
    /// - Parameter schema: by which rows are read.
    package func effect(of snapshot: Snapshot, schema: IcebergSchema) throws(IcebergError) -> SnapshotEffect {
        if snapshot.summaryValue("operation") == "replace" { return .none }
        var plan = ScanPlan(of: snapshot, schema)
        for manifest in try manifests(of: snapshot) where manifest.addedSnapshotID == snapshot.id {
            let isData = manifest.content == .data
            for entry in try entries(of: manifest) where entry.snapshotID == snapshot.id {
                switch entry.status {
                case .existing: continue
                case .added where isData: plan.tasks.append(ScanPlan.Task(entry: entry, deletes: []))
                case .added, .deleted: return .removed
                }
            }
        }
        return .added(plan)
    }
}

extension TableMetadata {
    /// The snapshots of a branch back to one that has expired or the first, newest first.
    /// - Throws: `malformed` when they are not each older than the one before, by their sequence numbers.
    package func lineage(ofBranch branch: String = "main") throws(IcebergError) -> [Snapshot] {
        var found: [Snapshot] = []
        var next = snapshot(ofBranch: branch)
        while let snapshot = next {
            guard found.last.map({ $0.sequenceNumber > snapshot.sequenceNumber }) ?? true else {
                throw .malformed(
                    location: location,
                    what: "snapshot \(snapshot.id) with sequence number \(snapshot.sequenceNumber) is the parent of one with number \(found.last?.sequenceNumber ?? 0)")
            }
            found.append(snapshot)
            next = snapshot.parentID.flatMap { self.snapshot(id: $0) }
        }
        return found
    }
}
