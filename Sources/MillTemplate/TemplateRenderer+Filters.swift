/// Filters (`x | name(...)`), tests (`x is name`) and the few functions and methods templates call.
extension TemplateRenderer {
    /// A filter's arguments by position or by the name Jinja gives them.
    private struct Values {
        var positional: [TemplateValue]
        var named: [String: TemplateValue]

        func at(_ index: Int, _ name: String) -> TemplateValue? {
            index < positional.count ? positional[index] : named[name]
        }
    }

    mutating func apply(
        _ filter: String, to base: TemplateExpression, _ arguments: TemplateExpression.Arguments, _ line: Int
    ) throws(TemplateError) -> Outcome {
        var values = Values(positional: try evaluate(all: arguments.positional), named: [:])
        for (name, value) in arguments.named { values.named[name] = try evaluate(value) }
        if filter == "default" || filter == "d" {
            let fallback = values.at(0, "default_value") ?? .string("")
            switch try outcome(of: base) {
            case .missing: return .value(fallback)
            case .value(let value): return .value(values.at(1, "boolean")?.isTrue == true && !value.isTrue ? fallback : value)
            }
        }
        let value = try evaluate(base)
        switch filter {
        case "first", "last":
            let items = try self.items(of: value, line: line)
            return (filter == "first" ? items.first : items.last).map { .value($0) } ?? .missing("\(base.shown) | \(filter)")
        default: return .value(try transform(filter, value, values, line))
        }
    }

    private func transform(_ filter: String, _ value: TemplateValue, _ values: Values, _ line: Int) throws(TemplateError) -> TemplateValue {
        switch filter {
        case "upper": return .string(value.text.uppercased())
        case "lower": return .string(value.text.lowercased())
        case "string": return .string(value.text)
        case "trim": return .string(Self.trim(value.text, values.at(0, "chars")?.text))
        case "replace": return try replace(value.text, values, line)
        case "join": return try join(value, values, line)
        case "length", "count": return .int(try length(value, line))
        case "int": return .int(try integer(value, values))
        case "float": return .float(Self.double(value) ?? values.at(0, "default").flatMap(Self.double) ?? 0)
        case "list": return .list(try items(of: value, line: line))
        case "abs":
            guard let number = value.number else { throw invalid("filter \"abs\" does not take \(value.typeName)", line) }
            return number.double < 0 ? try negate(value, line) : value
        case "quote": return .string(Self.shellQuoted(value.text))
        case "tojson", "to_json": return .string(value.json)
        default:
            throw TemplateError(.unsupported("filter \"\(filter)\" is not supported in templates"), name: name, line: line)
        }
    }

    private static func trim(_ text: String, _ characters: String?) -> String {
        let scalars = Array(text.unicodeScalars)
        let drops = { (scalar: Unicode.Scalar) in characters?.unicodeScalars.contains(scalar) ?? scalar.properties.isWhitespace }
        let first = scalars.firstIndex { !drops($0) } ?? scalars.count
        let last = scalars.lastIndex { !drops($0) } ?? -1
        var view = String.UnicodeScalarView()
        if first <= last { view.append(contentsOf: scalars[first...last]) }
        return String(view)
    }

    private func replace(_ text: String, _ values: Values, _ line: Int) throws(TemplateError) -> TemplateValue {
        guard let old = values.at(0, "old")?.text, let new = values.at(1, "new")?.text else {
            throw invalid("filter \"replace\" takes the old and the new text", line)
        }
        var limit = Int.max
        if case .int(let count)? = values.at(2, "count"), count >= 0 { limit = count }
        let scalars = Array(text.unicodeScalars)
        let wanted = Array(old.unicodeScalars)
        var out = String.UnicodeScalarView()
        var at = 0
        var done = 0
        while at <= scalars.count {
            let matches = done < limit && at + wanted.count <= scalars.count && scalars[at..<at + wanted.count].elementsEqual(wanted)
            if matches {
                out.append(contentsOf: new.unicodeScalars)
                done += 1
            }
            if matches, !wanted.isEmpty {
                at += wanted.count
            } else {
                if at < scalars.count { out.append(scalars[at]) }
                at += 1
            }
        }
        let result = String(out)
        try checkSize(result, line: line)
        return .string(result)
    }

    private func join(_ value: TemplateValue, _ values: Values, _ line: Int) throws(TemplateError) -> TemplateValue {
        var items = try self.items(of: value, line: line)
        if let attribute = values.at(1, "attribute")?.text {
            var picked: [TemplateValue] = []
            for item in items {
                guard let part = item[key: attribute] else { throw TemplateError(.undefined(attribute), name: name, line: line) }
                picked.append(part)
            }
            items = picked
        }
        let text = items.map(\.text).joined(separator: values.at(0, "d")?.text ?? "")
        try checkSize(text, line: line)
        return .string(text)
    }

    private func length(_ value: TemplateValue, _ line: Int) throws(TemplateError) -> Int {
        switch value {
        case .string(let text): return text.unicodeScalars.count
        case .list(let items): return items.count
        case .map(let entries): return entries.count
        default: throw invalid("filter \"length\" does not take \(value.typeName)", line)
        }
    }

    /// Truncates numbers, reads text in a base; what is no number becomes the default, 0 unless given.
    private func integer(_ value: TemplateValue, _ values: Values) throws(TemplateError) -> Int {
        var fallback = 0
        if case .int(let given)? = values.at(0, "default") { fallback = given }
        var radix = 10
        if case .int(let given)? = values.at(1, "base"), (2...36).contains(given) { radix = given }
        switch value {
        case .string(let text):
            var digits = Self.trim(text, nil).lowercased()
            for (prefix, base) in [("0x", 16), ("0o", 8), ("0b", 2)] where radix == base && digits.hasPrefix(prefix) {
                digits.removeFirst(2)
            }
            if let exact = Int(digits, radix: radix) { return exact }
            return Self.double(value).flatMap { Int(exactly: $0.rounded(.towardZero)) } ?? fallback
        default:
            if case .int(let exact)? = value.number { return exact }
            return Self.double(value).flatMap { Int(exactly: $0.rounded(.towardZero)) } ?? fallback
        }
    }

    private static func double(_ value: TemplateValue) -> Double? {
        if case .string(let text) = value { return Double(trim(text, nil)) }
        return value.number?.double
    }

    /// One word of a POSIX shell, as Ansible's `quote`.
    private static func shellQuoted(_ text: String) -> String {
        let safe = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-".unicodeScalars)
        if !text.isEmpty, text.unicodeScalars.allSatisfy(safe.contains) { return text }
        return "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\"'\"'") + "'"
    }

    mutating func holds(
        _ test: String, for base: TemplateExpression, _ arguments: [TemplateExpression], _ line: Int
    ) throws(TemplateError) -> Bool {
        if test == "defined" || test == "undefined" {
            guard case .value = try outcome(of: base) else { return test == "undefined" }
            return test == "defined"
        }
        let value = try evaluate(base)
        switch (test, value) {
        case ("none", _): return value == .none
        case ("true", _): return value == .bool(true)
        case ("false", _): return value == .bool(false)
        case ("boolean", .bool), ("string", .string), ("mapping", .map), ("integer", .int), ("float", .float): return true
        case ("boolean", _), ("string", _), ("mapping", _), ("integer", _), ("float", _): return false
        case ("number", _): return value.number != nil
        case ("sequence", _), ("iterable", _):
            switch value {
            case .list, .map, .string: return true
            default: return false
            }
        case ("odd", .int(let number)): return number % 2 != 0
        case ("even", .int(let number)): return number % 2 == 0
        case ("divisibleby", .int(let number)):
            guard case .int(let divisor)? = try evaluate(all: arguments).first, divisor != 0 else {
                throw invalid("test \"divisibleby\" takes an integer", line)
            }
            return divisor == -1 || number % divisor == 0
        case ("in", _):
            guard let container = try evaluate(all: arguments).first else { throw invalid("test \"in\" takes a container", line) }
            return try contains(container, value, line)
        default:
            throw TemplateError(.unsupported("test \"\(test)\" is not supported in templates"), name: name, line: line)
        }
    }

    mutating func call(
        _ callee: TemplateExpression, _ arguments: TemplateExpression.Arguments, _ line: Int
    ) throws(TemplateError) -> Outcome {
        guard arguments.named.isEmpty else { throw invalid("calls take no named arguments", line) }
        switch callee {
        case .variable("range", _): return .value(try range(try evaluate(all: arguments.positional), line))
        case .attribute(let base, let method, _):
            let value = try evaluate(base)
            return .value(try call(method, of: value, try evaluate(all: arguments.positional), line))
        default:
            throw TemplateError(.unsupported("function \(callee.shown) is not supported in templates"), name: name, line: line)
        }
    }

    private func range(_ bounds: [TemplateValue], _ line: Int) throws(TemplateError) -> TemplateValue {
        var numbers: [Int] = []
        for bound in bounds {
            guard case .int(let number) = bound else { throw invalid("range takes integers", line) }
            numbers.append(number)
        }
        guard (1...3).contains(numbers.count), numbers.count < 3 || numbers[2] != 0 else {
            throw invalid("range takes one to three integers", line)
        }
        let first = numbers.count == 1 ? 0 : numbers[0]
        let end = numbers.count == 1 ? numbers[0] : numbers[1]
        var items: [TemplateValue] = []
        for number in stride(from: first, to: end, by: numbers.count == 3 ? numbers[2] : 1) {
            guard items.count < 100_000 else { throw TemplateError(.limit("range is longer than 100000"), name: name, line: line) }
            items.append(.int(number))
        }
        return .list(items)
    }

    private func call(_ method: String, of value: TemplateValue, _ arguments: [TemplateValue], _ line: Int) throws(TemplateError)
        -> TemplateValue
    {
        switch (value, method) {
        case (.map(let entries), "items"): return .list(entries.map { .list([.string($0.key), $0.value]) })
        case (.map(let entries), "keys"): return .list(entries.map { .string($0.key) })
        case (.map(let entries), "values"): return .list(entries.map(\.value))
        case (.map, "get"):
            guard case .string(let key)? = arguments.first else { throw invalid("method \"get\" takes a key", line) }
            return value[key: key] ?? (arguments.count > 1 ? arguments[1] : .none)
        case (.string(let text), "upper"): return .string(text.uppercased())
        case (.string(let text), "lower"): return .string(text.lowercased())
        case (.string(let text), "strip"): return .string(Self.trim(text, arguments.first?.text))
        case (.string(let text), "startswith"): return .bool(text.hasPrefix(arguments.first?.text ?? ""))
        case (.string(let text), "endswith"): return .bool(text.hasSuffix(arguments.first?.text ?? ""))
        case (.string(let text), "replace"): return try replace(text, Values(positional: arguments, named: [:]), line)
        case (.string(let text), "split"):
            guard let separator = arguments.first?.text, !separator.isEmpty else {
                return .list(text.split(whereSeparator: \.isWhitespace).map { .string(String($0)) })
            }
            return .list(text.split(separator: separator, omittingEmptySubsequences: false).map { .string(String($0)) })
        default:
            throw TemplateError(
                .unsupported("method \"\(method)\" of \(value.typeName) is not supported in templates"), name: name, line: line)
        }
    }
}
