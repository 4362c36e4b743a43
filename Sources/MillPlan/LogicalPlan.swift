package import MillBase
package import MillColumnar
package import MillExpr

/// What a query means: relational operators over relations of the catalog, before any choice of algorithm.
///
/// Made by the binder, rewritten by the optimizer's rules, turned into a `StreamPlan`. Expressions number the columns of
/// their operator's input; a join's condition numbers left columns first, then right ones. The order of a multiset has no
/// meaning except in the outermost query, which `BoundQuery` carries beside the plan.
package indirect enum LogicalPlan: Hashable, Sendable {
    case scan(LogicalScan)
    case values(LogicalValues)
    case project(LogicalProject)
    case filter(LogicalFilter)
    case aggregate(LogicalAggregate)
    case join(LogicalJoin)
    case union(LogicalUnion)
    case timeWindow(LogicalTimeWindow)
    case sessionWindow(LogicalSessionWindow)
    case rank(LogicalRank)

    package var schema: Schema {
        switch self {
        case .scan(let node): node.schema
        case .values(let node): node.schema
        case .project(let node): node.schema
        case .filter(let node): node.input.schema
        case .aggregate(let node): node.schema
        case .join(let node): node.schema
        case .union(let node): node.schema
        case .timeWindow(let node): node.schema
        case .sessionWindow(let node): node.schema
        case .rank(let node): node.schema
        }
    }

    package var inputs: [LogicalPlan] {
        switch self {
        case .scan, .values: []
        case .project(let node): [node.input]
        case .filter(let node): [node.input]
        case .aggregate(let node): [node.input]
        case .join(let node): [node.left, node.right]
        case .union(let node): node.inputs
        case .timeWindow(let node): [node.input]
        case .sessionWindow(let node): [node.input]
        case .rank(let node): [node.input]
        }
    }
}

/// Some columns of a source, table, view or system relation.
package struct LogicalScan: Hashable, Sendable, Codable {
    package var relation: RelationReference
    /// Numbers of the relation's columns that are read, in output order.
    package var columns: [Int]
    package var schema: Schema

    package init(relation: RelationReference, columns: [Int], schema: Schema) {
        self.relation = relation
        self.columns = columns
        self.schema = schema
    }
}

/// A relation of the catalog as plans name it.
package struct RelationReference: Hashable, Sendable, Codable {
    package enum Kind: String, Hashable, Sendable, Codable {
        /// Append-only records from outside, from the origin on.
        case source
        /// Rows written by DML.
        case table
        case materializedView = "materialized view"
        /// Rows that the engine makes when asked: `pg_catalog`, `information_schema`, `<source>_rejects`. Batch only.
        case system
        /// Files that the query names itself; `name` is their path. Batch only.
        case files
        /// A table of an attached catalog, `table`. Batch only.
        case catalogTable
    }

    package var id: ObjectID
    package var name: String
    package var kind: Kind
    /// Of `files`.
    package var files: FileCall?
    /// Of `catalogTable`.
    package var table: CatalogTable?

    package init(id: ObjectID, name: String, kind: Kind, files: FileCall? = nil, table: CatalogTable? = nil) {
        self.id = id
        self.name = name
        self.kind = kind
        self.files = files
        self.table = table
    }

    /// Rows that whoever runs the plan brings along: those that a statement has changed, for its RETURNING, or met, for its ON CONFLICT.
    package static let givenRows = RelationReference(id: ObjectID(.max), name: "given rows", kind: .system)
}

/// Rows of expressions without columns.
package struct LogicalValues: Hashable, Sendable, Codable {
    package var rows: [[BoundExpression]]
    package var schema: Schema

    package init(rows: [[BoundExpression]], schema: Schema) {
        self.rows = rows
        self.schema = schema
    }
}

package struct LogicalProject: Hashable, Sendable {
    package var input: LogicalPlan
    package var expressions: [BoundExpression]
    package var names: [String]

    package init(input: LogicalPlan, expressions: [BoundExpression], names: [String]) {
        self.input = input
        self.expressions = expressions
        self.names = names
    }

    package var schema: Schema { zip(names, expressions).map { Field($0, $1.type) } }
}

package struct LogicalFilter: Hashable, Sendable {
    package var input: LogicalPlan
    package var predicate: BoundExpression

    package init(input: LogicalPlan, predicate: BoundExpression) {
        self.input = input
        self.predicate = predicate
    }
}

/// Output: the group keys in order, then one column per call. No keys: exactly one row, also over empty input. No calls:
/// SELECT DISTINCT.
package struct LogicalAggregate: Hashable, Sendable {
    package var input: LogicalPlan
    package var keys: [BoundExpression]
    package var calls: [AggregateCall]
    package var names: [String]

    package init(input: LogicalPlan, keys: [BoundExpression], calls: [AggregateCall], names: [String]) {
        self.input = input
        self.keys = keys
        self.calls = calls
        self.names = names
    }

    package var schema: Schema { zip(names, keys.map(\.type) + calls.map(\.type)).map { Field($0, $1) } }
}

package enum JoinKind: String, Hashable, Sendable, Codable {
    case inner
    case left
    case right
    case full
    /// Left rows that have a match, once each; output is the left columns.
    case semi
    /// Left rows that have none; output is the left columns.
    case anti
}

package struct LogicalJoin: Hashable, Sendable {
    package var left: LogicalPlan
    package var right: LogicalPlan
    package var kind: JoinKind
    /// nil: every pair.
    package var condition: BoundExpression?

    package init(left: LogicalPlan, right: LogicalPlan, kind: JoinKind, condition: BoundExpression?) {
        self.left = left
        self.right = right
        self.kind = kind
        self.condition = condition
    }

    package var schema: Schema {
        switch kind {
        case .semi, .anti: left.schema
        default: left.schema + right.schema
        }
    }
}

/// UNION ALL; the inputs have the same types.
package struct LogicalUnion: Hashable, Sendable {
    package var inputs: [LogicalPlan]
    package var schema: Schema

    package init(inputs: [LogicalPlan], schema: Schema) {
        self.inputs = inputs
        self.schema = schema
    }
}

/// TUMBLE and HOP: each row once for every window that holds it, with `window_start` and `window_end` appended. A row
/// without a time appears once, with NULL for both. TUMBLE is HOP with slide = size.
package struct LogicalTimeWindow: Hashable, Sendable {
    package var input: LogicalPlan
    package var window: TimeWindow

    package init(input: LogicalPlan, window: TimeWindow) {
        self.input = input
        self.window = window
    }

    package var schema: Schema {
        let type = window.boundType
        return input.schema + [Field("window_start", type), Field("window_end", type)]
    }
}

package struct TimeWindow: Hashable, Sendable, Codable {
    /// The input column with the time: date, timestamp or timestamptz.
    package var timeColumn: Int
    /// timestamp, or timestamptz when the time column is one.
    package var boundType: SQLType
    package var slideMicros: Int64
    /// A multiple of nothing in particular; at least one slide.
    package var sizeMicros: Int64
    /// Windows start at this many microseconds after the multiples of the slide since 1970.
    package var offsetMicros: Int64

    package init(timeColumn: Int, boundType: SQLType, slideMicros: Int64, sizeMicros: Int64, offsetMicros: Int64 = 0) {
        self.timeColumn = timeColumn
        self.boundType = boundType
        self.slideMicros = slideMicros
        self.sizeMicros = sizeMicros
        self.offsetMicros = offsetMicros
    }

    /// Whether panes are worth while, and can be computed of any finite time.
    package var sharesPanes: Bool {
        slideMicros < sizeMicros && sizeMicros < Int64.max / 8 && offsetMicros.magnitude < (Int64.max / 8).magnitude
    }

    /// Of the spans of time, one after the other, whose rows all lie in the same windows.
    package var paneMicros: Int64 {
        var (a, b) = (sizeMicros, slideMicros)
        while b != 0 { (a, b) = (b, a % b) }
        return a
    }

    /// Where the pane of a time begins; times are nearer to 1970 than a quarter of what 64 bits hold.
    @inline(__always) package func paneStart(_ micros: Int64, paneMicros: Int64) -> Int64 {
        let rest = (micros - offsetMicros) % paneMicros
        return micros - (rest < 0 ? rest + paneMicros : rest)
    }
}

/// The rows with their numbers in a window as further columns, or only those that a cut of the numbers keeps, or both.
///
/// `row_number() OVER (...)` is such a node without a cut; LIMIT below the top of a query, or in a view, is one with a cut and
/// without columns.
package struct LogicalRank: Hashable, Sendable {
    package var input: LogicalPlan
    package var window: Window
    /// One column each, behind the input's.
    package var functions: [RankFunction]
    package var names: [String]
    package var cut: Cut?

    package init(input: LogicalPlan, window: Window, functions: [RankFunction] = [], names: [String] = [], cut: Cut? = nil) {
        self.input = input
        self.window = window
        self.functions = functions
        self.names = names
        self.cut = cut
    }

    package var schema: Schema { input.schema + names.map { Field($0, .int64) } }
}

/// One key of an ORDER BY, a column of the input.
package struct SortKey: Hashable, Sendable, Codable {
    package var column: Int
    package var descending: Bool
    package var nullsFirst: Bool

    package init(column: Int, descending: Bool, nullsFirst: Bool) {
        self.column = column
        self.descending = descending
        self.nullsFirst = nullsFirst
    }
}

/// A whole query: what its rows are, and the order and cut of the outermost SELECT.
package struct BoundQuery: Hashable, Sendable, Codable {
    package var plan: LogicalPlan
    /// Over the plan's columns, of which only the first `visible` are shown: ORDER BY may need hidden ones.
    package var order: [SortKey]
    package var limit: Int?
    package var offset: Int
    package var visible: Int

    package init(plan: LogicalPlan, order: [SortKey] = [], limit: Int? = nil, offset: Int = 0, visible: Int? = nil) {
        self.plan = plan
        self.order = order
        self.limit = limit
        self.offset = offset
        self.visible = visible ?? plan.schema.count
    }

    package var schema: Schema { Array(plan.schema.prefix(visible)) }
}
