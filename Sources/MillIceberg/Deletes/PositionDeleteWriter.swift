import MillBase
import MillColumnar
import MillIO
import MillObjectStore
import MillParquet

/// Writes deleted rows as position delete files of format 2: pairs of a data file's location and a position, in order, a file to a data
/// file: it goes with the data file when that is written anew, and no reader of another one opens it.
struct PositionDeleteWriter {
    static let pathFieldID = 2_147_483_546
    static let positionFieldID = 2_147_483_545

    private static let columns = [
        ParquetColumn("file_path", .varchar, isRequired: true, fieldID: Int32(pathFieldID)),
        ParquetColumn("pos", .int64, isRequired: true, fieldID: Int32(positionFieldID)),
    ]

    let table: IcebergTable
    let name: String

    /// - Returns: the delete files, which are complete.
    func write(_ deletes: [RowDeletes]) throws(IcebergError) -> [DataFile] {
        var result: [DataFile] = []
        for delete in deletes.sorted(by: { $0.dataFile < $1.dataFile }) where !delete.positions.isEmpty {
            result.append(try write(delete, "\(table.metadata.dataLocation)/\(name)-\(result.count + 1)-deletes.parquet"))
        }
        return result
    }

    private func write(_ delete: RowDeletes, _ path: String) throws(IcebergError) -> DataFile {
        var options = ParquetWriterOptions()
        // Locations in full: equal bounds say that all deletes are of one file.
        options.boundBytesMax = 4096
        // pyarrow takes locations as dictionaries, which it cannot make of newer encodings.
        options.usesOldEncodingsOnly = true
        let object: any ObjectWriter
        do throws(IOFailure) { object = try table.store.openForWriting(path) } catch { throw .io(error) }
        do throws(ParquetError) {
            let writer = try ParquetWriter(object, Self.columns, options)
            let positions = delete.positions.positions
            for start in stride(from: 0, to: positions.count, by: Limits.batchRowsMax) {
                let part = positions[start..<min(start + Limits.batchRowsMax, positions.count)]
                let column = Column(.int64, capacity: part.count)
                for position in part { column.append(position) }
                try writer.append([.constant(.string(delete.dataFile), .varchar, count: part.count), column], count: part.count)
            }
            let footer = try writer.finish()
            do throws(IOFailure) { try object.finish() } catch { throw .io(error) }
            var file = DataFile(
                path: path, specID: delete.specID, partition: delete.partition, recordCount: writer.rowCount,
                fileByteCount: Int64(writer.fileByteCount))
            file.content = .positionDeletes
            FileFigures.fill(&file, footer, columns: [(Self.pathFieldID, .string), (Self.positionFieldID, .long)], nanCounts: [:])
            file.referencedDataFile = delete.dataFile
            return file
        } catch {
            object.abandon()
            throw .parquet(error)
        }
    }
}
