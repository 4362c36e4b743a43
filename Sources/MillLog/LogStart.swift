import MillIO
import MillKafkaWire

/// The file `log.start`: the first offset of a partition whose beginning was deleted (docs/internals/log.md).
enum LogStart {
    private static let magic: Int64 = 0x4D49_4C4C_5354_5254  // MILLSTRT
    private static let version: Int32 = 1

    private static func path(_ directory: String) -> String { directory + "/log.start" }

    /// Nil when nothing was ever deleted.
    /// - Throws: `storage`, `corrupted`.
    static func read(in directory: String, _ files: any FileSystem) throws(LogError) -> Int64? {
        let path = path(directory)
        guard files.exists(path) else { return nil }
        let bytes: WireBytes
        do throws(IOFailure) { bytes = try files.open(path, .read).readAll() } catch { throw .storage(error) }
        guard let content = bytes.verifyingTrailingChecksum() else { throw .corrupted(path: path, reason: "its checksum does not fit") }
        var reader = WireReader(content)
        do throws(WireError) {
            guard try reader.int64() == magic, try reader.int32() == version else { throw WireError.invalidLength(offset: 0, length: 0) }
            let offset = try reader.int64()
            try reader.finish()
            guard (0...Segment.offsetMax).contains(offset) else { throw WireError.invalidLength(offset: 0, length: 0) }
            return offset
        } catch {
            throw .corrupted(path: path, reason: "it is not a log's start of version \(version)")
        }
    }

    /// Durable on return.
    static func write(_ offset: Int64, in directory: String, _ files: any FileSystem) throws(IOFailure) {
        var writer = WireWriter()
        writer.int64(magic)
        writer.int32(version)
        writer.int64(offset)
        let file = try files.open(path(directory) + ".new", .create)
        try file.writeAll(writer.finishWithChecksum())
        try file.sync()
        try files.rename(file.path, to: path(directory))
        try files.syncDirectory(directory)
    }
}
