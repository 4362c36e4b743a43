import MillBase
package import MillColumnar

/// Rows of one job on one worker that came after their time was closed: what `<job>_late` shows. The job's result is that of batch
/// SQL over its input without them.
///
/// Bounded in bytes: the oldest go first, and `droppedCount` says how many went.
package final class LateRows {
    package struct Entry: Hashable, Sendable {
        /// The operator that had closed.
        package var operatorName: String
        /// Its input row as a JSON object.
        package var row: String
        /// How often the row comes; negative when it is taken back.
        package var weight: Int64
        /// What had been closed up to, microseconds since 1970.
        package var watermarkMicros: Int64
        /// When the epoch that it came in was opened.
        package var lateAtMicros: Int64

        package init(operatorName: String, row: String, weight: Int64, watermarkMicros: Int64, lateAtMicros: Int64) {
            self.operatorName = operatorName
            self.row = row
            self.weight = weight
            self.watermarkMicros = watermarkMicros
            self.lateAtMicros = lateAtMicros
        }

        var byteCount: Int { row.utf8.count + 96 }
    }

    package private(set) var entries: [Entry] = []
    /// Rows that are no longer among the entries.
    package private(set) var droppedCount: Int64 = 0
    /// Those that came, kept or not.
    package var count: Int64 { Int64(entries.count) + droppedCount }
    private var byteCount = 0
    private let bytesMax: Int
    private var nowMicros: Int64 = 0

    /// - Parameter bytesMax: of the entries; a checkpoint writes them whole.
    package init(bytesMax: Int = 4 << 20) { self.bytesMax = bytesMax }

    func openEpoch(atMicros now: Int64) { nowMicros = now }

    /// Keeps the rows of a batch that a selection names.
    func add(_ batch: DeltaBatch, _ rows: borrowing Selection, schema: Schema, operatorName: String, watermark: Int64) {
        for position in 0..<rows.count {
            let row = Int(rows.rows[position])
            let weight = batch.weight(row)
            guard weight != 0 else { continue }
            let entry = Entry(
                operatorName: operatorName, row: Self.json(batch, row, schema), weight: weight, watermarkMicros: watermark, lateAtMicros: nowMicros)
            entries.append(entry)
            byteCount += entry.byteCount
        }
        dropOldest()
    }

    /// Down to seven eighths of the room, so that the rest need not move for every row.
    private func dropOldest() {
        guard byteCount > bytesMax else { return }
        var dropped = 0
        while byteCount > bytesMax / 8 * 7, dropped < entries.count {
            byteCount -= entries[dropped].byteCount
            dropped += 1
        }
        entries.removeFirst(dropped)
        droppedCount += Int64(dropped)
    }

    func restore(_ kept: Kept) {
        entries = kept.entries
        droppedCount = kept.droppedCount
        byteCount = entries.reduce(0) { $0 + $1.byteCount }
        dropOldest()
    }

    /// What one worker has.
    package struct Kept: Sendable {
        package var entries: [Entry] = []
        package var droppedCount: Int64 = 0

        package init() {}

        package mutating func merge(_ other: Kept) {
            entries += other.entries
            droppedCount += other.droppedCount
        }
    }

    package var kept: Kept {
        var kept = Kept()
        kept.entries = entries
        kept.droppedCount = droppedCount
        return kept
    }

    // MARK: Rows as text

    /// A row as JSON: numbers and truth values as such, every other value as PostgreSQL's text of it.
    package static func json(_ batch: DeltaBatch, _ row: Int, _ schema: Schema) -> String {
        var text: [UInt8] = [0x7B]
        for (index, column) in batch.columns.enumerated() {
            if index > 0 { text += Array(", ".utf8) }
            quote(Array(schema[index].name.utf8), &text)
            text += Array(": ".utf8)
            if column.isNull(row) {
                text += Array("null".utf8)
                continue
            }
            var value: [UInt8] = []
            column.appendText(row: row, to: &value)
            switch column.type {
            case .int16, .int32, .int64: text += value
            // Not NaN and the infinities.
            case .numeric where value.last.map { (0x30...0x39).contains($0) } == true: text += value
            case .boolean: text += Array((value.first == 0x74 ? "true" : "false").utf8)
            default: quote(value, &text)
            }
        }
        text.append(0x7D)
        return String(decoding: text, as: UTF8.self)
    }

    private static func quote(_ bytes: [UInt8], _ text: inout [UInt8]) {
        text.append(0x22)
        for byte in bytes {
            switch byte {
            case 0x22, 0x5C: text += [0x5C, byte]
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                text += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: text.append(byte)
            }
        }
        text.append(0x22)
    }
}
