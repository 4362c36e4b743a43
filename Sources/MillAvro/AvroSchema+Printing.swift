extension AvroSchema {
    /// The schema as JSON: what a file's metadata has of it.
    package var json: String {
        var printer = AvroSchemaPrinter()
        printer.print(self)
        return printer.text
    }
}

/// Prints a schema; a named type is printed once and then called by its name.
private struct AvroSchemaPrinter {
    private(set) var text = ""
    private var printed: Set<String> = []

    mutating func print(_ schema: AvroSchema) {
        switch schema {
        case .null, .boolean, .int, .long, .float, .double, .bytes, .string: quote(schema.name)
        case .union(let branches):
            text += "["
            for (index, branch) in branches.enumerated() {
                if index > 0 { text += "," }
                print(branch)
            }
            text += "]"
        case .logical(let logical, let inner): print(logical, inner)
        default:
            if isKnown(schema) { return quote(schema.name) }
            text += "{"
            members(schema)
            text += "}"
        }
    }

    private mutating func isKnown(_ schema: AvroSchema) -> Bool {
        switch schema {
        case .record, .enumeration, .fixed: !printed.insert(schema.name).inserted
        default: false
        }
    }

    private mutating func print(_ logical: AvroLogicalType, _ inner: AvroSchema) {
        text += "{"
        switch inner {
        case .array, .map: members(inner)
        case .record, .enumeration, .fixed:
            if isKnown(inner) { member("type", inner.name) } else { members(inner) }
        default:
            text += "\"type\":"
            print(inner)
        }
        text += ","
        member("logicalType", logical.name)
        if let precision = logical.precision { text += ",\"precision\":\(precision)" }
        if let scale = logical.scale { text += ",\"scale\":\(scale)" }
        if let adjusts = logical.adjustsToUTC { text += ",\"adjust-to-utc\":\(adjusts)" }
        text += "}"
    }

    /// What is between the braces.
    private mutating func members(_ schema: AvroSchema) {
        switch schema {
        case .record(let record):
            member("type", "record")
            text += ","
            member("name", record.name)
            text += ",\"fields\":["
            for (index, field) in record.fields.enumerated() {
                if index > 0 { text += "," }
                print(field)
            }
            text += "]"
        case .enumeration(let name, let symbols):
            member("type", "enum")
            text += ","
            member("name", name)
            text += ",\"symbols\":["
            for (index, symbol) in symbols.enumerated() {
                if index > 0 { text += "," }
                quote(symbol)
            }
            text += "]"
        case .fixed(let name, let byteCount):
            member("type", "fixed")
            text += ","
            member("name", name)
            text += ",\"size\":\(byteCount)"
        case .array(let items, let elementID):
            member("type", "array")
            text += ",\"items\":"
            print(items)
            if let elementID { text += ",\"element-id\":\(elementID)" }
        case .map(let values, let keyID, let valueID):
            member("type", "map")
            text += ",\"values\":"
            print(values)
            if let keyID { text += ",\"key-id\":\(keyID)" }
            if let valueID { text += ",\"value-id\":\(valueID)" }
        default: member("type", schema.name)
        }
    }

    private mutating func print(_ field: AvroField) {
        text += "{"
        member("name", field.name)
        text += ",\"type\":"
        print(field.schema)
        if let doc = field.doc {
            text += ","
            member("doc", doc)
        }
        if field.hasNullDefault { text += ",\"default\":null" }
        if let id = field.fieldID { text += ",\"field-id\":\(id)" }
        text += "}"
    }

    private mutating func member(_ key: String, _ value: String) {
        quote(key)
        text += ":"
        quote(value)
    }

    private mutating func quote(_ string: String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\u{0}"..<"\u{20}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
