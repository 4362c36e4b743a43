
/// Records of one split as they came, before decoding: one buffer and where each record's value lies in it.
///
/// Or, of a file that is kept in columns, which rows: its decoder reads those by itself, and of them the columns that it was made for.
///
/// Fed by a `SplitReader`, consumed by a `Decoder`, on the same worker or another: it is only read once it exists, and its owner may be let
/// go on any thread. Arrays have `count` entries, none for rows. The buffer has at least
/// 64 readable bytes after its end, which vectorised decoders touch. Records in ascending order with a newline byte right after
/// each (outside its length) are the cheapest to decode: a text decoder then parses many at once and copies nothing. Strings of
/// the batches made from a chunk may point into its buffer and keep it alive.
package final class RawChunk: @unchecked Sendable {
    /// Start of the buffer; `starts` count from here.
    package let bytes: UnsafeRawPointer
    package let byteCount: Int
    /// Where each value starts, and its bytes; -1 bytes is a null value (a tombstone in Kafka).
    package let starts: [UInt32]
    package let lengths: [Int32]
    /// Position of each record in its split: Kafka offset, byte position in a file. Ascending.
    package let positions: [Int64]
    /// Each record's own time in microseconds since 1970, `unknownTime` for one without; nil when none has one.
    package let timestamps: [Int64]?
    /// Where to go on after this chunk.
    package let nextOffset: SplitOffset
    /// `SourceSplit.partition` of the split, for the hidden column of that name.
    package let partition: Int32
    /// Rows of a file in columns, in place of records.
    package let rows: FileRows?
    /// What the decoder has to know of the file that they are of; nil for records that are of none.
    package let file: SplitFile?
    /// Keeps the buffer alive.
    private let owner: AnyObject?

    /// Records, or rows.
    package var count: Int { rows?.range.count ?? starts.count }

    package static let unknownTime = Int64.min

    package init(
        bytes: UnsafeRawPointer, byteCount: Int, starts: [UInt32], lengths: [Int32], positions: [Int64], timestamps: [Int64]?,
        nextOffset: SplitOffset, partition: Int32 = 0, file: SplitFile? = nil, owner: AnyObject
    ) {
        self.bytes = bytes
        self.byteCount = byteCount
        self.starts = starts
        self.lengths = lengths
        self.positions = positions
        self.timestamps = timestamps
        self.nextOffset = nextOffset
        self.partition = partition
        self.file = file
        rows = nil
        self.owner = owner
    }

    /// Rows of files in columns, which take about `byteCount` bytes of them. A row's position is its number.
    /// - Parameter nextOffset: where that is not right behind them.
    package init(_ rows: FileRows, byteCount: Int, partition: Int32 = 0, file: SplitFile? = nil, nextOffset: SplitOffset? = nil) {
        bytes = Self.noBytes
        self.byteCount = byteCount
        starts = []
        lengths = []
        positions = []
        timestamps = nil
        self.nextOffset = nextOffset ?? SplitOffset(rows.range.upperBound)
        self.partition = partition
        self.file = file
        self.rows = rows
        owner = nil
    }

    /// What readers may touch behind no bytes at all.
    private nonisolated(unsafe) static let noBytes = UnsafeRawPointer(UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64))
}

/// Rows of an open file, as the connector that opened it and the decoder that belongs to it know it.
package struct FileRows: Sendable {
    package var file: any AnyObject & Sendable
    package var range: Range<Int64>

    package init(file: any AnyObject & Sendable, range: Range<Int64>) {
        self.file = file
        self.range = range
    }
}

/// The resume position in a split: the next position to read. Kafka offset, or byte position of a file.
package struct SplitOffset: Hashable, Comparable, Sendable {
    package var position: Int64
    package init(_ position: Int64) { self.position = position }
    package static func < (a: SplitOffset, b: SplitOffset) -> Bool { a.position < b.position }
}

/// A unit of parallel reading within a source: a Kafka partition, a file.
package struct SourceSplit: Hashable, Comparable, Sendable {
    /// What the connector knows it by, such as `user-events/0` or a path.
    package var name: String
    /// Kafka's topic and partition as the rejects relation shows them; a file's path and 0.
    package var topic: String
    package var partition: Int32

    package init(name: String, topic: String, partition: Int32) {
        self.name = name
        self.topic = topic
        self.partition = partition
    }

    package static func < (a: SourceSplit, b: SourceSplit) -> Bool { (a.topic, a.partition) < (b.topic, b.partition) }
}

extension RawChunk {
    /// The records before `end`, sharing the buffer.
    package func prefix(before end: SplitOffset) -> RawChunk {
        if var rows {
            guard rows.range.upperBound > end.position else { return self }
            rows.range = rows.range.lowerBound..<max(end.position, rows.range.lowerBound)
            return RawChunk(rows, byteCount: byteCount, partition: partition, file: file)
        }
        var count = positions.count
        while count > 0, positions[count - 1] >= end.position { count -= 1 }
        if count == positions.count { return self }
        return RawChunk(
            bytes: bytes, byteCount: byteCount, starts: Array(starts[..<count]), lengths: Array(lengths[..<count]),
            positions: Array(positions[..<count]), timestamps: timestamps.map { Array($0[..<count]) }, nextOffset: end, partition: partition, file: file,
            owner: self)
    }
}
