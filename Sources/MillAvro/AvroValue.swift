/// A value of an Avro file. Metadata files are read and written with it, an object at a time; it is nothing for an event's path.
package enum AvroValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    /// An int or a long.
    case int(Int64)
    /// A float or a double.
    case float(Double)
    /// Bytes or fixed.
    case bytes([UInt8])
    case string(String)
    /// In the order of the schema's fields.
    case record([AvroValue])
    /// The symbol's index.
    case enumeration(Int)
    case array([AvroValue])
    /// In the order of the file.
    case map([AvroEntry])
    /// Of a union of other than one type and NULL; which of its types, and the value.
    indirect case union(Int, AvroValue)
}

package struct AvroEntry: Hashable, Sendable {
    package var key: String
    package var value: AvroValue

    package init(_ key: String, _ value: AvroValue) { (self.key, self.value) = (key, value) }
}

extension AvroValue {
    package var isNull: Bool { self == .null }
    package var int: Int64? { if case .int(let value) = self { value } else { nil } }
    package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
    package var fields: [AvroValue]? { if case .record(let values) = self { values } else { nil } }
    package var elements: [AvroValue]? { if case .array(let values) = self { values } else { nil } }
}
