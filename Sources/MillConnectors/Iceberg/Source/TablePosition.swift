import MillBase
import MillConnectorKit

/// A place in the history of a table: in a snapshot, by its sequence number, and there how many rows.
///
/// As the offset of a split it takes 63 bits: 27 of the sequence number, 2 of `phase`, 34 of the row. Sequence numbers go up along a branch,
/// so offsets do.
struct TablePosition: Hashable, Comparable, Sendable {
    enum Phase: Int64, Sendable {
        /// In all the rows that the table has at this snapshot.
        case whole = 0
        /// In the rows that this snapshot added.
        case added = 1
        /// Behind the snapshot; the row is 0.
        case done = 2
    }

    /// 0 is before the first snapshot.
    var sequenceNumber: Int64
    var phase: Phase
    /// Rows of the files that were read, deleted ones counted with them.
    var row: Int64

    static let sequenceNumberMax: Int64 = (1 << 27) - 1
    static let rowMax: Int64 = (1 << 34) - 1

    /// - Throws: 54000 for a table with more commits, or a snapshot with more rows, than have a place.
    init(_ sequenceNumber: Int64, _ phase: Phase, row: Int64 = 0) throws(SQLError) {
        guard (0...Self.sequenceNumberMax).contains(sequenceNumber), (0...Self.rowMax).contains(row) else {
            throw SQLError(
                .programLimitExceeded,
                "sequence number \(sequenceNumber) or row \(row) of a snapshot is beyond what a source of a table can count",
                detail: "It counts \(Self.sequenceNumberMax) commits of a table, and \(Self.rowMax) rows of a snapshot.")
        }
        (self.sequenceNumber, self.phase, self.row) = (sequenceNumber, phase, row)
    }

    /// - Throws: XX001 for an offset that is none of a table.
    init(_ offset: SplitOffset) throws(SQLError) {
        guard offset.position >= 0, let phase = Phase(rawValue: (offset.position >> 34) & 3) else {
            throw SQLError(.dataCorrupted, "\(offset.position) is no place in a table")
        }
        (sequenceNumber, self.phase, row) = (offset.position >> 36, phase, offset.position & Self.rowMax)
    }

    var offset: SplitOffset { SplitOffset(sequenceNumber << 36 | phase.rawValue << 34 | row) }

    static func < (a: TablePosition, b: TablePosition) -> Bool { a.offset < b.offset }
}
