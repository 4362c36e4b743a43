/// A value of JSON, in which whole numbers of 64 bits stay what they are.
package enum JSONValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    package subscript(_ key: String) -> JSONValue {
        if case .object(let members) = self { members[key] ?? .null } else { .null }
    }

    package var isNull: Bool { self == .null }
    package var int64: Int64? { if case .int(let value) = self { value } else { nil } }
    /// Nil as well for what does not fit into 32 bits: arithmetic on it cannot overflow.
    package var int: Int? { int64.flatMap { Int32(exactly: $0) }.map { Int($0) } }
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
    package var array: [JSONValue]? { if case .array(let values) = self { values } else { nil } }
    package var object: [String: JSONValue]? { if case .object(let members) = self { members } else { nil } }

    package func required(_ key: String) throws(BadBytes) -> JSONValue {
        let value = self[key]
        guard !value.isNull else { throw BadBytes("\"\(key)\" is missing") }
        return value
    }

    /// An identifier or a number of something: what the format gives 32 bits.
    package func requiredInt(_ key: String) throws(BadBytes) -> Int {
        let value = try requiredInt64(key)
        guard let value = Int32(exactly: value) else { throw BadBytes("\"\(key)\" is \(value), which does not fit into 32 bits") }
        return Int(value)
    }

    package func requiredInt64(_ key: String) throws(BadBytes) -> Int64 {
        guard let value = try required(key).int64 else { throw BadBytes("\"\(key)\" is no whole number") }
        return value
    }

    package func requiredString(_ key: String) throws(BadBytes) -> String {
        guard let value = try required(key).string else { throw BadBytes("\"\(key)\" is no text") }
        return value
    }

    /// Texts by texts; members that are something else are left out.
    package var texts: [String: String] { (object ?? [:]).compactMapValues(\.string) }

    /// As text, members in the order of their keys.
    package var text: String {
        var out = ""
        append(to: &out)
        return out
    }

    private func append(to out: inout String) {
        switch self {
        case .null: out += "null"
        case .boolean(let value): out += value ? "true" : "false"
        case .int(let value): out += "\(value)"
        case .double(let value): out += value.isFinite ? "\(value)" : "null"
        case .string(let value): Self.quote(value, to: &out)
        case .array(let values):
            out += "["
            for (index, value) in values.enumerated() {
                if index > 0 { out += "," }
                value.append(to: &out)
            }
            out += "]"
        case .object(let members):
            out += "{"
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { out += "," }
                Self.quote(member.key, to: &out)
                out += ":"
                member.value.append(to: &out)
            }
            out += "}"
        }
    }

    private static func quote(_ string: String, to out: inout String) {
        out += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\u{0}"..<"\u{20}":
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        out += "\""
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral, ExpressibleByDictionaryLiteral,
    ExpressibleByArrayLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .int(value) }
    package init(booleanLiteral value: Bool) { self = .boolean(value) }
    package init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(Dictionary(elements) { $1 }) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }

    package init(_ value: Int) { self = .int(Int64(value)) }
    package init(_ values: [String: String]) { self = .object(values.mapValues { .string($0) }) }

    /// The same object with a member more; nil and NULL add none.
    package func with(_ key: String, _ value: JSONValue?) -> JSONValue {
        guard case .object(var members) = self, let value, !value.isNull else { return self }
        members[key] = value
        return .object(members)
    }
}
