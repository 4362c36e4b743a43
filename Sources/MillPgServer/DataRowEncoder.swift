import MillBase
import MillColumnar
import MillPgWire

/// Writes batches as DataRow messages, straight from the columns into the connection's buffer.
///
/// One encoder serves one execution. What each column needs is decided once per batch, so a cell costs one switch; no
/// `String` and no buffer is made for a value. DataRow: `D`, length, column count (int16), then for each value its length
/// (int32, -1 for NULL) and bytes.
struct DataRowEncoder {
    /// How the values of a column are written.
    enum Cell {
        case textBoolean
        case textInt16
        case textInt32
        case textInt64
        /// The bytes of a string as they are: text, jsonb as text, bytea as binary.
        case bytes
        case text
        case boolean
        case int16
        case int32
        case int64
        case float32
        case float64
        case date
        case timestamp
        case interval
        case numeric
        case jsonb
        /// An oid kept in a wider integer.
        case oid32
        case oid64
    }

    private let columns: [PgColumn]
    private let formats: [PgFormat]
    private let textEncoder: PgTextEncoder

    init(columns: [PgColumn], formats: [PgFormat], textEncoder: @escaping PgTextEncoder) {
        self.columns = columns
        self.formats = formats
        self.textEncoder = textEncoder
    }

    /// Where in a batch the next row to send is; a row of weight n is sent n times.
    struct Position {
        var row = 0
        var sentOfRow: Int64 = 0
    }

    /// Writes rows from `position` on until the batch ends, `rowLimit` rows are written or the buffer reaches `bytesMax`.
    ///
    /// - Returns: the number of rows written.
    /// - Throws: XX000 for a batch that does not fit its description, 0A000 for a type without binary form.
    func encode(
        _ batch: DeltaBatch, from position: inout Position, rowLimit: Int, bytesMax: Int, into writer: inout MessageWriter
    ) throws(SQLError) -> Int {
        guard batch.columns.count == columns.count else {
            throw SQLError(.internalError, "a result of \(columns.count) columns got rows of \(batch.columns.count)")
        }
        var cells: [Cell] = []
        for (index, column) in batch.columns.enumerated() {
            cells.append(try cell(column.type, as: columns[index], PgFormat.resolve(formats, at: index)))
        }
        var written = 0
        while position.row < batch.count, written < rowLimit, writer.count < bytesMax {
            let weight = batch.weight(position.row)
            guard weight >= 0 else { throw SQLError(.internalError, "a result row has the negative weight \(weight)") }
            if position.sentOfRow < weight {
                let start = writer.bytes.count
                append(row: position.row, of: batch.columns, cells, to: &writer.bytes)
                guard writer.bytes.count - start <= Int(Int32.max) else {
                    writer.bytes.removeSubrange(start...)
                    throw SQLError(.programLimitExceeded, "a result row is over 2 GiB")
                }
                position.sentOfRow += 1
                written += 1
            }
            if position.sentOfRow >= weight {
                position.row += 1
                position.sentOfRow = 0
            }
        }
        return written
    }

    private func append(row: Int, of columns: [Column], _ cells: [Cell], to out: inout [UInt8]) {
        out.append(UInt8(ascii: "D"))
        let lengthPosition = out.count
        out.appendBigEndian(Int32(0))
        out.appendBigEndian(Int16(truncatingIfNeeded: cells.count))
        for index in cells.indices {
            let column = columns[index]
            if column.isNull(row) {
                out.appendBigEndian(Int32(-1))
            } else {
                append(cells[index], column, row, to: &out)
            }
        }
        out.overwriteBigEndian(Int32(truncatingIfNeeded: out.count - lengthPosition), at: lengthPosition)
    }

    private func append(_ cell: Cell, _ column: Column, _ row: Int, to out: inout [UInt8]) {
        switch cell {
        case .textBoolean:
            out.appendBigEndian(Int32(1))
            out.append(column.values(UInt8.self)[row] != 0 ? UInt8(ascii: "t") : UInt8(ascii: "f"))
        case .textInt16: out.appendDecimalField(Int64(column.values(Int16.self)[row]))
        case .textInt32: out.appendDecimalField(Int64(column.values(Int32.self)[row]))
        case .textInt64: out.appendDecimalField(column.values(Int64.self)[row])
        case .bytes:
            column.values(StringView.self)[row].withBytes { bytes in
                out.appendBigEndian(Int32(truncatingIfNeeded: bytes.count))
                out.append(contentsOf: bytes)
            }
        case .jsonb:
            column.values(StringView.self)[row].withBytes { bytes in
                out.appendBigEndian(Int32(truncatingIfNeeded: bytes.count + 1))
                out.append(1)
                out.append(contentsOf: bytes)
            }
        case .text: out.appendField { textEncoder(column, row, &$0) }
        case .numeric: out.appendField { PgNumeric(column.values(Decimal.self)[row]).append(to: &$0) }
        case .boolean: out.appendFixedField(column.values(UInt8.self)[row] != 0 ? UInt8(1) : 0)
        case .int16: out.appendFixedField(column.values(Int16.self)[row])
        case .int32: out.appendFixedField(column.values(Int32.self)[row])
        case .int64: out.appendFixedField(column.values(Int64.self)[row])
        case .float32: out.appendFixedField(column.values(Float.self)[row].bitPattern)
        case .float64: out.appendFixedField(column.values(Double.self)[row].bitPattern)
        case .date: out.appendFixedField(PgBinary.wireDate(column.values(Int32.self)[row]))
        case .timestamp: out.appendFixedField(PgBinary.wireTimestamp(column.values(Int64.self)[row]))
        case .interval:
            let interval = column.values(Interval.self)[row]
            out.appendBigEndian(Int32(16))
            out.appendBigEndian(interval.micros)
            out.appendBigEndian(interval.days)
            out.appendBigEndian(interval.months)
        case .oid32: out.appendFixedField(UInt32(bitPattern: column.values(Int32.self)[row]))
        case .oid64: out.appendFixedField(UInt32(truncatingIfNeeded: column.values(Int64.self)[row]))
        }
    }
}

// MARK: - Choosing the form of a column

extension DataRowEncoder {
    private func cell(_ type: SQLType, as column: PgColumn, _ format: PgFormat) throws(SQLError) -> Cell {
        switch format {
        case .text: return Self.textCell(type)
        case .binary:
            guard let cell = Self.binaryCell(type, as: column.type) else {
                throw SQLError(
                    .featureNotSupported, "column \"\(column.name)\" has no binary form", hint: "Ask for the result in text format.")
            }
            return cell
        }
    }

    private static func textCell(_ type: SQLType) -> Cell {
        switch type {
        case .boolean: .textBoolean
        case .int16: .textInt16
        case .int32: .textInt32
        case .int64: .textInt64
        case .varchar, .jsonb, .unknown: .bytes
        case .float32, .float64, .numeric, .bytea, .date, .time, .timestamp, .timestamptz, .interval: .text
        }
    }

    /// The binary form when the column's values lie as the described type expects; nil when there is none.
    private static func binaryCell(_ type: SQLType, as wire: PgOID) -> Cell? {
        switch (type, wire) {
        case (.boolean, .bool): .boolean
        case (.int16, .int2): .int16
        case (.int32, .int4): .int32
        case (.int64, .int8): .int64
        case (.int32, .oid), (.int32, .regproc), (.int32, .regclass), (.int32, .regtype), (.int32, .regnamespace): .oid32
        case (.int64, .oid), (.int64, .regproc), (.int64, .regclass), (.int64, .regtype), (.int64, .regnamespace): .oid64
        case (.float32, .float4): .float32
        case (.float64, .float8): .float64
        case (.numeric, .numeric): .numeric
        case (.varchar, .text), (.varchar, .varchar), (.varchar, .bpchar), (.varchar, .name), (.varchar, .char), (.varchar, .unknown),
            (.varchar, .json), (.unknown, .text), (.unknown, .unknown):
            .bytes
        case (.bytea, .bytea): .bytes
        case (.date, .date): .date
        case (.time, .time): .int64
        case (.timestamp, .timestamp), (.timestamptz, .timestamptz): .timestamp
        case (.interval, .interval): .interval
        case (.jsonb, .jsonb): .jsonb
        case (.jsonb, .json): .bytes
        default: nil
        }
    }
}

// MARK: - Fields

extension [UInt8] {
    /// A value of fixed width behind its length.
    @inline(__always)
    fileprivate mutating func appendFixedField<T: FixedWidthInteger>(_ value: T) {
        appendBigEndian(Int32(MemoryLayout<T>.size))
        appendBigEndian(value)
    }

    /// A value of any width behind its length, which is patched after `body` wrote the bytes.
    @inline(__always)
    fileprivate mutating func appendField(_ body: (inout [UInt8]) -> Void) {
        let start = count
        appendBigEndian(Int32(0))
        body(&self)
        overwriteBigEndian(Int32(truncatingIfNeeded: count - start - 4), at: start)
    }

    /// An integer in decimal digits behind its length.
    fileprivate mutating func appendDecimalField(_ value: Int64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 24) { digits in
            var position = 24
            var rest = value.magnitude
            repeat {
                let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
                position -= 1
                digits[position] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: remainder)
                rest = quotient
            } while rest != 0
            if value < 0 {
                position -= 1
                digits[position] = UInt8(ascii: "-")
            }
            position -= 4
            let length = UInt32(20 - position)
            digits[position] = 0
            digits[position + 1] = 0
            digits[position + 2] = 0
            digits[position + 3] = UInt8(truncatingIfNeeded: length)
            append(contentsOf: UnsafeMutableBufferPointer(rebasing: digits[position...]))
        }
    }
}
