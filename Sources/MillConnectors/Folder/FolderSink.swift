import MillBase
import MillColumnar
import MillConnectorKit
import MillIO
import MillObjectStore
import MillParquet

/// `connector = 'fs'` and `'s3'`: rows into Parquet files of a folder, only ever added.
///
/// Options, of RisingWave's sinks where it has them: `path` (also `fs.path`; for S3 `s3://bucket/folder`, or `s3.bucket_name` and `s3.path`),
/// `partition_by` (columns, whose values name the directories), `compression`, `max_row_count` and `max_file_bytes` of a file.
///
/// How commits are made is in `FolderWriter`.
final class FolderSink: SinkConnector {
    struct Options: Sendable {
        /// Location of the folder, without a slash at its end.
        var folder: String
        /// Places of the columns that name directories, in their order.
        var partition: [Int]
        var parquet = ParquetWriterOptions()
        var fileRowsMax: Int64 = .max
        var fileBytesMax = 128 << 20
    }

    let options: Options
    let fields: [Field]
    private let store: any ObjectStore
    private let random: any RandomSource

    init(_ options: Options, fields: [Field], store: any ObjectStore, random: any RandomSource) {
        self.options = options
        self.fields = fields
        self.store = store
        self.random = random
    }

    /// The folder gets a name of its own, by which another in its place is told from it, and is found to be one that can be written.
    func prepare() throws(SQLError) -> SinkTarget {
        do throws(IOFailure) {
            let place = FolderState.identity(of: options.folder)
            if try store.look(at: place) == nil {
                do throws(IOFailure) { try store.put(place, Array(Self.hexadecimal(random, digits: 32).utf8), .isMissing) } catch {
                    // Another sink was faster.
                    guard error.errorNumber == FolderState.conditionUnmet else { throw error }
                }
            }
            let incarnation = String(decoding: try store.get(place), as: UTF8.self)
            return SinkTarget(incarnation: incarnation, notices: try notices())
        } catch { throw error.sqlError }
    }

    private func notices() throws(IOFailure) -> [String] {
        let directory = FolderState.directory(of: options.folder)
        var notices: [String] = []
        let others = try store.list(directory).filter { $0.location.hasSuffix("/" + FolderState.fileName) }.count
        if others > 0 {
            notices.append("folder \"\(options.folder)\" has files of \(others == 1 ? "another sink" : "\(others) other sinks") too")
        }
        if let s3 = store as? S3ObjectStore, try !s3.enforcesConditions(under: directory) {
            notices.append("the store ignores conditions of puts: only this server may write into folder \"\(options.folder)\"")
        }
        return notices
    }

    func open(sink: SinkName, incarnation: String?) throws(SQLError) -> any SinkWriter {
        if let incarnation { try check(incarnation) }
        return try FolderWriter(self, sink, store, random)
    }

    private func check(_ incarnation: String) throws(SQLError) {
        do throws(IOFailure) {
            let place = FolderState.identity(of: options.folder)
            if try store.look(at: place) != nil, String(decoding: try store.get(place), as: UTF8.self) == incarnation { return }
        } catch { throw error.sqlError }
        throw SQLError(
            .objectNotInPrerequisiteState, "folder \"\(options.folder)\" was emptied or replaced since the sink was created",
            hint: "Drop the sink and create it again.")
    }

    static func hexadecimal(_ random: any RandomSource, digits: Int) -> String {
        var text = ""
        while text.count < digits {
            let word = String(random.next(), radix: 16)
            text += String(repeating: "0", count: 16 - word.count) + word
        }
        return String(text.prefix(digits))
    }
}
