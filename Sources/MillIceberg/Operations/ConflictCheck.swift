/// Looks through what others did to a branch since a change was found, for what makes the change wrong.
///
/// | the change | conflicts with |
/// |---|---|
/// | takes away rows of data files | commits that took away those files |
/// | takes away data files | commits that took them away (found when they are missing), or rows of them |
/// | adds files, or replaces all | nothing |
struct ConflictCheck {
    private let table: IcebergTable
    private let change: SnapshotChange
    private let parent: Snapshot?
    private let manifests: [ManifestFile]

    init(_ table: IcebergTable, _ change: SnapshotChange, _ parent: Snapshot?, _ manifests: [ManifestFile]) {
        self.table = table
        self.change = change
        self.parent = parent
        self.manifests = manifests
    }

    func run() throws(IcebergError) {
        let added = Set(change.added.map(\.path))
        let changed = Set(change.deletes.map(\.dataFile)).subtracting(added)
        guard !changed.isEmpty || !change.removed.isEmpty, parent?.id != change.basedOn else { return }
        // A merge moves older deletions out of sight, so these are looked for in each snapshot's own list.
        for snapshot in try since() {
            let own = snapshot.id == parent?.id ? manifests : try table.manifests(of: snapshot)
            for manifest in own where manifest.addedSnapshotID == snapshot.id {
                if manifest.content == .data, changed.isEmpty || manifest.deleted?.files == 0 { continue }
                if manifest.content == .deletes, change.removed.isEmpty || manifest.added?.files == 0 { continue }
                for entry in try table.entries(of: manifest) where entry.snapshotID == snapshot.id {
                    try check(entry)
                }
            }
        }
    }

    private func check(_ entry: ManifestEntry) throws(IcebergError) {
        let file = entry.file
        switch (file.content, entry.status) {
        case (.data, .deleted):
            if change.deletes.contains(where: { $0.dataFile == file.path }) {
                throw .commitConflict("data file \"\(file.path)\", of which rows are deleted, is not in the table any more")
            }
        case (.positionDeletes, .added):
            guard let of = file.referencedDataFile else {
                throw .commitConflict("rows of files that are replaced may have been deleted")
            }
            if change.removed.contains(of) { throw .commitConflict("rows of \"\(of)\", which is replaced, were deleted") }
        default: break
        }
    }

    /// The snapshots of the branch behind the one that the change was found by, newest first.
    private func since() throws(IcebergError) -> [Snapshot] {
        var result: [Snapshot] = []
        var next = parent
        while let snapshot = next, snapshot.id != change.basedOn {
            result.append(snapshot)
            guard let parentID = snapshot.parentID else {
                // The very first: the change was found in a table without snapshots, or in one that is not an ancestor.
                guard change.basedOn == nil else { break }
                return result
            }
            next = table.metadata.snapshot(id: parentID)
        }
        guard next?.id == change.basedOn, next != nil else {
            throw .commitConflict("the snapshot that the change was found by is not one of the branch any more")
        }
        return result
    }
}
