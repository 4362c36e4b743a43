import MillColumnar
import MillExpr
import MillPlan

/// A stream plan while it is made: nodes without doubles, and the exchanges between them.
struct StreamPlanBuilder {
    /// What makes two nodes the same: everything but the names of columns.
    private struct Identity: Hashable {
        var operation: StreamOperation
        var inputs: [NodeIndex]
        var types: [SQLType]
        var properties: StreamProperties
    }

    private(set) var plan = StreamPlan()
    /// EMIT ON WINDOW CLOSE: what closes by a watermark gives its rows out when it does, and never before.
    let emitsOnClose: Bool
    private var known: [Identity: NodeIndex] = [:]

    init(emitsOnClose: Bool = false) { self.emitsOnClose = emitsOnClose }

    subscript(_ index: NodeIndex) -> StreamNode { plan[index] }

    /// Adds a node or finds the one that does the same; the names of the first stay. Its watermarks, and what it closes by them, follow
    /// from its inputs; those of an input of the plan are given.
    mutating func add(_ operation: StreamOperation, _ inputs: [NodeIndex], _ schema: Schema, _ given: StreamProperties) -> NodeIndex {
        var properties = given
        let closing = StreamNode.closing(operation, inputs.map { self[$0].properties.watermarks }, inputs.map { self[$0].schema }, emitsOnClose: emitsOnClose)
        if !inputs.isEmpty { properties.watermarks = watermarks(operation, inputs) }
        if closing?.emitsOnClose == true { properties.appendOnly = true }
        let identity = Identity(operation: operation, inputs: inputs, types: schema.map(\.type), properties: properties)
        if let index = known[identity] { return index }
        var node = StreamNode(operation, inputs: inputs, schema: schema, properties: properties)
        node.closing = closing
        let index = plan.add(node)
        known[identity] = index
        return index
    }

    private func watermarks(_ operation: StreamOperation, _ inputs: [NodeIndex]) -> [Int] {
        let marks = inputs.map { input in Watermarks(uniqueKeysWithValues: self[input].properties.watermarks.map { ($0, 0) }) }
        return StreamNode.watermarks(operation, marks, inputs.map { self[$0].schema }).keys.sorted()
    }

    /// The plan with its root, which bears the names that the user gave, and without nodes that nothing reads.
    func finished(_ root: StreamOperation, _ input: NodeIndex, schema: Schema) -> StreamPlan {
        var isRead = Array(repeating: false, count: plan.nodes.count)
        isRead[input.number] = true
        for index in plan.nodes.indices.reversed() where isRead[index] {
            for input in plan.nodes[index].inputs { isRead[input.number] = true }
        }
        var compact = StreamPlan()
        var places: [NodeIndex: NodeIndex] = [:]
        for index in plan.nodes.indices where isRead[index] {
            var node = plan.nodes[index]
            node.inputs = node.inputs.compactMap { places[$0] }
            places[NodeIndex(index)] = compact.add(node)
        }
        _ = compact.add(StreamNode(root, inputs: [places[input] ?? input], schema: schema, properties: self[input].properties))
        return compact
    }

    /// A projection, unless it would change nothing but names; a choice of a projection's columns is made there.
    mutating func project(_ input: NodeIndex, _ expressions: [BoundExpression], names: [String]) -> NodeIndex {
        let node = self[input]
        let columns = expressions.map { if case .column(let index, _) = $0 { index } else { -1 } }
        if columns == Array(node.schema.indices) { return input }
        if case .project(let lower) = node.operation, !columns.contains(-1) {
            return project(node.inputs[0], columns.map { lower[$0] }, names: names)
        }
        let schema = expressions.indices.map { Field(names[$0], expressions[$0].type) }
        return add(.project(expressions), [input], schema, node.properties.remapped { columns.firstIndex(of: $0) })
    }

    /// The input with expressions as columns: those that are columns already, others appended.
    mutating func withColumns(_ input: NodeIndex, _ expressions: [BoundExpression]) -> (NodeIndex, [Int]) {
        let schema = self[input].schema
        var all = schema.indices.map { BoundExpression.column($0, schema[$0].type) }
        var names = schema.map(\.name)
        var columns: [Int] = []
        for expression in expressions {
            if let index = all.firstIndex(of: expression) {
                columns.append(index)
            } else {
                columns.append(all.count)
                all.append(expression)
                names.append("key_\(columns.count)")
            }
        }
        return (project(input, all, names: names), columns)
    }

    // MARK: Distribution

    /// The input with rows that are equal in `keys` on one worker; no keys: all on worker 0.
    mutating func distributing(_ input: NodeIndex, by keys: [Int]) -> NodeIndex {
        if self[input].properties.distribution.fits(keys) { return input }
        return distributingBelowWindow(input, by: keys) ?? exchanging(input, keys.isEmpty ? .single : .hash(keys))
    }

    /// The same with the exchange below a time window, by the keys that are not its bounds: a row goes to another worker once and
    /// without bounds, not once for each of its windows. Few windows are open at a time, so their bounds would hardly spread rows more.
    private mutating func distributingBelowWindow(_ input: NodeIndex, by keys: [Int]) -> NodeIndex? {
        let node = self[input]
        guard let below = node.inputs.first else { return nil }
        switch node.operation {
        case .timeWindow:
            let rest = keys.filter { $0 < self[below].schema.count }
            guard !rest.isEmpty, rest.count < keys.count else { return nil }
            return replacingInput(of: node, by: distributing(below, by: rest)) { $0 }
        case .panes(let window):
            // Rows of a key that come on several workers are one in a pane only where they have met.
            guard !keys.isEmpty, !keys.contains(window.timeColumn) else { return nil }
            return replacingInput(of: node, by: distributing(below, by: keys)) { $0 }
        case .project(let expressions):
            let columns = keys.compactMap { if case .column(let column, _) = expressions[$0] { column } else { nil } }
            guard columns.count == keys.count, let placed = distributingBelowWindow(below, by: columns) else { return nil }
            return replacingInput(of: node, by: placed) { column in
                expressions.firstIndex { if case .column(column, _) = $0 { true } else { false } }
            }
        case .filter:
            guard let placed = distributingBelowWindow(below, by: keys) else { return nil }
            return replacingInput(of: node, by: placed) { $0 }
        default: return nil
        }
    }

    /// A node over another input with the same rows elsewhere; `map` gives where a column of the input is in the output.
    mutating func replacingInput(of node: StreamNode, by input: NodeIndex, _ map: (Int) -> Int?) -> NodeIndex {
        var properties = node.properties
        if self[input].properties.uniqueKey == nil { properties.uniqueKey = nil }
        properties.distribution = self[input].properties.distribution.remapped(map)
        return add(node.operation, [input], node.schema, properties)
    }

    /// The input on worker 0.
    mutating func gathering(_ input: NodeIndex) -> NodeIndex {
        self[input].properties.distribution == .single ? input : exchanging(input, .single)
    }

    private mutating func exchanging(_ input: NodeIndex, _ distribution: Distribution) -> NodeIndex {
        let node = self[input]
        guard node.properties.distribution != distribution else { return input }
        var properties = node.properties
        properties.distribution = distribution
        return add(.exchange(distribution), [input], node.schema, properties)
    }

    /// Both inputs of a join with rows of equal keys on one worker: a side that is already distributed by some of the keys
    /// stays, and the other one follows it.
    mutating func colocating(_ left: NodeIndex, _ leftKeys: [Int], _ right: NodeIndex, _ rightKeys: [Int]) -> (NodeIndex, NodeIndex) {
        guard !leftKeys.isEmpty else { return (gathering(left), gathering(right)) }
        let leftDistribution = self[left].properties.distribution
        let rightDistribution = self[right].properties.distribution
        if leftDistribution == .single, rightDistribution == .single { return (left, right) }
        if let places = leftDistribution.places(in: leftKeys) { return (left, exchanging(right, .hash(places.map { rightKeys[$0] }))) }
        if let places = rightDistribution.places(in: rightKeys) { return (exchanging(left, .hash(places.map { leftKeys[$0] })), right) }
        return (exchanging(left, .hash(leftKeys)), exchanging(right, .hash(rightKeys)))
    }
}
