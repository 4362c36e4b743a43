import MillColumnar
import MillIO
import MillObjectStore
import MillParquet

/// One data file being written.
final class OpenDataFile {
    let path: String
    private let layout: FileLayout
    private let object: any ObjectWriter
    private let writer: ParquetWriter
    private let partition: [Scalar]
    private let specID: Int
    private var nanCounts: [Int: Int64] = [:]
    private(set) var lastAppend = 0
    private var rows: Rows
    /// Of a file that was sorted, once it is finished: each row's position, by its coming.
    private(set) var positions: [UInt32]?

    enum Rows {
        case unsorted
        /// As they come; the number of the order.
        case sorted(Int)
        case toBeSorted(SortBuffer)
    }

    init(
        _ path: String, _ layout: FileLayout, _ partition: [Scalar], specID: Int, _ rows: Rows, _ store: any ObjectStore,
        _ options: ParquetWriterOptions
    ) throws(IcebergError) {
        self.rows = rows
        self.path = path
        self.layout = layout
        self.partition = partition
        self.specID = specID
        do throws(IOFailure) { object = try store.openForWriting(path) } catch { throw .io(error) }
        do throws(ParquetError) { writer = try ParquetWriter(object, layout.columns, options) } catch {
            object.abandon()
            throw .parquet(error)
        }
    }

    var byteCount: Int { writer.byteCount + sortByteCount }
    var rowCount: Int64 { if case .toBeSorted(let buffer) = rows { Int64(buffer.rowCount) } else { writer.rowCount } }
    /// Bytes in memory of rows that wait to be sorted.
    var sortByteCount: Int { if case .toBeSorted(let buffer) = rows { buffer.byteCount } else { 0 } }

    /// - Parameter number: of the writer's call, by which files are told apart that wait for rows.
    func append(_ columns: [Column], _ part: Partitioner.Part, at number: Int) throws(IcebergError) {
        lastAppend = number
        if case .toBeSorted(var buffer) = rows {
            rows = .unsorted  // so that the buffer is not copied
            buffer.append(columns, rows: part.rows)
            rows = .toBeSorted(buffer)
            return
        }
        guard !part.isWhole else { return try write(columns, count: part.rows.count) }
        let picked = columns.map { column in
            part.rows.withUnsafeBufferPointer { column.gather($0.baseAddress.unsafelyUnwrapped, count: $0.count) }
        }
        try write(picked, count: part.rows.count)
    }

    private func write(_ columns: [Column], count: Int) throws(IcebergError) {
        do throws(ParquetError) { try writer.append(columns, count: count) } catch { throw .parquet(error) }
        for (column, field) in zip(columns, layout.fields) where column.type.isFloat {
            nanCounts[field.id, default: 0] += column.nanCount(count)
        }
    }

    func finish() throws(IcebergError) -> DataFile {
        var orderID = 0
        switch rows {
        case .unsorted: break
        case .sorted(let id): orderID = id
        case .toBeSorted(var buffer):
            rows = .unsorted
            orderID = buffer.orderID
            positions = try buffer.drain { columns, count throws(IcebergError) in try write(columns, count: count) }
        }
        let footer: FileMetadata
        do throws(ParquetError) { footer = try writer.finish() } catch { throw .parquet(error) }
        do throws(IOFailure) { try object.finish() } catch { throw .io(error) }
        var file = DataFile(
            path: path, specID: specID, partition: partition, recordCount: writer.rowCount, fileByteCount: Int64(writer.fileByteCount))
        FileFigures.fill(&file, footer, columns: layout.fields.flatMap { $0.type.leaves($0.id) }, nanCounts: nanCounts)
        file.sortOrderID = orderID
        return file
    }

    func abandon() { object.abandon() }
}

extension Column {
    fileprivate func nanCount(_ count: Int) -> Int64 {
        var found: Int64 = 0
        if type == .float32 {
            let values = UnsafePointer(values(Float.self))
            for row in 0..<count where values[row].isNaN { found += 1 }
        } else {
            let values = UnsafePointer(values(Double.self))
            for row in 0..<count where values[row].isNaN { found += 1 }
        }
        return found
    }
}
