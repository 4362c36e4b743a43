package import MillBase
import MillColumnar
package import MillConnectorKit
import MillIceberg

/// Rows of a table's data files to columns of a source: fed with the chunks of `TableSplitReader`, owned by one worker.
package final class TableRowDecoder: Decoder {
    private let wanted: [Int]
    /// Files that are being read, the one used last at the end.
    private var open: [OpenPart] = []

    /// So many files are held open in the middle, each with a page of each column: another is begun anew at its row.
    private static let openMax = 16

    private struct OpenPart {
        var rows: SnapshotRows
        var part: Int
        var reader: DataFileReader

        var next: Int64 { rows.parts[part].start + reader.nextRow }
    }

    /// - Parameter wanted: which of the source's columns the batches have, in that order.
    package init(wanted: [Int]) { self.wanted = wanted }

    package func decode(_ chunk: RawChunk) throws(SQLError) -> DecodedChunk {
        if let range = chunk.rows?.range, range.isEmpty { return DecodedChunk(batches: [], rejects: []) }
        guard let range = chunk.rows, let rows = range.file as? SnapshotRows else {
            throw SQLError(.featureNotSupported, "a record cannot be added to a source of an Iceberg table")
        }
        var batches: [DeltaBatch] = []
        do throws(IcebergError) {
            let base = rows.position.offset.position
            var row = range.range.lowerBound - base
            let end = range.range.upperBound - base
            while row < end {
                guard var part = try takePart(of: rows, at: row) else {
                    throw .malformed(location: "\(rows.table.identifier)", what: "a snapshot has no row \(row)")
                }
                let last = min(end, rows.parts[part.part].end)
                while part.next < last, let batch = try part.reader.next(atMost: Int(clamping: last - part.next)) {
                    guard batch.count > 0 else { continue }
                    DeltaBatch(columns: batch.columns, count: batch.count).forEachPart { batches.append($0) }
                }
                guard part.next >= last else {
                    throw .malformed(location: rows.parts[part.part].task.file.path, what: "it ends before row \(last - rows.parts[part.part].start)")
                }
                if part.next < rows.parts[part.part].end { open.append(part) }
                row = last
            }
        } catch { throw error.remoteError(of: "table \"\(rows.table.identifier)\"") }
        return DecodedChunk(batches: batches, rejects: [])
    }

    /// Takes the file out of those that are kept, or opens it.
    private func takePart(of rows: SnapshotRows, at row: Int64) throws(IcebergError) -> OpenPart? {
        if let index = open.firstIndex(where: { $0.rows === rows && $0.next == row }) { return open.remove(at: index) }
        if open.count >= Self.openMax { open.removeFirst() }
        guard let part = rows.part(of: row) else { return nil }
        let (task, start) = (rows.parts[part].task, rows.parts[part].start)
        let reader = try DataFileReader(task, rows.plan, rows.table, fieldIDs: wanted.map { rows.fieldIDs[$0] }, from: row - start)
        guard reader.rowCount == task.file.recordCount else {
            throw .malformed(
                location: task.file.path, what: "it has \(reader.rowCount) rows, and \(task.file.recordCount) by its manifest")
        }
        return OpenPart(rows: rows, part: part, reader: reader)
    }
}
