import MillBase
import MillIO
import MillObjectStore

/// Brings a change into a table: manifests, a list of them, a snapshot, and the catalog's word.
///
/// ```
/// 1  take the newest metadata, and the branch's snapshot as parent
/// 2  look for conflicts with what others did since the change was found
/// 3  manifests: those of the parent, without what goes; new ones for what comes; small ones merged
/// 4  write the list, with the sequence number of this try
/// 5  ask the catalog: add the snapshot, point the branch at it, if the branch is still at the parent
/// 6  on a conflict wait and go back to 1: data files and the manifests of what comes stay as they are
/// ```
///
/// What a failed commit wrote is removed, except where nobody can tell whether it failed: then the table is asked, and if it cannot be
/// asked everything stays. A conflict that the catalog reports is such a case, too: it may be one with this commit's own request, which
/// came twice. Source: Iceberg specification, optimistic concurrency.
package struct SnapshotCommit {
    private var table: IcebergTable
    private let change: SnapshotChange
    private var settings: CommitSettings
    private let snapshotID: Int64
    /// Manifests of what the change adds, kept from try to try while the table's layout stays the same.
    private var prepared: PreparedManifests?
    private var manifestCount = 0
    /// What this commit has written: of all tries, and of the last one alone.
    private var written: [String] = []
    private var tryWritten: [String] = []
    /// Whether the catalog was asked in this try.
    private var isSent = false
    private let name: String

    /// - Returns: the table with the snapshot in it, and the snapshot's identifier; the parent's when the change is empty.
    /// - Throws: `commitConflict` when tries are at an end or others have taken away what the change needs.
    package static func run(_ change: SnapshotChange, on table: IcebergTable, _ settings: CommitSettings) throws(IcebergError)
        -> (table: IcebergTable, snapshotID: Int64?)
    {
        guard !change.isEmpty else { return (table, table.metadata.snapshot(ofBranch: settings.branch)?.id) }
        var commit = SnapshotCommit(change, table, settings)
        return (try commit.run(), commit.snapshotID)
    }

    private init(_ change: SnapshotChange, _ table: IcebergTable, _ settings: CommitSettings) {
        self.change = change
        self.table = table
        self.settings = settings
        self.settings.take(table.metadata.properties)
        // Tables that do not merge as they go are put in order by this.
        if change.rewritesManifests { self.settings.merging = settings.merging }
        snapshotID = Int64(bitPattern: table.random.next() >> 1)
        name = FileNames.name("\(snapshotID)", 0, table.random)
    }

    private mutating func run() throws(IcebergError) -> IcebergTable {
        var attempt = 0
        while true {
            attempt += 1
            do throws(IcebergError) {
                try attemptOnce(attempt)
                return table
            } catch {
                switch error {
                case .commitUnknown:
                    if (try? isInTable()) == true { return table }
                    // It may still arrive, or be there and nobody can be asked: what it names must stay.
                    throw error
                case .commitConflict(let reason):
                    if isSent, try wasMade(inSpiteOf: reason) { return table }
                    guard attempt < settings.triesMax, !change.isOnlyOnItsBase else {
                        forgetAll()
                        throw error
                    }
                    forgetTry()
                    settings.pause(settings.backoff.next(table.random))
                    try refreshOrForget()
                default:
                    forgetAll()
                    throw error
                }
            }
        }
    }

    private mutating func refreshOrForget() throws(IcebergError) {
        do throws(IcebergError) { try table.refresh() } catch {
            forgetAll()
            throw error
        }
    }

    /// A catalog may call a conflict what is a request that came twice, of which the first was heard: then the files are the table's.
    /// - Throws: `commitUnknown` when the table cannot be asked.
    private mutating func wasMade(inSpiteOf conflict: String) throws(IcebergError) -> Bool {
        do throws(IcebergError) { return try isInTable() } catch {
            // The table was made anew: the answer is about another one.
            guard !error.isConflict else { return false }
            throw .commitUnknown("\(conflict); whether by this very commit cannot be asked: \(error.sqlError.message)")
        }
    }

    private mutating func isInTable() throws(IcebergError) -> Bool {
        try table.refresh()
        return table.metadata.snapshots.contains { $0.id == snapshotID }
    }

    private mutating func forgetTry() {
        try? table.store.remove(tryWritten)  // what stays is found as an orphan
        tryWritten = []
    }

    private mutating func forgetAll() {
        forgetTry()
        try? table.store.remove(written)  // as above
        written = []
    }

    private mutating func attemptOnce(_ attempt: Int) throws(IcebergError) {
        isSent = false
        let base = table.metadata
        let parent = base.snapshot(ofBranch: settings.branch)
        try checkProperties(base)
        guard !change.isOnlyOnItsBase || parent?.id == change.basedOn else {
            throw .commitConflict("others have committed since the snapshot that the change was found by")
        }
        let current = try table.manifests(of: parent)
        try ConflictCheck(table, change, parent, current).run()
        var figures = SummaryFigures(change.operation)
        var manifests = try newManifests(&figures)
        var rewrite = ManifestRewrite(table, snapshotID: snapshotID, name: "\(name)-\(attempt)")
        defer { tryWritten += rewrite.written }
        var replacedVectors: Set<String> = []
        if !change.deletes.isEmpty, base.formatVersion >= 3 {
            // What was deleted before is part of each vector, so they are made anew with each try.
            let deletes = RowDeleteCommit(table: table, snapshotID: snapshotID, name: "\(name)-\(attempt)")
            let result = try deletes.vectors(change.deletes, current)
            tryWritten += result.written
            replacedVectors = result.replacedVectors
            for (specID, entries) in Self.bySpec(result.entries) { manifests.append(try rewrite.write(entries, specID, .deletes)) }
            for entry in result.entries { figures.add(entry.file) }
        }
        manifests += try rewrite.remaining(current, change, replacedVectors: replacedVectors, &figures)
        if let merging = settings.merging { manifests = try rewrite.merged(manifests, merging) }
        try commit(manifests, base, parent, figures, attempt)
    }

    /// The catalog has no requirement for properties. None is needed: who changes these does it with a snapshot, and this commit is only
    /// made on top of the snapshot that it is looked up with.
    private func checkProperties(_ base: TableMetadata) throws(IcebergError) {
        for (name, value) in change.expected.sorted(by: { $0.key < $1.key }) where base.properties[name] != value {
            func shown(_ value: String?) -> String { value.map { "\"\($0)\"" } ?? "missing" }
            throw .outrun("property \"\(name)\" of the table is \(shown(base.properties[name])), not \(shown(value))")
        }
    }

    /// Manifests of what the change adds; written once.
    private mutating func newManifests(_ figures: inout SummaryFigures) throws(IcebergError) -> [ManifestFile] {
        if let prepared, prepared.fits(table.metadata) {
            figures = prepared.figures
            return prepared.manifests
        }
        prepared = nil
        var made = PreparedManifests(table.metadata, figures)
        manifestCount += 1
        var writer = ManifestRewrite(table, snapshotID: snapshotID, name: "\(name)-n\(manifestCount)")
        defer { written += writer.written }
        let added = change.added.map { ManifestEntry(.added, snapshotID: snapshotID, sequenceNumber: change.dataSequenceNumber, $0) }
        for (specID, entries) in Self.bySpec(added) { made.manifests.append(try writer.write(entries, specID, .data)) }
        for entry in added { made.figures.add(entry.file) }
        if !change.deletes.isEmpty, table.metadata.formatVersion < 3 {
            let deletes = RowDeleteCommit(table: table, snapshotID: snapshotID, name: "\(name)-n\(manifestCount)")
            let result = try deletes.positionFiles(change.deletes)
            written += result.written
            for (specID, entries) in Self.bySpec(result.entries) { made.manifests.append(try writer.write(entries, specID, .deletes)) }
            for entry in result.entries { made.figures.add(entry.file) }
        }
        prepared = made
        figures = made.figures
        return made.manifests
    }

    private static func bySpec(_ entries: [ManifestEntry]) -> [(key: Int, value: [ManifestEntry])] {
        Dictionary(grouping: entries) { $0.file.specID }.sorted { $0.key < $1.key }
    }

    private mutating func commit(
        _ manifests: [ManifestFile], _ base: TableMetadata, _ parent: Snapshot?, _ figures: SummaryFigures, _ attempt: Int
    )
        throws(IcebergError)
    {
        let sequenceNumber = base.lastSequenceNumber + 1
        let firstRowID = base.formatVersion >= 3 ? base.nextRowID : nil
        let list = try ManifestList.write(
            manifests,
            .init(
                snapshotID: snapshotID, parentID: parent?.id, sequenceNumber: sequenceNumber, formatVersion: base.formatVersion,
                firstRowID: firstRowID), random: table.random)
        let path = table.metadataPath("snap-\(name)-\(attempt).avro")
        try table.put(path, list.bytes)
        tryWritten.append(path)
        // Times of snapshots must not go back, whatever clocks of other writers say.
        let now = max(table.clock.nowMicros / 1000, base.lastUpdatedMillis)
        let snapshot = Snapshot(
            id: snapshotID, parentID: parent?.id, sequenceNumber: sequenceNumber, timestampMillis: now, manifestList: path,
            summary: figures.summary(change, after: parent), schemaID: base.currentSchemaID, firstRowID: firstRowID,
            addedRows: firstRowID.map { _ in list.assignedRows })
        isSent = true
        let loaded = try table.catalog.commit(
            table.identifier,
            requirements: [.assertTableUUID(base.tableUUID), .assertRefSnapshotID(ref: settings.branch, snapshotID: parent?.id)],
            updates: [
                .addSnapshot(snapshot),
                .setSnapshotRef(name: settings.branch, base.reference(toBranch: settings.branch, snapshotID: snapshotID)),
            ] + (change.properties.isEmpty ? [] : [.setProperties(change.properties)]))
        table.metadata = loaded.metadata
        tryWritten = []
        written = []
    }
}

/// Manifests that are good for another try.
private struct PreparedManifests {
    private let formatVersion: Int
    private let schemaID: Int
    var manifests: [ManifestFile] = []
    var figures: SummaryFigures

    init(_ metadata: TableMetadata, _ figures: SummaryFigures) {
        formatVersion = metadata.formatVersion
        schemaID = metadata.currentSchemaID
        self.figures = figures
    }

    func fits(_ metadata: TableMetadata) -> Bool { formatVersion == metadata.formatVersion && schemaID == metadata.currentSchemaID }
}
