/// The figures of a snapshot's summary: what came, what went, and what there is in all.
struct SummaryFigures {
    private let operation: SnapshotChange.Operation
    private var addedFiles = 0
    private var addedRows: Int64 = 0
    private var addedBytes: Int64 = 0
    private var addedDeleteFiles = 0
    private var addedPositionDeletes: Int64 = 0
    private var addedVectors = 0
    private var removedFiles = 0
    private var removedRows: Int64 = 0
    private var removedBytes: Int64 = 0
    private var removedDeleteFiles = 0
    private var removedPositionDeletes: Int64 = 0
    private var removedEqualityDeletes: Int64 = 0
    private var removedVectors = 0

    init(_ operation: SnapshotChange.Operation) { self.operation = operation }

    /// How many bytes a file has of its own: vectors share theirs.
    private static func bytes(_ file: DataFile) -> Int64 { file.contentByteCount ?? file.fileByteCount }

    mutating func add(_ file: DataFile) {
        addedBytes = addedBytes.plus(Self.bytes(file))
        if file.content == .data {
            addedFiles += 1
            addedRows = addedRows.plus(file.recordCount)
        } else {
            addedDeleteFiles += 1
            addedPositionDeletes = addedPositionDeletes.plus(file.recordCount)
            if file.isDeletionVector { addedVectors += 1 }
        }
    }

    mutating func remove(_ file: DataFile) {
        removedBytes = removedBytes.plus(Self.bytes(file))
        switch file.content {
        case .data:
            removedFiles += 1
            removedRows = removedRows.plus(file.recordCount)
        case .positionDeletes:
            removedDeleteFiles += 1
            removedPositionDeletes = removedPositionDeletes.plus(file.recordCount)
            if file.isDeletionVector { removedVectors += 1 }
        case .equalityDeletes:
            removedDeleteFiles += 1
            removedEqualityDeletes = removedEqualityDeletes.plus(file.recordCount)
        }
    }

    /// What the snapshot says of itself: the caller's words after the figures.
    func summary(_ change: SnapshotChange, after parent: Snapshot?) -> [(key: String, value: String)] {
        var result: [(key: String, value: String)] = [("operation", operation.rawValue)]
        func add(_ key: String, _ value: some BinaryInteger) {
            if value > 0 { result.append((key, "\(value)")) }
        }
        add("added-data-files", addedFiles)
        add("added-records", addedRows)
        add("added-files-size", addedBytes)
        add("added-delete-files", addedDeleteFiles)
        add("added-dvs", addedVectors)
        add("added-position-delete-files", addedDeleteFiles - addedVectors)
        add("added-position-deletes", addedPositionDeletes)
        add("deleted-data-files", removedFiles)
        add("deleted-records", removedRows)
        add("removed-files-size", removedBytes)
        add("removed-delete-files", removedDeleteFiles)
        add("removed-dvs", removedVectors)
        add("removed-position-deletes", removedPositionDeletes)
        add("removed-equality-deletes", removedEqualityDeletes)
        func total(_ key: String, _ added: some BinaryInteger, _ removed: some BinaryInteger) {
            // A parent that does not say makes the sum unknown, which is said by saying nothing.
            guard let before = parent == nil ? 0 : parent?.summaryValue(key).flatMap({ Int64($0) }) else { return }
            result.append((key, "\(max(0, before.plus(Int64(added)).minus(Int64(removed))))"))
        }
        total("total-records", addedRows, removedRows)
        total("total-files-size", addedBytes, removedBytes)
        total("total-data-files", addedFiles, removedFiles)
        total("total-delete-files", addedDeleteFiles, removedDeleteFiles)
        total("total-position-deletes", addedPositionDeletes, removedPositionDeletes)
        total("total-equality-deletes", 0, removedEqualityDeletes)
        return result + change.summary
    }
}
