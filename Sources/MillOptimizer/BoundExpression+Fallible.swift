import MillColumnar
package import MillExpr
import MillPlan

extension BoundExpression {
    /// Whether evaluating it can fail for some row.
    ///
    /// Columns, literals, logic, NULL tests, comparisons and a few total functions cannot; integer arithmetic overflows,
    /// division has zero, most casts meet text they cannot read. What is not known to be total is fallible.
    package var isFallible: Bool { contains(\.isFallibleItself) }

    private var isFallibleItself: Bool {
        switch self {
        case .column, .literal, .parameter, .and, .or, .not, .isNull, .isNotDistinct, .caseWhen, .coalesce, .inList: false
        case .cast(let operand, let type, _): !BoundExpression.isTotalCast(from: operand.type, to: type)
        case .call(let function, let arguments, _, _):
            switch function.name {
            // A pattern that ends in its escape character is an error: only a literal one is known not to.
            case "like", "not_like", "ilike", "not_ilike": !BoundExpression.isSoundPattern(arguments)
            default: !BoundExpression.totalFunctions.contains(function.name)
            }
        }
    }

    private static func isSoundPattern(_ arguments: [BoundExpression]) -> Bool {
        guard arguments.count == 2, case .literal(.string(let pattern), _) = arguments[1] else { return false }
        return pattern.reversed().prefix { $0 == "\\" }.count.isMultiple(of: 2)
    }

    /// Casts that have a result for every value.
    static func isTotalCast(from: SQLType, to: SQLType) -> Bool {
        if from == to { return true }
        switch (from, to) {
        case (_, .varchar): return true
        case (.int16, .int32), (.int16, .int64), (.int32, .int64): return true
        case (_, .float64) where from.isInteger || from == .float32: return true
        case (_, .float32) where from.isInteger: return true
        case (_, .numeric(precision: nil, scale: nil)) where from.isInteger || from.isNumeric: return true
        case (.timestamp, .timestamptz), (.timestamptz, .timestamp), (.boolean, .int32), (.int32, .boolean): return true
        default: return false
        }
    }

    private static let totalFunctions: Set<String> = [
        "equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal", "greatest", "least", "lower", "upper", "length", "char_length",
        "character_length", "octet_length", "btrim", "ltrim", "rtrim", "trim", "starts_with", "strpos", "position", "reverse", "plus", "isfinite", "pg_typeof",
        "jsonb_typeof", "json_typeof", "json_get", "json_get_text", "json_has_key", "md5",
    ]
}
