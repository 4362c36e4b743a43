import MillIO
import MillKafkaWire

/// One file of record batches and where to look in it. Guarded by its partition's lock, but for the file, which any thread
/// may read.
final class Segment: @unchecked Sendable {
    // Sendable because every use of a `var` is under the partition's state lock, or of a complete segment, which changes no more.
    let baseOffset: Int64
    /// How often compaction has written it anew; the higher of two is the one that holds.
    let generation: Int
    let file: any File
    let indexPath: String
    /// No record's offset is above: it could be counted on.
    static let offsetMax = Int64.max >> 1
    /// Bytes written; the part readers may see ends at `visibleSize`.
    var size = 0
    var visibleSize = 0
    var nextOffset: Int64
    /// The largest that a producer gave.
    var maxTimestamp: Int64 = -1
    /// When the broker took the first and the last batch, in milliseconds of its own clock; -1 when there is none.
    private(set) var firstAppendMillis: Int64 = -1
    private(set) var lastAppendMillis: Int64 = -1
    /// Below this offset compaction has looked for newer records of the same keys; -1 before it has been here.
    var cleanedTo: Int64 = -1
    var index: [IndexEntry] = []
    /// Bytes that its index file covers, or would if there had been room for it. Used by the flusher alone.
    var indexedSize = 0
    /// The first position whose batch gets the next entry.
    private var nextIndexPosition = 0

    /// Where a batch starts, and the largest timestamp before it.
    struct IndexEntry: Equatable {
        var offsetDelta: UInt32
        var position: UInt32
        var maxTimestampBefore: Int64
    }

    init(baseOffset: Int64, generation: Int, file: any File, indexPath: String) {
        self.baseOffset = baseOffset
        self.generation = generation
        self.file = file
        self.indexPath = indexPath
        nextOffset = baseOffset
    }

    static func name(_ baseOffset: Int64, generation: Int = 0) -> String {
        let digits = String(baseOffset)
        return String(repeating: "0", count: max(0, 20 - digits.count)) + digits + (generation > 0 ? "-\(generation)" : "")
    }

    /// What a file's name without its ending says; nil when it is no segment's.
    static func parse(_ name: Substring) -> (baseOffset: Int64, generation: Int)? {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts[0].count == 20, let base = Int64(parts[0]), (0...offsetMax).contains(base) else { return nil }
        guard parts.count == 2 else { return (base, 0) }
        guard let generation = Int(parts[1]), generation > 0 else { return nil }
        return (base, generation)
    }

    /// Notes a batch that starts at the segment's end.
    func add(_ batch: RecordBatch, indexIntervalBytes: Int) {
        if size >= nextIndexPosition {
            index.append(IndexEntry(offsetDelta: UInt32(batch.baseOffset - baseOffset), position: UInt32(size), maxTimestampBefore: maxTimestamp))
            nextIndexPosition = size + indexIntervalBytes
        }
        size += batch.bytes.count
        nextOffset = batch.nextOffset
        if !batch.isControl { maxTimestamp = max(maxTimestamp, batch.maxTimestamp) }
    }

    /// Notes when the broker took something.
    func noteAppend(_ millis: Int64) {
        if firstAppendMillis < 0 { firstAppendMillis = millis }
        lastAppendMillis = max(lastAppendMillis, millis)
    }

    /// Whether its first record came longer ago than that.
    func isOlder(than millis: Int64, _ nowMillis: Int64) -> Bool { firstAppendMillis >= 0 && nowMillis - firstAppendMillis >= millis }

    /// Takes over the age of segments whose records it has got.
    func inheritAge(of sources: [Segment]) {
        firstAppendMillis = sources.lazy.map(\.firstAppendMillis).filter { $0 >= 0 }.min() ?? -1
        lastAppendMillis = sources.lazy.map(\.lastAppendMillis).max() ?? -1
    }

    /// A position at or before the batch that holds `offset`.
    func position(ofOffset offset: Int64) -> Int {
        Int(last { Int64($0.offsetDelta) <= offset - baseOffset }?.position ?? 0)
    }

    /// A position such that every batch before it is older than `timestamp`.
    func position(ofTimestamp timestamp: Int64) -> Int {
        Int(last { $0.maxTimestampBefore < timestamp }?.position ?? 0)
    }

    /// The last entry for which `holds`, which is true for a prefix.
    private func last(where holds: (IndexEntry) -> Bool) -> IndexEntry? {
        var low = 0
        var high = index.count
        while low < high {
            let middle = (low + high) / 2
            if holds(index[middle]) { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : index[low - 1]
    }

    // MARK: The index file (docs/internals/log.md)

    private static let magic: Int64 = 0x4D49_4C4C_494E_4458  // MILLINDX
    private static let version: Int32 = 2

    /// `producers` and `transactions` are as of the segment's end.
    func encodedIndex(_ producers: ProducerStates, _ transactions: TransactionIndex) -> WireBytes {
        var writer = WireWriter()
        writer.int64(Self.magic)
        writer.int32(Self.version)
        writer.int64(baseOffset)
        writer.int64(Int64(size))
        writer.int64(nextOffset)
        writer.int64(maxTimestamp)
        writer.int64(firstAppendMillis)
        writer.int64(lastAppendMillis)
        writer.int64(cleanedTo)
        writer.int32(Int32(index.count))
        for entry in index {
            writer.uint32(entry.offsetDelta)
            writer.uint32(entry.position)
            writer.int64(entry.maxTimestampBefore)
        }
        producers.write(to: &writer)
        transactions.write(to: &writer, abortedIn: baseOffset..<nextOffset)
        return writer.finishWithChecksum()
    }

    /// Takes over what a valid index file says; nil, and nothing changed, when it is not valid.
    func restore(fromIndex bytes: WireBytes) -> (ProducerStates, TransactionIndex)? {
        guard let content = bytes.verifyingTrailingChecksum() else { return nil }
        var reader = WireReader(content)
        do throws(WireError) {
            guard try reader.int64() == Self.magic, try reader.int32() == Self.version, try reader.int64() == baseOffset else { return nil }
            let covered = try reader.int64()
            let next = try reader.int64()
            let timestamp = try reader.int64()
            let (firstAppend, lastAppend, cleaned) = (try reader.int64(), try reader.int64(), try reader.int64())
            var entries: [IndexEntry] = []
            for _ in 0..<max(0, try reader.int32()) {
                entries.append(IndexEntry(offsetDelta: try reader.uint32(), position: try reader.uint32(), maxTimestampBefore: try reader.int64()))
            }
            let producers = try ProducerStates(from: &reader)
            let transactions = try TransactionIndex(from: &reader)
            try reader.finish()
            guard covered >= 0, covered <= Int64(UInt32.max), next >= baseOffset, next - baseOffset <= Int64(Int32.max) + 1,
                Self.isAscending(entries, below: covered)
            else { return nil }
            size = Int(covered)
            indexedSize = size
            nextOffset = next
            maxTimestamp = timestamp
            (firstAppendMillis, lastAppendMillis, cleanedTo) = (firstAppend, lastAppend, cleaned)
            index = entries
            nextIndexPosition = size
            return (producers, transactions)
        } catch {
            return nil
        }
    }

    private static func isAscending(_ entries: [IndexEntry], below end: Int64) -> Bool {
        let isSorted = zip(entries, entries.dropFirst()).allSatisfy { $0.position < $1.position && $0.offsetDelta < $1.offsetDelta }
        return isSorted && entries.allSatisfy { Int64($0.position) < end }
    }
}

extension WireWriter {
    /// Everything written and its CRC-32C.
    func finishWithChecksum() -> WireBytes {
        let content = finish()
        var whole = WireWriter()
        whole.raw(content)
        whole.uint32(content.withUnsafeBytes { CRC32C.checksum($0) })
        return whole.finish()
    }
}

extension WireBytes {
    /// The bytes before a CRC-32C of them; nil when it does not fit.
    func verifyingTrailingChecksum() -> WireBytes? {
        guard count >= 4 else { return nil }
        let content = slice(offset: 0, count: count - 4)
        var tail = WireReader(slice(offset: count - 4, count: 4))
        guard let expected = try? tail.uint32() else { return nil }  // four bytes are there
        return content.withUnsafeBytes { CRC32C.checksum($0) } == expected ? content : nil
    }
}

extension WireBytes: ByteRun {}

extension File {
    /// `count` bytes from `offset`, or fewer at the end.
    func readBytes(at offset: Int, count: Int) throws(IOFailure) -> WireBytes {
        let buffer = WireBuffer(capacity: count)
        let found = try read(at: offset, into: UnsafeMutableRawBufferPointer(start: buffer.base, count: count))
        buffer.setCount(found)
        return buffer.bytes
    }

    func readAll() throws(IOFailure) -> WireBytes { try readBytes(at: 0, count: try size()) }

    func writeAll(_ bytes: WireBytes, at offset: Int = 0) throws(IOFailure) {
        let result: Result<Void, IOFailure> = bytes.withUnsafeBytes { memory in
            do throws(IOFailure) { return .success(try write(memory, at: offset)) } catch { return .failure(error) }
        }
        try result.get()
    }
}
