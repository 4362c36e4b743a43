package import MillBase
package import MillColumnar
package import MillConnectorKit
import MillIO
import MillParquet

/// Rows of Parquet files to columns of a source: fed with the chunks of `ParquetSplitReader`, owned by one worker.
///
/// A declared column is the file's that `ColumnNames` finds. One that a file lacks is NULL throughout; a file that has none of them is an error. A
/// value is never refused by itself: a file that is damaged, or has another type, stops its split.
package final class ParquetRowDecoder: Decoder {
    private let fields: [Field]
    private let wanted: [Int]
    /// Files that are being read, the one used last at the end.
    private var scans: [OpenScan] = []

    /// So many files are held open in the middle, each with a page of each column: another is begun anew at its row.
    private static let scansMax = 16

    private struct OpenScan {
        var opened: OpenParquetFile
        var scan: ParquetScan
        /// Of the wanted columns, the place among the scan's; nil for one that the file lacks.
        var places: [Int?]
        var next: Int64
    }

    /// - Parameter wanted: which of `fields` the batches have, in that order.
    package init(fields: [Field], wanted: [Int]) {
        self.fields = fields
        self.wanted = wanted
    }

    package func decode(_ chunk: RawChunk) throws(SQLError) -> DecodedChunk {
        guard let rows = chunk.rows, let opened = rows.file as? OpenParquetFile else {
            throw SQLError(.featureNotSupported, "a record cannot be added to a source of Parquet files")
        }
        guard !rows.range.isEmpty else { return DecodedChunk(batches: [], rejects: []) }
        do throws(ParquetError) {
            var open = try scan(of: opened, at: rows.range.lowerBound, chunk.file)
            var batches: [DeltaBatch] = []
            while open.next < rows.range.upperBound {
                guard let batch = try open.scan.next(atMost: Int(rows.range.upperBound - open.next)) else { break }
                open.next += Int64(batch.count)
                let columns = zip(wanted, open.places).map { field, place in
                    place.map { batch.columns[$0] } ?? Column.constant(.null, fields[field].type, count: batch.count)
                }
                DeltaBatch(columns: columns, count: batch.count, weights: nil).forEachPart { batches.append($0) }
            }
            if open.next < opened.rowCount { scans.append(open) }
            return DecodedChunk(batches: batches, rejects: [])
        } catch { throw error.sqlError }
    }

    /// Takes the file's scan out of those that are kept, or begins one.
    private func scan(of opened: OpenParquetFile, at row: Int64, _ about: SplitFile?) throws(ParquetError) -> OpenScan {
        if let index = scans.firstIndex(where: { $0.opened === opened && $0.next == row }) { return scans.remove(at: index) }
        scans.removeAll { $0.opened === opened }
        if scans.count >= Self.scansMax { scans.removeFirst() }
        let found = fields.map { Self.column(named: $0.name, of: opened.file) }
        guard fields.isEmpty || found.contains(where: { $0 != nil }) || fields.allSatisfy({ about?.hasPartition($0.name) ?? false }) else {
            throw .unsupported(
                file: opened.file.file.path, column: nil,
                feature: "it has none of the source's columns, but \(opened.file.columns.map { "\"\($0.name)\"" }.joined(separator: ", "))")
        }
        var requests: [ParquetScan.Request] = []
        var places: [Int?] = []
        for field in wanted {
            places.append(found[field].map { _ in requests.count })
            if let column = found[field] { requests.append(.init(column, as: fields[field].type)) }
        }
        return OpenScan(opened: opened, scan: try ParquetScan(opened.file, requests, from: row), places: places, next: row)
    }

    private static func column(named name: String, of file: ParquetFile) -> Int? {
        ColumnNames.place(of: name, among: file.columns.map(\.name))
    }
}
