/// A value a template works with: what YAML can say, with Python's text forms.
///
/// Maps keep the order in which the variables file writes them, and their keys are text.
package indirect enum TemplateValue: Sendable, Hashable {
    case none
    case bool(Bool)
    case int(Int)
    case float(Double)
    case string(String)
    case list([TemplateValue])
    case map([Entry])

    /// One key of a map with its value.
    package struct Entry: Sendable, Hashable {
        package var key: String
        package var value: TemplateValue

        package init(_ key: String, _ value: TemplateValue) {
            self.key = key
            self.value = value
        }
    }

    /// The value under `key`; nil if this is not a map or has no such key.
    package subscript(key key: String) -> TemplateValue? {
        guard case .map(let entries) = self else { return nil }
        return entries.last { $0.key == key }?.value
    }

    /// What `if`, `and`, `or` and `not` take it for: empty, zero and none are false.
    var isTrue: Bool {
        switch self {
        case .none: false
        case .bool(let value): value
        case .int(let value): value != 0
        case .float(let value): value != 0
        case .string(let text): !text.isEmpty
        case .list(let items): !items.isEmpty
        case .map(let entries): !entries.isEmpty
        }
    }

    /// The name Python gives its type, for messages.
    var typeName: String {
        switch self {
        case .none: "none"
        case .bool: "a boolean"
        case .int: "an integer"
        case .float: "a float"
        case .string: "a string"
        case .list: "a list"
        case .map: "a map"
        }
    }

    /// The number in it, a boolean counting as 0 or 1 as in Python.
    var number: Number? {
        switch self {
        case .bool(let value): .int(value ? 1 : 0)
        case .int(let value): .int(value)
        case .float(let value): .float(value)
        default: nil
        }
    }

    enum Number {
        case int(Int)
        case float(Double)

        var double: Double {
            switch self {
            case .int(let value): Double(value)
            case .float(let value): value
            }
        }
    }

    /// Equality as `==` in a template sees it: numbers by value whatever their type, maps in any order.
    func equals(_ other: TemplateValue) -> Bool {
        if let left = number, let right = other.number {
            if case .int(let a) = left, case .int(let b) = right { return a == b }
            return left.double == right.double
        }
        switch (self, other) {
        case (.list(let a), .list(let b)):
            return a.count == b.count && zip(a, b).allSatisfy { $0.equals($1) }
        case (.map(let a), .map(let b)):
            return a.count == b.count && a.allSatisfy { entry in other[key: entry.key].map { entry.value.equals($0) } ?? false }
        default:
            return self == other
        }
    }
}
