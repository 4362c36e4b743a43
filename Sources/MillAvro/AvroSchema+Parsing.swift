import Foundation

extension AvroSchema {
    /// Reads a schema's JSON.
    /// - Throws: `badSchema` for what is none, `nestedTooDeep`; `unsupported` (by its text) for types that contain themselves.
    package init(json: [UInt8]) throws(AvroFlaw) {
        guard json.count <= AvroLimits.schemaBytesMax else { throw .badLength(Int64(json.count)) }
        guard let value = try? JSONSerialization.jsonObject(with: Data(json), options: [.fragmentsAllowed]) else {
            throw .badSchema("it is no JSON")
        }
        var parser = AvroSchemaParser()
        self = try parser.schema(value, namespace: "", depth: 0)
    }
}

/// Builds a schema from JSON of unknown origin.
///
/// Named types are kept with how many nodes they have, so that a few lines of names that use each other twice do not become a tree beyond
/// all bounds.
private struct AvroSchemaParser {
    private var known: [String: (schema: AvroSchema, nodes: Int)] = [:]
    /// Named types whose definition has not ended.
    private var open: Set<String> = []
    private var nodes = 0

    mutating func schema(_ value: Any, namespace: String, depth: Int) throws(AvroFlaw) -> AvroSchema {
        guard depth < AvroLimits.depthMax else { throw .nestedTooDeep }
        try count(1)
        switch value {
        case let name as String: return try named(name, namespace)
        case let branches as [Any]:
            var result: [AvroSchema] = []
            for branch in branches {
                let schema = try schema(branch, namespace: namespace, depth: depth + 1)
                if case .union = schema.encoded { throw .badSchema("a union has a union in it") }
                result.append(schema)
            }
            return .union(result)
        case let object as [String: Any]: return try complex(object, namespace, depth)
        default: throw .badSchema("a type is neither a name nor a list nor an object")
        }
    }

    private mutating func count(_ more: Int) throws(AvroFlaw) {
        nodes += more
        guard nodes <= AvroLimits.schemaNodesMax else { throw .badSchema("it has more than \(AvroLimits.schemaNodesMax) types in it") }
    }

    private static let primitives: [String: AvroSchema] = [
        "null": .null, "boolean": .boolean, "int": .int, "long": .long, "float": .float, "double": .double, "bytes": .bytes,
        "string": .string,
    ]

    private mutating func named(_ name: String, _ namespace: String) throws(AvroFlaw) -> AvroSchema {
        if let primitive = Self.primitives[name] { return primitive }
        let full = Self.fullName(name, namespace)
        if let found = known[full] {
            try count(found.nodes)
            return found.schema
        }
        throw open.contains(full)
            ? .badSchema("type \"\(full)\" contains itself, which we do not read") : .badSchema("there is no type \"\(full)\"")
    }

    private static func fullName(_ name: String, _ namespace: String) -> String {
        name.contains(".") || namespace.isEmpty ? name : namespace + "." + name
    }

    private mutating func complex(_ object: [String: Any], _ namespace: String, _ depth: Int) throws(AvroFlaw) -> AvroSchema {
        guard let kind = object["type"] else { throw .badSchema("a type has no \"type\"") }
        let base: AvroSchema
        switch kind as? String {
        case "record", "error", "enum", "fixed": base = try definition(object, kind as? String ?? "", namespace, depth)
        case "array":
            guard let items = object["items"] else { throw .badSchema("an array has no \"items\"") }
            base = .array(try schema(items, namespace: namespace, depth: depth + 1), elementID: object["element-id"] as? Int)
        case "map":
            guard let values = object["values"] else { throw .badSchema("a map has no \"values\"") }
            base = .map(
                try schema(values, namespace: namespace, depth: depth + 1), keyID: object["key-id"] as? Int,
                valueID: object["value-id"] as? Int)
        default: base = try schema(kind, namespace: namespace, depth: depth + 1)
        }
        guard let name = object["logicalType"] as? String else { return base }
        let logical = AvroLogicalType(
            name, precision: object["precision"] as? Int, scale: object["scale"] as? Int, adjustsToUTC: object["adjust-to-utc"] as? Bool)
        return .logical(logical, base)
    }

    /// A type with a name, which others may refer to from here on.
    private mutating func definition(_ object: [String: Any], _ kind: String, _ outer: String, _ depth: Int) throws(AvroFlaw) -> AvroSchema
    {
        guard let name = object["name"] as? String, !name.isEmpty else { throw .badSchema("a \(kind) has no name") }
        let full = Self.fullName(name, object["namespace"] as? String ?? outer)
        guard known[full] == nil, open.insert(full).inserted else { throw .badSchema("there are two types \"\(full)\"") }
        let before = nodes
        let result: AvroSchema
        switch kind {
        case "enum":
            guard let symbols = object["symbols"] as? [String] else { throw .badSchema("enumeration \"\(full)\" has no symbols") }
            result = .enumeration(name: full, symbols: symbols)
        case "fixed":
            guard let size = object["size"] as? Int, size >= 0, size <= AvroLimits.blockBytesMax else {
                throw .badSchema("\"\(full)\" has no valid size")
            }
            result = .fixed(name: full, byteCount: size)
        default:
            guard let fields = object["fields"] as? [[String: Any]] else { throw .badSchema("record \"\(full)\" has no fields") }
            let namespace = full.lastIndex(of: ".").map { String(full[..<$0]) } ?? ""
            result = .record(AvroRecord(full, try self.fields(fields, of: full, namespace, depth)))
        }
        open.remove(full)
        known[full] = (result, nodes - before)
        return result
    }

    private mutating func fields(_ objects: [[String: Any]], of record: String, _ namespace: String, _ depth: Int) throws(AvroFlaw)
        -> [AvroField]
    {
        var names: Set<String> = []
        var result: [AvroField] = []
        for object in objects {
            guard let name = object["name"] as? String, let type = object["type"] else {
                throw .badSchema("a field of \"\(record)\" has no name or no type")
            }
            guard names.insert(name).inserted else { throw .badSchema("\"\(record)\" has two fields \"\(name)\"") }
            result.append(
                AvroField(
                    name, try schema(type, namespace: namespace, depth: depth + 1), fieldID: object["field-id"] as? Int,
                    doc: object["doc"] as? String, hasNullDefault: object["default"] is NSNull))
        }
        return result
    }
}
