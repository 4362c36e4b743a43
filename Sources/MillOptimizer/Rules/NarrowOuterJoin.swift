import MillColumnar
import MillExpr
import MillPlan

/// An outer join under a filter that refuses the rows it adds is an inner join.
///
/// A left join adds rows whose right columns are all NULL. If a conjunct above cannot be true for them, because a
/// comparison of such a column is NULL, they all go. The right side's conditions can then be pushed down, and the join
/// need not keep unmatched rows.
struct NarrowOuterJoin: Optimizer.Rule {
    let name = "NarrowOuterJoin"

    func apply(to plan: LogicalPlan) -> LogicalPlan {
        plan.rewriting { node in
            guard case .filter(var filter) = node, case .join(var join) = filter.input else { return node }
            let width = join.left.schema.count
            let total = join.schema.count
            let conjuncts = filter.predicate.conjuncts
            let refusesLeftNulls = conjuncts.contains { rejectsNulls($0, in: 0..<width) }
            let refusesRightNulls = conjuncts.contains { rejectsNulls($0, in: width..<max(total, width)) }
            switch join.kind {
            case .left where refusesRightNulls, .right where refusesLeftNulls: join.kind = .inner
            case .full where refusesLeftNulls && refusesRightNulls: join.kind = .inner
            case .full where refusesRightNulls: join.kind = .right
            case .full where refusesLeftNulls: join.kind = .left
            default: return node
            }
            filter.input = .join(join)
            return .filter(filter)
        }
    }

    /// Whether the predicate is never true where all columns of the range are NULL: a strict comparison that reads one.
    private func rejectsNulls(_ predicate: BoundExpression, in columns: Range<Int>) -> Bool {
        switch predicate {
        case .call(let function, let operands, _, _):
            Self.strict.contains(function.name) && operands.contains { isNull($0, where: columns) }
        case .inList(let operand, _, _): isNull(operand, where: columns)
        case .not(.isNull(let operand)): isNull(operand, where: columns)
        case .column: isNull(predicate, where: columns)
        case .and(let operands): operands.contains { rejectsNulls($0, in: columns) }
        case .or(let operands): operands.allSatisfy { rejectsNulls($0, in: columns) }
        default: false
        }
    }

    private func isNull(_ expression: BoundExpression, where columns: Range<Int>) -> Bool {
        switch expression {
        case .column(let index, _): columns.contains(index)
        case .cast(let operand, _, _): isNull(operand, where: columns)
        default: false
        }
    }

    private static let strict: Set<String> = ["equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal", "like", "not_like"]
}
