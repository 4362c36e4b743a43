import CJSONDecode
import MillBase
import MillColumnar

/// A decoder in C++ of one text format. Owned by one thread; called per batch.
final class TextKernel {
    let isJSON: Bool
    private let handle: OpaquePointer

    init(json fields: [Field]) {
        isJSON = true
        handle = Self.withDeclared(fields) { mill_json_decoder_create($0, $1) }
    }

    init(csv fields: [Field], delimiter: UInt8) {
        isJSON = false
        handle = Self.withDeclared(fields) { mill_csv_decoder_create($0, $1, delimiter) }
    }

    deinit {
        if isJSON { mill_json_decoder_destroy(handle) } else { mill_csv_decoder_destroy(handle) }
    }

    /// Of CSV: which field each place of a record is for, -1 for none.
    func setPlaces(_ fields: [Int32]) { mill_csv_set_places(handle, fields, UInt32(fields.count)) }

    func decode(
        _ input: inout mill_json_input, first: UInt32, rowsMax: UInt32, _ columns: [UnsafeMutableRawPointer?], _ rowRecords: inout [UInt32]
    ) -> mill_json_progress {
        if isJSON { return mill_json_decode(handle, &input, first, rowsMax, Limits.batchHeapBytesMax, columns, &rowRecords) }
        return mill_csv_decode(handle, &input, first, rowsMax, Limits.batchHeapBytesMax, columns, &rowRecords)
    }

    /// After a call: which rows have a value of the field; nil when all have.
    func validity(_ field: UInt32) -> UnsafePointer<UInt64>? {
        isJSON ? mill_json_validity(handle, field) : mill_csv_validity(handle, field)
    }

    /// After a call: what it refused. Its bytes live as long as the input and the arena.
    func rejects() -> UnsafeBufferPointer<mill_json_reject> {
        var count: UInt32 = 0
        let found = isJSON ? mill_json_rejects(handle, &count) : mill_csv_rejects(handle, &count)
        return UnsafeBufferPointer(start: found, count: found == nil ? 0 : Int(count))
    }

    /// After a call: the memory of texts that it had to rewrite, for `TextArena`.
    func takeArena() -> UnsafeMutableRawPointer? { isJSON ? mill_json_take_arena(handle) : mill_csv_take_arena(handle) }

    private static func withDeclared(_ fields: [Field], _ body: (UnsafePointer<mill_json_field>, UInt32) -> OpaquePointer) -> OpaquePointer
    {
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
            return body(declared, UInt32(declared.count))
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
}
