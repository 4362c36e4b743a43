import MillBase
import MillConnectorKit
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Lines of one file, from a byte position to the end that the file had when it was opened.
///
/// Reads a block at a time and cuts chunks out of it; what is left of the last line moves to the front of the next block, which
/// grows when a line fills it. A line ends with a newline, or carriage return and newline, which are not part of it; empty lines
/// are passed over, as NDJSON tools do; the last line needs no newline. Chunks share their block and keep it alive. The last one ends
/// where the file does: it has no records when only empty lines were left.
final class FileSplitReader: SplitReader {
    private let file: any File
    private let split: SourceSplit
    private let pool: BlockPool
    private let blockBytes: Int
    /// Where the file ended when it was opened.
    private let end: Int

    private var block: Block?
    /// The file's position of the block's first byte.
    private var blockPosition: Int
    /// Unread bytes of the block.
    private var next = 0
    private var filled = 0

    var highWatermark: SplitOffset? { SplitOffset(Int64(end)) }
    private var position: Int { blockPosition + next }
    var isFinished: Bool { position >= end }

    init(_ split: SourceSplit, at offset: SplitOffset, files: any FileSystem, blockBytes: Int, pool: BlockPool) throws(SQLError) {
        do throws(IOFailure) {
            file = try files.open(split.name, .read)
            end = try file.size()
        } catch { throw error.sqlError }
        guard offset.position >= 0, offset.position <= Int64(end) else {
            throw SQLError(
                .objectNotInPrerequisiteState, "file \"\(split.name)\" has \(end) bytes, but its reader is at byte \(offset.position)",
                hint: "The file was replaced or cut. Drop the source and create it again.")
        }
        self.split = split
        self.pool = pool
        self.blockBytes = blockBytes
        blockPosition = Int(offset.position)
    }

    func close() { block = nil }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        while !isFinished {
            if let chunk = cut(maxRecords: max(maxRecords, 1), maxBytes: maxBytes) { return chunk }
            if position < end { try fill() }
        }
        return nil
    }

    /// The next lines of the block, or nil when it has no whole line or, before the file's end, none that is a record.
    private func cut(maxRecords: Int, maxBytes: Int) -> RawChunk? {
        guard let block, next < filled else { return nil }
        let first = next
        let base = UnsafeRawPointer(block.start)
        var starts: [UInt32] = []
        var lengths: [Int32] = []
        var positions: [Int64] = []
        let room = min(maxRecords, (filled - next) / 16 + 1)
        starts.reserveCapacity(room)
        lengths.reserveCapacity(room)
        positions.reserveCapacity(room)
        while next < filled, starts.count < maxRecords, starts.isEmpty || next - first < maxBytes {
            guard let newline = memchr(base + next, 10, filled - next) else { break }
            let end = UnsafeRawPointer(newline) - base
            var length = end - next
            if length > 0, base.load(fromByteOffset: end - 1, as: UInt8.self) == 13 { length -= 1 }
            if length > 0 {
                starts.append(UInt32(truncatingIfNeeded: next - first))
                lengths.append(Int32(truncatingIfNeeded: length))
                positions.append(Int64(blockPosition + next))
            }
            next = end + 1
        }
        guard !starts.isEmpty || position >= end else { return nil }
        // The newline that ends the last line may be one that `fill` put after the end of the file.
        let offset = SplitOffset(Int64(min(position, end)))
        return RawChunk(
            bytes: base + first, byteCount: next - first, starts: starts, lengths: lengths, positions: positions, timestamps: nil, nextOffset: offset,
            partition: split.partition, owner: block)
    }

    /// Moves the unread bytes to a new block and reads on behind them.
    private func fill() throws(SQLError) {
        let left = filled - next
        guard left < Limits.valueBytesMax else {
            throw SQLError(
                .programLimitExceeded, "the line at byte \(position) of file \"\(split.name)\" is longer than \(Limits.valueBytesMax) bytes",
                hint: "Lines of the file must end with a newline.")
        }
        // One byte stays free for the newline after the last line.
        let fresh = pool.take(max(blockBytes, left * 2) + 1)
        if let block, left > 0 { fresh.start.copyMemory(from: block.start + next, byteCount: left) }
        let wanted = min(max(blockBytes, left * 2) - left, end - position - left)
        var count = 0
        do throws(IOFailure) {
            count = try file.read(at: position + left, into: UnsafeMutableRawBufferPointer(start: fresh.start + left, count: wanted))
        } catch { throw error.sqlError }
        guard count == wanted else {
            throw SQLError(.objectNotInPrerequisiteState, "file \"\(split.name)\" was cut to less than \(end) bytes while it was read")
        }
        blockPosition = position
        block = fresh
        next = 0
        filled = left + count
        if blockPosition + filled == end, fresh.start.load(fromByteOffset: filled - 1, as: UInt8.self) != 10 {
            fresh.start.storeBytes(of: 10, toByteOffset: filled, as: UInt8.self)
            filled += 1
        }
    }
}
