import MillColumnar
import MillExpr
import MillPlan

/// Evaluates what has no columns, and simplifies logic.
///
/// `1 + 1` becomes 2, `x and true` becomes x, `case when false ...` loses the branch. A part that fails, such as `1 / 0`,
/// stays as it is: whether it is ever evaluated depends on rows, and on branches that may not be taken. Filters on true go away, a filter on false
/// or NULL has no rows but stays a filter, so that its schema and columns stay.
struct FoldConstants: Optimizer.Rule {
    let name = "FoldConstants"

    func apply(to plan: LogicalPlan) -> LogicalPlan {
        plan.rewriting { node in
            let folded = node.mappingExpressions { simplified($0) }
            guard case .filter(let filter) = folded, filter.predicate == .literal(.boolean(true), .boolean) else { return folded }
            return filter.input
        }
    }

    private func simplified(_ expression: BoundExpression) -> BoundExpression {
        expression.rewriting { part in
            switch part {
            case .and(let operands): logic(operands, neutral: true) { .and($0) }
            case .or(let operands): logic(operands, neutral: false) { .or($0) }
            case .caseWhen(let branches, let otherwise, let type): branch(branches, otherwise, type)
            case .column, .literal, .parameter: part
            default: constant(part)
            }
        }
    }

    private func constant(_ part: BoundExpression) -> BoundExpression {
        guard part.children.allSatisfy(\.isLiteral), !part.isVolatile else { return part }
        // An error is the row's, not the plan's: the expression stays and meets it when it runs.
        let value = part.folded()
        return value.isLiteral ? value : part
    }

    /// AND and OR without their neutral operands; the absorbing one decides if the others cannot fail.
    private func logic(_ operands: [BoundExpression], neutral: Bool, _ make: ([BoundExpression]) -> BoundExpression) -> BoundExpression {
        let absorbing = BoundExpression.literal(.boolean(!neutral), .boolean)
        if operands.contains(absorbing), !operands.contains(where: \.isFallible) { return absorbing }
        var flat: [BoundExpression] = []
        for operand in operands where operand != .literal(.boolean(neutral), .boolean) && !flat.contains(operand) { flat.append(operand) }
        switch flat.count {
        case 0: return .literal(.boolean(neutral), .boolean)
        case 1: return flat[0]
        default: return make(flat)
        }
    }

    private func branch(_ branches: [BoundExpression.CaseBranch], _ otherwise: BoundExpression?, _ type: SQLType) -> BoundExpression {
        var kept: [BoundExpression.CaseBranch] = []
        for branch in branches {
            switch branch.condition {
            case .literal(.boolean(false), _), .literal(.null, _): continue
            case .literal(.boolean(true), _):
                return kept.isEmpty ? branch.result : .caseWhen(kept, otherwise: branch.result, type)
            default: kept.append(branch)
            }
        }
        return kept.isEmpty ? otherwise ?? .literal(.null, type) : .caseWhen(kept, otherwise: otherwise, type)
    }
}

extension BoundExpression {
    var isVolatile: Bool {
        contains { if case .call(let function, _, _, _) = $0 { function.volatility != .immutable } else { false } }
    }
}
