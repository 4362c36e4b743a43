/// Puts values into bytes as their schema says.
struct AvroEncoder {
    private(set) var bytes: [UInt8] = []

    /// Appends an object; one that does not fit its schema leaves the bytes as they were.
    mutating func append(_ value: AvroValue, _ schema: AvroSchema) throws(AvroError) {
        let before = bytes.count
        do throws(Misfit) { try encode(value, schema) } catch {
            bytes.removeSubrange(before...)
            throw .valueDoesNotFit(path: error.path.reversed().joined(separator: "."), expected: error.expected)
        }
    }

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// What was expected, and the fields down to it, innermost first.
    private struct Misfit: Error {
        var path: [String] = []
        var expected: String
    }

    private mutating func encode(_ value: AvroValue, _ schema: AvroSchema) throws(Misfit) {
        switch (schema, value) {
        case (.logical(_, let inner), _): try encode(value, inner)
        case (.union(let branches), _): try encode(value, branches)
        case (.null, .null): break
        case (.boolean, .boolean(let value)): bytes.append(value ? 1 : 0)
        case (.int, .int(let value)) where Int32(exactly: value) != nil: append(value)
        case (.long, .int(let value)): append(value)
        case (.float, .float(let value)): withUnsafeBytes(of: Float(value).bitPattern.littleEndian) { bytes += $0 }
        case (.double, .float(let value)): withUnsafeBytes(of: value.bitPattern.littleEndian) { bytes += $0 }
        case (.bytes, .bytes(let value)):
            append(Int64(value.count))
            bytes += value
        case (.fixed(_, let count), .bytes(let value)) where value.count == count: bytes += value
        case (.string, .string(let value)): append(value)
        case (.enumeration(_, let symbols), .enumeration(let index)) where symbols.indices.contains(index): append(Int64(index))
        case (.record(let record), .record(let values)) where record.fields.count == values.count:
            for (field, value) in zip(record.fields, values) {
                do throws(Misfit) { try encode(value, field.schema) } catch {
                    throw Misfit(path: error.path + [field.name], expected: error.expected)
                }
            }
        case (.array(let items, _), .array(let values)):
            if !values.isEmpty { append(Int64(values.count)) }
            for value in values { try encode(value, items) }
            append(0)
        case (.map(let items, _, _), .map(let entries)):
            if !entries.isEmpty { append(Int64(entries.count)) }
            for entry in entries {
                append(entry.key)
                try encode(entry.value, items)
            }
            append(0)
        default: throw Misfit(expected: schema.name)
        }
    }

    private mutating func encode(_ value: AvroValue, _ branches: [AvroSchema]) throws(Misfit) {
        if branches.count == 2, let null = branches.firstIndex(of: .null) {
            let index = value == .null ? null : 1 - null
            append(Int64(index))
            return try encode(value, branches[index])
        }
        guard case .union(let index, let inner) = value, branches.indices.contains(index) else {
            throw Misfit(expected: "a type of its union")
        }
        append(Int64(index))
        try encode(inner, branches[index])
    }

    mutating func append(_ number: Int64) {
        var rest = UInt64(bitPattern: number << 1 ^ number >> 63)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    mutating func append(_ text: String) {
        append(Int64(text.utf8.count))
        bytes += text.utf8
    }

    mutating func append(raw more: some Collection<UInt8>) { bytes += more }
}
