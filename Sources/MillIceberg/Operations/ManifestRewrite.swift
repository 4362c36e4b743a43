import MillIO

/// The manifests that a snapshot takes over from its parent: those that lose files written anew, small ones put together.
///
/// A file that goes is kept in the rewritten manifest for this one snapshot, as deleted, so that readers of changes see it.
struct ManifestRewrite {
    private let table: IcebergTable
    private let snapshotID: Int64
    private let name: String
    private(set) var written: [String] = []
    private var count = 0

    init(_ table: IcebergTable, snapshotID: Int64, name: String) {
        self.table = table
        self.snapshotID = snapshotID
        self.name = name
    }

    /// The parent's manifests without the files that go.
    /// - Parameter replacedVectors: data files whose deletion vectors are replaced.
    /// - Throws: `commitConflict` when a file that shall go is not there.
    mutating func remaining(
        _ manifests: [ManifestFile], _ change: SnapshotChange, replacedVectors: Set<String>, _ figures: inout SummaryFigures
    ) throws(IcebergError) -> [ManifestFile] {
        var result: [ManifestFile] = []
        var missing = change.removed
        for manifest in manifests where manifest.mayHaveLiveFiles {
            let isTouched = change.removesAll || !change.removed.isEmpty || manifest.content == .deletes && !replacedVectors.isEmpty
            guard isTouched else {
                result.append(manifest)
                continue
            }
            let entries = try table.entries(of: manifest)
            func goes(_ file: DataFile) -> Bool {
                if change.removesAll { return true }
                guard let of = file.content == .data ? file.path : file.referencedDataFile else { return false }
                return change.removed.contains(of) || file.isDeletionVector && replacedVectors.contains(of)
            }
            guard entries.contains(where: { $0.isLive && goes($0.file) }) else {
                result.append(manifest)
                continue
            }
            var kept: [ManifestEntry] = []
            for var entry in entries where entry.isLive {
                if goes(entry.file) {
                    figures.remove(entry.file)
                    missing.remove(entry.file.path)
                    entry.status = .deleted
                    entry.snapshotID = snapshotID
                } else {
                    entry.status = .existing
                }
                kept.append(entry)
            }
            result.append(try write(kept, manifest.specID, manifest.content))
        }
        if let file = missing.min() { throw .commitConflict("data file \"\(file)\" is not in the table any more") }
        return result
    }

    /// Puts small manifests together where there are enough of them. The order of manifests stays, more or less.
    mutating func merged(_ manifests: [ManifestFile], _ settings: CommitSettings.Merging) throws(IcebergError) -> [ManifestFile] {
        struct Kind: Hashable {
            var specID: Int
            var content: ManifestFile.Content
        }
        var small: [Kind: [ManifestFile]] = [:]
        for manifest in manifests where manifest.byteCount < settings.targetBytes {
            small[Kind(specID: manifest.specID, content: manifest.content), default: []].append(manifest)
        }
        var gone: Set<String> = []
        var made: [ManifestFile] = []
        for (kind, members) in small.sorted(by: { ($0.key.specID, $0.key.content.rawValue) < ($1.key.specID, $1.key.content.rawValue) })
        where members.count >= settings.countMin {
            for bin in Self.bins(members, settings.targetBytes) where bin.count > 1 {
                var entries: [ManifestEntry] = []
                for manifest in bin { entries += try table.entries(of: manifest).compactMap { carried($0) } }
                made.append(try write(entries, kind.specID, kind.content))
                gone.formUnion(bin.map(\.path))
            }
        }
        // What this commit wrote and then merged away is named by nobody.
        return made + manifests.filter { !gone.contains($0.path) }
    }

    /// Neighbours, as many as fit.
    private static func bins(_ manifests: [ManifestFile], _ bytesMax: Int64) -> [[ManifestFile]] {
        var result: [[ManifestFile]] = []
        var byteCount: Int64 = 0
        for manifest in manifests {
            if result.isEmpty || byteCount + manifest.byteCount > bytesMax {
                result.append([])
                byteCount = 0
            }
            result[result.count - 1].append(manifest)
            byteCount += manifest.byteCount
        }
        return result
    }

    /// A line in another manifest: what this snapshot does to a file stays said, what others did is done.
    private func carried(_ entry: ManifestEntry) -> ManifestEntry? {
        var entry = entry
        if entry.snapshotID == snapshotID {
            if entry.status == .added, entry.fileSequenceNumber == ManifestFile.unassigned {
                entry.fileSequenceNumber = nil
                if entry.sequenceNumber == ManifestFile.unassigned { entry.sequenceNumber = nil }
            }
            return entry
        }
        guard entry.isLive else { return nil }
        entry.status = .existing
        return entry
    }

    mutating func write(_ entries: [ManifestEntry], _ specID: Int, _ content: ManifestFile.Content) throws(IcebergError) -> ManifestFile {
        var writer = try ManifestWriter(table.metadata, specID: specID, content, snapshotID: snapshotID, random: table.random)
        for entry in entries { try writer.append(entry) }
        count += 1
        let path = table.metadataPath("\(name)-r\(count).avro")
        let (bytes, manifest) = writer.finish(path: path)
        try table.put(path, bytes)
        written.append(path)
        return manifest
    }
}
