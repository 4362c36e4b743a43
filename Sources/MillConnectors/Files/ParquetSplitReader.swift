import MillBase
import MillConnectorKit
import MillIO
import MillParquet

/// Rows of one Parquet file, from a row on. It gives ranges of rows; `ParquetRowDecoder` reads them, the columns that it needs and no
/// others.
final class ParquetSplitReader: SplitReader {
    private let opened: OpenParquetFile
    private let split: SourceSplit
    private let about: SplitFile
    private var next: Int64

    /// Of a row in the file, on average.
    private let bytesPerRow: Int64

    var highWatermark: SplitOffset? { SplitOffset(opened.rowCount) }
    var isFinished: Bool { next >= opened.rowCount }

    init(_ split: SourceSplit, at offset: SplitOffset, _ opened: OpenParquetFile, _ about: SplitFile) throws(SQLError) {
        guard offset.position >= 0, offset.position <= opened.rowCount else {
            throw SQLError(
                .objectNotInPrerequisiteState,
                "file \"\(about.location)\" has \(opened.rowCount) rows, but its reader is at row \(offset.position)",
                hint: "The file was replaced. Drop the source and create it again.")
        }
        self.opened = opened
        self.split = split
        self.about = about
        next = offset.position
        bytesPerRow = max(opened.byteCount / max(opened.rowCount, 1), 1)
    }

    func close() {}

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        guard !isFinished else { return nil }
        let count = max(min(Int64(maxRecords), Int64(maxBytes) / bytesPerRow, opened.rowCount - next), 1)
        defer { next += count }
        return RawChunk(
            FileRows(file: opened, range: next..<next + count),
            byteCount: Int(clamping: count.multipliedReportingOverflow(by: bytesPerRow).partialValue),
            partition: split.partition, file: about)
    }
}

/// A Parquet file and its footer, between the reader that opened it and the decoders that read its rows.
final class OpenParquetFile: Sendable {
    let file: ParquetFile
    let byteCount: Int64

    var rowCount: Int64 { file.metadata.rowCount }

    /// - Throws: 58030 when it cannot be read, XX001 when it is no Parquet file.
    init(_ opened: any File) throws(SQLError) {
        do throws(IOFailure) { byteCount = Int64(try opened.size()) } catch { throw error.sqlError }
        do throws(ParquetError) { file = try ParquetFile(opened) } catch { throw error.sqlError }
    }
}
