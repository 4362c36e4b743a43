import MillBase
import MillColumnar
import MillExpr

/// Values that the binder itself has to know: literals in other types, LIMIT, window sizes.
extension Binder {
    /// The value of an expression without columns; nil when it has some, or when evaluating it fails.
    /// - Throws: 22xxx when a literal's text is no value of the type it is cast to.
    func constant(_ expression: BoundExpression) throws(SQLError) -> Scalar? {
        switch expression {
        case .literal(let value, _): return value
        case .cast(.literal(.string(let text), .unknown), let type, _), .cast(.literal(.string(let text), .varchar), let type, _):
            let base = type.isNumeric ? SQLType.numeric : type
            let value = try TextInput.scalar(text, as: base)
            // Precision and scale round and can overflow: that is the cast's business.
            return base == type ? value : folded(.cast(.literal(value, base), type, nil))
        default: return folded(expression)
        }
    }

    private func folded(_ expression: BoundExpression) -> Scalar? {
        if case .literal(let value, _) = expression.folded() { value } else { nil }
    }
}
