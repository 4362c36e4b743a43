import MillBase
import MillIO

/// Opening the DML log: which segments there are, and where the last one ends.
extension DMLLog {
    struct Recovered {
        var segments: [Segment]
        var tail: Tail
        /// The number of the next transaction, and the next row number.
        var next: DMLRecord.Header
        var truncatedTail: TruncatedTail?
        var damage: [DMLDamage] = []
    }

    static func recover(_ directory: String, _ files: any FileSystem) throws(LogError) -> Recovered {
        do throws(IOFailure) {
            try files.createDirectory(directory)
            if let slash = directory.lastIndex(of: "/"), slash != directory.startIndex { try files.syncDirectory(String(directory[..<slash])) }
        } catch { throw .storage(error) }
        var segments = try list(directory, files)
        while let segment = segments.last {
            let bytes: [UInt8]
            do throws(IOFailure) { bytes = try readAll(segment.path, files) } catch { throw .storage(error) }
            let header = DMLRecord.header(bytes[...])
            // The first of all has no successor's work to say which number is next, and another one is never alone before it is whole.
            let isNew = bytes.count <= DMLRecord.headerBytes && header == nil && (segments.count > 1 || segment.first == DMLPosition(1))
            guard !isNew else {
                // Its making was interrupted, before anything was written to it.
                do throws(IOFailure) {
                    try files.remove(segment.path)
                    try files.syncDirectory(directory)
                } catch { throw .storage(error) }
                segments.removeLast()
                continue
            }
            guard let (header, isOld) = header, header.first == segment.first else {
                throw .corrupted(path: segment.path, reason: "it does not begin with its header")
            }
            return try recover(directory, segments, header, isOld: isOld, bytes, files)
        }
        do throws(IOFailure) {
            let start = DMLRecord.Header(first: DMLPosition(1), nextRowID: 1)
            let (segment, tail) = try makeSegment(start, in: directory, files)
            return Recovered(segments: [segment], tail: tail, next: start)
        } catch { throw .storage(error) }
    }

    /// Walks the last segment's records and cuts a torn tail.
    private static func recover(
        _ directory: String, _ segments: [Segment], _ header: DMLRecord.Header, isOld: Bool, _ bytes: [UInt8], _ files: any FileSystem
    ) throws(LogError) -> Recovered {
        let path = segments[segments.count - 1].path
        var reader = DMLSegmentReader(bytes, header)
        var damage: [DMLDamage] = []
        walk: while true {
            switch reader.next() {
            case .transaction: continue
            case .damage(let first, let offset): damage.append(DMLDamage(path: path, offset: offset, first: first, next: reader.expected))
            case .end: break walk
            }
        }
        do throws(IOFailure) {
            let file = try files.open(path, .readWrite)
            let size = reader.offset
            var truncated: TruncatedTail?
            if !reader.isAtEnd {
                try file.truncate(to: size)
                truncated = TruncatedTail(path: path, keptBytes: size, cutBytes: bytes.count - size)
            }
            // A process may have ended between a write and its sync, or before the segment's name was durable: from here on it is read, and
            // must not go with the machine.
            try file.sync()
            try files.syncDirectory(directory)
            return Recovered(
                segments: segments, tail: Tail(file: file, size: size, isFull: isOld),
                next: DMLRecord.Header(first: reader.expected, nextRowID: reader.nextRowID), truncatedTail: truncated, damage: damage)
        } catch { throw .storage(error) }
    }

    private static func list(_ directory: String, _ files: any FileSystem) throws(LogError) -> [Segment] {
        let names: [String]
        do throws(IOFailure) { names = try files.list(directory) } catch { throw .storage(error) }
        var segments: [Segment] = []
        for name in names where name.hasSuffix(".dml") {
            guard let number = UInt64(name.dropLast(4)), number > 0, number <= 1 << 62 else {
                throw .corrupted(path: directory + "/" + name, reason: "its name is no transaction number")
            }
            segments.append(Segment(first: DMLPosition(number), path: directory + "/" + name))
        }
        return segments.sorted { $0.first < $1.first }
    }

    /// A new segment with its header, durable.
    static func makeSegment(_ header: DMLRecord.Header, in directory: String, _ files: any FileSystem) throws(IOFailure) -> (Segment, Tail) {
        let path = path(header, in: directory)
        let file = try files.open(path, .create)
        let bytes = DMLRecord.encode(header)
        try file.write(bytes, at: 0)
        try file.sync()
        try files.syncDirectory(directory)
        return (Segment(first: header.first, path: path), Tail(file: file, size: bytes.count))
    }

    private static func path(_ header: DMLRecord.Header, in directory: String) -> String {
        let digits = String(header.first.number)
        return directory + "/" + String(repeating: "0", count: max(20 - digits.count, 0)) + digits + ".dml"
    }

    /// Takes back a segment that nothing was written to; durable.
    static func removeSegment(_ header: DMLRecord.Header, in directory: String, _ files: any FileSystem) throws(IOFailure) {
        try files.remove(path(header, in: directory))
        try files.syncDirectory(directory)
    }

    static func readAll(_ path: String, _ files: any FileSystem) throws(IOFailure) -> [UInt8] {
        let file = try files.open(path, .read)
        var bytes = [UInt8](repeating: 0, count: try file.size())
        let count = try bytes.withUnsafeMutableBytes { buffer in
            Result { () throws(IOFailure) in try file.read(at: 0, into: buffer) }
        }.get()
        bytes.removeLast(bytes.count - count)
        return bytes
    }
}

extension File {
    fileprivate typealias Written = Result<Void, IOFailure>

    func write(_ bytes: [UInt8], at offset: Int) throws(IOFailure) {
        try bytes.withUnsafeBytes { buffer in Written { () throws(IOFailure) in try write(buffer, at: offset) } }.get()
    }
}
