package import MillColumnar
package import MillExpr

/// What a view means is stored too, so that its names are resolved once, when it is created.
extension LogicalPlan: PostfixCodable {
    package var operands: [LogicalPlan] { inputs }

    package var step: LogicalStep {
        switch self {
        case .scan(let node): .scan(node)
        case .values(let node): .values(node)
        case .project(let node): .project(expressions: node.expressions, names: node.names)
        case .filter(let node): .filter(node.predicate)
        case .aggregate(let node): .aggregate(keys: node.keys, calls: node.calls, names: node.names)
        case .join(let node): .join(kind: node.kind, condition: node.condition)
        case .union(let node): .union(inputs: node.inputs.count, schema: node.schema)
        case .timeWindow(let node): .timeWindow(node.window)
        case .sessionWindow(let node): .sessionWindow(node.window)
        case .rank(let node): .rank(window: node.window, functions: node.functions, names: node.names, cut: node.cut)
        }
    }
}

/// A node of a logical plan as it is stored. Renaming a case or label changes the stored form.
package enum LogicalStep: PostfixStep {
    case scan(LogicalScan)
    case values(LogicalValues)
    case project(expressions: [BoundExpression], names: [String])
    case filter(BoundExpression)
    case aggregate(keys: [BoundExpression], calls: [AggregateCall], names: [String])
    case join(kind: JoinKind, condition: BoundExpression?)
    case union(inputs: Int, schema: Schema)
    case timeWindow(TimeWindow)
    case sessionWindow(SessionWindow)
    case rank(window: Window, functions: [RankFunction], names: [String], cut: Cut?)

    package var operandCount: Int {
        switch self {
        case .scan, .values: 0
        case .project, .filter, .aggregate, .timeWindow, .sessionWindow, .rank: 1
        case .join: 2
        case .union(let inputs, _): inputs
        }
    }

    package func tree(_ operands: [LogicalPlan]) -> LogicalPlan {
        switch self {
        case .scan(let node): .scan(node)
        case .values(let node): .values(node)
        case .project(let expressions, let names): .project(LogicalProject(input: operands[0], expressions: expressions, names: names))
        case .filter(let predicate): .filter(LogicalFilter(input: operands[0], predicate: predicate))
        case .aggregate(let keys, let calls, let names):
            .aggregate(LogicalAggregate(input: operands[0], keys: keys, calls: calls, names: names))
        case .join(let kind, let condition): .join(LogicalJoin(left: operands[0], right: operands[1], kind: kind, condition: condition))
        case .union(_, let schema): .union(LogicalUnion(inputs: operands, schema: schema))
        case .timeWindow(let window): .timeWindow(LogicalTimeWindow(input: operands[0], window: window))
        case .sessionWindow(let window): .sessionWindow(LogicalSessionWindow(input: operands[0], window: window))
        case .rank(let window, let functions, let names, let cut):
            .rank(LogicalRank(input: operands[0], window: window, functions: functions, names: names, cut: cut))
        }
    }
}
