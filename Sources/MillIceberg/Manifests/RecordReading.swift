import MillAvro
import MillColumnar

/// The fields of an Avro record by their identifiers, found once for a whole file.
struct RecordFields {
    let record: AvroRecord
    private let places: [Int: Int]

    /// - Parameter names: identifiers with the names that the fields have in files without identifiers.
    init(_ record: AvroRecord, _ names: [(id: Int, name: String)]) {
        self.record = record
        var places: [Int: Int] = [:]
        for (id, name) in names { places[id] = record.index(ofFieldID: id, named: name) }
        self.places = places
    }

    /// Like the schema that we write.
    init(_ record: AvroRecord, like written: AvroRecord) {
        self.init(record, written.fields.compactMap { field in field.fieldID.map { ($0, field.name) } })
    }

    func has(_ id: Int) -> Bool { places[id] != nil }
    func schema(_ id: Int) -> AvroSchema? { places[id].map { record.fields[$0].schema } }

    /// NULL where the file has no such field.
    func value(_ id: Int, of values: [AvroValue]) -> AvroValue {
        guard let place = places[id], values.indices.contains(place) else { return .null }
        return values[place]
    }

    func int(_ id: Int, of values: [AvroValue]) -> Int64? { value(id, of: values).int }
    func string(_ id: Int, of values: [AvroValue]) -> String? { value(id, of: values).string }
    func bytes(_ id: Int, of values: [AvroValue]) -> [UInt8]? { value(id, of: values).bytes }

    func required(_ id: Int, of values: [AvroValue]) throws(BadBytes) -> Int64 {
        guard let value = int(id, of: values) else { throw BadBytes("a number is missing where field \(id) should be") }
        return value
    }

    func requiredText(_ id: Int, of values: [AvroValue]) throws(BadBytes) -> String {
        guard let value = string(id, of: values) else { throw BadBytes("a text is missing where field \(id) should be") }
        return value
    }
}

extension AvroValue {
    /// An array of pairs, as which maps of numbers are stored.
    func pairs<T>(_ convert: (AvroValue) -> T?) -> [Int: T] {
        var result: [Int: T] = [:]
        for element in elements ?? [] {
            guard let pair = element.fields, pair.count == 2, let key = pair[0].int, let value = convert(pair[1]) else { continue }
            result[Int(key)] = value
        }
        return result
    }

    /// A partition value, of what the file's schema says it is.
    func scalar(_ schema: AvroSchema) throws(BadBytes) -> Scalar {
        switch self {
        case .null: return .null
        case .boolean(let value): return .boolean(value)
        case .int(let value): return .int(value)
        case .float(let value): return .float(value)
        case .string(let value): return .string(value)
        case .bytes(let value):
            guard case .logical(let logical, _) = schema.unwrapped else { return .bytes(value) }
            if logical.name == "uuid", let text = UUIDText.text(value) { return .string(text) }
            guard logical.name == "decimal" else { return .bytes(value) }
            let scale = logical.scale ?? 0
            guard let unscaled = SingleValue.decimal(value), (0...38).contains(scale) else {
                throw BadBytes("a partition value is no decimal that SQL has")
            }
            return .decimal(Decimal(unscaled: unscaled, scale: Int32(scale)))
        case .record, .enumeration, .array, .map, .union: throw BadBytes("a partition value is nested")
        }
    }
}

extension Scalar {
    /// As a manifest has it.
    func avro(_ type: IcebergType) throws(BadBytes) -> AvroValue {
        switch (self, type) {
        case (.null, _): return .null
        case (.boolean(let value), .boolean): return .boolean(value)
        case (.int(let value), _): return .int(value)
        case (.float(let value), _): return .float(value)
        case (.decimal(let value), .decimal(let precision, let scale)):
            let bytes = SingleValue.decimalBytes(value.rescaled(to: Int32(scale)).unscaled)
            let width = ManifestSchemas.decimalBytes(precision)
            guard bytes.count <= width else { throw BadBytes("a partition value has more digits than its column") }
            let sign: UInt8 = bytes[0] & 0x80 != 0 ? 0xFF : 0
            return .bytes([UInt8](repeating: sign, count: width - bytes.count) + bytes)
        case (.string(let value), .uuid):
            guard let bytes = UUIDText.bytes(value) else { throw BadBytes("a partition value is no UUID") }
            return .bytes(bytes)
        case (.string(let value), _): return .string(value)
        case (.bytes(let value), _): return .bytes(value)
        default: throw BadBytes("a partition value is not of its field's type")
        }
    }
}
