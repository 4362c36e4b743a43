import MillColumnar
import MillIO
import MillObjectStore
import MillParquet

/// Reads which rows of data files are deleted, out of position delete files and deletion vectors.
struct DeleteReader {
    let store: any ObjectStore

    /// The deleted rows of one data file. Positions behind its end are kept: they delete nothing.
    func positions(of dataFile: DataFile, _ deletes: [ManifestEntry]) throws(IcebergError) -> DeletedPositions {
        var result = DeletedPositions()
        for delete in deletes where delete.file.content == .positionDeletes {
            if delete.file.isDeletionVector {
                result.formUnion(try vector(delete.file, dataFile))
            } else {
                try read(delete.file, dataFile, into: &result)
            }
        }
        return result
    }

    private func vector(_ file: DataFile, _ dataFile: DataFile) throws(IcebergError) -> DeletedPositions {
        guard let offset = file.contentOffset, let count = file.contentByteCount, offset >= 0,
            (0...Int64(DeletionVector.bytesMax)).contains(count)
        else { throw .malformed(location: file.path, what: "a deletion vector has no valid place") }
        let bytes: [UInt8]
        do throws(IOFailure) {
            let object = try store.openForReading(file.path)
            var found = 0
            // Not before the object is known to be that long: the count is anybody's.
            guard offset <= Int64(try object.size()) - count else {
                throw IOFailure("read", path: file.path, errorNumber: 5, detail: "it ends before a deletion vector")
            }
            var buffer = [UInt8](repeating: 0, count: Int(count))
            found = try readAll(object, Int(offset), &buffer)
            guard found == buffer.count else {
                throw IOFailure("read", path: file.path, errorNumber: 5, detail: "it ends within a deletion vector")
            }
            bytes = buffer
        } catch { throw .io(error) }
        do throws(BadBytes) {
            let positions = try DeletionVector.decode(bytes, countMax: Int(clamping: file.recordCount))
            guard Int64(positions.count) == file.recordCount else {
                throw BadBytes("a deletion vector has \(positions.count) positions, its manifest says \(file.recordCount)")
            }
            return positions
        } catch { throw .malformed(location: file.path, what: error.what) }
    }

    private func readAll(_ object: any File, _ offset: Int, _ buffer: inout [UInt8]) throws(IOFailure) -> Int {
        let result: Result<Int, IOFailure> = buffer.withUnsafeMutableBytes { target in
            do throws(IOFailure) { return .success(try object.read(at: offset, into: target)) } catch { return .failure(error) }
        }
        return try result.get()
    }

    private func read(_ file: DataFile, _ dataFile: DataFile, into result: inout DeletedPositions) throws(IcebergError) {
        guard file.format == "PARQUET" else { throw .unsupported("position deletes in files of format \(file.format)") }
        let object: any File
        do throws(IOFailure) { object = try store.openForReading(file.path) } catch { throw .io(error) }
        do throws(ParquetError) {
            let parquet = try ParquetFile(object)
            func column(_ id: Int, _ name: String) -> Int? {
                parquet.columns.firstIndex { $0.fieldID == Int32(id) } ?? parquet.columns.firstIndex { $0.name == name }
            }
            guard let pathColumn = column(PositionDeleteWriter.pathFieldID, "file_path"),
                let positionColumn = column(PositionDeleteWriter.positionFieldID, "pos")
            else { throw .badRequest("\"\(file.path)\" has no columns file_path and pos") }
            let wanted = Scalar.string(dataFile.path)
            let scan = try ParquetScan(
                parquet, [.init(pathColumn, as: .varchar), .init(positionColumn, as: .int64)],
                where: [ParquetCondition(column: pathColumn, .between(wanted, wanted))])
            let path = Column.constant(wanted, .varchar, count: 1)
            while let batch = try scan.next() {
                for row in 0..<batch.count where batch.columns[0].equals(row, path, 0) {
                    let position = batch.columns[1].isNull(row) ? -1 : batch.columns[1].values(Int64.self)[row]
                    guard position >= 0 else { throw .badRequest("\"\(file.path)\" deletes a row at no valid position") }
                    result.insert(position)
                }
            }
        } catch { throw .parquet(error) }
    }
}
