/// A type of a table's column. Source: Iceberg specification, schemas and data types, appendix C for its JSON.
package indirect enum IcebergType: Hashable, Sendable {
    case boolean
    case int
    case long
    case float
    case double
    case decimal(precision: Int, scale: Int)
    case date
    case time
    case timestamp
    case timestamptz
    case timestampNanos
    case timestamptzNanos
    case string
    case uuid
    case fixed(Int)
    case binary
    case structure([NestedField])
    case list(NestedField)
    case map(key: NestedField, value: NestedField)
    case variant
    /// A name that we do not know; columns of it are kept and not read.
    case unsupported(String)
}

/// A column of a table, or a part of one: known by its identifier whatever its name.
package struct NestedField: Hashable, Sendable {
    package var id: Int
    package var name: String
    package var isRequired: Bool
    package var type: IcebergType
    package var doc: String?
    /// v3: what rows have that were written before the column was added.
    package var initialDefault: JSONValue?
    /// v3: what writers put where they are given nothing.
    package var writeDefault: JSONValue?

    package init(_ id: Int, _ name: String, _ type: IcebergType, isRequired: Bool = false, doc: String? = nil) {
        self.id = id
        self.name = name
        self.isRequired = isRequired
        self.type = type
        self.doc = doc
    }
}

extension IcebergType: CustomStringConvertible {
    private static let names: [(name: String, type: IcebergType)] = [
        ("boolean", .boolean), ("int", .int), ("long", .long), ("float", .float), ("double", .double), ("date", .date), ("time", .time),
        ("timestamp", .timestamp), ("timestamptz", .timestamptz), ("timestamp_ns", .timestampNanos), ("timestamptz_ns", .timestamptzNanos),
        ("string", .string), ("uuid", .uuid), ("binary", .binary), ("variant", .variant),
    ]

    package var description: String {
        switch self {
        case .decimal(let precision, let scale): "decimal(\(precision), \(scale))"
        case .fixed(let count): "fixed[\(count)]"
        case .structure: "struct"
        case .list: "list"
        case .map: "map"
        case .unsupported(let name): name
        default: Self.names.first { $0.type == self }?.name ?? "unknown"
        }
    }

    /// A type that is not nested, by its name.
    package init(name: String) throws(BadBytes) {
        if let known = Self.names.first(where: { $0.name == name }) {
            self = known.type
        } else if name.hasPrefix("decimal(") {
            let digits = name.dropFirst(8).dropLast().split(separator: ",").compactMap { Int($0.filter { $0 != " " }) }
            guard name.hasSuffix(")"), digits.count == 2, (1...38).contains(digits[0]), (0...digits[0]).contains(digits[1]) else {
                throw BadBytes("\"\(name)\" is not a type")
            }
            self = .decimal(precision: digits[0], scale: digits[1])
        } else if name.hasPrefix("fixed[") {
            guard name.hasSuffix("]"), let count = Int(name.dropFirst(6).dropLast()), (0...1 << 30).contains(count) else {
                throw BadBytes("\"\(name)\" is not a type")
            }
            self = .fixed(count)
        } else {
            self = .unsupported(name)
        }
    }

    private static let depthMax = 64

    init(_ json: JSONValue, depth: Int = 0) throws(BadBytes) {
        guard depth < Self.depthMax else { throw BadBytes("a type is nested too deeply") }
        if let name = json.string {
            self = try IcebergType(name: name)
            return
        }
        func part(_ name: String, _ idKey: String, _ typeKey: String, isRequired: Bool) throws(BadBytes) -> NestedField {
            NestedField(
                try json.requiredInt(idKey), name, try IcebergType(try json.required(typeKey), depth: depth + 1), isRequired: isRequired)
        }
        switch try json.requiredString("type") {
        case "struct": self = .structure(try NestedField.fields(try json.required("fields"), depth: depth + 1))
        case "list": self = .list(try part("element", "element-id", "element", isRequired: json["element-required"].boolean ?? false))
        case "map":
            self = .map(
                key: try part("key", "key-id", "key", isRequired: true),
                value: try part("value", "value-id", "value", isRequired: json["value-required"].boolean ?? false))
        case let name: throw BadBytes("\"\(name)\" is not a nested type")
        }
    }

    var json: JSONValue {
        switch self {
        case .structure(let fields): ["type": "struct", "fields": .array(fields.map(\.json))]
        case .list(let element):
            [
                "type": "list", "element-id": JSONValue(element.id), "element-required": .boolean(element.isRequired),
                "element": element.type.json,
            ]
        case .map(let key, let value):
            [
                "type": "map", "key-id": JSONValue(key.id), "key": key.type.json, "value-id": JSONValue(value.id),
                "value-required": .boolean(value.isRequired), "value": value.type.json,
            ]
        default: .string(description)
        }
    }
}

extension NestedField {
    static func fields(_ json: JSONValue, depth: Int) throws(BadBytes) -> [NestedField] {
        guard let values = json.array else { throw BadBytes("\"fields\" is no list") }
        var result: [NestedField] = []
        for value in values { result.append(try NestedField(value, depth: depth)) }
        return result
    }

    init(_ json: JSONValue, depth: Int) throws(BadBytes) {
        self.init(
            try json.requiredInt("id"), try json.requiredString("name"), try IcebergType(try json.required("type"), depth: depth),
            isRequired: json["required"].boolean ?? false, doc: json["doc"].string)
        initialDefault = json["initial-default"].isNull ? nil : json["initial-default"]
        writeDefault = json["write-default"].isNull ? nil : json["write-default"]
    }

    var json: JSONValue {
        let result: JSONValue = ["id": JSONValue(id), "name": .string(name), "required": .boolean(isRequired), "type": type.json]
        return result.with("doc", doc.map { .string($0) }).with("initial-default", initialDefault).with("write-default", writeDefault)
    }
}
