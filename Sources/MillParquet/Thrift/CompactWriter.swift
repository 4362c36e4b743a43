/// Writes Thrift's compact protocol, as far as Parquet's metadata needs it.
///
/// A field is a byte of id delta (high half) and type (low half), or delta 0, the type and the id zigzag; a structure ends with 0.
/// Integers are zigzag varints, booleans lie in the field's type. Source: thrift-compact-protocol.md of Apache Thrift.
struct CompactWriter {
    let out: OutputBytes
    private var lastID: Int16 = 0

    init(_ out: OutputBytes) { self.out = out }

    private mutating func header(_ id: Int16, _ type: CompactType) {
        let delta = id - lastID
        if delta > 0 && delta <= 15 {
            out.append(UInt8(delta) << 4 | type.rawValue)
        } else {
            out.append(type.rawValue)
            out.appendZigzag(Int64(id))
        }
        lastID = id
    }

    mutating func field(_ id: Int16, _ value: Bool) { header(id, value ? .booleanTrue : .booleanFalse) }

    mutating func field(_ id: Int16, byte value: Int8) {
        header(id, .int8)
        out.append(UInt8(bitPattern: value))
    }

    mutating func field(_ id: Int16, _ value: Int16) {
        header(id, .int16)
        out.appendZigzag(Int64(value))
    }

    mutating func field(_ id: Int16, _ value: Int32) {
        header(id, .int32)
        out.appendZigzag(Int64(value))
    }

    mutating func field(_ id: Int16, _ value: Int64) {
        header(id, .int64)
        out.appendZigzag(value)
    }

    mutating func field(_ id: Int16, _ value: [UInt8]) {
        header(id, .binary)
        append(value)
    }

    mutating func field(_ id: Int16, _ value: String) { field(id, Array(value.utf8)) }

    /// A structure, of which `body` writes the fields.
    mutating func field(_ id: Int16, _ body: (inout CompactWriter) -> Void) {
        header(id, .structure)
        element(body)
    }

    mutating func field<T>(_ id: Int16, list values: [T], of type: CompactType, _ write: (inout CompactWriter, T) -> Void) {
        header(id, .list)
        if values.count < 15 {
            out.append(UInt8(values.count) << 4 | type.rawValue)
        } else {
            out.append(0xF0 | type.rawValue)
            out.appendVarint(UInt64(values.count))
        }
        for value in values { write(&self, value) }
    }

    /// A structure in a list, or the outermost one.
    mutating func element(_ body: (inout CompactWriter) -> Void) {
        var inner = CompactWriter(out)
        body(&inner)
        out.append(0)
    }

    /// Bytes in a list.
    mutating func append(_ value: [UInt8]) {
        out.appendVarint(UInt64(value.count))
        out.append(value)
    }
}

/// How a value is written: the low half of a field's first byte.
enum CompactType: UInt8 {
    case booleanTrue = 1
    case booleanFalse = 2
    case int8 = 3
    case int16 = 4
    case int32 = 5
    case int64 = 6
    case double = 7
    case binary = 8
    case list = 9
    case set = 10
    case map = 11
    case structure = 12
    case uuid = 13
}
