import MillColumnar

/// The deletes of a change as delete files of the table's format.
struct RowDeleteCommit {
    let table: IcebergTable
    let snapshotID: Int64
    let name: String

    struct Result {
        var entries: [ManifestEntry] = []
        /// Data files that had a deletion vector which the new one contains.
        var replacedVectors: Set<String> = []
        /// Objects that were written.
        var written: [String] = []
    }

    /// Format 2: position delete files, which stand beside those that are there.
    func positionFiles(_ deletes: [RowDeletes]) throws(IcebergError) -> Result {
        let files = try PositionDeleteWriter(table: table, name: name).write(deletes)
        return Result(entries: files.map { ManifestEntry(.added, snapshotID: snapshotID, $0) }, written: files.map(\.path))
    }

    /// Format 3: a vector for each data file, with all that was deleted of it before.
    ///
    /// Each has a Puffin file of its own: DuckDB 1.5 takes a file's second vector for all that follow it.
    /// - Parameter manifests: of the snapshot that the commit builds on.
    func vectors(_ deletes: [RowDeletes], _ manifests: [ManifestFile]) throws(IcebergError) -> Result {
        var result = Result()
        let index = try index(of: manifests)
        let dataFiles = index.isEmpty ? [:] : try entries(of: Set(deletes.map(\.dataFile)), manifests)
        for delete in deletes.sorted(by: { $0.dataFile < $1.dataFile }) where !delete.positions.isEmpty {
            var positions = delete.positions
            if let entry = dataFiles[delete.dataFile] {
                let before = index.deletes(for: entry).filter { $0.file.content == .positionDeletes }
                positions.formUnion(try DeleteReader(store: table.store).positions(of: entry.file, before))
                if index.vector(of: delete.dataFile) != nil { result.replacedVectors.insert(delete.dataFile) }
            }
            let path = "\(table.metadata.dataLocation)/\(name)-\(result.written.count + 1)-deletes.puffin"
            result.entries.append(ManifestEntry(.added, snapshotID: snapshotID, try write(positions, delete, path)))
            result.written.append(path)
        }
        return result
    }

    private func write(_ positions: DeletedPositions, _ delete: RowDeletes, _ path: String) throws(IcebergError) -> DataFile {
        var puffin = PuffinFile()
        let (offset, byteCount) = puffin.append(positions, of: delete.dataFile)
        let bytes: [UInt8]
        do throws(BadBytes) { bytes = try puffin.finished() } catch { throw .malformed(location: path, what: error.what) }
        try table.put(path, bytes)
        var file = DataFile(
            path: path, specID: delete.specID, partition: delete.partition, recordCount: Int64(positions.count),
            fileByteCount: Int64(bytes.count))
        file.content = .positionDeletes
        file.format = "PUFFIN"
        file.referencedDataFile = delete.dataFile
        (file.contentOffset, file.contentByteCount) = (Int64(offset), Int64(byteCount))
        return file
    }

    private func index(of manifests: [ManifestFile]) throws(IcebergError) -> DeleteIndex {
        var index = DeleteIndex()
        for manifest in manifests where manifest.content == .deletes && manifest.mayHaveLiveFiles {
            let isPartitioned = table.metadata.partitionSpec(id: manifest.specID)?.fields.isEmpty == false
            for entry in try table.entries(of: manifest) where entry.isLive { index.add(entry, isPartitioned: isPartitioned) }
        }
        return index
    }

    private func entries(of dataFiles: Set<String>, _ manifests: [ManifestFile]) throws(IcebergError) -> [String: ManifestEntry] {
        var result: [String: ManifestEntry] = [:]
        for manifest in manifests where manifest.content == .data && manifest.mayHaveLiveFiles && result.count < dataFiles.count {
            for entry in try table.entries(of: manifest) where entry.isLive && dataFiles.contains(entry.file.path) {
                result[entry.file.path] = entry
            }
        }
        return result
    }
}
