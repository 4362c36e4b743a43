/// Arithmetic and comparison with Python's rules, without its unbounded integers: an overflow is an error.
extension TemplateRenderer {
    func negate(_ value: TemplateValue, _ line: Int) throws(TemplateError) -> TemplateValue {
        switch value.number {
        case .int(let number)?:
            guard number != .min else { throw invalid("integer out of range", line) }
            return .int(-number)
        case .float(let number)?: return .float(-number)
        case nil: throw invalid("cannot negate \(value.typeName)", line)
        }
    }

    func compute(
        _ operation: TemplateExpression.BinaryOperator, _ left: TemplateValue, _ right: TemplateValue, _ line: Int
    ) throws(TemplateError) -> TemplateValue {
        if operation == .concatenate {
            let text = left.text + right.text
            try checkSize(text, line: line)
            return .string(text)
        }
        switch (left, right, operation) {
        case (.string(let a), .string(let b), .add):
            try checkSize(a, line: line)
            return .string(a + b)
        case (.list(let a), .list(let b), .add):
            guard a.count + b.count <= 1 << 20 else { throw TemplateError(.limit("list grows too long"), name: name, line: line) }
            return .list(a + b)
        default: break
        }
        guard let a = left.number, let b = right.number else {
            throw invalid("operator \(operation.rawValue) does not take \(left.typeName) and \(right.typeName)", line)
        }
        if case .int(let a) = a, case .int(let b) = b, operation != .divide, operation != .power || b >= 0 {
            return .int(try computeIntegers(operation, a, b, line))
        }
        return .float(try computeFloats(operation, a.double, b.double, line))
    }

    private func computeIntegers(
        _ operation: TemplateExpression.BinaryOperator, _ a: Int, _ b: Int, _ line: Int
    ) throws(TemplateError) -> Int {
        let result: (partialValue: Int, overflow: Bool)
        switch operation {
        case .add: result = a.addingReportingOverflow(b)
        case .subtract: result = a.subtractingReportingOverflow(b)
        case .multiply: result = a.multipliedReportingOverflow(by: b)
        case .floorDivide, .remainder:
            guard b != 0 else { throw invalid("division by zero", line) }
            guard b != -1 else {
                result = operation == .remainder ? (0, false) : Int(0).subtractingReportingOverflow(a)
                break
            }
            // Python rounds towards minus infinity; the remainder takes the divisor's sign.
            let (quotient, rest) = a.quotientAndRemainder(dividingBy: b)
            let adjusts = rest != 0 && (rest < 0) != (b < 0)
            result = (operation == .floorDivide ? quotient - (adjusts ? 1 : 0) : rest + (adjusts ? b : 0), false)
        case .power: result = Self.power(a, b)
        case .divide, .concatenate: throw invalid("operator \(operation.rawValue) does not take integers", line)
        }
        guard !result.overflow else { throw invalid("integer out of range", line) }
        return result.partialValue
    }

    private static func power(_ base: Int, _ exponent: Int) -> (partialValue: Int, overflow: Bool) {
        if base == 0 || base == 1 { return (exponent == 0 ? 1 : base, false) }
        if base == -1 { return (exponent % 2 == 0 ? 1 : -1, false) }
        var result = 1
        for _ in 0..<min(exponent, 64) {
            let next = result.multipliedReportingOverflow(by: base)
            guard !next.overflow else { return next }
            result = next.partialValue
        }
        return (result, exponent > 64)
    }

    private func computeFloats(
        _ operation: TemplateExpression.BinaryOperator, _ a: Double, _ b: Double, _ line: Int
    ) throws(TemplateError) -> Double {
        switch operation {
        case .add: return a + b
        case .subtract: return a - b
        case .multiply: return a * b
        case .divide, .floorDivide, .remainder:
            guard b != 0 else { throw invalid("division by zero", line) }
            if operation == .divide { return a / b }
            let floor = (a / b).rounded(.down)
            return operation == .floorDivide ? floor : a - floor * b
        case .power:
            guard b == b.rounded(), abs(b) <= 1024, a != 0 || b >= 0 else { throw invalid("exponent out of range", line) }
            var result = 1.0
            for _ in 0..<Int(abs(b)) { result *= a }
            return b < 0 ? 1 / result : result
        case .concatenate: throw invalid("operator ~ does not take numbers here", line)
        }
    }

    mutating func compare(
        _ first: TemplateExpression, _ rest: [(TemplateExpression.ComparisonOperator, TemplateExpression)], _ line: Int
    ) throws(TemplateError) -> Bool {
        var left = try evaluate(first)
        for (operation, expression) in rest {
            let right = try evaluate(expression)
            guard try holds(operation, left, right, line) else { return false }
            left = right
        }
        return true
    }

    private func holds(
        _ operation: TemplateExpression.ComparisonOperator, _ left: TemplateValue, _ right: TemplateValue, _ line: Int
    ) throws(TemplateError) -> Bool {
        switch operation {
        case .equal: return left.equals(right)
        case .notEqual: return !left.equals(right)
        case .less: return try order(left, right, line) < 0
        case .lessOrEqual: return try order(left, right, line) <= 0
        case .greater: return try order(left, right, line) > 0
        case .greaterOrEqual: return try order(left, right, line) >= 0
        case .contained: return try contains(right, left, line)
        case .notContained: return try !contains(right, left, line)
        }
    }

    /// Negative, zero or positive as `left` sorts before, with or after `right`.
    private func order(_ left: TemplateValue, _ right: TemplateValue, _ line: Int) throws(TemplateError) -> Int {
        if let a = left.number, let b = right.number {
            if case .int(let a) = a, case .int(let b) = b { return a < b ? -1 : a == b ? 0 : 1 }
            return a.double < b.double ? -1 : a.double == b.double ? 0 : 1
        }
        guard case .string(let a) = left, case .string(let b) = right else {
            throw invalid("cannot order \(left.typeName) and \(right.typeName)", line)
        }
        if a.unicodeScalars.elementsEqual(b.unicodeScalars) { return 0 }
        return a.unicodeScalars.lexicographicallyPrecedes(b.unicodeScalars) ? -1 : 1
    }

    func contains(_ container: TemplateValue, _ value: TemplateValue, _ line: Int) throws(TemplateError) -> Bool {
        switch (container, value) {
        case (.list(let items), _): return items.contains { $0.equals(value) }
        case (.map, .string(let key)): return container[key: key] != nil
        case (.map, _): return false
        case (.string(let text), .string(let part)): return part.isEmpty || text.contains(part)
        default: throw invalid("cannot look for \(value.typeName) in \(container.typeName)", line)
        }
    }
}
