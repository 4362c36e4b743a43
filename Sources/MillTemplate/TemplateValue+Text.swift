/// The text forms of values: what `{{ x }}` prints, how a list shows its items, and JSON.
extension TemplateValue {
    /// What `{{ value }}` prints, as Python's `str`.
    var text: String {
        if case .string(let text) = self { return text }
        return representation
    }

    /// The form inside a printed list or map, as Python's `repr`.
    var representation: String {
        switch self {
        case .none: return "None"
        case .bool(let value): return value ? "True" : "False"
        case .int(let value): return String(value)
        case .float(let value): return value.isFinite ? "\(value)" : value.isNaN ? "nan" : value < 0 ? "-inf" : "inf"
        case .string(let text): return Self.quoted(text)
        case .list(let items): return "[" + items.map(\.representation).joined(separator: ", ") + "]"
        case .map(let entries):
            return "{" + entries.map { Self.quoted($0.key) + ": " + $0.value.representation }.joined(separator: ", ") + "}"
        }
    }

    /// Python's quotes: single ones unless the text holds a single one and no double one.
    private static func quoted(_ text: String) -> String {
        let quote: Unicode.Scalar = text.unicodeScalars.contains("'") && !text.unicodeScalars.contains("\"") ? "\"" : "'"
        var out = String.UnicodeScalarView()
        out.append(quote)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": out.append(contentsOf: "\\n".unicodeScalars)
            case "\r": out.append(contentsOf: "\\r".unicodeScalars)
            case "\t": out.append(contentsOf: "\\t".unicodeScalars)
            case "\\": out.append(contentsOf: "\\\\".unicodeScalars)
            case quote:
                out.append("\\")
                out.append(scalar)
            case _ where scalar.value < 0x20 || scalar.value == 0x7f:
                out.append(contentsOf: ("\\x" + hex(scalar.value, digits: 2)).unicodeScalars)
            default: out.append(scalar)
            }
        }
        out.append(quote)
        return String(out)
    }

    /// JSON with sorted keys and `<`, `>`, `&`, `'` escaped, which is what Jinja's `tojson` writes.
    var json: String {
        switch self {
        case .none: return "null"
        case .bool(let value): return value ? "true" : "false"
        case .int(let value): return String(value)
        case .float(let value): return value.isFinite ? "\(value)" : value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity"
        case .string(let text): return Self.jsonString(text)
        case .list(let items): return "[" + items.map(\.json).joined(separator: ", ") + "]"
        case .map(let entries):
            let sorted = entries.sorted { $0.key.unicodeScalars.lexicographicallyPrecedes($1.key.unicodeScalars) }
            return "{" + sorted.map { Self.jsonString($0.key) + ": " + $0.value.json }.joined(separator: ", ") + "}"
        }
    }

    private static func jsonString(_ text: String) -> String {
        var out = "\""
        for unit in text.utf16 {
            switch unit {
            case 0x22: out += "\\\""
            case 0x5c: out += "\\\\"
            case 0x08: out += "\\b"
            case 0x09: out += "\\t"
            case 0x0a: out += "\\n"
            case 0x0c: out += "\\f"
            case 0x0d: out += "\\r"
            case 0x26, 0x27, 0x3c, 0x3e, 0...0x1f, 0x7f...: out += "\\u" + hex(UInt32(unit), digits: 4)
            default: out.unicodeScalars.append(Unicode.Scalar(UInt8(unit)))
            }
        }
        return out + "\""
    }

    private static func hex(_ value: UInt32, digits: Int) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
}
