package import MillColumnar
package import MillExpr
package import MillPlan

/// Writes stream plans by hand, with the exchanges that operators demand.
package struct PlanBuilder {
    package private(set) var plan = StreamPlan()
    /// EMIT ON WINDOW CLOSE.
    package var emitsOnClose = false

    package init() {}

    package func schema(_ index: NodeIndex) -> Schema { plan[index].schema }

    private mutating func add(
        _ operation: StreamOperation, _ inputs: [NodeIndex], _ schema: Schema, appendOnly: Bool, _ distribution: Distribution,
        watermarks: [Int] = []
    ) -> NodeIndex {
        var node = StreamNode(
            operation, inputs: inputs, schema: schema,
            properties: StreamProperties(appendOnly: appendOnly, distribution: distribution, watermarks: watermarks))
        let marks = inputs.map { plan[$0].properties.watermarks }
        node.closing = StreamNode.closing(operation, marks, inputs.map { self.schema($0) }, emitsOnClose: emitsOnClose)
        if node.closing?.emitsOnClose == true { node.properties.appendOnly = true }
        if !inputs.isEmpty {
            let zeros = marks.map { columns in Watermarks(uniqueKeysWithValues: columns.map { ($0, 0) }) }
            node.properties.watermarks = StreamNode.watermarks(operation, zeros, inputs.map { self.schema($0) }).keys.sorted()
        }
        return plan.add(node)
    }

    private mutating func addAlike(_ operation: StreamOperation, _ input: NodeIndex, _ schema: Schema? = nil) -> NodeIndex {
        let node = plan[input]
        return add(operation, [input], schema ?? node.schema, appendOnly: node.properties.appendOnly, node.properties.distribution)
    }

    /// The input of a table's own job.
    package mutating func tableInput(_ relation: RelationReference, _ schema: Schema, appendOnly: Bool = false, watermarks: [Int] = []) -> NodeIndex {
        add(.source(relation, columns: Array(schema.indices)), [], schema, appendOnly: appendOnly, .any, watermarks: watermarks)
    }

    package mutating func relation(
        _ relation: RelationReference, _ schema: Schema, columns: [Int]? = nil, appendOnly: Bool = false,
        watermarks: [Int] = []
    ) -> NodeIndex {
        let columns = columns ?? Array(schema.indices)
        return add(
            .relation(relation, columns: columns), [], columns.map { schema[$0] }, appendOnly: appendOnly, .any,
            watermarks: watermarks.compactMap { columns.firstIndex(of: $0) }.sorted())
    }

    package mutating func values(_ rows: [[Scalar]], _ schema: Schema) -> NodeIndex { add(.values(rows), [], schema, appendOnly: true, .single) }

    package mutating func filter(_ input: NodeIndex, _ predicate: BoundExpression) -> NodeIndex { addAlike(.filter(predicate), input) }

    package mutating func project(_ input: NodeIndex, _ expressions: [BoundExpression]) -> NodeIndex {
        let fields = expressions.enumerated().map { Field("p\($0)", $1.type) }
        return add(.project(expressions), [input], fields, appendOnly: plan[input].properties.appendOnly, .any)
    }

    package mutating func panes(_ input: NodeIndex, _ window: TimeWindow) -> NodeIndex { addAlike(.panes(window), input) }

    package mutating func timeWindow(_ input: NodeIndex, _ window: TimeWindow) -> NodeIndex {
        let bounds = [Field("window_start", window.boundType), Field("window_end", window.boundType)]
        return addAlike(.timeWindow(window), input, schema(input) + bounds)
    }

    package mutating func sessionWindow(_ input: NodeIndex, _ window: SessionWindow) -> NodeIndex {
        let routed = exchange(input, window.partition.isEmpty ? .single : .hash(window.partition))
        let distribution = plan[routed].properties.distribution
        return add(.sessionWindow(window), [routed], window.schema(over: schema(input)), appendOnly: false, distribution)
    }

    package mutating func sessionAggregate(
        _ input: NodeIndex, _ window: SessionWindow, keys: [Int], _ calls: [AggregateCall]
    ) -> NodeIndex {
        let routed = exchange(input, window.partition.isEmpty ? .single : .hash(window.partition))
        let windowed = window.schema(over: schema(input))
        let fields = keys.map { windowed[$0] } + calls.enumerated().map { Field("a\($0)", $1.type) }
        return add(.sessionAggregate(window, keys: keys, calls: calls), [routed], fields, appendOnly: false, .any)
    }

    package mutating func exchange(_ input: NodeIndex, _ distribution: Distribution) -> NodeIndex {
        add(.exchange(distribution), [input], schema(input), appendOnly: plan[input].properties.appendOnly, distribution)
    }

    package mutating func aggregate(_ input: NodeIndex, keys: [Int], _ calls: [AggregateCall]) -> NodeIndex {
        let routed = exchange(input, keys.isEmpty ? .single : .hash(keys))
        let fields = keys.map { schema(input)[$0] } + calls.enumerated().map { Field("a\($0)", $1.type) }
        return add(.aggregate(keys: keys, calls: calls), [routed], fields, appendOnly: false, .any)
    }

    /// The first step of an aggregate in two: each worker over its own rows of append-only input.
    package mutating func partialAggregate(_ input: NodeIndex, keys: [Int], _ calls: [AggregateCall]) -> NodeIndex {
        let fields = keys.map { schema(input)[$0] } + calls.enumerated().map { Field("a\($0)", $1.type) }
        return add(.aggregate(keys: keys, calls: calls), [input], fields, appendOnly: false, .any)
    }

    package mutating func join(
        _ kind: JoinKind, _ left: NodeIndex, _ right: NodeIndex, leftKeys: [Int], rightKeys: [Int], residual: BoundExpression? = nil
    ) -> NodeIndex {
        let routedLeft = exchange(left, leftKeys.isEmpty ? .single : .hash(leftKeys))
        let routedRight = exchange(right, rightKeys.isEmpty ? .single : .hash(rightKeys))
        let fields = kind == .semi || kind == .anti ? schema(left) : schema(left) + schema(right)
        let appendOnly = kind == .inner && plan[left].properties.appendOnly && plan[right].properties.appendOnly
        return add(
            .join(kind, leftKeys: leftKeys, rightKeys: rightKeys, residual: residual), [routedLeft, routedRight], fields, appendOnly: appendOnly, .any)
    }

    package mutating func union(_ inputs: [NodeIndex]) -> NodeIndex {
        add(.union, inputs, schema(inputs[0]), appendOnly: inputs.allSatisfy { plan[$0].properties.appendOnly }, .any)
    }

    package mutating func topN(_ input: NodeIndex, order: [SortKey], limit: Int?, offset: Int) -> NodeIndex {
        rank(input, Window(partition: [], order: order), [], Cut(limit: limit, offset: offset))
    }

    package mutating func rank(_ input: NodeIndex, _ window: Window, _ functions: [RankFunction], _ cut: Cut?) -> NodeIndex {
        let routed = exchange(input, window.partition.isEmpty ? .single : .hash(window.partition))
        let fields = functions.map { Field($0.rawValue, .int64) }
        return add(.rank(window, functions, cut), [routed], schema(input) + fields, appendOnly: false, plan[routed].properties.distribution)
    }

    /// The root; `key` nil: all columns.
    package mutating func materialize(_ input: NodeIndex, key: [Int]? = nil) -> StreamPlan {
        let key = key ?? Array(schema(input).indices)
        let routed = exchange(input, key.isEmpty ? .single : .hash(key))
        _ = addAlike(.materialize(key: key), routed)
        return plan
    }
}
