import CJSONDecode
import MillBase
package import MillColumnar
package import MillConnectorKit

/// Records that are JSON objects (FORMAT PLAIN ENCODE JSON) to columns.
///
/// Fed with chunks of a `SplitReader`, feeds the circuit; owned by one worker. What is accepted depends on the record alone, never
/// on `wanted`: all declared fields are checked.
/// - A record that is not one well-formed JSON object in UTF-8 (RFC 8259, at most 1024 levels deep), or is null, is refused whole.
/// - A value that cannot be its column's type becomes NULL and a `Reject` with the column's name and the value's JSON text.
/// - A missing field and a JSON null are NULL. Unknown fields are ignored, but must be well-formed.
/// - A key matches a column to the letter, else by ASCII letters of either case. Of equal keys the last counts; one that matches
///   to the letter counts before one that does not.
///
/// | Column | From |
/// |---|---|
/// | boolean | `true`, `false`, or these as strings |
/// | integers | whole numbers in range, `3.0` and `3e2` too; strings that hold one |
/// | real, double | numbers, strings that hold one, `"NaN"`, `"Infinity"`, `"-Infinity"` |
/// | numeric | the number's exact digits, 38 at most; strings that hold one |
/// | varchar | strings; numbers and booleans as written; objects and arrays as compact JSON text |
/// | bytea | strings: `\x` and hex digits, else base64 |
/// | date | `YYYY-MM-DD`, or the date of a timestamp's text; a number counts days since 1970 |
/// | time | `HH:MM[:SS[.f]]` |
/// | timestamp, timestamptz | ISO 8601 with `T` or a space, any fraction (rounded to microseconds), `Z`, an offset or none (UTC); an offset is taken off for both types. A number is an epoch whose magnitude tells its unit: under 1e11 seconds, under 1e14 milliseconds, under 1e17 microseconds, else nanoseconds |
/// | interval | PostgreSQL's verbose form and ISO 8601 durations |
/// | jsonb | any value; its canonical text |
package final class JSONRecordDecoder: Decoder {
    /// A column of the batches made.
    package enum Output: Hashable, Sendable {
        /// A declared field.
        case field(Int)
        /// The record's position in its split: bigint.
        case position
        /// The record's own time, NULL when the connector has none: timestamptz.
        case timestamp
        /// The split's partition: integer.
        case partition
    }

    private let fields: [Field]
    private let wanted: [Output]
    private let handle: OpaquePointer
    /// Fields that are wanted, or whose check needs their text (`SecondPass`): these get a column.
    private let materialized: [Bool]
    private var rowRecords: [UInt32]
    private var pointers: [UnsafeMutableRawPointer?]

    /// A decoder for a source declared with `fields` that makes batches of the `wanted` columns, in that order.
    package init(fields: [Field], wanted: [Output]) {
        self.fields = fields
        self.wanted = wanted
        var materialized = fields.map { SecondPass(for: $0.type) != nil }
        for case .field(let index) in wanted {
            precondition(fields.indices.contains(index), "a wanted field is a declared one")
            materialized[index] = true
        }
        self.materialized = materialized
        rowRecords = Array(repeating: 0, count: Limits.batchRowsMax)
        pointers = Array(repeating: nil, count: max(fields.count, 1))
        handle = Self.makeHandle(fields)
    }

    deinit { mill_json_decoder_destroy(handle) }

    private static func makeHandle(_ fields: [Field]) -> OpaquePointer {
        var names: [CChar] = []
        var starts: [Int] = []
        for field in fields {
            starts.append(names.count)
            names.append(contentsOf: field.name.utf8.map { CChar(bitPattern: $0) })
        }
        names.append(0)
        return names.withUnsafeBufferPointer { bytes in
            var declared: [mill_json_field] = []
            for (index, field) in fields.enumerated() {
                var (precision, scale): (Int16, Int16) = (-1, 0)
                if case .numeric(let digits?, let fraction) = field.type {
                    (precision, scale) = (Int16(clamping: digits), Int16(clamping: fraction ?? 0))
                }
                declared.append(
                    mill_json_field(
                        name: bytes.baseAddress.unsafelyUnwrapped + starts[index], name_length: UInt32(field.name.utf8.count),
                        kind: UInt8(kind(of: field.type).rawValue), precision: precision, scale: scale))
            }
            return mill_json_decoder_create(declared, UInt32(declared.count))
        }
    }

    private static func kind(of type: SQLType) -> mill_json_kind {
        switch type {
        case .boolean: MILL_JSON_BOOL
        case .int16: MILL_JSON_INT16
        case .int32: MILL_JSON_INT32
        case .int64: MILL_JSON_INT64
        case .float32: MILL_JSON_FLOAT32
        case .float64: MILL_JSON_FLOAT64
        case .numeric: MILL_JSON_NUMERIC
        case .varchar, .unknown: MILL_JSON_VARCHAR
        case .bytea: MILL_JSON_BYTEA
        case .date: MILL_JSON_DATE
        case .time: MILL_JSON_TIME
        case .timestamp, .timestamptz: MILL_JSON_TIMESTAMP
        case .interval: MILL_JSON_TEXT
        case .jsonb: MILL_JSON_RAW
        }
    }

    package func decode(_ chunk: RawChunk) -> DecodedChunk {
        var result = DecodedChunk(batches: [], rejects: [])
        let chunkHeap = StringHeap(keeping: chunk)
        var next = 0
        while next < chunk.count {
            let first = next
            let columns = makeColumns(capacity: min(chunk.count - first, Limits.batchRowsMax))
            let progress = decodeBatch(chunk, from: first, into: columns)
            next = Int(progress.next_record)
            finish(columns, chunk, first: first, rows: Int(progress.rows), next: next, chunkHeap: chunkHeap, into: &result)
        }
        return result
    }

    /// A column for each materialized field. Text that a second pass turns into something else is a varchar until then.
    private func makeColumns(capacity: Int) -> [Column?] {
        fields.indices.map { index in
            guard materialized[index] else { return nil }
            return Column(SecondPass(for: fields[index].type) == nil ? fields[index].type : .varchar, capacity: capacity)
        }
    }

    private func decodeBatch(_ chunk: RawChunk, from first: Int, into columns: [Column?]) -> mill_json_progress {
        for (index, column) in columns.enumerated() { pointers[index] = column?.data }
        let rowsMax = min(chunk.count - first, Limits.batchRowsMax)
        return chunk.starts.withUnsafeBufferPointer { starts in
            chunk.lengths.withUnsafeBufferPointer { lengths in
                var input = mill_json_input(
                    bytes: chunk.bytes.assumingMemoryBound(to: UInt8.self), starts: starts.baseAddress, lengths: lengths.baseAddress,
                    count: UInt32(starts.count))
                return mill_json_decode(handle, &input, UInt32(first), UInt32(rowsMax), Limits.batchHeapBytesMax, pointers, &rowRecords)
            }
        }
    }

    private func finish(
        _ columns: [Column?], _ chunk: RawChunk, first: Int, rows: Int, next: Int, chunkHeap: StringHeap, into result: inout DecodedChunk
    ) {
        let arena = mill_json_take_arena(handle).map { StringHeap(keeping: JSONArena($0)) }
        for (index, column) in columns.enumerated() {
            guard let column else { continue }
            column.setCount(rows)
            if let bitmap = mill_json_validity(handle, UInt32(index)) {
                column.ensureValidity().update(from: bitmap, count: column.validityWords)
            }
            if column.type.physical == .string {
                column.keep(chunkHeap)
                if let arena { column.keep(arena) }
            }
        }
        var rejects = takeRejects(chunk)
        var finished = columns
        for (index, column) in columns.enumerated() {
            guard let column, let pass = SecondPass(for: fields[index].type) else { continue }
            finished[index] = pass.run(column) { row, raw, reason in
                let record = Int(rowRecords[row])
                rejects.append((record, Reject(position: chunk.positions[record], column: fields[index].name, raw: raw, reason: reason)))
            }
        }
        if rejects.count > 1 { rejects.sort { $0.record < $1.record } }
        result.rejects.append(contentsOf: rejects.map(\.reject))
        guard rows > 0 else { return }
        let isDense = rows == next - first
        let outputs = wanted.map { output in
            switch output {
            case .field(let index): finished[index].unsafelyUnwrapped
            case .position: metadata(.int64, chunk.positions, first: first, rows: rows, isDense: isDense)
            case .timestamp:
                chunk.timestamps.map { recordTimes($0, first: first, rows: rows, isDense: isDense) }
                    ?? Column.constant(.null, .timestamptz, count: rows)
            case .partition: Column.constant(.int(Int64(chunk.partition)), .int32, count: rows)
            }
        }
        result.batches.append(DeltaBatch(columns: outputs, count: rows))
    }

    /// The values of a per-record array for the rows just made.
    private func metadata(_ type: SQLType, _ values: [Int64], first: Int, rows: Int, isDense: Bool) -> Column {
        let column = Column(type, uninitialized: rows)
        let target = column.values(Int64.self)
        values.withUnsafeBufferPointer { values in
            if isDense {
                target.update(from: values.baseAddress.unsafelyUnwrapped + first, count: rows)
            } else {
                rowRecords.withUnsafeBufferPointer { records in
                    for row in 0..<rows { target[row] = values[Int(records[row])] }
                }
            }
        }
        return column
    }

    private func recordTimes(_ timestamps: [Int64], first: Int, rows: Int, isDense: Bool) -> Column {
        let column = metadata(.timestamptz, timestamps, first: first, rows: rows, isDense: isDense)
        let micros = column.values(Int64.self)
        for row in 0..<rows where micros[row] == RawChunk.unknownTime { column.setNull(row) }
        return column
    }

    private func takeRejects(_ chunk: RawChunk) -> [(record: Int, reject: Reject)] {
        var count: UInt32 = 0
        guard let found = mill_json_rejects(handle, &count), count > 0 else { return [] }
        return UnsafeBufferPointer(start: found, count: Int(count)).map { reject in
            let record = Int(reject.record)
            let field = reject.field >= 0 ? fields[Int(reject.field)] : nil
            return (
                record,
                Reject(
                    position: chunk.positions[record], column: field?.name,
                    raw: Array(UnsafeBufferPointer(start: reject.raw, count: Int(reject.raw_length))),
                    reason: RejectReason.text(mill_json_reason(reject.reason), type: field?.type))
            )
        }
    }
}

/// Owns the bytes of strings that the C++ decoder had to rewrite. Immutable once taken.
private final class JSONArena: @unchecked Sendable {
    private let blocks: UnsafeMutableRawPointer
    init(_ blocks: UnsafeMutableRawPointer) { self.blocks = blocks }
    deinit { mill_json_free_arena(blocks) }
}
