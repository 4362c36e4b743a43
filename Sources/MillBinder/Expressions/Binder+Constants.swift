import MillBase
import MillColumnar
import MillExpr

/// Values that the binder itself has to know: literals in other types, LIMIT, window sizes.
extension Binder {
    /// The value of an expression of literals; nil when it is none, or one that only evaluation knows.
    /// - Throws: 22xxx when a literal is no value of the type it is cast to.
    func constant(_ expression: BoundExpression) throws(SQLError) -> Scalar? {
        switch expression {
        case .literal(let value, _): return value
        case .cast(let operand, let type, _):
            guard let value = try constant(operand) else { return nil }
            return try Binder.cast(value, from: operand.type, to: type)
        default: return nil
        }
    }

    private static func cast(_ value: Scalar, from: SQLType, to type: SQLType) throws(SQLError) -> Scalar? {
        switch (value, type) {
        case (.null, _): return .null
        case (.string(let text), _) where from == .unknown || from == .varchar: return try TextInput.scalar(text, as: type)
        case (.int(let number), .numeric(precision: nil, scale: nil)) where from.isInteger: return .decimal(Decimal(unscaled: Int128(number), scale: 0))
        case (.int(let number), .float64) where from.isInteger: return .float(Double(number))
        case (.int(let number), _) where from.isInteger && type.isInteger: return fits(number, type) ? .int(number) : nil
        default: return nil
        }
    }
}
