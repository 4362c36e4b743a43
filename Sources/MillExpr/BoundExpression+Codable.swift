package import MillBase
package import MillColumnar

extension BoundExpression: PostfixCodable {
    package var operands: [BoundExpression] { children }

    package var step: ExpressionStep {
        switch self {
        case .column(let number, let type): .column(number: number, type)
        case .literal(let value, let type): .literal(value: value, type)
        case .parameter(let number, let type): .parameter(number: number, type)
        case .call(let function, let arguments, let type, let span): .call(function: function, operands: arguments.count, type, span)
        case .cast(_, let type, let span): .cast(type, span)
        case .and(let operands): .and(operands: operands.count)
        case .or(let operands): .or(operands: operands.count)
        case .not: .not
        case .isNull: .isNull
        case .isNotDistinct: .isNotDistinct
        case .caseWhen(let branches, let otherwise, let type): .caseWhen(branches: branches.count, hasElse: otherwise != nil, type)
        case .coalesce(let operands, let type): .coalesce(operands: operands.count, type)
        case .inList(_, let list, let negated): .inList(values: list, negated: negated)
        }
    }
}

/// A node of an expression as it is stored. Renaming a case or label changes the stored form.
package enum ExpressionStep: PostfixStep {
    case column(number: Int, _ type: SQLType)
    case literal(value: Scalar, _ type: SQLType)
    case parameter(number: Int, _ type: SQLType)
    case call(function: ScalarFunction, operands: Int, _ type: SQLType, _ span: SourceSpan?)
    case cast(_ type: SQLType, _ span: SourceSpan?)
    case and(operands: Int)
    case or(operands: Int)
    case not
    case isNull
    case isNotDistinct
    case caseWhen(branches: Int, hasElse: Bool, _ type: SQLType)
    case coalesce(operands: Int, _ type: SQLType)
    case inList(values: [Scalar], negated: Bool)

    package var operandCount: Int {
        switch self {
        case .column, .literal, .parameter: 0
        case .call(_, let count, _, _), .and(let count), .or(let count), .coalesce(let count, _): count
        case .cast, .not, .isNull, .inList: 1
        case .isNotDistinct: 2
        case .caseWhen(let branches, let hasElse, _): branches.multipliedReportingOverflow(by: 2).partialValue &+ (hasElse ? 1 : 0)
        }
    }

    package func tree(_ operands: [BoundExpression]) -> BoundExpression {
        switch self {
        case .column(let number, let type): return .column(number, type)
        case .literal(let value, let type): return .literal(value, type)
        case .parameter(let number, let type): return .parameter(number, type)
        case .call(let function, _, let type, let span): return .call(function, operands, type, span)
        case .cast(let type, let span): return .cast(operands[0], type, span)
        case .and: return .and(operands)
        case .or: return .or(operands)
        case .not: return .not(operands[0])
        case .isNull: return .isNull(operands[0])
        case .isNotDistinct: return .isNotDistinct(operands[0], operands[1])
        case .caseWhen(let count, let hasElse, let type):
            let branches = (0..<count).map { BoundExpression.CaseBranch(operands[2 * $0], operands[2 * $0 + 1]) }
            return .caseWhen(branches, otherwise: hasElse ? operands.last : nil, type)
        case .coalesce(_, let type): return .coalesce(operands, type)
        case .inList(let values, let negated): return .inList(operands[0], values, negated: negated)
        }
    }
}
