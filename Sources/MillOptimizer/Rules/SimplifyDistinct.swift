import MillColumnar
import MillExpr
import MillPlan

/// Removes groupings that change nothing.
///
/// DISTINCT over what is distinct already: a grouping's output, all of whose keys are kept. DISTINCT over a bare union of
/// DISTINCTs needs no inner ones. Constant keys group nothing: they are put behind the grouping again by a projection, as
/// long as a key remains (without keys a grouping has a row even over no rows).
struct SimplifyDistinct: Optimizer.Rule {
    let name = "SimplifyDistinct"

    func apply(to plan: LogicalPlan) -> LogicalPlan {
        plan.rewriting { node in
            guard case .aggregate(let upper) = node else { return node }
            let simpler = upper.calls.isEmpty ? distinct(upper) : nil
            if let simpler { return simpler }
            return withoutConstantKeys(upper)
        }
    }

    /// The input of a DISTINCT that has nothing to remove.
    private func distinct(_ node: LogicalAggregate) -> LogicalPlan? {
        switch node.input {
        case .aggregate(let lower):
            guard keepsKeys(node.keys, count: lower.keys.count), !lower.keys.isEmpty || node.keys.isEmpty == false else { return nil }
            return .project(LogicalProject(input: node.input, expressions: node.keys, names: node.names))
        case .project(let project):
            guard case .aggregate(let lower) = project.input, keepsKeys(node.keys.map { $0.substituting(project.expressions) }, count: lower.keys.count)
            else { return nil }
            return .project(LogicalProject(input: node.input, expressions: node.keys, names: node.names))
        case .union(var union):
            var changed = false
            union.inputs = union.inputs.map { input in
                guard case .aggregate(let lower) = input, lower.calls.isEmpty, !lower.keys.isEmpty else { return input }
                changed = true
                return .project(LogicalProject(input: lower.input, expressions: lower.keys, names: lower.names))
            }
            guard changed else { return nil }
            var node = node
            node.input = .union(union)
            return .aggregate(node)
        default: return nil
        }
    }

    private func keepsKeys(_ expressions: [BoundExpression], count: Int) -> Bool {
        let columns = Set(expressions.compactMap { if case .column(let index, _) = $0 { index } else { nil } })
        return (0..<count).allSatisfy(columns.contains)
    }

    private func withoutConstantKeys(_ node: LogicalAggregate) -> LogicalPlan {
        func isConstant(_ key: BoundExpression) -> Bool { if case .literal = key { true } else { false } }
        let kept = node.keys.indices.filter { !isConstant(node.keys[$0]) }
        guard kept.count < node.keys.count, !kept.isEmpty else { return .aggregate(node) }
        var inner = node
        inner.keys = kept.map { node.keys[$0] }
        inner.names = kept.map { node.names[$0] } + node.names.dropFirst(node.keys.count)
        let schema = inner.schema
        var expressions: [BoundExpression] = []
        for index in node.keys.indices {
            expressions.append(kept.firstIndex(of: index).map { .column($0, schema[$0].type) } ?? node.keys[index])
        }
        for call in node.calls.indices { expressions.append(.column(kept.count + call, schema[kept.count + call].type)) }
        return .project(LogicalProject(input: .aggregate(inner), expressions: expressions, names: node.names))
    }
}
