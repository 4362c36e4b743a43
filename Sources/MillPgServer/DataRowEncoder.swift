import MillBase
import MillColumnar
import MillPgWire

/// Writes batches as DataRow messages, straight from the columns into the connection's buffer.
///
/// One encoder serves one execution. What each column needs is decided once per batch, so a cell costs one switch (about
/// 8 ns for a fixed width); no `String` and no buffer is made for a value. DataRow: `D`, length, column count (int16), then
/// for each value its length (int32, -1 for NULL) and bytes.
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

    /// A column of the batch at hand with what a row's loop reads of it; the batch outlives it.
    private struct CellSource {
        let cell: Cell
        let data: UnsafeMutableRawPointer
        let validity: UnsafeMutablePointer<UInt64>?
        /// Its place in the batch.
        let column: Int

        @inline(__always)
        func value<T: BitwiseCopyable>(_: T.Type, _ row: Int) -> T {
            data.load(fromByteOffset: row * MemoryLayout<T>.stride, as: T.self)
        }
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
        var cells: [CellSource] = []
        for (index, column) in batch.columns.enumerated() {
            cells.append(
                CellSource(
                    cell: try cell(column.type, as: columns[index], PgFormat.resolve(formats, at: index)), data: column.data,
                    validity: column.validity, column: index))
        }
        let room = bytesMax - writer.count
        var buffer = RowBuffer(capacity: min(room, 64 << 10) + 4096)
        // One value's bytes on their way from an encoder that appends to an array.
        var scratch: [UInt8] = []
        var written = 0
        while position.row < batch.count, written < rowLimit, buffer.count < room {
            let weight = batch.weight(position.row)
            guard weight >= 0 else { throw SQLError(.internalError, "a result row has the negative weight \(weight)") }
            if position.sentOfRow < weight {
                let start = buffer.count
                append(row: position.row, of: batch, cells, &scratch, to: &buffer)
                guard buffer.count - start <= Int(Int32.max) else {
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
        writer.bytes.append(contentsOf: buffer.bytes)
        return written
    }

    private func append(row: Int, of batch: DeltaBatch, _ cells: [CellSource], _ scratch: inout [UInt8], to out: inout RowBuffer) {
        out.reserve(7)
        out.store(UInt8(ascii: "D"))
        let lengthPosition = out.count
        out.store(Int32(0))
        out.store(Int16(truncatingIfNeeded: cells.count))
        for cell in cells {
            if let validity = cell.validity, validity[row >> 6] & (1 << UInt64(row & 63)) == 0 {
                out.reserve(4)
                out.store(Int32(-1))
            } else {
                append(cell, batch, row, &scratch, to: &out)
            }
        }
        out.patch(Int32(truncatingIfNeeded: out.count - lengthPosition), at: lengthPosition)
    }

    @inline(__always)
    private func append(_ source: CellSource, _ batch: DeltaBatch, _ row: Int, _ scratch: inout [UInt8], to out: inout RowBuffer) {
        switch source.cell {
        case .textBoolean: out.field(source.value(UInt8.self, row) != 0 ? UInt8(ascii: "t") : UInt8(ascii: "f"))
        case .textInt16: out.decimalField(Int64(source.value(Int16.self, row)))
        case .textInt32: out.decimalField(Int64(source.value(Int32.self, row)))
        case .textInt64: out.decimalField(source.value(Int64.self, row))
        case .bytes: source.value(StringView.self, row).withBytes { out.field($0) }
        case .jsonb: source.value(StringView.self, row).withBytes { out.field($0, version: 1) }
        case .text:
            scratch.removeAll(keepingCapacity: true)
            textEncoder(batch.columns[source.column], row, &scratch)
            scratch.withUnsafeBufferPointer { out.field($0) }
        case .numeric:
            scratch.removeAll(keepingCapacity: true)
            PgNumeric(source.value(Decimal.self, row)).append(to: &scratch)
            scratch.withUnsafeBufferPointer { out.field($0) }
        case .boolean: out.field(source.value(UInt8.self, row) != 0 ? UInt8(1) : 0)
        case .int16: out.field(source.value(Int16.self, row))
        case .int32: out.field(source.value(Int32.self, row))
        case .int64: out.field(source.value(Int64.self, row))
        case .float32: out.field(source.value(Float.self, row).bitPattern)
        case .float64: out.field(source.value(Double.self, row).bitPattern)
        case .date: out.field(PgBinary.wireDate(source.value(Int32.self, row)))
        case .timestamp: out.field(PgBinary.wireTimestamp(source.value(Int64.self, row)))
        case .interval:
            let interval = source.value(Interval.self, row)
            out.reserve(20)
            out.store(Int32(16))
            out.store(interval.micros)
            out.store(interval.days)
            out.store(interval.months)
        case .oid32: out.field(UInt32(bitPattern: source.value(Int32.self, row)))
        case .oid64: out.field(UInt32(truncatingIfNeeded: source.value(Int64.self, row)))
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
