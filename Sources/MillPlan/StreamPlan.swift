package import MillColumnar
package import MillExpr

/// The chosen algorithms of a job: a graph of operators over deltas, flat and in topological order, so that a part used
/// twice (a self-join's input, a common subquery) is one node with two consumers.
///
/// Made by the optimizer, rendered into a circuit on every worker. Node numbers are stable within a plan: state tables and
/// exchanges are named by them. Stored with the catalog and read back, never made anew.
package struct StreamPlan: Hashable, Sendable, Codable {
    /// The version of the stored form that this program writes; it is raised whenever an older program could misread a plan.
    package static let formatVersion = 2

    /// Inputs come before their consumers; the last node is the root.
    package private(set) var nodes: [StreamNode] = []

    package init() {}

    /// The same plan with another root operation over the same input.
    package func with(root operation: StreamOperation) -> StreamPlan {
        var copy = self
        copy.nodes[nodes.count - 1].operation = operation
        return copy
    }

    /// Whether rows go to a sink as they come, and so in the order in which they came, as far as they go there from one worker.
    package var keepsOrder: Bool { if case .sink = self[root].operation { self[root].properties.appendOnly } else { false } }

    package var root: NodeIndex { NodeIndex(nodes.count - 1) }
    package subscript(_ index: NodeIndex) -> StreamNode { nodes[index.number] }

    /// Adds a node, or finds the equal one that is already there.
    package mutating func add(_ node: StreamNode) -> NodeIndex {
        if let existing = nodes.firstIndex(of: node) { return NodeIndex(existing) }
        nodes.append(node)
        return NodeIndex(nodes.count - 1)
    }

    private enum CodingKeys: CodingKey { case nodes }

    /// Every node keeps its number: state is stored by it.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        nodes = try container.decode([StreamNode].self, forKey: .nodes)
        guard !nodes.isEmpty, nodes.enumerated().allSatisfy({ index, node in node.inputs.allSatisfy { (0..<index).contains($0.number) } }) else {
            throw DecodingError.dataCorruptedError(forKey: .nodes, in: container, debugDescription: "a node's inputs come before it")
        }
    }
}

package struct NodeIndex: Hashable, Comparable, Sendable, Codable, CustomStringConvertible {
    package let number: Int
    package init(_ number: Int) { self.number = number }
    package init(from decoder: any Decoder) throws { self.init(try decoder.singleValueContainer().decode(Int.self)) }
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
    package static func < (a: NodeIndex, b: NodeIndex) -> Bool { a.number < b.number }
    package var description: String { String(number) }
}

package struct StreamNode: Hashable, Sendable, Codable {
    package var operation: StreamOperation
    package var inputs: [NodeIndex]
    package var schema: Schema
    package var properties: StreamProperties
    /// What of its state goes by a watermark; nil: it keeps all, or none.
    package var closing: Closing?

    package init(_ operation: StreamOperation, inputs: [NodeIndex], schema: Schema, properties: StreamProperties) {
        self.operation = operation
        self.inputs = inputs
        self.schema = schema
        self.properties = properties
    }
}

/// What the planner knows of a node's output; operators choose cheaper algorithms from it and never guess.
package struct StreamProperties: Hashable, Sendable, Codable {
    /// Columns whose values are different in every row once an epoch is whole; nil when none are known.
    package var uniqueKey: [Int]?
    /// No row is ever taken back: all weights are positive.
    package var appendOnly: Bool
    /// Which worker holds a row.
    package var distribution: Distribution
    /// Columns that have a watermark, ascending.
    package var watermarks: [Int]

    package init(uniqueKey: [Int]? = nil, appendOnly: Bool, distribution: Distribution, watermarks: [Int] = []) {
        self.uniqueKey = uniqueKey
        self.appendOnly = appendOnly
        self.distribution = distribution
        self.watermarks = watermarks
    }

    /// Plans of version 1 have no watermarks.
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        uniqueKey = try container.decodeIfPresent([Int].self, forKey: .uniqueKey)
        appendOnly = try container.decode(Bool.self, forKey: .appendOnly)
        distribution = try container.decode(Distribution.self, forKey: .distribution)
        watermarks = try container.decodeIfPresent([Int].self, forKey: .watermarks) ?? []
    }
}

package enum StreamOperation: Hashable, Sendable, Codable {
    /// Columns of a source's records, from its origin on. Append-only.
    case source(RelationReference, columns: [Int])
    /// The deltas of a table or materialized view, with its present rows first. In an ad-hoc query: its rows as of an epoch;
    /// a system relation's rows.
    case relation(RelationReference, columns: [Int])
    /// Literal rows, once, on worker 0.
    case values([[Scalar]])
    case filter(BoundExpression)
    case project([BoundExpression])
    case timeWindow(TimeWindow)
    /// Below a time window with overlapping windows: rows whose times lie in one pane and that are otherwise equal as one row of all their
    /// weights, the pane's start as its time.
    case panes(TimeWindow)
    /// Input is distributed by the window's partition.
    case sessionWindow(SessionWindow)
    /// An aggregate whose groups are sessions, over append-only input distributed by the window's partition. `keys` number the columns
    /// of the window's output: each of its partition, and one or both of the bounds. Output: the keys in order, then the calls.
    case sessionAggregate(SessionWindow, keys: [Int], calls: [AggregateCall])
    /// Sends every row to the worker that the distribution names.
    case exchange(Distribution)
    /// Output: the key columns in order, then the calls. Input is distributed by the keys (`single` when there are none).
    case aggregate(keys: [Int], calls: [AggregateCall])
    /// Equality of `leftKeys` and `rightKeys`, column by column, NULL never equal to anything; `residual` is over left
    /// columns, then right ones, and is part of what counts as a match. Inputs are distributed by their keys.
    case join(JoinKind, leftKeys: [Int], rightKeys: [Int], residual: BoundExpression?)
    case union
    /// The rows, or those that the cut keeps, with their numbers as further columns. Input is distributed by the window's partition
    /// (`single` when there is none).
    case rank(Window, [RankFunction], Cut?)
    /// The root of a view or table: keeps the rows. `key` are the columns that rows are found by (a unique key when one is
    /// known, else all columns); the name is the view's.
    case materialize(key: [Int])
    /// The root of an ad-hoc query.
    case result
    /// The root of a job whose rows are counted and dropped.
    case blackhole
    /// The root of a sink: what an epoch changed goes into its outbox. With `dropsRetractions` rows that are taken back do not.
    case sink(dropsRetractions: Bool)
}
