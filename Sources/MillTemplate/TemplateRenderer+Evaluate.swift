/// Evaluates expressions.
///
/// A missing variable, key or item is not an error by itself: it is carried as `Outcome.missing` until something needs
/// its value, so that `a.b.c | default("x")` and `a.b is defined` work whichever part is missing.
extension TemplateRenderer {
    /// A value, or the name of what is missing.
    enum Outcome {
        case value(TemplateValue)
        case missing(String)
    }

    /// The expression's value.
    /// - Throws: `TemplateError.Reason.undefined` if something it needs is missing.
    mutating func evaluate(_ expression: TemplateExpression) throws(TemplateError) -> TemplateValue {
        switch try outcome(of: expression) {
        case .value(let value): return value
        case .missing(let variable): throw TemplateError(.undefined(variable), name: name, line: expression.line ?? 1)
        }
    }

    mutating func outcome(of expression: TemplateExpression) throws(TemplateError) -> Outcome {
        try descend(line: expression.line ?? 1)
        let result = try outcomeBelow(expression)
        ascend()
        return result
    }

    private mutating func outcomeBelow(_ expression: TemplateExpression) throws(TemplateError) -> Outcome {
        switch expression {
        case .literal(let value): return .value(value)
        case .variable(let variable, let line):
            return try lookUp(variable, line: line).map { .value($0) } ?? .missing(variable)
        case .list(let items): return .value(.list(try evaluate(all: items)))
        case .map(let entries, let line): return .value(try evaluateMap(entries, line))
        case .attribute(let base, let key, _): return try attribute(key, of: base)
        case .item(let base, let index, let line): return try item(index, of: base, line)
        case .slice(let base, let from, let to, let line): return .value(try slice(base, from, to, line))
        case .call(let callee, let arguments, let line): return try call(callee, arguments, line)
        case .filter(let base, let filter, let arguments, let line): return try apply(filter, to: base, arguments, line)
        case .test(let base, let test, let arguments, let line):
            return .value(.bool(try holds(test, for: base, arguments, line)))
        case .negate(let operand, let line): return .value(try negate(try evaluate(operand), line))
        case .not(let operand): return .value(.bool(try !evaluate(operand).isTrue))
        case .and(let left, let right):
            let value = try evaluate(left)
            return value.isTrue ? try outcome(of: right) : .value(value)
        case .or(let left, let right):
            let value = try evaluate(left)
            return value.isTrue ? .value(value) : try outcome(of: right)
        case .binary(let operation, let left, let right, let line):
            return .value(try compute(operation, try evaluate(left), try evaluate(right), line))
        case .comparison(let first, let rest, let line): return .value(.bool(try compare(first, rest, line)))
        case .conditional(let value, let condition, let otherwise, _):
            if try evaluate(condition).isTrue { return try outcome(of: value) }
            // Nothing, as Jinja has it even when undefined variables are errors.
            guard let otherwise else { return .value(.string("")) }
            return try outcome(of: otherwise)
        }
    }

    mutating func evaluate(all expressions: [TemplateExpression]) throws(TemplateError) -> [TemplateValue] {
        var values: [TemplateValue] = []
        for expression in expressions { values.append(try evaluate(expression)) }
        return values
    }

    private mutating func evaluateMap(
        _ entries: [(key: TemplateExpression, value: TemplateExpression)], _ line: Int
    ) throws(TemplateError) -> TemplateValue {
        var result: [TemplateValue.Entry] = []
        for (key, value) in entries {
            guard case .string(let key) = try evaluate(key) else { throw invalid("a map's key must be a string", line) }
            let entry = TemplateValue.Entry(key, try evaluate(value))
            if let known = result.firstIndex(where: { $0.key == key }) { result[known] = entry } else { result.append(entry) }
        }
        return .map(result)
    }

    private mutating func attribute(_ key: String, of base: TemplateExpression) throws(TemplateError) -> Outcome {
        switch try outcome(of: base) {
        case .missing(let variable): return .missing("\(variable).\(key)")
        case .value(let value): return value[key: key].map { .value($0) } ?? .missing("\(base.shown).\(key)")
        }
    }

    private mutating func item(_ index: TemplateExpression, of base: TemplateExpression, _ line: Int) throws(TemplateError) -> Outcome {
        let key = try evaluate(index)
        let place = "\(base.shown)[\(key.representation)]"
        switch try outcome(of: base) {
        case .missing(let variable): return .missing("\(variable)[\(key.representation)]")
        case .value(let value):
            switch (value, key) {
            case (.map, .string(let key)): return value[key: key].map { .value($0) } ?? .missing(place)
            case (.list(let items), .int(let index)):
                let position = index < 0 ? index + items.count : index
                return items.indices.contains(position) ? .value(items[position]) : .missing(place)
            case (.string(let text), .int(let index)):
                let scalars = Array(text.unicodeScalars)
                let position = index < 0 ? index + scalars.count : index
                return scalars.indices.contains(position) ? .value(.string(String(Character(scalars[position])))) : .missing(place)
            default: return .missing(place)
            }
        }
    }

    private mutating func slice(
        _ base: TemplateExpression, _ from: TemplateExpression?, _ to: TemplateExpression?, _ line: Int
    ) throws(TemplateError) -> TemplateValue {
        let value = try evaluate(base)
        var bounds: [Int?] = []
        for bound in [from, to] {
            guard let bound else {
                bounds.append(nil)
                continue
            }
            guard case .int(let index) = try evaluate(bound) else { throw invalid("a slice's bounds must be integers", line) }
            bounds.append(index)
        }
        func range(_ count: Int) -> Range<Int> {
            func clamp(_ index: Int) -> Int { index < 0 ? max(0, index + count) : min(index, count) }
            let low = bounds[0].map(clamp) ?? 0
            return low..<max(low, bounds[1].map(clamp) ?? count)
        }
        switch value {
        case .list(let items): return .list(Array(items[range(items.count)]))
        case .string(let text):
            let scalars = Array(text.unicodeScalars)
            var view = String.UnicodeScalarView()
            view.append(contentsOf: scalars[range(scalars.count)])
            return .string(String(view))
        default: throw invalid("cannot take a slice of \(value.typeName)", line)
        }
    }
}

extension TemplateExpression {
    /// The line to report, where one is known.
    var line: Int? {
        switch self {
        case .literal, .list: nil
        case .variable(_, let line), .map(_, let line), .attribute(_, _, let line), .item(_, _, let line), .slice(_, _, _, let line),
            .call(_, _, let line), .filter(_, _, _, let line), .test(_, _, _, let line), .negate(_, let line), .binary(_, _, _, let line),
            .comparison(_, _, let line), .conditional(_, _, _, let line):
            line
        case .not(let operand): operand.line
        case .and(let left, let right), .or(let left, let right): left.line ?? right.line
        }
    }

    /// How a message names it: a path where it is one.
    var shown: String {
        switch self {
        case .variable(let name, _): name
        case .attribute(let base, let key, _): "\(base.shown).\(key)"
        case .item(let base, .literal(let key), _): "\(base.shown)[\(key.representation)]"
        case .item(let base, _, _): "\(base.shown)[...]"
        case .filter(let base, let filter, _, _): "\(base.shown) | \(filter)"
        case .literal(let value): value.representation
        default: "(...)"
        }
    }
}
