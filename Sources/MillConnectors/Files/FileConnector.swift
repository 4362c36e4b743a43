package import MillBase
package import MillConnectorKit
package import MillIO

/// `connector = 'file'`: lines of files as records; bounded. Each file is a split, a record's position is the byte where its line
/// begins.
///
/// Options: `path` (a file, a directory, or a pattern with `*`, `?` and `[a-z]`). Files of a directory are taken in order of name,
/// those whose name begins with `.` or `_` and subdirectories are not.
package final class FileConnector: SourceConnector {
    package let isBounded = true
    package let numbersRecords = false
    private let path: String
    private let files: any FileSystem
    private let blockBytes: Int
    private let pool = BlockPool()

    package convenience init(options: ConnectorOptions, files: any FileSystem) throws(SQLError) {
        var options = options
        let path = try options.require("path", or: "location", hint: "Set it to a file, a directory or a pattern such as 'bids/*.jsonl'.")
        try options.finish()
        self.init(path: path, files: files)
    }

    package init(path: String, files: any FileSystem, blockBytes: Int = 1 << 20) {
        self.path = path
        self.files = files
        self.blockBytes = max(blockBytes, 1)
    }

    package func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] {
        let splits = try currentSplits()
        guard !splits.isEmpty else { throw SQLError(.undefinedObject, "no file matches \"\(path)\"") }
        return Dictionary(uniqueKeysWithValues: splits.map { ($0, SplitOffset(0)) })
    }

    package func currentSplits() throws(SQLError) -> [SourceSplit] {
        try FilePattern(path).matches(in: files).map { SourceSplit(name: $0, topic: $0, partition: 0) }
    }

    package func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] {
        var ends: [SourceSplit: SplitOffset] = [:]
        for split in splits {
            do throws(IOFailure) { ends[split] = SplitOffset(Int64(try files.open(split.name, .read).size())) } catch { throw error.sqlError }
        }
        return ends
    }

    package func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) -> any SplitReader {
        try FileSplitReader(split, at: offset, files: files, blockBytes: blockBytes, pool: pool)
    }
}
