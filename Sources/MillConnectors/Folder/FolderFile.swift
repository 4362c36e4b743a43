import MillBase
import MillColumnar
import MillIO
import MillObjectStore
import MillParquet

/// A file that is being written into a folder: seen by nobody until `finish`.
final class FolderFile {
    let key: FolderPartitioner.Key
    /// From the folder on.
    let name: String
    private let object: any ObjectWriter
    private let writer: ParquetWriter
    /// Counts writes of the sink: when it last got a row.
    private(set) var lastWrite = 0

    var rowCount: Int64 { writer.rowCount }
    var byteCount: Int { writer.byteCount }
    /// What waits in memory for its row group to end.
    var bufferedByteCount: Int { writer.byteCount - writer.fileByteCount }

    init(
        _ key: FolderPartitioner.Key, name: String, in folder: String, _ columns: [ParquetColumn], _ options: ParquetWriterOptions,
        _ store: any ObjectStore
    ) throws(SQLError) {
        self.key = key
        self.name = name
        do throws(IOFailure) { object = try store.openForWriting(folder + "/" + name) } catch { throw error.sqlError }
        do throws(ParquetError) { writer = try ParquetWriter(object, columns, options) } catch {
            object.abandon()
            throw error.sqlError
        }
    }

    func append(_ columns: [Column], count: Int, at write: Int) throws(ParquetError) {
        lastWrite = write
        try writer.append(columns, count: count)
    }

    /// Writes the footer.
    func end() throws(ParquetError) { try writer.finish() }

    /// Makes it durable and visible.
    func finish() throws(IOFailure) { try object.finish() }

    func abandon() { object.abandon() }
}
