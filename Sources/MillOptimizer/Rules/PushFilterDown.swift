import MillColumnar
import MillExpr
import MillPlan

/// Moves conditions towards the scans, as far as the answer allows.
///
/// Conjuncts travel alone. Only conjuncts that cannot fail travel at all: a fallible one stays behind the join or filter
/// that may spare it a row (`where d <> 0 and n / d > 2`). Below a
/// - projection: with the expressions put in for the columns, unless one of them can fail;
/// - inner join: to the side it reads, or into the condition when it reads both;
/// - left, semi or anti join: to the left side; its ON conjuncts that read the right side alone go there;
/// - full join: nowhere, each side's rows survive without a match;
/// - grouping: if it reads keys only, and there are keys;
/// - union: into every input;
/// - time window: if it does not read the window's bounds;
/// - session window: if it reads nothing but the partition, of which whole sessions go;
/// - ranking, top-N: if it reads only columns that partition, and there are some: it keeps whole partitions or none.
///
/// An equality between the sides of an inner join goes into its condition even if it can fail: it is what makes the join
/// a hash join, and it is still evaluated on rows of that join alone.
struct PushFilterDown: Optimizer.Rule {
    let name = "PushFilterDown"
    /// Nodes of a predicate that may still move: each projection that it passes can double it.
    private static let predicateSizeMax = 500

    func apply(to plan: LogicalPlan) -> LogicalPlan { push([], into: plan) }

    /// The plan with only the rows that satisfy `predicates`, none of which can fail.
    private func push(_ predicates: [BoundExpression], into plan: LogicalPlan) -> LogicalPlan {
        switch plan {
        case .filter(let node):
            let conjuncts = node.predicate.conjuncts
            let fallible = conjuncts.filter(\.isFallible)
            let input = push(predicates + conjuncts.filter { !$0.isFallible }, into: node.input)
            return filtered(input, by: fallible)
        case .project(let node): return push(predicates, node)
        case .join(let node): return push(predicates, node)
        case .aggregate(let node): return push(predicates, node)
        case .union(var node):
            node.inputs = node.inputs.map { push(predicates, into: $0) }
            return .union(node)
        case .timeWindow(var node):
            let width = node.input.schema.count
            let (below, above) = split(predicates) { $0.columnsUsed.allSatisfy { $0 < width } }
            node.input = push(below, into: node.input)
            return filtered(.timeWindow(node), by: above)
        case .sessionWindow(var node):
            let schema = node.input.schema
            // Equal numbers may look different; a condition that sees it would take rows out of the middle of a session.
            let whole = node.window.partition.filter { !schema[$0].type.looksVary }
            let (below, above) = split(predicates) { $0.columnsUsed.allSatisfy(whole.contains) }
            node.input = push(below, into: node.input)
            return filtered(.sessionWindow(node), by: above)
        case .rank(var node):
            let (below, above) = split(predicates) { predicate in
                !predicate.columnsUsed.isEmpty && predicate.columnsUsed.allSatisfy(node.window.partition.contains)
            }
            node.input = push(below, into: node.input)
            return filtered(.rank(node), by: above)
        case .scan, .values: return filtered(plan, by: predicates)
        }
    }

    private func push(_ predicates: [BoundExpression], _ node: LogicalProject) -> LogicalPlan {
        var node = node
        var below: [BoundExpression] = []
        var above: [BoundExpression] = []
        for predicate in predicates {
            let inner = predicate.substituting(node.expressions)
            let isKept = inner.isLarger(than: Self.predicateSizeMax) || inner.isFallible || inner.isVolatile
            if isKept { above.append(predicate) } else { below.append(inner) }
        }
        node.input = push(below, into: node.input)
        return filtered(.project(node), by: above)
    }

    private func push(_ predicates: [BoundExpression], _ node: LogicalAggregate) -> LogicalPlan {
        var node = node
        var below: [BoundExpression] = []
        var above: [BoundExpression] = []
        for predicate in predicates {
            let readsKeys = !node.keys.isEmpty && !predicate.columnsUsed.isEmpty && predicate.columnsUsed.allSatisfy { $0 < node.keys.count }
            let inner = readsKeys ? predicate.substituting(node.keys) : predicate
            if !readsKeys || inner.isFallible || inner.isVolatile { above.append(predicate) } else { below.append(inner) }
        }
        node.input = push(below, into: node.input)
        return filtered(.aggregate(node), by: above)
    }

    // MARK: Joins

    private enum Side { case left, right, both, none }

    private func side(_ predicate: BoundExpression, _ width: Int) -> Side {
        let columns = predicate.columnsUsed
        if columns.isEmpty { return .none }
        if columns.allSatisfy({ $0 < width }) { return .left }
        return columns.allSatisfy { $0 >= width } ? .right : .both
    }

    private func push(_ predicates: [BoundExpression], _ node: LogicalJoin) -> LogicalPlan {
        let width = node.left.schema.count
        var left: [BoundExpression] = []
        var right: [BoundExpression] = []
        var on: [BoundExpression] = []
        var above: [BoundExpression] = []
        // Conditions on the join's output.
        for predicate in predicates {
            switch (node.kind, side(predicate, width)) {
            case (.inner, .left), (.left, .left), (.semi, .left), (.anti, .left): left.append(predicate)
            case (.inner, .right), (.right, .right): right.append(predicate.remapped { $0 - width })
            case (.inner, .both): on.append(predicate)
            default: above.append(predicate)
            }
        }
        // The join's own conditions: a side's rows may go if a failing condition makes them go unseen.
        for conjunct in node.condition?.conjuncts ?? [] {
            guard !conjunct.isFallible else {
                on.append(conjunct)
                continue
            }
            switch (node.kind, side(conjunct, width)) {
            case (.inner, .left), (.right, .left), (.semi, .left): left.append(conjunct)
            case (.inner, .right), (.left, .right), (.semi, .right), (.anti, .right): right.append(conjunct.remapped { $0 - width })
            default: on.append(conjunct)
            }
        }
        var node = node
        node.left = push(left, into: node.left)
        node.right = push(right, into: node.right)
        node.condition = BoundExpression.conjunction(unique(on))
        return filtered(.join(node), by: above)
    }

    /// The plan under a filter; an equality that joins the sides of an inner join goes into it instead.
    private func filtered(_ plan: LogicalPlan, by predicates: [BoundExpression]) -> LogicalPlan {
        var rest = predicates
        var plan = plan
        if case .join(var node) = plan, node.kind == .inner {
            let width = node.left.schema.count
            let (keys, others) = split(predicates) { JoinKeys.equality($0, leftWidth: width) != nil }
            if !keys.isEmpty {
                node.condition = BoundExpression.conjunction((node.condition?.conjuncts ?? []) + keys)
                plan = .join(node)
                rest = others
            }
        }
        guard let predicate = BoundExpression.conjunction(unique(rest)) else { return plan }
        return .filter(LogicalFilter(input: plan, predicate: predicate))
    }

    private func unique(_ predicates: [BoundExpression]) -> [BoundExpression] {
        var kept: [BoundExpression] = []
        for predicate in predicates where !kept.contains(predicate) { kept.append(predicate) }
        return kept
    }

    private func split(
        _ predicates: [BoundExpression], _ test: (BoundExpression) -> Bool
    ) -> (matching: [BoundExpression], others: [BoundExpression]) {
        (predicates.filter(test), predicates.filter { !test($0) })
    }
}
