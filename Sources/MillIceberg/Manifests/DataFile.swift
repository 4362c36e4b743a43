package import MillColumnar

/// A file of a table: data, or deletes of data. What manifests say of it.
package struct DataFile: Hashable, Sendable {
    package enum Content: Int, Hashable, Sendable {
        case data = 0
        case positionDeletes = 1
        case equalityDeletes = 2
    }

    package var content = Content.data
    /// The whole location.
    package var path: String
    /// `PARQUET`, `AVRO`, `ORC` or `PUFFIN`, in capitals.
    package var format = "PARQUET"
    /// By which its partition is to be read: that of its manifest.
    package var specID: Int
    /// A value for each of the spec's fields, in their order.
    package var partition: [Scalar]
    package var recordCount: Int64
    package var fileByteCount: Int64
    /// By field identifiers, as are the next five; empty where nothing is known.
    package var columnByteCounts: [Int: Int64] = [:]
    package var valueCounts: [Int: Int64] = [:]
    package var nullCounts: [Int: Int64] = [:]
    package var nanCounts: [Int: Int64] = [:]
    /// As `SingleValue` has them; at or below, and at or above, all values that are neither NULL nor NaN.
    package var lowerBounds: [Int: [UInt8]] = [:]
    package var upperBounds: [Int: [UInt8]] = [:]
    package var keyMetadata: [UInt8]?
    /// Where its row groups begin.
    package var splitOffsets: [Int64] = []
    /// Of equality deletes.
    package var equalityIDs: [Int] = []
    package var sortOrderID: Int?
    /// v3: the `_row_id` of its first row.
    package var firstRowID: Int64?
    /// The one data file that the deletes are of.
    package var referencedDataFile: String?
    /// v3: where a deletion vector lies in its Puffin file.
    package var contentOffset: Int64?
    package var contentByteCount: Int64?

    package init(path: String, specID: Int, partition: [Scalar], recordCount: Int64, fileByteCount: Int64) {
        self.path = path
        self.specID = specID
        self.partition = partition
        self.recordCount = recordCount
        self.fileByteCount = fileByteCount
    }

    package var isDeletionVector: Bool { contentOffset != nil }
}

/// A line of a manifest: a file, and what a snapshot did to it.
package struct ManifestEntry: Hashable, Sendable {
    package enum Status: Int, Hashable, Sendable {
        case existing = 0
        case added = 1
        /// Kept for one snapshot, to say so.
        case deleted = 2
    }

    package var status: Status
    /// Which snapshot added the file, or deleted it.
    package var snapshotID: Int64?
    /// Which deletes are for it: those of the same number or later ones. Nil until the commit, for files that it adds.
    package var sequenceNumber: Int64?
    /// When the file was added, whatever happened to it since.
    package var fileSequenceNumber: Int64?
    package var file: DataFile

    package init(_ status: Status, snapshotID: Int64?, sequenceNumber: Int64? = nil, fileSequenceNumber: Int64? = nil, _ file: DataFile) {
        self.status = status
        self.snapshotID = snapshotID
        self.sequenceNumber = sequenceNumber
        self.fileSequenceNumber = fileSequenceNumber
        self.file = file
    }

    package var isLive: Bool { status != .deleted }
}

/// A line of a manifest list: a manifest, and what may be in it.
package struct ManifestFile: Hashable, Sendable {
    package enum Content: Int, Hashable, Sendable {
        case data = 0
        case deletes = 1
    }

    package var path: String
    package var byteCount: Int64
    package var specID: Int
    package var content: Content
    /// When the manifest was added, and the lowest data sequence number of its live files.
    package var sequenceNumber: Int64
    package var minSequenceNumber: Int64
    package var addedSnapshotID: Int64
    /// Files and rows by status; nil where an old writer did not say.
    package var added: Counts?
    package var existing: Counts?
    package var deleted: Counts?
    /// For each of the spec's fields; empty where nothing is known.
    package var partitions: [PartitionSummary] = []
    package var keyMetadata: [UInt8]?
    /// v3: from which its files without row identifiers take theirs.
    package var firstRowID: Int64?

    package struct Counts: Hashable, Sendable {
        package var files: Int
        package var rows: Int64

        package init(files: Int = 0, rows: Int64 = 0) { (self.files, self.rows) = (files, rows) }
    }

    /// Whether it has files that a scan reads; without counts it may.
    package var mayHaveLiveFiles: Bool {
        guard let added, let existing else { return true }
        return added.files + existing.files > 0
    }
}

/// What one partition field's values in a manifest are.
package struct PartitionSummary: Hashable, Sendable {
    package var containsNull: Bool
    package var containsNaN: Bool?
    package var lower: [UInt8]?
    package var upper: [UInt8]?

    package init(containsNull: Bool, containsNaN: Bool? = nil, lower: [UInt8]? = nil, upper: [UInt8]? = nil) {
        self.containsNull = containsNull
        self.containsNaN = containsNaN
        self.lower = lower
        self.upper = upper
    }
}
