/// How a value of a column becomes a partition value.
package enum Transform: Hashable, Sendable, CustomStringConvertible {
    case identity
    case bucket(Int)
    case truncate(Int)
    case year
    case month
    case day
    case hour
    /// Always NULL: what is left of a field that was dropped.
    case void
    /// One that we do not know: its files are read, none is written.
    case unknown(String)

    package init(_ text: String) {
        func number(_ prefix: String) -> Int? {
            guard text.hasPrefix(prefix + "["), text.hasSuffix("]"), let number = Int(text.dropFirst(prefix.count + 1).dropLast()),
                number > 0, number <= Int(Int32.max)
            else { return nil }
            return number
        }
        switch text {
        case "identity": self = .identity
        case "year": self = .year
        case "month": self = .month
        case "day": self = .day
        case "hour": self = .hour
        case "void": self = .void
        default: self = number("bucket").map { .bucket($0) } ?? number("truncate").map { .truncate($0) } ?? .unknown(text)
        }
    }

    package var description: String {
        switch self {
        case .identity: "identity"
        case .bucket(let count): "bucket[\(count)]"
        case .truncate(let width): "truncate[\(width)]"
        case .year: "year"
        case .month: "month"
        case .day: "day"
        case .hour: "hour"
        case .void: "void"
        case .unknown(let text): text
        }
    }

    /// Of the values it makes; nil where it is not for the type. Days are dates, as the reference implementation has them.
    package func resultType(of type: IcebergType) -> IcebergType? {
        switch (self, type) {
        case (.unknown, _): return nil
        case (.void, _): return type
        case (_, .structure), (_, .list), (_, .map), (_, .variant), (_, .unsupported): return nil
        case (.identity, _): return type
        case (.bucket, .boolean), (.bucket, .float), (.bucket, .double): return nil
        case (.bucket, _): return .int
        case (.truncate, .int), (.truncate, .long), (.truncate, .decimal), (.truncate, .string), (.truncate, .binary): return type
        case (.year, .date), (.year, .timestamp), (.year, .timestamptz), (.month, .date), (.month, .timestamp), (.month, .timestamptz),
            (.hour, .timestamp), (.hour, .timestamptz):
            return .int
        case (.day, .date), (.day, .timestamp), (.day, .timestamptz): return .date
        default: return nil
        }
    }
}

package struct PartitionField: Hashable, Sendable {
    package var sourceID: Int
    package var fieldID: Int
    package var name: String
    package var transform: Transform

    package init(sourceID: Int, fieldID: Int, name: String, _ transform: Transform) {
        self.sourceID = sourceID
        self.fieldID = fieldID
        self.name = name
        self.transform = transform
    }

    init(_ json: JSONValue, place: Int) throws(BadBytes) {
        let source = json["source-id"].int ?? json["source-ids"].array?.first?.int
        guard let source else { throw BadBytes("a partition field has no source") }
        // Format 1 counts them from 1000 on without saying so.
        self.init(
            sourceID: source, fieldID: json["field-id"].int ?? 1000 + place, name: try json.requiredString("name"),
            Transform(try json.requiredString("transform")))
    }

    var json: JSONValue {
        ["source-id": JSONValue(sourceID), "field-id": JSONValue(fieldID), "name": .string(name), "transform": .string("\(transform)")]
    }
}

package struct PartitionSpec: Hashable, Sendable {
    package var specID: Int
    package var fields: [PartitionField]

    package init(specID: Int = 0, _ fields: [PartitionField] = []) {
        self.specID = specID
        self.fields = fields
    }

    package init(_ json: JSONValue) throws(BadBytes) {
        self.init(specID: json["spec-id"].int ?? 0, try Self.fields(try json.required("fields")))
    }

    static func fields(_ json: JSONValue) throws(BadBytes) -> [PartitionField] {
        var fields: [PartitionField] = []
        for (place, value) in (json.array ?? []).enumerated() { fields.append(try PartitionField(value, place: place)) }
        return fields
    }

    package var json: JSONValue { ["spec-id": JSONValue(specID), "fields": .array(fields.map(\.json))] }
    /// The fields alone: what manifests have of it.
    package var fieldsJSONText: String { JSONValue.array(fields.map(\.json)).text }
}
