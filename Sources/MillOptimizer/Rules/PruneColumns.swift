import MillColumnar
import MillExpr
import MillPlan

/// Leaves out the columns and aggregates that nobody reads, down to the scans.
///
/// Walks from the root with the columns that are wanted. Every operator answers with a plan of exactly these, in their
/// old order; where an operator needs more than is wanted (a filter's or a join's condition), a projection drops the rest
/// above it, so that exchanges and state never carry it. Group keys stay: they make the groups.
struct PruneColumns: Optimizer.Rule {
    let name = "PruneColumns"

    func apply(to plan: LogicalPlan) -> LogicalPlan {
        prune(plan, to: Array(plan.schema.indices))
    }

    /// The plan with only the columns `wanted`, in rising order.
    private func prune(_ plan: LogicalPlan, to wanted: [Int]) -> LogicalPlan {
        switch plan {
        case .scan(var node):
            node.columns = wanted.map { node.columns[$0] }
            node.schema = wanted.map { node.schema[$0] }
            return .scan(node)
        case .values(var node):
            node.rows = node.rows.map { row in wanted.map { row[$0] } }
            node.schema = wanted.map { node.schema[$0] }
            return .values(node)
        case .project(var node):
            let expressions = wanted.map { node.expressions[$0] }
            let (input, place) = needing(node.input, columns(expressions))
            node.names = wanted.map { node.names[$0] }
            node.expressions = expressions.map { $0.remapped(place) }
            node.input = input
            return .project(node)
        case .filter(let node):
            let needed = Set(wanted).union(node.predicate.columnsUsed)
            let (input, place) = needing(node.input, needed)
            let filter = LogicalPlan.filter(LogicalFilter(input: input, predicate: node.predicate.remapped(place)))
            return selecting(wanted.map(place), of: filter)
        case .aggregate(let node): return prune(node, to: wanted)
        case .join(let node): return prune(node, to: wanted)
        case .union(var node):
            node.inputs = node.inputs.map { prune($0, to: wanted) }
            node.schema = wanted.map { node.schema[$0] }
            return .union(node)
        case .timeWindow(var node):
            let width = node.input.schema.count
            let (input, place) = needing(node.input, Set(wanted.filter { $0 < width }).union([node.window.timeColumn]))
            node.input = input
            node.window.timeColumn = place(node.window.timeColumn)
            let bounds = input.schema.count
            return selecting(wanted.map { $0 < width ? place($0) : bounds + $0 - width }, of: .timeWindow(node))
        case .sessionWindow(var node):
            let width = node.input.schema.count
            let needed = Set(wanted.filter { $0 < width }).union(node.window.partition).union([node.window.timeColumn])
            let (input, place) = needing(node.input, needed)
            node.input = input
            node.window.timeColumn = place(node.window.timeColumn)
            node.window.partition = node.window.partition.map(place)
            let bounds = input.schema.count
            return selecting(wanted.map { $0 < width ? place($0) : bounds + $0 - width }, of: .sessionWindow(node))
        case .rank(let node): return prune(node, to: wanted)
        }
    }

    private func prune(_ node: LogicalAggregate, to wanted: [Int]) -> LogicalPlan {
        var node = node
        let keyCount = node.keys.count
        // Without keys and calls a grouping would be something else: one call stays.
        var calls = wanted.filter { $0 >= keyCount }.map { $0 - keyCount }
        if calls.isEmpty, keyCount == 0, !node.calls.isEmpty { calls = [0] }
        let names = node.names
        node.calls = calls.map { node.calls[$0] }
        node.names = Array(names.prefix(keyCount)) + calls.map { names[keyCount + $0] }
        let read = node.keys + node.calls.flatMap { [$0.argument, $0.filter].compactMap { $0 } }
        let (input, place) = needing(node.input, columns(read))
        node.input = input
        node.keys = node.keys.map { $0.remapped(place) }
        for index in node.calls.indices {
            node.calls[index].argument = node.calls[index].argument?.remapped(place)
            node.calls[index].filter = node.calls[index].filter?.remapped(place)
        }
        let places = wanted.map { column in column < keyCount ? column : keyCount + (calls.firstIndex(of: column - keyCount) ?? 0) }
        return selecting(places, of: .aggregate(node))
    }

    /// Numbers that nobody reads are not made: without them and without a cut, nothing is.
    private func prune(_ node: LogicalRank, to wanted: [Int]) -> LogicalPlan {
        let width = node.input.schema.count
        let functions = wanted.filter { $0 >= width }.map { $0 - width }
        if functions.isEmpty, node.cut == nil { return prune(node.input, to: wanted) }
        let (input, place) = needing(node.input, node.window.columnsUsed.union(wanted.filter { $0 < width }))
        let pruned = LogicalRank(
            input: input, window: node.window.remapped(place), functions: functions.map { node.functions[$0] },
            names: functions.map { node.names[$0] }, cut: node.cut)
        let first = input.schema.count
        let places = wanted.map { $0 < width ? place($0) : first + (functions.firstIndex(of: $0 - width) ?? 0) }
        return selecting(places, of: .rank(pruned))
    }

    private func prune(_ node: LogicalJoin, to wanted: [Int]) -> LogicalPlan {
        var node = node
        let width = node.left.schema.count
        let needed = Set(wanted).union(node.condition?.columnsUsed ?? [])
        let (left, leftPlace) = needing(node.left, needed.filter { $0 < width })
        let (right, rightPlace) = needing(node.right, Set(needed.filter { $0 >= width }.map { $0 - width }))
        let leftCount = left.schema.count
        let place = { (column: Int) in column < width ? leftPlace(column) : leftCount + rightPlace(column - width) }
        node.left = left
        node.right = right
        node.condition = node.condition?.remapped(place)
        return selecting(wanted.map(place), of: .join(node))
    }

    // MARK: Parts

    private func columns(_ expressions: [BoundExpression]) -> Set<Int> {
        expressions.reduce(into: []) { $0.formUnion($1.columnsUsed) }
    }

    /// The input pruned to some columns, and where each of them is now.
    private func needing(_ input: LogicalPlan, _ needed: Set<Int>) -> (LogicalPlan, (Int) -> Int) {
        let sorted = needed.sorted()
        let places = Dictionary(uniqueKeysWithValues: sorted.enumerated().map { ($1, $0) })
        return (prune(input, to: sorted), { places[$0] ?? $0 })
    }

    private func selecting(_ columns: [Int], of plan: LogicalPlan) -> LogicalPlan {
        let schema = plan.schema
        if columns == Array(schema.indices) { return plan }
        return .project(
            LogicalProject(input: plan, expressions: columns.map { .column($0, schema[$0].type) }, names: columns.map { schema[$0].name }))
    }
}
