package import MillBase
package import MillColumnar

extension FunctionRegistry {
    /// Whether `name` is an aggregate, so that a call of it makes its query a grouped one.
    package static func isAggregate(_ name: String) -> Bool { aggregateFunction(name) != nil }

    /// Resolves an aggregate; no arguments stands for `count(*)`.
    /// - Throws: 42883 when the aggregate does not take these types.
    package static func resolveAggregate(_ name: String, arguments: [SQLType], distinct: Bool = false) throws(SQLError) -> ResolvedAggregate {
        guard let function = aggregateFunction(name) else { throw undefined(name, arguments) }
        guard let argument = arguments.first else {
            guard function == .count else { throw undefined(name, arguments) }
            guard !distinct else { throw SQLError(.syntaxError, "DISTINCT specified, but count has no argument") }
            return ResolvedAggregate(function: .count, argumentType: nil, type: .int64)
        }
        guard arguments.count == 1 else { throw undefined(name, arguments) }
        let known = argument == .unknown ? SQLType.varchar : argument
        switch function {
        case .count: return ResolvedAggregate(function: function, argumentType: known, type: .int64)
        case .sum, .avg:
            guard known.isNumber else { throw undefined(name, arguments) }
            return ResolvedAggregate(function: function, argumentType: known, type: function == .sum ? sumType(known) : averageType(known))
        case .min, .max:
            guard known != .boolean, known != .jsonb else { throw undefined(name, arguments) }
            return ResolvedAggregate(function: function, argumentType: known, type: known)
        case .boolAnd, .boolOr:
            guard Coercion.implicit(from: argument, to: .boolean) else { throw undefined(name, arguments) }
            return ResolvedAggregate(function: function, argumentType: .boolean, type: .boolean)
        case .singleValue: return ResolvedAggregate(function: function, argumentType: known, type: known)
        }
    }

    private static func aggregateFunction(_ name: String) -> AggregateFunction? {
        switch name {
        case "every": .boolAnd
        // Made by the binder for scalar subqueries, not callable.
        case "single_value": nil
        default: AggregateFunction(rawValue: name)
        }
    }

    private static func sumType(_ type: SQLType) -> SQLType {
        switch type {
        case .int16, .int32: .int64
        case .float32, .float64: type
        default: .numeric
        }
    }

    private static func averageType(_ type: SQLType) -> SQLType { type.isFloat ? .float64 : .numeric }
}
