package import MillBase
import MillColumnar
import MillExpr
package import MillPlan

/// Chooses algorithms and where rows are: optimized logical plan in, `StreamPlan` out.
///
/// Lowers the plan bottom-up. Each node's unique key, append-only flag and distribution are derived from its inputs'; an
/// exchange is put in only where the distribution does not already bring together the rows that an operator needs
/// together. Equal nodes are one node: an operator over equal inputs is found again whatever its columns are called.
///
/// A distribution fits a set of keys if it is `single`, or by the hash of some of them: rows equal in all keys are equal in
/// these, so they are on one worker.
package struct StreamPlanner {
    /// What is known of a table's or materialized view's rows, in the relation's own column numbers: the properties of the
    /// root of its stream plan. For a table: its primary key, not append-only, by the hash of that key.
    package typealias RelationProperties = @Sendable (ObjectID) -> StreamProperties

    private let relationProperties: RelationProperties
    /// Whether several workers run the plan, so that an aggregate may be worth two steps.
    let splitsAggregates: Bool
    var builder: StreamPlanBuilder

    private init(splitsAggregates: Bool = true, emitsOnClose: Bool = false, relationProperties: @escaping RelationProperties) {
        self.splitsAggregates = splitsAggregates
        builder = StreamPlanBuilder(emitsOnClose: emitsOnClose)
        self.relationProperties = relationProperties
    }

    // MARK: Entries

    /// The plan of a materialized view or of a table's initial rows: the root keeps them, found by their unique key, else by
    /// all columns.
    /// - Parameter emitsOnClose: EMIT ON WINDOW CLOSE.
    /// - Throws: 0A000 for a system relation, whose rows have no deltas, and for EMIT ON WINDOW CLOSE where rows could still change.
    package static func planView(
        _ query: BoundQuery, emitsOnClose: Bool = false, relationProperties: @escaping RelationProperties
    ) throws(SQLError) -> StreamPlan {
        try refuseSystemRelations(query.plan)
        var planner = StreamPlanner(emitsOnClose: emitsOnClose, relationProperties: relationProperties)
        let input = planner.lower(query.plan)
        if emitsOnClose { try planner.requireFinalRows(input) }
        let node = planner.builder[input]
        let key = node.properties.uniqueKey ?? Array(node.schema.indices)
        let placed = planner.builder.distributing(input, by: key)
        return planner.builder.finished(.materialize(key: key), placed, schema: query.schema)
    }

    /// The plan of a sink or subscription: the root passes the deltas on, on the workers where they arise.
    /// - Throws: 0A000 for a system relation, whose rows have no deltas.
    package static func planChangelog(_ query: BoundQuery, relationProperties: @escaping RelationProperties) throws(SQLError) -> StreamPlan {
        try refuseSystemRelations(query.plan)
        var planner = StreamPlanner(relationProperties: relationProperties)
        let input = planner.lower(query.plan)
        return planner.builder.finished(.result, input, schema: query.plan.schema)
    }

    /// The plan of an ad-hoc query: all rows come to worker 0. The query's order, limit and offset are applied to the
    /// finished result by the caller, then the columns behind `visible` are dropped. Nothing is closed in it: it sees all rows at once.
    package static func planQuery(_ query: BoundQuery, relationProperties: @escaping RelationProperties) -> StreamPlan {
        let withoutWatermarks: RelationProperties = { id in
            var properties = relationProperties(id)
            properties.watermarks = []
            return properties
        }
        var planner = StreamPlanner(splitsAggregates: false, relationProperties: withoutWatermarks)
        let input = planner.lower(query.plan)
        let gathered = planner.builder.gathering(input)
        return planner.builder.finished(.result, gathered, schema: query.plan.schema)
    }

    /// EMIT ON WINDOW CLOSE gives out every row once: what closes by a watermark does, and nothing may take a row back behind it.
    private func requireFinalRows(_ root: NodeIndex) throws(SQLError) {
        var open = [root]
        var read: Set<NodeIndex> = []
        while let index = open.popLast() { if read.insert(index).inserted { open += builder[index].inputs } }
        let nodes = read.sorted().map { builder[$0] }
        func refusal(_ message: String, hint: String) -> SQLError { SQLError(.featureNotSupported, message, hint: hint) }
        if let node = nodes.first(where: { node in
            if case .aggregate = node.operation { node.closing == nil } else { false }
        }) {
            let keys = if case .aggregate(let keys, _) = node.operation { ExplainExpression(builder[node.inputs[0]].schema).names(keys) } else { "" }
            throw refusal(
                "EMIT ON WINDOW CLOSE needs a column with a watermark in GROUP BY, which has \(keys)",
                hint: "Group by window_start or window_end of TUMBLE or HOP over a column with WATERMARK FOR.")
        }
        guard nodes.contains(where: { $0.closing?.emitsOnClose == true }) else {
            throw refusal(
                "EMIT ON WINDOW CLOSE needs GROUP BY with a column that has a watermark", hint: "Leave it out: without groups every row is final as it comes.")
        }
        guard builder[root].properties.appendOnly else {
            let node = nodes.first { node in !node.properties.appendOnly } ?? builder[root]
            throw refusal(
                "EMIT ON WINDOW CLOSE cannot wait for \(node.operation.title), whose rows change after they are given out",
                hint: "Make one view with EMIT ON WINDOW CLOSE and another over it.")
        }
    }

    private static func refuseSystemRelations(_ plan: LogicalPlan) throws(SQLError) {
        if case .scan(let scan) = plan, scan.relation.kind == .system {
            throw SQLError(
                .featureNotSupported, "system relation \"\(scan.relation.name)\" cannot be read by a job",
                hint: "Read it with SELECT; only sources, tables and materialized views have deltas.")
        }
        for input in plan.inputs { try refuseSystemRelations(input) }
    }

    // MARK: Lowering

    mutating func lower(_ plan: LogicalPlan) -> NodeIndex {
        switch plan {
        case .scan(let node): return lower(node)
        case .values(let node): return lower(node)
        case .filter(let node):
            let input = lower(node.input)
            return builder.add(.filter(node.predicate.withoutSpans), [input], builder[input].schema, builder[input].properties)
        case .project(let node): return builder.project(lower(node.input), node.expressions.map(\.withoutSpans), names: node.names)
        case .aggregate(let node): return lower(node)
        case .join(let node): return lower(node)
        case .union(let node): return lower(node)
        case .timeWindow(let node):
            let input = lower(node.input)
            var properties = builder[input].properties
            let width = builder[input].schema.count
            properties.uniqueKey = properties.uniqueKey.map { $0 + [width] }
            return builder.add(.timeWindow(node.window), [input], builder[input].schema + node.schema.suffix(2), properties)
        case .sessionWindow(let node): return lower(node)
        case .rank(let node): return lower(node)
        }
    }

    private mutating func lower(_ node: LogicalRank) -> NodeIndex {
        let partition = node.window.partition
        let input = builder.distributing(lower(node.input), by: partition)
        let inputNode = builder[input]
        let schema = inputNode.schema + node.schema.suffix(node.functions.count)
        let properties = StreamProperties.rank(node, input: inputNode.properties, width: inputNode.schema.count)
        return builder.add(.rank(node.window, node.functions, node.cut), [input], schema, properties)
    }

    private mutating func lower(_ node: LogicalScan) -> NodeIndex {
        switch node.relation.kind {
        case .source:
            let marks = relationProperties(node.relation.id).watermarks.compactMap { node.columns.firstIndex(of: $0) }.sorted()
            let properties = StreamProperties(appendOnly: true, distribution: .any, watermarks: marks)
            return builder.add(.source(node.relation, columns: node.columns), [], node.schema, properties)
        case .files, .catalogTable:
            return builder.add(.source(node.relation, columns: node.columns), [], node.schema, StreamProperties(appendOnly: true, distribution: .any))
        case .system:
            let properties = StreamProperties(appendOnly: true, distribution: .single)
            return builder.add(.relation(node.relation, columns: node.columns), [], node.schema, properties)
        case .table, .materializedView:
            let properties = relationProperties(node.relation.id).remapped { node.columns.firstIndex(of: $0) }
            return builder.add(.relation(node.relation, columns: node.columns), [], node.schema, properties)
        }
    }

    /// Literal rows are one node; a row with an expression is a projection of a row without columns.
    private mutating func lower(_ node: LogicalValues) -> NodeIndex {
        func properties(_ rows: Int) -> StreamProperties {
            StreamProperties(uniqueKey: rows <= 1 ? [] : nil, appendOnly: true, distribution: .single)
        }
        var literals: [[Scalar]] = []
        var computed: [[BoundExpression]] = []
        for row in node.rows {
            let scalars = row.compactMap { if case .literal(let value, _) = $0 { value } else { nil } }
            if scalars.count == row.count { literals.append(scalars) } else { computed.append(row) }
        }
        var parts: [NodeIndex] = []
        if !literals.isEmpty || computed.isEmpty { parts.append(builder.add(.values(literals), [], node.schema, properties(literals.count))) }
        for row in computed {
            let unit = builder.add(.values([[]]), [], [], properties(1))
            parts.append(builder.project(unit, row.map(\.withoutSpans), names: node.schema.map(\.name)))
        }
        guard parts.count > 1 else { return parts[0] }
        return builder.add(.union, parts, node.schema, StreamProperties(appendOnly: true, distribution: .single))
    }

    private mutating func lower(_ node: LogicalUnion) -> NodeIndex {
        let inputs = node.inputs.map { lower($0) }
        let properties = inputs.map { builder[$0].properties }
        let first = properties.first?.distribution ?? .any
        let distribution = properties.allSatisfy { $0.distribution == first } ? first : .any
        return builder.add(
            .union, inputs, node.schema,
            StreamProperties(appendOnly: properties.allSatisfy(\.appendOnly), distribution: distribution))
    }

    private mutating func lower(_ node: LogicalAggregate) -> NodeIndex {
        if let fused = lowerSessionAggregate(node) { return fused }
        var input = lower(node.input)
        var keys = node.keys.map(\.withoutSpans)
        var calls = node.calls.map(\.withoutSpans)
        if keys.contains(where: { if case .column = $0 { false } else { true } }) {
            // Computed keys become columns, in front of what the calls read.
            var expressions = keys
            let read = calls.reduce(into: Set<Int>()) { $0.formUnion($1.columnsUsed) }.sorted()
            let schema = builder[input].schema
            var places: [Int: Int] = [:]
            for column in read {
                let expression = BoundExpression.column(column, schema[column].type)
                places[column] = expressions.firstIndex(of: expression) ?? expressions.count
                if places[column] == expressions.count { expressions.append(expression) }
            }
            let names = Array(node.names.prefix(keys.count)) + expressions.dropFirst(keys.count).map { expression in
                if case .column(let index, _) = expression { schema[index].name } else { "" }
            }
            input = builder.project(input, expressions, names: names)
            calls = calls.map { $0.remapped { places[$0] ?? $0 } }
            keys = keys.indices.map { .column($0, keys[$0].type) }
        }
        let columns = keys.compactMap { if case .column(let index, _) = $0 { index } else { nil } }
        let names = columns.map { builder[input].schema[$0].name } + node.names.dropFirst(columns.count)
        let schema = zip(names, keys.map(\.type) + calls.map(\.type)).map { Field($0, $1) }
        input = builder.inPanes(input, reading: calls.reduce(into: Set(columns)) { $0.formUnion($1.columnsUsed) }, keys: columns) ?? input
        if let whole = aggregateOfParts(input, keys: columns, calls: calls, schema: schema) { return whole }
        input = builder.distributing(input, by: columns)
        let inputNode = builder[input]
        let properties = StreamProperties(
            uniqueKey: Array(columns.indices), appendOnly: calls.isEmpty && inputNode.properties.appendOnly,
            distribution: inputNode.properties.distribution.among(columns))
        return builder.add(.aggregate(keys: columns, calls: calls), [input], schema, properties)
    }

    // MARK: Joins

    private mutating func lower(_ node: LogicalJoin) -> NodeIndex {
        if node.kind == .right { return lowerRight(node) }
        let leftInput = lower(node.left)
        let rightInput = lower(node.right)
        return join(node.kind, leftInput, rightInput, condition: node.condition?.withoutSpans)
    }

    /// A right join is the left join of the swapped sides, with its columns put back.
    private mutating func lowerRight(_ node: LogicalJoin) -> NodeIndex {
        let width = node.left.schema.count
        let rightWidth = node.right.schema.count
        let condition = node.condition?.withoutSpans.remapped { $0 < width ? rightWidth + $0 : $0 - width }
        let rightInput = lower(node.right)
        let leftInput = lower(node.left)
        let swapped = join(.left, rightInput, leftInput, condition: condition)
        let schema = builder[swapped].schema
        let order = Array(rightWidth..<rightWidth + width) + Array(0..<rightWidth)
        return builder.project(swapped, order.map { .column($0, schema[$0].type) }, names: order.map { schema[$0].name })
    }

    private mutating func join(_ kind: JoinKind, _ left: NodeIndex, _ right: NodeIndex, condition: BoundExpression?) -> NodeIndex {
        let leftWidth = builder[left].schema.count
        let rightWidth = builder[right].schema.count
        let keys = JoinKeys(condition, leftWidth: leftWidth)
        var (leftInput, leftKeys) = builder.withColumns(left, keys.left)
        var (rightInput, rightKeys) = builder.withColumns(right, keys.right)
        let wideLeft = builder[leftInput].schema.count
        let residual = keys.residual?.remapped { $0 < leftWidth ? $0 : $0 - leftWidth + wideLeft }
        (leftInput, rightInput) = builder.colocating(leftInput, leftKeys, rightInput, rightKeys)
        let properties = StreamProperties.join(
            kind, builder[leftInput].properties, leftKeys, builder[rightInput].properties, rightKeys, leftWidth: wideLeft)
        let isHalf = kind == .semi || kind == .anti
        let schema = builder[leftInput].schema + (isHalf ? [] : builder[rightInput].schema)
        let joined = builder.add(
            .join(kind, leftKeys: leftKeys, rightKeys: rightKeys, residual: residual), [leftInput, rightInput], schema, properties)
        // Columns that were computed for the keys alone go again.
        let kept = Array(0..<leftWidth) + (isHalf ? [] : Array(wideLeft..<wideLeft + rightWidth))
        guard kept.count < schema.count else { return joined }
        return builder.project(joined, kept.map { .column($0, schema[$0].type) }, names: kept.map { schema[$0].name })
    }
}
