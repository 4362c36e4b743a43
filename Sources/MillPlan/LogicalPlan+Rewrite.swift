package import MillExpr

extension LogicalPlan {
    /// The same operator over other inputs, in the order of `inputs`.
    package func with(inputs: [LogicalPlan]) -> LogicalPlan {
        switch self {
        case .scan, .values: return self
        case .project(var node):
            node.input = inputs[0]
            return .project(node)
        case .filter(var node):
            node.input = inputs[0]
            return .filter(node)
        case .aggregate(var node):
            node.input = inputs[0]
            return .aggregate(node)
        case .join(var node):
            node.left = inputs[0]
            node.right = inputs[1]
            return .join(node)
        case .union(var node):
            node.inputs = inputs
            return .union(node)
        case .timeWindow(var node):
            node.input = inputs[0]
            return .timeWindow(node)
        case .sessionWindow(var node):
            node.input = inputs[0]
            return .sessionWindow(node)
        case .rank(var node):
            node.input = inputs[0]
            return .rank(node)
        }
    }

    /// Bottom-up rewriting: inputs first, then `change` on the operator.
    package func rewriting<Failure: Error>(_ change: (LogicalPlan) throws(Failure) -> LogicalPlan) throws(Failure) -> LogicalPlan {
        var renewed: [LogicalPlan] = []
        for input in inputs { renewed.append(try input.rewriting(change)) }
        return try change(renewed.isEmpty ? self : with(inputs: renewed))
    }

    /// The operator's own expressions, each over the columns of its input.
    package var expressions: [BoundExpression] {
        switch self {
        case .scan, .union, .timeWindow, .sessionWindow, .rank: []
        case .values(let node): node.rows.flatMap { $0 }
        case .project(let node): node.expressions
        case .filter(let node): [node.predicate]
        case .aggregate(let node): node.keys + node.calls.flatMap { [$0.argument, $0.filter].compactMap { $0 } }
        case .join(let node): node.condition.map { [$0] } ?? []
        }
    }

    /// The same operator with each of its own expressions changed.
    package func mappingExpressions<Failure: Error>(
        _ change: (BoundExpression) throws(Failure) -> BoundExpression
    ) throws(Failure) -> LogicalPlan {
        switch self {
        case .scan, .union, .timeWindow, .sessionWindow, .rank: return self
        case .values(var node):
            for row in node.rows.indices {
                for column in node.rows[row].indices { node.rows[row][column] = try change(node.rows[row][column]) }
            }
            return .values(node)
        case .project(var node):
            for index in node.expressions.indices { node.expressions[index] = try change(node.expressions[index]) }
            return .project(node)
        case .filter(var node):
            node.predicate = try change(node.predicate)
            return .filter(node)
        case .aggregate(var node):
            for index in node.keys.indices { node.keys[index] = try change(node.keys[index]) }
            for index in node.calls.indices {
                if let argument = node.calls[index].argument { node.calls[index].argument = try change(argument) }
                if let filter = node.calls[index].filter { node.calls[index].filter = try change(filter) }
            }
            return .aggregate(node)
        case .join(var node):
            if let condition = node.condition { node.condition = try change(condition) }
            return .join(node)
        }
    }
}

extension BoundExpression {
    /// The conjuncts of a predicate: nested ANDs flattened.
    package var conjuncts: [BoundExpression] {
        if case .and(let operands) = self { return operands.flatMap(\.conjuncts) }
        return [self]
    }

    /// One predicate of several; nil for none.
    package static func conjunction(_ predicates: [BoundExpression]) -> BoundExpression? {
        switch predicates.count {
        case 0: nil
        case 1: predicates[0]
        default: .and(predicates)
        }
    }

    /// The same expression with column `n` replaced by `expressions[n]`: what it means below a projection.
    package func substituting(_ expressions: [BoundExpression]) -> BoundExpression {
        if case .column(let index, _) = self { return expressions[index] }
        let children = children
        return children.isEmpty ? self : with(children: children.map { $0.substituting(expressions) })
    }

    /// Bottom-up rewriting: operands first, then `change` on the node.
    package func rewriting<Failure: Error>(_ change: (BoundExpression) throws(Failure) -> BoundExpression) throws(Failure) -> BoundExpression {
        var renewed: [BoundExpression] = []
        for child in children { renewed.append(try child.rewriting(change)) }
        return try change(renewed.isEmpty ? self : with(children: renewed))
    }

    /// Whether it has more than `limit` nodes; looks at no more than that many.
    package func isLarger(than limit: Int) -> Bool {
        var open = [self]
        var count = 0
        while let next = open.popLast() {
            count += 1
            if count > limit { return true }
            open += next.children
        }
        return false
    }

    /// Whether it or a part of it satisfies `test`.
    package func contains(_ test: (BoundExpression) -> Bool) -> Bool {
        test(self) || children.contains { $0.contains(test) }
    }
}

extension BoundQuery {
    /// The query with statement parameters replaced by values; `values[0]` is `$1`, already of the inferred type.
    package func replacingParameters(_ values: [BoundExpression]) -> BoundQuery {
        var query = self
        query.plan = query.plan.rewriting { node in
            node.mappingExpressions { expression in
                expression.rewriting { part in
                    if case .parameter(let number, _) = part, number >= 1, number <= values.count { return values[number - 1] }
                    return part
                }
            }
        }
        return query
    }
}
