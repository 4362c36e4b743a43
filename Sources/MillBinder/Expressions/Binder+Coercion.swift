import MillBase
import MillColumnar
import MillExpr

/// Giving expressions the type that their place asks for.
extension Binder {
    /// `expression` as a value of `type`. Literals without a type are read at once, so that a bad one is an error of the
    /// statement with its position; parameters without a type take this one.
    /// - Throws: 42804 or 42846 when the cast is not allowed here, 22xxx when a literal is no value of the type.
    func coerce(
        _ expression: BoundExpression, to type: SQLType, _ kind: Coercion.Context = .implicit, at span: SourceSpan?
    ) throws(SQLError) -> BoundExpression {
        switch expression {
        case .parameter(let number, .unknown):
            let settled = parameters[number - 1] ?? type.base
            parameters[number - 1] = settled
            return try cast(.parameter(number, settled), to: type, kind, at: span)
        case .literal(.null, _) where Coercion.explicit(from: expression.type, to: type): return .literal(.null, type)
        case .literal(.string(let text), .unknown) where type == .varchar: return .literal(.string(text), .varchar)
        case .literal(.int(let value), let from) where from.isInteger && type.isInteger && Binder.fits(value, type): return .literal(.int(value), type)
        case .literal:
            let cast = try cast(expression, to: type, kind, at: span)
            guard case .cast = cast else { return cast }
            do { return try constant(cast).map { .literal($0, type) } ?? cast } catch { throw error.located(at: span) }
        default: return try cast(expression, to: type, kind, at: span)
        }
    }

    /// The cast without its place in the text: equal expressions must be equal wherever they are written, for GROUP BY and
    /// for sharing, and PostgreSQL's runtime errors have no position either.
    private func cast(
        _ expression: BoundExpression, to type: SQLType, _ kind: Coercion.Context, at span: SourceSpan?
    ) throws(SQLError) -> BoundExpression {
        let result: BoundExpression
        do { result = try Coercion.coerce(expression, to: type, kind) } catch { throw error.located(at: span) }
        if case .cast(let operand, let type, _) = result { return .cast(operand, type, nil) }
        return result
    }

    /// The overload's call on `arguments`, each as a value of its parameter's type.
    func call(_ resolved: ResolvedFunction, _ arguments: [BoundExpression], spans: [SourceSpan], at span: SourceSpan) throws(SQLError) -> BoundExpression {
        var coerced: [BoundExpression] = []
        for (index, argument) in arguments.enumerated() {
            coerced.append(try coerce(argument, to: resolved.argumentTypes[index], at: spans.indices.contains(index) ? spans[index] : span))
        }
        return .call(resolved.function, coerced, resolved.type, nil)
    }

    /// All expressions as values of the one type that they share.
    func unify(_ expressions: [BoundExpression], spans: [SourceSpan], of construct: String) throws(SQLError) -> (values: [BoundExpression], type: SQLType) {
        let type: SQLType
        do { type = try Coercion.common(expressions.map(\.type), of: construct) } catch {
            let first = expressions.firstIndex { $0.type != .unknown } ?? 0
            let category = expressions[first].type.category
            let odd = expressions.indices.first {
                $0 > first && expressions[$0].type != .unknown && expressions[$0].type.category != category
            }
            throw error.located(at: odd.flatMap { spans.indices.contains($0) ? spans[$0] : nil } ?? spans.first)
        }
        var values: [BoundExpression] = []
        for (index, expression) in expressions.enumerated() {
            values.append(try coerce(expression, to: type, at: spans.indices.contains(index) ? spans[index] : nil))
        }
        return (values, type)
    }

    /// A literal or parameter that no context gave a type is text.
    func settled(_ expression: BoundExpression) throws(SQLError) -> BoundExpression {
        expression.type == .unknown ? try coerce(expression, to: .varchar, at: nil) : expression
    }

    /// An expression that must be boolean, for WHERE, ON, HAVING, AND, CASE.
    func requireBoolean(_ expression: BoundExpression, in place: String, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        if expression.type != .boolean, expression.type != .unknown {
            throw SQLError(.datatypeMismatch, "argument of \(place) must be type boolean, not type \(expression.type.name)", at: span)
        }
        return try coerce(expression, to: .boolean, at: span)
    }

    static func fits(_ value: Int64, _ type: SQLType) -> Bool {
        switch type {
        case .int16: Int16(exactly: value) != nil
        case .int32: Int32(exactly: value) != nil
        default: true
        }
    }
}
