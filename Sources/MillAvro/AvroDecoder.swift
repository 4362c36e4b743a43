/// Reads values out of bytes of unknown origin: everything is asked for before it is taken.
///
/// Numbers are variable-length, lowest seven bits first, zigzag; arrays and maps come in blocks with a count, and a negative count has the
/// block's bytes behind it. Source: Avro specification, binary encoding.
struct AvroDecoder {
    private let bytes: [UInt8]
    private let end: Int
    private(set) var position: Int
    private var valuesLeft = AvroLimits.valuesMax

    init(_ bytes: [UInt8], from start: Int = 0, to end: Int? = nil) {
        self.bytes = bytes
        self.end = end ?? bytes.count
        position = start
    }

    var remaining: Int { end - position }

    /// A whole object.
    mutating func object(_ schema: AvroSchema) throws(AvroFlaw) -> AvroValue {
        valuesLeft = AvroLimits.valuesMax
        return try value(schema, depth: 0)
    }

    private mutating func value(_ schema: AvroSchema, depth: Int) throws(AvroFlaw) -> AvroValue {
        guard depth < AvroLimits.depthMax else { throw .nestedTooDeep }
        valuesLeft -= 1
        guard valuesLeft >= 0 else { throw .tooManyValues }
        switch schema {
        case .null: return .null
        case .boolean: return .boolean(try byte() != 0)
        case .int:
            let number = try long()
            guard Int32(exactly: number) != nil else { throw .badNumber }
            return .int(number)
        case .long: return .int(try long())
        case .float: return .float(Double(Float(bitPattern: UInt32(truncatingIfNeeded: try littleEndian(4)))))
        case .double: return .float(Double(bitPattern: try littleEndian(8)))
        case .bytes: return .bytes(Array(try take(try length())))
        case .string: return .string(try string())
        case .fixed(_, let count): return .bytes(Array(try take(count)))
        case .enumeration(_, let symbols):
            let index = try long()
            guard index >= 0, index < symbols.count else { throw .badBranch(index) }
            return .enumeration(Int(index))
        case .record(let record):
            var values: [AvroValue] = []
            values.reserveCapacity(record.fields.count)
            for field in record.fields { values.append(try value(field.schema, depth: depth + 1)) }
            return .record(values)
        case .array(let items, _):
            var values: [AvroValue] = []
            while let count = try blockCount() {
                for _ in 0..<count { values.append(try value(items, depth: depth + 1)) }
            }
            return .array(values)
        case .map(let items, _, _):
            var entries: [AvroEntry] = []
            while let count = try blockCount() {
                for _ in 0..<count { entries.append(AvroEntry(try string(), try value(items, depth: depth + 1))) }
            }
            return .map(entries)
        case .union(let branches):
            let index = try long()
            guard index >= 0, index < branches.count else { throw .badBranch(index) }
            let inner = try value(branches[Int(index)], depth: depth + 1)
            return branches.count == 2 && branches.contains(.null) ? inner : .union(Int(index), inner)
        case .logical(_, let inner): return try value(inner, depth: depth)
        }
    }

    /// How many items follow; nil at the end. What they are is bounded by `valuesLeft` as they are read.
    private mutating func blockCount() throws(AvroFlaw) -> Int? {
        let count = try long()
        if count == 0 { return nil }
        guard count < 0 else { return try items(count) }
        guard count != .min else { throw .badLength(count) }
        let byteCount = try long()
        guard byteCount >= 0, byteCount <= remaining else { throw .badLength(byteCount) }
        return try items(-count)
    }

    private func items(_ count: Int64) throws(AvroFlaw) -> Int {
        guard count <= valuesLeft else { throw .tooManyValues }
        return Int(count)
    }

    // MARK: Parts

    mutating func byte() throws(AvroFlaw) -> UInt8 {
        guard position < end else { throw .cutShort }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func long() throws(AvroFlaw) -> Int64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let byte = try byte()
            guard shift < 63 || byte <= 1 else { throw .badNumber }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
            shift += 7
        }
    }

    mutating func length() throws(AvroFlaw) -> Int {
        let length = try long()
        guard length >= 0 else { throw .badLength(length) }
        guard length <= remaining else { throw .cutShort }
        return Int(length)
    }

    mutating func take(_ count: Int) throws(AvroFlaw) -> ArraySlice<UInt8> {
        guard count <= remaining else { throw .cutShort }
        defer { position += count }
        return bytes[position..<position + count]
    }

    mutating func string() throws(AvroFlaw) -> String {
        guard let text = String(validating: try take(try length()), as: UTF8.self) else { throw .badUTF8 }
        return text
    }

    private mutating func littleEndian(_ count: Int) throws(AvroFlaw) -> UInt64 {
        var value: UInt64 = 0
        for (index, byte) in try take(count).enumerated() { value |= UInt64(byte) << UInt64(8 * index) }
        return value
    }
}
