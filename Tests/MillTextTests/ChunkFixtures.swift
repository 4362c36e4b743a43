import MillColumnar
import MillConnectorKit

/// How test records lie in their chunk's buffer.
enum ChunkLayout: CaseIterable {
    /// A newline after each: parsed many at once.
    case lines
    /// Carriage return and newline after each, and blank lines between.
    case carriageReturns
    /// Quotes and brackets between the records, as in a network buffer: parsed from a copy.
    case scattered
}

/// A buffer of a chunk, with its slack full of a byte that would be taken for more of the record.
final class ChunkBytes {
    let start: UnsafeMutableRawPointer
    init(_ bytes: [UInt8], slack: Character = "}") {
        start = .allocate(byteCount: bytes.count + 64, alignment: 16)
        start.initializeMemory(as: UInt8.self, repeating: slack.asciiValue ?? 0, count: bytes.count + 64)
        bytes.withUnsafeBytes { start.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(start), byteCount: bytes.count) }
    }
    deinit { start.deallocate() }
}

extension RawChunk {
    static func records(_ records: [String], _ layout: ChunkLayout = .lines) -> RawChunk {
        self.records(records.map { Array($0.utf8) }, layout)
    }

    /// A chunk of these records; nil is a tombstone. Positions count from 0, times are 1000 times that.
    static func records(_ records: [[UInt8]?], _ layout: ChunkLayout = .lines) -> RawChunk {
        var bytes: [UInt8] = []
        var starts: [UInt32] = []
        var lengths: [Int32] = []
        for record in records {
            if layout == .scattered { bytes += Array(#""{["#.utf8) }
            starts.append(UInt32(bytes.count))
            lengths.append(record.map { Int32($0.count) } ?? -1)
            bytes += record ?? []
            switch layout {
            case .lines: bytes += [10]
            case .carriageReturns: bytes += [13, 10, 13, 10]
            case .scattered: bytes += Array("}\"".utf8)
            }
        }
        let positions = records.indices.map(Int64.init)
        let owner = ChunkBytes(bytes)
        return RawChunk(
            bytes: UnsafeRawPointer(owner.start), byteCount: bytes.count, starts: starts, lengths: lengths, positions: positions,
            timestamps: positions.map { $0 == 4 ? RawChunk.unknownTime : $0 * 1000 }, nextOffset: SplitOffset(Int64(records.count)),
            partition: 3, owner: owner)
    }
}

extension DecodedChunk {
    /// All rows as plain text, NULL as nil.
    var rows: [[String?]] {
        batches.flatMap { batch in
            (0..<batch.count).map { row in batch.columns.map { $0.plain(row) } }
        }
    }
}

extension Column {
    func plain(_ row: Int) -> String? {
        switch scalar(row) {
        case .null: nil
        case .boolean(let value): "\(value)"
        case .int(let value): "\(value)"
        case .float(let value): "\(value)"
        case .decimal(let value): value.isFinite ? "\(value.unscaled)e-\(value.scale)" : "\(value.kind)"
        case .string(let value): value
        case .bytes(let value): "\(value)"
        case .interval(let value): "\(value.months) \(value.days) \(value.micros)"
        }
    }
}
