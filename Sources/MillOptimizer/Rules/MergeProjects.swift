import MillColumnar
import MillExpr
import MillPlan

/// Makes one projection of two, and none of one that changes nothing.
///
/// The upper one's expressions get the lower one's put in. Not where that would compute a costly expression twice: one
/// that is no column or literal must be used once at most. A projection that only repeats its input in place goes away
/// if the names agree, or if it is not the topmost operator: below, names are for EXPLAIN.
struct MergeProjects: Optimizer.Rule {
    let name = "MergeProjects"

    func apply(to plan: LogicalPlan) -> LogicalPlan {
        let merged = plan.rewriting { merge($0) }
        guard case .project(let top) = merged else { return merged.with(inputs: merged.inputs.map(trimmed)) }
        var node = top
        node.input = trimmed(top.input)
        if isTrivial(node), node.names == node.input.schema.map(\.name) { return node.input }
        return .project(node)
    }

    private func merge(_ plan: LogicalPlan) -> LogicalPlan {
        guard case .project(let upper) = plan, case .project(let lower) = upper.input else { return plan }
        var uses = Array(repeating: 0, count: lower.expressions.count)
        for expression in upper.expressions { count(expression, &uses) }
        for (index, expression) in lower.expressions.enumerated() where uses[index] > 1 {
            switch expression {
            case .column, .literal, .parameter: continue
            default: return plan
            }
        }
        return merge(
            .project(
                LogicalProject(input: lower.input, expressions: upper.expressions.map { $0.substituting(lower.expressions) }, names: upper.names)))
    }

    private func count(_ expression: BoundExpression, _ uses: inout [Int]) {
        if case .column(let index, _) = expression { uses[index] += 1 }
        for child in expression.children { count(child, &uses) }
    }

    /// Without projections that change nothing.
    private func trimmed(_ plan: LogicalPlan) -> LogicalPlan {
        plan.rewriting { node in
            guard case .project(let project) = node, isTrivial(project) else { return node }
            return project.input
        }
    }

    private func isTrivial(_ node: LogicalProject) -> Bool {
        guard node.expressions.count == node.input.schema.count else { return false }
        return node.expressions.enumerated().allSatisfy { index, expression in
            if case .column(index, _) = expression { true } else { false }
        }
    }
}
