import MillBase
import MillConnectorKit

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// What a folder says of one sink: an object of its own beside the data, replaced in one step, and only by who read it last.
///
/// ```
/// millrace folder sink 1
/// committed 41                                    or "none"
/// pending 44                                      only while a commit is under way
/// 1000 53122 day=2026-01-31/44-1-9f86d081.parquet rows, bytes and name, from the folder on, of each file of the last commit, or the pending one
/// end
/// ```
struct FolderState: Hashable {
    struct File: Hashable {
        var rowCount: Int64
        var byteCount: Int
        /// From the folder on.
        var name: String
    }

    var committed: Int64?
    /// The epoch of a commit that was begun: its files may be there or not.
    var pending: Int64?
    var files: [File] = []

    static let fileName = "state"
    /// What a store says when a put's condition does not hold.
    static let conditionUnmet = EEXIST
    /// What it has cannot be a state.
    static let isDamaged = EBADMSG
    private static let firstLine = "millrace folder sink 1"

    /// Listings and readers of Hive's and Spark's kind pass over it.
    static func directory(of folder: String) -> String { folder + "/_millrace/" }
    static func identity(of folder: String) -> String { directory(of: folder) + "folder" }
    static func location(in folder: String, of sink: SinkName) -> String { directory(of: folder) + sink.description + "/" + fileName }

    init() {}

    /// - Returns: nil for bytes that are no state of ours.
    init?(_ bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
        guard lines.popFirst() == Self.firstLine[...], lines.popLast() == "", lines.popLast() == "end" else { return nil }
        guard let first = lines.popFirst(), first.hasPrefix("committed ") else { return nil }
        let epoch = first.dropFirst("committed ".count)
        if epoch != "none" {
            guard let number = Int64(epoch) else { return nil }
            committed = number
        }
        if let line = lines.first, line.hasPrefix("pending ") {
            guard let number = Int64(line.dropFirst("pending ".count)) else { return nil }
            pending = number
            lines = lines.dropFirst()
        }
        for line in lines {
            let parts = line.split(separator: " ", maxSplits: 2)
            guard parts.count == 3, let rows = Int64(parts[0]), let bytes = Int(parts[1]) else { return nil }
            files.append(File(rowCount: rows, byteCount: bytes, name: String(parts[2])))
        }
    }

    var bytes: [UInt8] {
        var lines = [Self.firstLine, "committed \(committed.map { "\($0)" } ?? "none")"]
        if let pending { lines.append("pending \(pending)") }
        lines += files.map { "\($0.rowCount) \($0.byteCount) \($0.name)" }
        return Array((lines + ["end", ""]).joined(separator: "\n").utf8)
    }
}
