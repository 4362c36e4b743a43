import MillBase
import MillConnectorKit
import MillIO
import MillText

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Records of one text file, from a byte position to the end that the file had when it was opened.
///
/// Reads a block at a time and cuts chunks out of it; what is left of the last record moves to the front of the next block, which
/// grows when a record fills it. A line ends with a newline, or carriage return and newline, which are not part of it; empty lines
/// are passed over, as NDJSON tools do; the last line needs no newline. A record of CSV is a line, and more where newlines are quoted. Chunks
/// share their block and keep it alive. The last one ends where the file does: it has no records when only empty lines were left.
///
/// What a far file has is fetched ahead: until it is there a poll finds nothing.
final class FileSplitReader: SplitReader {
    private let file: any File
    private let split: SourceSplit
    private let about: SplitFile
    /// Of CSV; nil for lines.
    private let delimiter: UInt8?
    private let pool: BlockPool
    private let blockBytes: Int
    private let ahead: ReadAhead?
    /// Where the file ended when it was opened.
    private let end: Int

    private var block: Block?
    /// The file's position of the block's first byte.
    private var blockPosition: Int
    /// Unread bytes of the block.
    private var next = 0
    private var filled = 0
    /// Up to where chunks have been given.
    private var given: Int

    /// A record of CSV has at most so many bytes: a quote that is not closed would swallow the rest of the file.
    static let csvRecordBytesMax = 16 << 20

    var highWatermark: SplitOffset? { SplitOffset(Int64(end)) }
    private var position: Int { blockPosition + next }
    var isFinished: Bool { given >= end }

    init(
        _ split: SourceSplit, at offset: SplitOffset, _ opened: TextFile, _ about: SplitFile, format: SourceFormat, blockBytes: Int,
        pool: BlockPool,
        ahead: ((any File, _ from: Int, _ to: Int) -> ReadAhead)? = nil
    ) throws(SQLError) {
        guard offset.position >= 0, offset.position <= Int64(opened.end) else {
            throw SQLError(
                .objectNotInPrerequisiteState,
                "file \"\(about.location)\" has \(opened.end) bytes, but its reader is at byte \(offset.position)",
                hint: "The file was replaced or cut. Drop the source and create it again.")
        }
        file = opened.file
        end = opened.end
        self.split = split
        self.about = about
        if case .csv(let dialect) = format { delimiter = dialect.delimiter } else { delimiter = nil }
        self.pool = pool
        self.blockBytes = blockBytes
        let start = max(Int(offset.position), opened.firstRecord)
        given = Int(offset.position)
        blockPosition = start
        self.ahead = ahead.map { $0(opened.file, start, opened.end) }
    }

    func close() {
        ahead?.close()
        block = nil
    }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        while !isFinished {
            if let chunk = cut(maxRecords: max(maxRecords, 1), maxBytes: maxBytes) {
                given = Int(chunk.nextOffset.position)
                if isFinished { block = nil }
                return chunk
            }
            if position < end {
                guard try fill() else { return nil }
            } else if block == nil {
                // Nothing but a header.
                block = pool.take(1)
            }
        }
        return nil
    }

    /// The next records of the block, or nil when it has no whole one or, before the file's end, none at all.
    private func cut(maxRecords: Int, maxBytes: Int) -> RawChunk? {
        guard let block, next < filled || position >= end else { return nil }
        let first = next
        let base = UnsafeRawBufferPointer(start: block.start + first, count: filled - first)
        let (starts, lengths) = delimiter.map { cutCSV(base, $0, maxRecords, maxBytes) } ?? cutLines(base, maxRecords, maxBytes)
        guard !starts.isEmpty || position >= end else { return nil }
        let positions = starts.map { Int64(blockPosition + first) + Int64($0) }
        // The newline that ends the last record may be one that `fill` put after the end of the file.
        let offset = SplitOffset(Int64(min(position, end)))
        return RawChunk(
            bytes: UnsafeRawPointer(block.start + first), byteCount: next - first, starts: starts, lengths: lengths, positions: positions,
            timestamps: nil, nextOffset: offset, partition: split.partition, file: about, owner: block)
    }

    /// Where lines start, and their lengths; moves `next` behind them.
    private func cutLines(_ bytes: UnsafeRawBufferPointer, _ maxRecords: Int, _ maxBytes: Int) -> ([UInt32], [Int32]) {
        var starts: [UInt32] = []
        var lengths: [Int32] = []
        let room = min(maxRecords, bytes.count / 16 + 1)
        starts.reserveCapacity(room)
        lengths.reserveCapacity(room)
        guard let base = bytes.baseAddress else { return (starts, lengths) }
        var at = 0
        while at < bytes.count, starts.count < maxRecords, starts.isEmpty || at < maxBytes {
            guard let newline = memchr(base + at, 10, bytes.count - at) else { break }
            let end = UnsafeRawPointer(newline) - base
            var length = end - at
            if length > 0, bytes[end - 1] == 13 { length -= 1 }
            if length > 0 {
                starts.append(UInt32(truncatingIfNeeded: at))
                lengths.append(Int32(truncatingIfNeeded: length))
            }
            at = end + 1
        }
        next += at
        return (starts, lengths)
    }

    private func cutCSV(_ bytes: UnsafeRawBufferPointer, _ delimiter: UInt8, _ maxRecords: Int, _ maxBytes: Int) -> ([UInt32], [Int32]) {
        let cut = CSVRecordDecoder.cut(
            bytes, delimiter: delimiter, isLast: blockPosition + filled >= end, countMax: maxRecords, bytesMax: max(maxBytes, 0))
        next += cut.byteCount
        return (cut.starts, cut.lengths)
    }

    /// Moves the unread bytes to a new block and reads on behind them; false when they are not there yet.
    private func fill() throws(SQLError) -> Bool {
        let left = filled - next
        let recordMax = delimiter == nil ? Limits.valueBytesMax : Self.csvRecordBytesMax
        guard left < recordMax else {
            throw SQLError(
                .programLimitExceeded, "the record at byte \(position) of file \"\(about.location)\" is longer than \(recordMax) bytes",
                hint: delimiter == nil ? "Lines of the file must end with a newline." : "Perhaps a quote there is not closed.")
        }
        // One byte stays free for the newline after the last line.
        let room = max(blockBytes, min(left * 2, recordMax))
        let fresh = pool.take(room + 1)
        let wanted = min(room - left, end - position - left)
        let target = UnsafeMutableRawBufferPointer(start: fresh.start + left, count: wanted)
        let began = SystemClock().monotonicNanos
        let count = try read(at: position + left, into: target)
        // What comes from afar waits for that.
        if ahead == nil { fresh.filled(byteCount: count, nanoseconds: SystemClock().monotonicNanos - began) }
        guard count > 0 else { return false }
        if let block, left > 0 { fresh.start.copyMemory(from: block.start + next, byteCount: left) }
        blockPosition = position
        block = fresh
        next = 0
        filled = left + count
        if blockPosition + filled == end, fresh.start.load(fromByteOffset: filled - 1, as: UInt8.self) != 10 {
            fresh.start.storeBytes(of: 10, toByteOffset: filled, as: UInt8.self)
            filled += 1
        }
        return true
    }

    /// All bytes that fit, or of a far file those that are there.
    private func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) throws(SQLError) -> Int {
        if let ahead { return try ahead.read(into: target) }
        let count: Int
        do throws(IOFailure) { count = try file.read(at: offset, into: target) } catch { throw error.sqlError }
        guard count == target.count else {
            throw SQLError(.objectNotInPrerequisiteState, "file \"\(about.location)\" was cut to less than \(end) bytes while it was read")
        }
        return count
    }
}
