/// The files of one snapshot that a scan has to read, each with the deletes that hold for it.
package struct ScanPlan: Sendable {
    package struct Task: Sendable {
        package var entry: ManifestEntry
        /// Position deletes and deletion vectors; empty for most files.
        package var deletes: [ManifestEntry]

        package var file: DataFile { entry.file }
    }

    /// Nil when the table is empty: it has no snapshot.
    package var snapshot: Snapshot?
    /// By which rows are read: the snapshot's own when it is asked for by number, time or tag, the newest for a branch.
    package var schema: IcebergSchema
    package var tasks: [Task]
    /// What bounds passed over.
    package var manifestsPassedOver = 0
    package var filesPassedOver = 0

    /// Which state of a table is meant.
    package enum Version: Hashable, Sendable {
        case current
        case snapshot(Int64)
        /// The newest one that is not younger, in milliseconds since 1970.
        case asOf(millis: Int64)
        /// A branch or a tag.
        case reference(String)
    }
}

extension ScanPlan {
    /// Without files yet.
    init(of snapshot: Snapshot?, _ schema: IcebergSchema) {
        self.snapshot = snapshot
        self.schema = schema
        tasks = []
    }

    /// - Parameter isNewAllowed: a reference that is not there yet is an empty table.
    /// - Throws: `missing` for a version that the table does not have (any more).
    package init(
        _ table: IcebergTable, _ version: Version = .current, where conditions: [ScanCondition] = [], isNewAllowed: Bool = false
    ) throws(IcebergError) {
        let metadata = table.metadata
        if isNewAllowed, case .reference(let name) = version, metadata.references[name] == nil {
            self.init(of: nil, metadata.currentSchema)
            return
        }
        let (snapshot, schema) = try Self.state(metadata, version)
        self.init(of: snapshot, schema)
        let pruning = try ScanPruning(conditions, schema, metadata)
        var index = DeleteIndex()
        var entries: [ManifestEntry] = []
        for manifest in try table.manifests(of: snapshot) where manifest.mayHaveLiveFiles {
            guard pruning.mayMatch(manifest) else {
                manifestsPassedOver += 1
                continue
            }
            let isPartitioned = metadata.partitionSpec(id: manifest.specID)?.fields.isEmpty == false
            for entry in try table.entries(of: manifest) where entry.isLive {
                if manifest.content == .deletes {
                    index.add(entry, isPartitioned: isPartitioned)
                } else if pruning.mayMatch(entry.file) {
                    entries.append(entry)
                } else {
                    filesPassedOver += 1
                }
            }
        }
        tasks = entries.map { Task(entry: $0, deletes: index.isEmpty ? [] : index.deletes(for: $0)) }
    }

    /// Which snapshot a version is, and by which schema its rows are read.
    /// - Throws: `missing` for a version that the table does not have (any more).
    package static func state(_ metadata: TableMetadata, _ version: Version) throws(IcebergError) -> (snapshot: Snapshot?, schema: IcebergSchema) {
        let (snapshot, isHistory) = try Self.snapshot(metadata, version)
        if isHistory, let id = snapshot?.schemaID, let own = metadata.schema(id: id) { return (snapshot, own) }
        return (snapshot, metadata.currentSchema)
    }

    private static func snapshot(_ metadata: TableMetadata, _ version: Version) throws(IcebergError) -> (Snapshot?, isHistory: Bool) {
        func existing(_ id: Int64) throws(IcebergError) -> Snapshot {
            guard let found = metadata.snapshot(id: id) else { throw .missing("snapshot \(id) of the table, which may have expired") }
            return found
        }
        switch version {
        case .current: return (metadata.snapshot(ofBranch: "main"), false)
        case .snapshot(let id): return (try existing(id), true)
        case .asOf(let millis):
            guard let entry = metadata.snapshotLog.last(where: { $0.timestampMillis <= millis }) else {
                throw .missing("snapshot of the table as old as that")
            }
            return (try existing(entry.snapshotID), true)
        case .reference(let name):
            guard let reference = metadata.references[name] else { throw .missing("branch or tag \"\(name)\" of the table") }
            return (try existing(reference.snapshotID), !reference.isBranch)
        }
    }
}
