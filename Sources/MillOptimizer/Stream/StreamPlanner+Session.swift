import MillColumnar
import MillExpr
import MillPlan

/// Session windows, alone and as the groups of an aggregate.
extension StreamPlanner {
    mutating func lower(_ node: LogicalSessionWindow) -> NodeIndex {
        let input = builder.distributing(lower(node.input), by: node.window.partition)
        // A growing session takes its rows back and gives them with other bounds; each row is in one session.
        var properties = builder[input].properties
        properties.appendOnly = false
        return builder.add(.sessionWindow(node.window), [input], node.window.schema(over: builder[input].schema), properties)
    }

    /// Goal: a growing session costs its aggregates, not all its rows, in every epoch.
    ///
    ///     Aggregate { keys: partition, bounds }           SessionAggregate
    ///       Project { columns }                    ->       Exchange { partition }
    ///         SessionWindow                                   input
    ///           input
    ///
    /// A filter that reads nothing but keys, as the optimizer puts it below the aggregate, goes above it again: it takes whole groups.
    ///
    /// Not when the input takes rows back or a call cannot be merged (DISTINCT, the one value of a subquery): a session that is
    /// split again needs its rows. Not when the keys are others than all partition columns and a bound or both: these make the groups
    /// the sessions. Not when a call reads a bound. Law: an aggregate of a union is the merge of the parts' aggregates.
    ///
    /// - Returns: nil when it must not fire.
    mutating func lowerSessionAggregate(_ node: LogicalAggregate) -> NodeIndex? {
        var plan = node.input
        var keys = node.keys
        var calls = node.calls
        var conditions: [BoundExpression] = []
        while true {
            if case .project(let project) = plan, project.expressions.allSatisfy(\.isColumn) {
                keys = keys.map { $0.substituting(project.expressions) }
                calls = calls.map { $0.substituting(project.expressions) }
                conditions = conditions.map { $0.substituting(project.expressions) }
                plan = project.input
            } else if case .filter(let filter) = plan {
                conditions += filter.predicate.conjuncts
                plan = filter.input
            } else {
                break
            }
        }
        guard case .sessionWindow(let session) = plan, keys.allSatisfy(\.isColumn) else { return nil }
        let window = session.window
        let width = session.input.schema.count
        let columns = keys.compactMap { if case .column(let index, _) = $0 { index } else { nil } }
        let bounds = columns.filter { $0 >= width }
        guard !bounds.isEmpty, Set(columns.filter { $0 < width }) == Set(window.partition), calls.allSatisfy({ $0.canMerge(below: width) })
        else { return nil }
        let whole = columns.filter { !session.schema[$0].type.looksVary }
        guard conditions.allSatisfy({ !$0.isFallible && !$0.isVolatile && $0.columnsUsed.allSatisfy(whole.contains) }) else { return nil }
        let source = lower(session.input)
        guard builder[source].properties.appendOnly else { return nil }

        let input = builder.distributing(source, by: window.partition)
        let schema = window.schema(over: builder[input].schema)
        let types = keys.map(\.type) + calls.map(\.type)
        let names = columns.map { schema[$0].name } + node.names.dropFirst(columns.count)
        // One bound tells the sessions of a partition apart.
        let unique = window.partition + bounds.prefix(1)
        let properties = StreamProperties(
            uniqueKey: unique.compactMap { columns.firstIndex(of: $0) }, appendOnly: false,
            distribution: builder[input].properties.distribution.among(columns))
        let fields = zip(names, types).map { Field($0, $1) }
        let aggregate = builder.add(
            .sessionAggregate(window, keys: columns, calls: calls.map(\.withoutSpans)), [input], fields, properties)
        let remapped = conditions.map { $0.withoutSpans.remapped { columns.firstIndex(of: $0) ?? $0 } }
        guard let predicate = BoundExpression.conjunction(remapped) else { return aggregate }
        return builder.add(.filter(predicate), [aggregate], fields, properties)
    }
}

extension BoundExpression {
    fileprivate var isColumn: Bool { if case .column = self { true } else { false } }
}

extension AggregateCall {
    fileprivate func substituting(_ expressions: [BoundExpression]) -> AggregateCall {
        var call = self
        call.argument = argument?.substituting(expressions)
        call.filter = filter?.substituting(expressions)
        return call
    }

    /// Whether two groups' states make the state of both together, over input columns below `width`.
    fileprivate func canMerge(below width: Int) -> Bool {
        !distinct && function != .singleValue && columnsUsed.allSatisfy { $0 < width }
    }
}
