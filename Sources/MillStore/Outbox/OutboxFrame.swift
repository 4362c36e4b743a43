import CChecksum
package import MillBase
import MillColumnar

/// The header of a frame: rows of one epoch, all taken back or all added (`docs/internals/outbox.md`).
package struct OutboxFrame: Sendable, Hashable {
    package enum Kind: UInt8, Sendable {
        case takenBack = 1
        case added = 2
        /// What the target has of this sink is to go first.
        case clear = 3
    }

    package var byteCount: Int
    package var position: UInt64
    package var epoch: Epoch
    package var openedAtMicros: Int64
    /// Without their sign.
    package var weightSum: UInt64
    package var rowCount: Int
    package var columnCount: Int
    package var kind: Kind
    var hasWeights: Bool
    var bodyChecksum: UInt32

    package var end: UInt64 { position + UInt64(byteCount) }

    static let headerBytes = 56
    /// More than any frame has that `encode` makes of a batch: it halves larger ones.
    static let bytesMax = 1 << 31

    /// - Throws: when these bytes are no header, or one of another position.
    init(_ bytes: [UInt8], at position: UInt64) throws(RecordDamage) {
        var reader = RecordReader(bytes.prefix(Self.headerBytes))
        byteCount = Int(try reader.get(UInt32.self))
        bodyChecksum = try reader.get(UInt32.self)
        self.position = try reader.get(UInt64.self)
        epoch = Epoch(try reader.getNumber())
        openedAtMicros = try reader.get(Int64.self)
        weightSum = try reader.getNumber()
        rowCount = Int(try reader.get(UInt32.self))
        columnCount = Int(try reader.get(UInt16.self))
        guard let kind = Kind(rawValue: try reader.get(UInt8.self)) else { throw RecordDamage() }
        self.kind = kind
        hasWeights = try reader.get(UInt8.self) == 1
        let zero = try reader.get(UInt32.self)
        let sum = try reader.get(UInt32.self)
        guard zero == 0, sum == checksum(bytes.prefix(Self.headerBytes - 4)), self.position == position, byteCount >= Self.headerBytes,
            byteCount & 7 == 0, byteCount <= Self.bytesMax, rowCount <= Limits.batchRowsMax
        else { throw RecordDamage() }
    }

    /// A frame without its position, which `place` puts in.
    ///
    /// - Parameter batch: nil for `clear`. Weights are taken without their sign.
    static func encode(_ batch: DeltaBatch?, _ kind: Kind, epoch: Epoch, openedAtMicros: Int64) -> [UInt8] {
        let body = batch.map(OutboxBody.encode) ?? []
        var header = RecordWriter()
        header.put(UInt32(headerBytes + body.count))
        header.put(body.withUnsafeBytes { mill_crc32c(0, $0.baseAddress, $0.count) })
        header.put(UInt64(0))
        header.put(epoch.number)
        header.put(openedAtMicros)
        var sum = UInt64(batch?.count ?? 0)
        if let batch, let weights = batch.weights { sum = (0..<batch.count).reduce(0) { $0 &+ weights.values[$1].magnitude } }
        header.put(min(sum, 1 << 61))
        header.put(UInt32(batch?.count ?? 0))
        header.put(UInt16(truncatingIfNeeded: batch?.columns.count ?? 0))
        header.put(kind.rawValue)
        header.put(UInt8(batch.map(OutboxBody.hasWeights) == true ? 1 : 0))
        header.put(UInt32(0))
        return header.bytes + [0, 0, 0, 0] + body
    }

    /// Puts the position into an encoded frame.
    static func place(_ frame: inout [UInt8], at position: UInt64) {
        withUnsafeBytes(of: position.littleEndian) { frame.replaceSubrange(8..<16, with: $0) }
        let sum = checksum(frame.prefix(headerBytes - 4))
        withUnsafeBytes(of: sum.littleEndian) { frame.replaceSubrange((headerBytes - 4)..<headerBytes, with: $0) }
    }

    /// The rows of a whole frame; nil for `clear`.
    /// - Throws: when the body is not what was written.
    func batch(of bytes: [UInt8], types: [SQLType]) throws(RecordDamage) -> DeltaBatch? {
        guard bytes.count == byteCount else { throw RecordDamage() }
        let sum = bytes.withUnsafeBytes { mill_crc32c(0, $0.baseAddress.map { $0 + Self.headerBytes }, $0.count - Self.headerBytes) }
        guard sum == bodyChecksum else { throw RecordDamage() }
        if kind == .clear { return nil }
        guard columnCount == types.count else { throw RecordDamage() }
        return try OutboxBody.decode(bytes, from: Self.headerBytes, self, types)
    }
}

/// The rows of a frame.
enum OutboxBody {
    static func hasWeights(_ batch: DeltaBatch) -> Bool {
        guard let weights = batch.weights else { return false }
        return (0..<batch.count).contains { weights.values[$0].magnitude != 1 }
    }

    /// What a batch takes, about.
    static func byteCount(_ batch: DeltaBatch) -> Int {
        batch.columns.reduce(8 * batch.count) { sum, column in
            guard column.type.physical == .string else { return sum + batch.count * column.type.physical.stride }
            let views = column.values(StringView.self)
            return (0..<batch.count).reduce(sum + 4 * batch.count) { $0 + views[$1].count }
        }
    }

    static func encode(_ batch: DeltaBatch) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(byteCount(batch) + 64 * (batch.columns.count + 1))
        if hasWeights(batch), let weights = batch.weights {
            for row in 0..<batch.count { append(weights.values[row].magnitude, to: &bytes) }
        }
        for column in batch.columns { encode(column, batch.count, into: &bytes) }
        return bytes
    }

    private static func encode(_ column: Column, _ count: Int, into bytes: inout [UInt8]) {
        let physical = column.type.physical
        let hasNulls = column.validity != nil
        bytes += [physical.rawValue, hasNulls ? 1 : 0, 0, 0, 0, 0, 0, 0]
        if let validity = column.validity {
            bytes += UnsafeRawBufferPointer(start: validity, count: (count + 63) / 64 * 8)
        }
        guard physical == .string else {
            bytes += UnsafeRawBufferPointer(start: column.data, count: count * physical.stride)
            return pad(&bytes)
        }
        let views = column.values(StringView.self)
        var total: UInt64 = 0
        for row in 0..<count {
            let length = UInt32(truncatingIfNeeded: views[row].count)
            total += UInt64(length)
            append(length, to: &bytes)
        }
        pad(&bytes)
        append(total, to: &bytes)
        for row in 0..<count { views[row].withBytes { bytes += UnsafeRawBufferPointer($0) } }
        pad(&bytes)
    }

    private static func append<T: FixedWidthInteger>(_ value: T, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
    }

    private static func pad(_ bytes: inout [UInt8]) { while bytes.count & 7 != 0 { bytes.append(0) } }

    static func decode(_ bytes: [UInt8], from start: Int, _ frame: OutboxFrame, _ types: [SQLType]) throws(RecordDamage) -> DeltaBatch {
        var reader = Reader(bytes: bytes, offset: start)
        let count = frame.rowCount
        var weights: Weights?
        if frame.hasWeights || frame.kind == .takenBack {
            let made = Weights(count: count)
            let sign: Int64 = frame.kind == .takenBack ? -1 : 1
            if frame.hasWeights {
                try reader.take(count * 8) { memory in
                    for row in 0..<count { made.values[row] = sign * memory.loadUnaligned(fromByteOffset: row * 8, as: Int64.self) }
                }
            } else {
                made.values.update(repeating: sign, count: count)
            }
            weights = made
        }
        var columns: [Column] = []
        for type in types { columns.append(try column(type, count, &reader)) }
        guard reader.offset == bytes.count else { throw RecordDamage() }
        return DeltaBatch(columns: columns, count: count, weights: weights)
    }

    private static func column(_ type: SQLType, _ count: Int, _ reader: inout Reader) throws(RecordDamage) -> Column {
        let physical = type.physical
        var (found, hasNulls) = (UInt8(0), UInt8(0))
        try reader.take(8) { (found, hasNulls) = ($0[0], $0[1]) }
        guard found == physical.rawValue, hasNulls <= 1 else { throw RecordDamage() }
        let column = Column(type, uninitialized: count)
        if hasNulls == 1 {
            let words = (count + 63) / 64
            let bitmap = column.ensureValidity()
            try reader.take(words * 8) {
                if let base = $0.baseAddress { UnsafeMutableRawPointer(bitmap).copyMemory(from: base, byteCount: $0.count) }
            }
        }
        guard physical == .string else {
            let size = count * physical.stride
            try reader.takePadded(size) { if let base = $0.baseAddress { column.data.copyMemory(from: base, byteCount: size) } }
            return column
        }
        var lengths: [Int] = []
        lengths.reserveCapacity(count)
        try reader.takePadded(count * 4) { memory in
            for row in 0..<count { lengths.append(Int(memory.loadUnaligned(fromByteOffset: row * 4, as: UInt32.self))) }
        }
        var total = 0
        try reader.take(8) { total = Int(truncatingIfNeeded: $0.loadUnaligned(as: UInt64.self)) }
        guard total == lengths.reduce(0, +) else { throw RecordDamage() }
        let heap = StringHeap(firstChunkBytes: total + 64)
        let views = column.values(StringView.self)
        try reader.takePadded(total) { memory in
            let room = heap.allocate(total + 8)
            if let base = memory.baseAddress { room.copyMemory(from: base, byteCount: total) }
            var place = 0
            for row in 0..<count {
                views[row] =
                    lengths[row] == 0
                    ? .empty : StringView(UnsafePointer((room + place).assumingMemoryBound(to: UInt8.self)), count: lengths[row])
                place += lengths[row]
            }
        }
        column.keep(heap)
        return column
    }

    /// Bytes of a frame whose checksum is right, and that may be of another shape all the same.
    private struct Reader {
        let bytes: [UInt8]
        var offset: Int

        mutating func take(_ count: Int, _ body: (UnsafeRawBufferPointer) -> Void) throws(RecordDamage) {
            guard count >= 0, count <= bytes.count - offset else { throw RecordDamage() }
            bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
            offset += count
        }

        mutating func takePadded(_ count: Int, _ body: (UnsafeRawBufferPointer) -> Void) throws(RecordDamage) {
            try take(count, body)
            let padding = (8 - offset & 7) & 7
            try take(padding) { _ in }
        }
    }
}
