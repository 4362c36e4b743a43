package import MillPlan

/// Rewrites a logical plan into a cheaper one with the same rows.
///
/// Place: binder -> optimizer -> stream planner. Rules run in the fixed order of `Optimizer.rules`, each over the whole
/// plan; the list runs `passesMax` times at most and stops early when a pass changes nothing. The last steps prune
/// columns and unify scans once, because they look at the whole plan.
///
/// Laws, held by tests: the plan's rows, column names and types stay; a second run changes nothing. A fallible expression
/// is never moved below a join or filter that could have excluded its row.
package enum Optimizer {
    /// What every rule is: a name for EXPLAIN and tests, and a rewriting of a whole plan.
    package protocol Rule: Sendable {
        var name: String { get }
        func apply(to plan: LogicalPlan) -> LogicalPlan
    }

    package static let rules: [any Rule] = [
        FoldConstants(), PushFilterDown(), CutByRank(), NarrowOuterJoin(), MergeProjects(), SimplifyDistinct(),
    ]
    private static let passesMax = 4

    package static func optimize(_ query: BoundQuery) -> BoundQuery {
        var query = query
        query.plan = optimize(query.plan)
        return query
    }

    package static func optimize(_ plan: LogicalPlan) -> LogicalPlan {
        var plan = settle(plan)
        plan = PruneColumns().apply(to: plan)
        plan = MergeProjects().apply(to: plan)
        plan = UnifyScans().apply(to: plan)
        return MergeProjects().apply(to: plan)
    }

    private static func settle(_ plan: LogicalPlan) -> LogicalPlan {
        var plan = plan
        for _ in 0..<passesMax {
            let before = plan
            for rule in rules { plan = rule.apply(to: plan) }
            if plan == before { break }
        }
        return plan
    }
}
