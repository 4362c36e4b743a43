import MillBase
import MillColumnar
import MillConnectorKit
import MillStore

/// A source with its side split: what its connector gives, and the corrected records of `REPLAY REJECTS`.
///
/// The side split is a split like any other: its offsets are in epochs and checkpoints, a new view reads it from its beginning. It is there
/// once it has a record.
final class ReplayingConnector: SourceConnector {
    private let connector: any SourceConnector
    let log: ReplayLog

    /// No partition has this number.
    static let split = SourceSplit(name: "replayed", topic: "replayed", partition: -1)

    init(_ connector: any SourceConnector, _ log: ReplayLog) {
        self.connector = connector
        self.log = log
    }

    var isBounded: Bool { connector.isBounded }
    func recordCount(_ split: SourceSplit, from start: SplitOffset, to end: SplitOffset) -> Int64? {
        split == Self.split ? max(end.position - start.position, 0) : connector.recordCount(split, from: start, to: end)
    }
    var status: String? { connector.status }
    var incarnation: String? { connector.incarnation }
    func expect(incarnation: String) { connector.expect(incarnation: incarnation) }
    func expect(_ splits: [SourceSplit]) { connector.expect(splits.filter { $0 != Self.split }) }

    func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] { try connector.resolveOrigin() }

    func currentSplits() throws(SQLError) -> [SourceSplit] { try connector.currentSplits() + (log.count > 0 ? [Self.split] : []) }

    func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] {
        var found = try connector.highWatermarks(splits.filter { $0 != Self.split })
        if splits.contains(Self.split) { found[Self.split] = SplitOffset(Int64(log.count)) }
        return found
    }

    func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) -> any SplitReader {
        guard split == Self.split else { return try connector.openReader(split, at: offset, onData: onData) }
        // What is read was synced before.
        guard (0...Int64(log.count)).contains(offset.position) else {
            throw SQLError(
                .dataCorrupted, "the side split ends with \(log.count) records, and \(offset.position) were read from it",
                hint: "Restore the data directory from a copy.")
        }
        return ReplayReader(log, at: offset, onData: onData)
    }

    func onSplitChange(_ body: @escaping @Sendable () -> Void) -> (any Sendable)? {
        // REPLAY hands the side split over by itself.
        connector.onSplitChange(body)
    }
}

/// Reads a side split; owned by one worker.
private final class ReplayReader: SplitReader {
    private let log: ReplayLog
    private var next: Int
    private var listener: Int?

    init(_ log: ReplayLog, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) {
        self.log = log
        next = Int(offset.position)
        listener = log.addListener(onData)
    }

    let isFinished = false
    var highWatermark: SplitOffset? { SplitOffset(Int64(log.count)) }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        let entries = log.entries(from: next, countMax: maxRecords, bytesMax: maxBytes)
        guard !entries.isEmpty else { return nil }
        defer { next += entries.count }
        return RawChunk(lines: entries.map(\.record), from: Int64(next), partition: ReplayingConnector.split.partition)
    }

    func close() {
        if let listener { log.removeListener(listener) }
        listener = nil
    }
}

extension RawChunk {
    /// Records in memory, a newline after each, with positions that count from `first`.
    convenience init(lines: [[UInt8]], from first: Int64, partition: Int32) {
        let byteCount = lines.reduce(0) { $0 + $1.count + 1 }
        let buffer = LineBuffer(byteCount)
        var starts: [UInt32] = []
        var end = 0
        for line in lines {
            starts.append(UInt32(end))
            line.withUnsafeBytes { bytes in
                if let base = bytes.baseAddress { (buffer.start + end).copyMemory(from: base, byteCount: bytes.count) }
            }
            end += line.count
            buffer.start.storeBytes(of: 10, toByteOffset: end, as: UInt8.self)
            end += 1
        }
        self.init(
            bytes: UnsafeRawPointer(buffer.start), byteCount: byteCount, starts: starts, lengths: lines.map { Int32(clamping: $0.count) },
            positions: Array(first..<first + Int64(lines.count)), timestamps: nil, nextOffset: SplitOffset(first + Int64(lines.count)),
            partition: partition, owner: buffer)
    }
}

/// Memory of a chunk, with what a decoder may touch behind its end.
private final class LineBuffer {
    let start: UnsafeMutableRawPointer

    init(_ byteCount: Int) {
        start = .allocate(byteCount: byteCount + 64, alignment: 8)
        (start + byteCount).initializeMemory(as: UInt8.self, repeating: 0, count: 64)
    }

    deinit { start.deallocate() }
}
