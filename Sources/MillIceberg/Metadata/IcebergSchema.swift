/// The columns of a table, as of some time.
package struct IcebergSchema: Hashable, Sendable {
    package var schemaID: Int
    package var fields: [NestedField]
    package var identifierFieldIDs: [Int] = []

    package init(schemaID: Int = 0, _ fields: [NestedField]) {
        self.schemaID = schemaID
        self.fields = fields
    }

    /// A column or a part of one, at any depth but not below lists and maps.
    package func field(id: Int) -> NestedField? { Self.find(id, in: fields) }

    private static func find(_ id: Int, in fields: [NestedField]) -> NestedField? {
        for field in fields {
            if field.id == id { return field }
            if case .structure(let children) = field.type, let found = find(id, in: children) { return found }
        }
        return nil
    }

    package func field(named name: String) -> NestedField? { fields.first { $0.name == name } }

    /// The highest identifier anywhere in it.
    package var highestFieldID: Int { Self.highest(fields) }

    private static func highest(_ fields: [NestedField]) -> Int {
        fields.map { field in
            switch field.type {
            case .structure(let children): max(field.id, highest(children))
            case .list(let element): max(field.id, highest([element]))
            case .map(let key, let value): max(field.id, highest([key, value]))
            default: field.id
            }
        }.max() ?? 0
    }

    package init(_ json: JSONValue) throws(BadBytes) {
        self.init(schemaID: json["schema-id"].int ?? 0, try NestedField.fields(try json.required("fields"), depth: 0))
        identifierFieldIDs = (json["identifier-field-ids"].array ?? []).compactMap(\.int)
    }

    package var json: JSONValue {
        let result: JSONValue = ["type": "struct", "schema-id": JSONValue(schemaID), "fields": .array(fields.map(\.json))]
        return identifierFieldIDs.isEmpty ? result : result.with("identifier-field-ids", .array(identifierFieldIDs.map { JSONValue($0) }))
    }

    package var jsonText: String { json.text }
}
