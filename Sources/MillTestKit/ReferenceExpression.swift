import MillColumnar
package import MillExpr

/// Expressions a row at a time, as far as the laws need them: columns, literals, logic, comparisons, times moved by intervals without months.
package enum ReferenceExpression {
    package static func evaluate(_ expression: BoundExpression, _ row: ReferenceRow) -> ReferenceValue {
        switch expression {
        case .column(let index, _): return row[index]
        case .literal(let scalar, _): return ReferenceValue(scalar)
        case .and(let operands):
            let values = operands.map { evaluate($0, row) }
            return values.contains(.boolean(false)) ? .boolean(false) : values.contains(.null) ? .null : .boolean(true)
        case .or(let operands):
            let values = operands.map { evaluate($0, row) }
            return values.contains(.boolean(true)) ? .boolean(true) : values.contains(.null) ? .null : .boolean(false)
        case .not(let operand):
            let value = evaluate(operand, row)
            return value.isNull ? .null : .boolean(!value.isTrue)
        case .isNull(let operand): return .boolean(evaluate(operand, row).isNull)
        case .isNotDistinct(let left, let right): return .boolean(evaluate(left, row).key == evaluate(right, row).key)
        case .coalesce(let operands, _): return operands.lazy.map { evaluate($0, row) }.first { !$0.isNull } ?? .null
        case .caseWhen(let branches, let otherwise, _):
            for branch in branches where evaluate(branch.condition, row).isTrue { return evaluate(branch.result, row) }
            return otherwise.map { evaluate($0, row) } ?? .null
        case .call(let function, let arguments, _, _): return call(function.name, arguments.map { evaluate($0, row) })
        case .cast, .parameter, .inList: preconditionFailure("the laws do not use this expression")
        }
    }

    private static func call(_ name: String, _ arguments: [ReferenceValue]) -> ReferenceValue {
        guard !arguments.contains(.null) else { return .null }
        let (left, right) = (arguments[0], arguments[1])
        switch name {
        case "equal": return .boolean(left.key == right.key)
        case "not_equal": return .boolean(left.key != right.key)
        case "less": return .boolean(ReferenceValue.isLess(left, right))
        case "greater": return .boolean(ReferenceValue.isLess(right, left))
        case "less_or_equal": return .boolean(!ReferenceValue.isLess(right, left))
        case "greater_or_equal": return .boolean(!ReferenceValue.isLess(left, right))
        case "add", "subtract": return moved(left, by: right, forward: name == "add")
        default: preconditionFailure("the laws do not use the function \(name)")
        }
    }

    private static func moved(_ time: ReferenceValue, by interval: ReferenceValue, forward: Bool) -> ReferenceValue {
        guard case .integer(let time) = time, case .interval(let interval) = interval else { preconditionFailure("the laws move times by intervals") }
        let micros = Int64(interval.days) * 86_400_000_000 + interval.micros
        // The infinities stay.
        return .integer(time == .max || time == .min ? time : forward ? time + micros : time - micros)
    }
}
