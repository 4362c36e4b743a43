import MillBase
import MillColumnar
import MillExpr
import MillPlan

/// Gives all scans of one relation in a plan the same columns: the union of what each reads, in the relation's order.
///
/// Equal scans become one node of the stream plan, so that a source used twice is read and decoded once, and whatever is
/// equal above it is shared too. A projection restores each reader's own columns where they differ. Runs after pruning.
struct UnifyScans: Optimizer.Rule {
    let name = "UnifyScans"

    func apply(to plan: LogicalPlan) -> LogicalPlan {
        var unions: [ObjectID: [Int: Field]] = [:]
        collect(plan, &unions)
        return plan.rewriting { node in
            guard case .scan(let scan) = node, let union = unions[scan.relation.id] else { return node }
            let columns = union.keys.sorted()
            guard columns != scan.columns else { return node }
            let schema = columns.compactMap { union[$0] }
            let whole = LogicalPlan.scan(LogicalScan(relation: scan.relation, columns: columns, schema: schema))
            if scan.columns == columns { return whole }
            let places = scan.columns.map { columns.firstIndex(of: $0) ?? 0 }
            return .project(
                LogicalProject(input: whole, expressions: places.map { .column($0, schema[$0].type) }, names: scan.schema.map(\.name)))
        }
    }

    private func collect(_ plan: LogicalPlan, _ unions: inout [ObjectID: [Int: Field]]) {
        if case .scan(let scan) = plan {
            for (column, field) in zip(scan.columns, scan.schema) { unions[scan.relation.id, default: [:]][column] = field }
        }
        for input in plan.inputs { collect(input, &unions) }
    }
}
