package import MillColumnar

/// Where the parts of a row lie in state: the same for every row of a table, so a row is a fixed number of bytes.
///
/// ```
/// offset  size          meaning
/// 0       8             hash of the row's key; 0 in a free row
/// 8       8 * nullWords  bit c of word c/64 set: column c is NULL, and its slot is zero
/// ...     stride of type each column's value, aligned to at most 8
/// ...     payloadBytes  the operator's own part (weights, accumulators, links), aligned to 8
/// ```
/// Strings over 12 bytes lie in the table's heap; their slot is a `StringView` into it.
package struct RowLayout: Sendable {
    package let columns: [SQLType]
    package let offsets: [Int]
    package let nullWords: Int
    package let payloadOffset: Int
    package let stride: Int

    static let hashOffset = 0
    static let nullOffset = 8

    package init(columns: [SQLType], payloadBytes: Int) {
        self.columns = columns
        nullWords = (columns.count + 63) / 64
        var offset = Self.nullOffset + 8 * nullWords
        var offsets: [Int] = []
        for column in columns {
            let width = column.physical.stride
            let alignment = min(width, 8)
            offset = (offset + alignment - 1) / alignment * alignment
            offsets.append(offset)
            offset += width
        }
        self.offsets = offsets
        payloadOffset = (offset + 7) / 8 * 8
        stride = (payloadOffset + payloadBytes + 7) / 8 * 8
    }

    var hasStrings: Bool { columns.contains { $0.physical == .string } }
}

/// A row's place in its table: page number and slot. Valid until the row is removed.
package typealias RowNumber = UInt32
