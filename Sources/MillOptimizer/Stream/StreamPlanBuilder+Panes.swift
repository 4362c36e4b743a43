import MillColumnar
import MillExpr
import MillPlan

/// Overlapping windows that share their panes.
extension StreamPlanBuilder {
    /// Goal: a row goes to an aggregate not once for each window that holds it, but with all that are like it, once for their pane.
    ///
    ///     Aggregate { keys: k, window_start, calls }      Aggregate { keys: k, window_start, calls }
    ///       TimeWindow { overlapping }               ->     TimeWindow { overlapping }
    ///         input                                           Panes
    ///                                                           input
    ///
    /// Not when windows do not overlap, when the time itself is asked for, or when rows differ in more than the aggregate's keys, as they
    /// would hardly repeat. Law: a row of weight n counts as n equal rows, and the rows of a pane lie in the same windows.
    ///
    /// - Parameters:
    ///   - columns: those of the input that the aggregate reads.
    ///   - keys: those that it groups by.
    /// - Returns: the input with panes, its columns as before; nil when it must not fire.
    mutating func inPanes(_ input: NodeIndex, reading columns: Set<Int>, keys: [Int]) -> NodeIndex? {
        let node = self[input]
        guard let below = node.inputs.first, columns.isSubset(of: keys) else { return nil }
        switch node.operation {
        case .timeWindow(let window):
            let lower = self[below]
            let others = lower.schema.indices.filter { $0 != window.timeColumn }
            guard window.sharesPanes, lower.schema[window.timeColumn].type != .date, !columns.contains(window.timeColumn),
                columns.isSuperset(of: others)
            else { return nil }
            var properties = lower.properties
            properties.uniqueKey = nil
            let panes = add(.panes(window), [below], lower.schema, properties)
            return replacingInput(of: node, by: panes) { $0 }
        case .project(let expressions):
            let places = expressions.map { if case .column(let column, _) = $0 { column } else { -1 } }
            guard !places.contains(-1), let panes = inPanes(below, reading: Set(columns.map { column in places[column] }), keys: keys.map { key in places[key] })
            else { return nil }
            return replacingInput(of: node, by: panes) { column in places.firstIndex(of: column) }
        default: return nil
        }
    }
}
