/// A type as the Avro specification has them, with the field identifiers that Iceberg puts beside.
///
/// Names are full names. A reference to a named type is that type itself: what refers to itself has no place here, and metadata files have
/// nothing of the kind.
package indirect enum AvroSchema: Hashable, Sendable {
    case null
    case boolean
    case int
    case long
    case float
    case double
    case bytes
    case string
    case record(AvroRecord)
    case enumeration(name: String, symbols: [String])
    case fixed(name: String, byteCount: Int)
    /// `elementID` is Iceberg's `element-id`.
    case array(AvroSchema, elementID: Int?)
    /// Keys are strings. The identifiers are Iceberg's `key-id` and `value-id`.
    case map(AvroSchema, keyID: Int?, valueID: Int?)
    case union([AvroSchema])
    /// A type that means more than how it is encoded.
    case logical(AvroLogicalType, AvroSchema)

    /// The type, or NULL.
    package static func optional(_ schema: AvroSchema) -> AvroSchema { .union([.null, schema]) }

    /// The type without what it means.
    package var encoded: AvroSchema {
        if case .logical(_, let inner) = self { inner.encoded } else { self }
    }

    /// The type without the NULL beside it.
    package var unwrapped: AvroSchema {
        guard case .union(let branches) = encoded, branches.count == 2, let null = branches.firstIndex(of: .null) else { return self }
        return branches[1 - null]
    }

    /// The record that it is, or that it is besides NULL.
    package var record: AvroRecord? {
        if case .record(let record) = unwrapped.encoded { record } else { nil }
    }

    /// Which type of a union it is, by the name that JSON has for it.
    var name: String {
        switch self {
        case .null: "null"
        case .boolean: "boolean"
        case .int: "int"
        case .long: "long"
        case .float: "float"
        case .double: "double"
        case .bytes: "bytes"
        case .string: "string"
        case .record(let record): record.name
        case .enumeration(let name, _), .fixed(let name, _): name
        case .array: "array"
        case .map: "map"
        case .union: "union"
        case .logical(_, let inner): inner.name
        }
    }
}

package struct AvroRecord: Hashable, Sendable {
    package var name: String
    package var fields: [AvroField]

    package init(_ name: String, _ fields: [AvroField]) {
        self.name = name
        self.fields = fields
    }

    /// Where a field is: by its identifier, and by its name in files that have no identifiers at all.
    package func index(ofFieldID id: Int, named name: String) -> Int? {
        if let found = fields.firstIndex(where: { $0.fieldID == id }) { return found }
        return fields.allSatisfy { $0.fieldID == nil } ? fields.firstIndex { $0.name == name } : nil
    }

    package func index(named name: String) -> Int? { fields.firstIndex { $0.name == name } }
}

package struct AvroField: Hashable, Sendable {
    package var name: String
    package var schema: AvroSchema
    /// Iceberg's `field-id`.
    package var fieldID: Int?
    package var doc: String?
    /// Whether readers that find the field missing take NULL for it. No other defaults are kept: who reads here says what he wants then.
    package var hasNullDefault: Bool

    package init(_ name: String, _ schema: AvroSchema, fieldID: Int? = nil, doc: String? = nil, hasNullDefault: Bool? = nil) {
        self.name = name
        self.schema = schema
        self.fieldID = fieldID
        self.doc = doc
        if case .union(let branches) = schema {
            self.hasNullDefault = hasNullDefault ?? (branches.first == .null)
        } else {
            self.hasNullDefault = hasNullDefault ?? false
        }
    }
}

/// What an encoded type means: `logicalType` and what belongs to it.
package struct AvroLogicalType: Hashable, Sendable {
    package var name: String
    /// Of a decimal.
    package var precision: Int?
    package var scale: Int?
    /// Iceberg's `adjust-to-utc`, of timestamps.
    package var adjustsToUTC: Bool?

    package init(_ name: String, precision: Int? = nil, scale: Int? = nil, adjustsToUTC: Bool? = nil) {
        self.name = name
        self.precision = precision
        self.scale = scale
        self.adjustsToUTC = adjustsToUTC
    }
}
