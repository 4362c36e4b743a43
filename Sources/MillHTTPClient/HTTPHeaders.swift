/// Header fields in their order. Names are found whatever their case.
package struct HTTPHeaders: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    package struct Field: Sendable, Hashable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package var fields: [Field]

    package init(_ fields: [Field] = []) { self.fields = fields }

    package init(dictionaryLiteral elements: (String, String)...) { fields = elements.map { Field(name: $0.0, value: $0.1) } }

    /// The first field of that name; setting replaces all of them, by nil removes them.
    package subscript(name: String) -> String? {
        get { fields.first { Self.isSame($0.name, name) }?.value }
        set {
            let place = fields.firstIndex { Self.isSame($0.name, name) }
            fields.removeAll { Self.isSame($0.name, name) }
            if let newValue { fields.insert(Field(name: name, value: newValue), at: min(place ?? fields.count, fields.count)) }
        }
    }

    package mutating func append(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Whether two names are one: ASCII letters count without their case.
    package static func isSame(_ left: String, _ right: String) -> Bool {
        left.utf8.count == right.utf8.count && zip(left.utf8, right.utf8).allSatisfy { lowercased($0) == lowercased($1) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
