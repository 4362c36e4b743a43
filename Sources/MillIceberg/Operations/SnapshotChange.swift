package import MillColumnar

/// What a commit does to a table's files. A value: it is applied to the newest metadata, as often as it takes, and names files that are
/// written already.
package struct SnapshotChange: Sendable {
    package enum Operation: String, Sendable {
        /// Only adds data.
        case append
        /// Adds and takes away.
        case overwrite
        /// Only takes away.
        case delete
        /// The same rows in other files.
        case replace
    }

    package var operation: Operation
    package var added: [DataFile] = []
    /// Locations of data files that are in the table and shall not be.
    package var removed: Set<String> = []
    /// Everything that was there before goes.
    package var removesAll = false
    /// Manifests are put together.
    package var rewritesManifests = false
    /// A snapshot is made although no file comes or goes: for what its summary says.
    package var isAlwaysMade = false
    /// Rows of data files that are in the table, or of `added`.
    package var deletes: [RowDeletes] = []
    /// The snapshot by which `removed` and `deletes` were found; what others did since is looked through for conflicts.
    package var basedOn: Int64?
    /// Whether it is made on top of `basedOn` and of nothing else. When others were faster it is a `commitConflict` at once: the caller
    /// looks at what they did before the change is made anew.
    package var isOnlyOnItsBase = false
    /// Of a `replace`: as of when the rows of `added` are, so that deletes that others add meanwhile still hold for them.
    package var dataSequenceNumber: Int64?
    /// Goes into the snapshot's summary beside its figures, such as the epoch of a sink.
    package var summary: [(key: String, value: String)] = []

    /// Properties of the table that are set in one step with the snapshot.
    package var properties: [String: String] = [:]
    /// What properties have to be for the change to be made; nil for one that must not be there.
    package var expected: [String: String?] = [:]

    package init(_ operation: Operation) { self.operation = operation }

    package static func append(_ files: [DataFile], summary: [(key: String, value: String)] = []) -> SnapshotChange {
        var change = SnapshotChange(.append)
        change.added = files
        change.summary = summary
        return change
    }

    package static func overwriteAll(with files: [DataFile], summary: [(key: String, value: String)] = []) -> SnapshotChange {
        var change = SnapshotChange(files.isEmpty ? .delete : .overwrite)
        change.added = files
        change.removesAll = true
        change.summary = summary
        return change
    }

    /// New rows, and rows that go, in one commit.
    package static func rowDelta(
        _ files: [DataFile], _ deletes: [RowDeletes], basedOn: Int64?, summary: [(key: String, value: String)] = []
    ) -> SnapshotChange {
        var change = SnapshotChange(deletes.isEmpty ? .append : files.isEmpty ? .delete : .overwrite)
        change.added = files
        change.deletes = deletes
        change.basedOn = basedOn
        change.summary = summary
        return change
    }

    package var isEmpty: Bool { added.isEmpty && removed.isEmpty && !removesAll && deletes.isEmpty && !rewritesManifests && !isAlwaysMade }
}

/// Rows of one data file that shall go.
package struct RowDeletes: Sendable {
    package var dataFile: String
    /// The data file's own.
    package var specID: Int
    package var partition: [Scalar]
    package var positions: DeletedPositions

    package init(dataFile: String, specID: Int, partition: [Scalar], positions: DeletedPositions) {
        self.dataFile = dataFile
        self.specID = specID
        self.partition = partition
        self.positions = positions
    }
}
