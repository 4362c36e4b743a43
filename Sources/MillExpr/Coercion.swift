package import MillBase
package import MillColumnar

/// Which casts exist and where they may happen unasked: PostgreSQL's pg_cast, with text and varchar being one type.
package enum Coercion {
    /// In an expression without the user saying so.
    package static func implicit(from: SQLType, to: SQLType) -> Bool { rank(from, to) == .implicit }

    /// When a value is stored in a column: INSERT, UPDATE, a sink's column.
    package static func assignment(from: SQLType, to: SQLType) -> Bool { rank(from, to).map { $0 <= .assignment } ?? false }

    /// Where the user wrote CAST or `::`.
    package static func explicit(from: SQLType, to: SQLType) -> Bool { rank(from, to) != nil }

    /// Whether a value of `from` must pass a cast to be one of `to`: not when only a precision is forgotten.
    package static func needsCast(from: SQLType, to: SQLType) -> Bool {
        if from == to { return false }
        return !(from.isNumeric && to == .numeric)
    }

    /// How far a cast reaches; each level includes those before it.
    private enum Rank: Int, Comparable {
        case implicit, assignment, explicit
        static func < (a: Rank, b: Rank) -> Bool { a.rawValue < b.rawValue }
    }

    private static func rank(_ from: SQLType, _ to: SQLType) -> Rank? {
        let from = from.base
        let to = to.base
        if from == to || from == .unknown { return .implicit }
        if to == .unknown { return nil }
        // Every type has a text form: storing it is allowed, reading it back has to be asked for.
        if to == .varchar { return .assignment }
        if from == .varchar { return .explicit }
        switch (from, to) {
        case (.int16, .int32), (.int16, .int64), (.int32, .int64): return .implicit
        case (.int16, .float32), (.int16, .float64), (.int32, .float32), (.int32, .float64), (.int64, .float32), (.int64, .float64): return .implicit
        case (.int16, .numeric), (.int32, .numeric), (.int64, .numeric): return .implicit
        case (.numeric, .float32), (.numeric, .float64), (.float32, .float64): return .implicit
        case (.date, .timestamp), (.date, .timestamptz), (.timestamp, .timestamptz), (.time, .interval): return .implicit
        case (.int64, .int32), (.int64, .int16), (.int32, .int16), (.float64, .float32): return .assignment
        case (.float32, .numeric), (.float64, .numeric): return .assignment
        case (.float32, _) where to.isInteger, (.float64, _) where to.isInteger, (.numeric, _) where to.isInteger: return .assignment
        case (.timestamptz, .timestamp), (.timestamptz, .date), (.timestamptz, .time), (.timestamp, .date), (.timestamp, .time): return .assignment
        case (.interval, .time): return .assignment
        case (.boolean, .int32), (.int32, .boolean): return .explicit
        case (.jsonb, .boolean): return .explicit
        case (.jsonb, _) where to.isNumber: return .explicit
        default: return nil
        }
    }

    /// The one type that the branches of CASE, COALESCE, VALUES, UNION, IN or GREATEST get, by PostgreSQL's rule: the first
    /// type that is not unknown, moved on to a later one of the same category whenever that one is reached by an implicit
    /// cast and not back. Only unknowns give text.
    /// - Throws: 42804 when two are of different categories, 42846 when one cannot become the result.
    package static func common(_ types: [SQLType], of construct: String = "CASE") throws(SQLError) -> SQLType {
        let known = types.filter { $0 != .unknown }
        guard let first = known.first else { return .varchar }
        if known.allSatisfy({ $0 == first }) { return first }
        var best = first.base
        for type in known.dropFirst() {
            let type = type.base
            if type == best { continue }
            if type.category != best.category {
                throw SQLError(.datatypeMismatch, "\(construct) types \(best.name) and \(type.name) cannot be matched")
            }
            if !best.isPreferred, implicit(from: best, to: type), !implicit(from: type, to: best) { best = type }
        }
        for type in known where !implicit(from: type, to: best) {
            throw SQLError(.cannotCoerce, "\(construct) could not convert type \(type.name) to \(best.name)")
        }
        return best
    }

    package enum Context: Sendable { case implicit, assignment, explicit }

    /// `expression` as a value of `type`, by a cast where one is needed.
    /// - Throws: 42804 when the context does not allow the cast (42846 for an explicit one).
    package static func coerce(
        _ expression: BoundExpression, to type: SQLType, _ context: Context = .implicit, at span: SourceSpan? = nil
    ) throws(SQLError) -> BoundExpression {
        let from = expression.type
        guard needsCast(from: from, to: type) else { return expression }
        let allowed =
            switch context {
            case .implicit: implicit(from: from, to: type)
            case .assignment: assignment(from: from, to: type)
            case .explicit: explicit(from: from, to: type)
            }
        guard allowed else {
            if context == .explicit { throw SQLError(.cannotCoerce, "cannot cast type \(from.name) to \(type.name)", at: span) }
            throw SQLError(
                .datatypeMismatch, "expression is of type \(from.name) but type \(type.name) is needed",
                hint: "You will need to rewrite or cast the expression.", at: span)
        }
        return .cast(expression, type, span)
    }
}

extension SQLType {
    /// The type without precision and scale.
    package var base: SQLType { isNumeric ? .numeric : self }

    /// PostgreSQL's type categories, which overload resolution thinks in.
    package enum Category: Hashable, Sendable { case boolean, number, string, dateTime, timespan, other, unknown }

    package var category: Category {
        switch self {
        case .boolean: .boolean
        case .int16, .int32, .int64, .float32, .float64, .numeric: .number
        case .varchar: .string
        case .date, .time, .timestamp, .timestamptz: .dateTime
        case .interval: .timespan
        case .bytea, .jsonb: .other
        case .unknown: .unknown
        }
    }

    /// Whether an ambiguous call leans to this type within its category.
    package var isPreferred: Bool {
        switch self {
        case .boolean, .float64, .varchar, .timestamptz, .interval: true
        default: false
        }
    }
}
