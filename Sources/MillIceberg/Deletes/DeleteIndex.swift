import MillColumnar

/// Which deletes are for which data files.
///
/// Position deletes are for data of the same partition with at most their sequence number, equality deletes for data with a lower one,
/// those of an unpartitioned spec for all. A data file with a deletion vector has no other position deletes. Source: Iceberg specification,
/// scan planning.
struct DeleteIndex {
    private struct Place: Hashable {
        var specID: Int
        var partition: [Scalar]
    }

    private var vectors: [String: ManifestEntry] = [:]
    private var byFile: [String: [ManifestEntry]] = [:]
    private var byPartition: [Place: [ManifestEntry]] = [:]
    private var equalityEverywhere: [ManifestEntry] = []

    private(set) var isEmpty = true

    mutating func add(_ entry: ManifestEntry, isPartitioned: Bool) {
        isEmpty = false
        if let file = Self.onlyDataFile(entry.file) {
            if entry.file.isDeletionVector { vectors[file] = entry } else { byFile[file, default: []].append(entry) }
        } else if entry.file.content == .equalityDeletes, !isPartitioned {
            equalityEverywhere.append(entry)
        } else {
            byPartition[Place(specID: entry.file.specID, partition: entry.file.partition), default: []].append(entry)
        }
    }

    /// The one data file that position deletes are of, as far as can be told without reading them.
    static func onlyDataFile(_ file: DataFile) -> String? {
        guard file.content == .positionDeletes else { return nil }
        if let path = file.referencedDataFile { return path }
        let id = PositionDeleteWriter.pathFieldID
        guard let lower = file.lowerBounds[id], lower == file.upperBounds[id] else { return nil }
        return String(validating: lower, as: UTF8.self)
    }

    func vector(of dataFile: String) -> ManifestEntry? { vectors[dataFile] }

    /// All that may hold for the rows of a data file.
    func deletes(for entry: ManifestEntry) -> [ManifestEntry] {
        let number = entry.sequenceNumber ?? 0
        func holds(_ delete: ManifestEntry) -> Bool {
            let deleteNumber = delete.sequenceNumber ?? 0
            return delete.file.content == .equalityDeletes ? deleteNumber > number : deleteNumber >= number
        }
        let place = Place(specID: entry.file.specID, partition: entry.file.partition)
        let everywhere = (byPartition[place] ?? []) + equalityEverywhere
        if let vector = vectors[entry.file.path], holds(vector) {
            return [vector] + everywhere.filter { $0.file.content == .equalityDeletes && holds($0) }
        }
        return ((byFile[entry.file.path] ?? []) + everywhere).filter(holds)
    }
}
