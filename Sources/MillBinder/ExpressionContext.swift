import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// The clause that an expression stands in: what it may contain, and how errors name it.
enum Clause: String {
    case select = "SELECT"
    case filter = "WHERE"
    case having = "HAVING"
    case groupBy = "GROUP BY"
    case orderBy = "ORDER BY"
    case joinCondition = "JOIN conditions"
    case values = "VALUES"
    case limit = "LIMIT"
    case offset = "OFFSET"
    case aggregateFilter = "FILTER"
    case tableFunction = "functions in FROM"
    case returning = "RETURNING"
    case update = "UPDATE"
    case defaultValue = "DEFAULT expressions"
    case watermark = "WATERMARK expressions"

    var allowsAggregates: Bool {
        switch self {
        case .select, .having, .orderBy: true
        default: false
        }
    }

    var allowsWindows: Bool { self == .select || self == .orderBy }

    var allowsSubqueries: Bool {
        switch self {
        case .joinCondition, .limit, .offset, .tableFunction, .defaultValue, .watermark, .returning, .aggregateFilter: false
        default: true
        }
    }
}

/// A subquery met inside an expression: the expression holds a column that stands in for its value until the SELECT joins the
/// subquery to its plan.
struct PendingSubquery {
    enum Kind {
        /// The value of its one column; no row is NULL, several rows are 21000.
        case scalar
        case exists
        /// Whether the operands equal a row of it, three-valued.
        case isIn([BoundExpression])
    }

    var kind: Kind
    var query: LogicalPlan
    var type: SQLType
    var span: SourceSpan
}

/// A call of a window function met inside an expression: the expression holds a column that stands in for its value until the SELECT has
/// its groups.
struct PendingWindowCall {
    struct Window: Hashable {
        struct Key: Hashable {
            var expression: BoundExpression
            var descending: Bool
            var nullsFirst: Bool
        }

        var partition: [BoundExpression]
        var order: [Key]
    }

    enum Function: Equatable {
        case rank(RankFunction)
        /// Over the whole partition.
        case aggregate(AggregateCall)

        var type: SQLType {
            switch self {
            case .rank: .int64
            case .aggregate(let call): call.type
            }
        }
    }

    var function: Function
    var window: Window
    /// The columns read, for the error about GROUP BY.
    var mentions: [Int: ObjectName]
}

/// Column numbers that stand for what is not a column of the FROM clause's plan.
///
/// Numbers below zero are columns of the query around: `-1 - n` is its column `n`. Numbers from `windows` on are values of window
/// functions, from `aggregates` on results of aggregate calls, from `subqueries` on the values of subqueries, all by their place in the
/// expression's context. Plans that leave the binder have none of them.
enum StandIn {
    static let windows = 1 << 23
    static let aggregates = 1 << 24
    static let subqueries = 1 << 25

    static func isWindow(_ column: Int) -> Bool { column >= windows && column < aggregates }
    static func outer(_ column: Int) -> Int { -1 - column }
    static func isOuter(_ column: Int) -> Bool { column < 0 }
}

/// What binding an expression reads and collects. One value serves all clauses of a SELECT that share aggregates.
final class ExpressionContext {
    let scope: Scope
    /// The names of the query around, for a correlated subquery.
    let outer: Scope?
    var clause: Clause
    var aggregates: [AggregateCall] = []
    var windowCalls: [PendingWindowCall] = []
    var subqueries: [PendingSubquery] = []
    /// The WINDOW clause, without references from one to another.
    var namedWindows: [String: WindowSpecification] = [:]
    /// Where each column of the scope was first mentioned in the current item, for the error about GROUP BY.
    var mentions: [Int: ObjectName] = [:]
    /// Set while the arguments of an aggregate are bound.
    var isInsideAggregate = false
    /// Set while PARTITION BY and ORDER BY of a window are bound.
    var isInsideWindow = false
    /// Set while the arguments of a window function are bound.
    var isInsideWindowCall = false

    init(scope: Scope, outer: Scope?, clause: Clause) {
        self.scope = scope
        self.outer = outer
        self.clause = clause
    }

    /// The stand-in of an aggregate call; equal calls share one.
    func add(_ call: AggregateCall) -> BoundExpression {
        let index = aggregates.firstIndex(of: call) ?? aggregates.count
        if index == aggregates.count { aggregates.append(call) }
        return .column(StandIn.aggregates + index, call.type)
    }

    /// The stand-in of a window function's call; equal calls share one.
    func add(_ call: PendingWindowCall) -> BoundExpression {
        let index = windowCalls.firstIndex { $0.function == call.function && $0.window == call.window } ?? windowCalls.count
        if index == windowCalls.count { windowCalls.append(call) }
        return .column(StandIn.windows + index, call.function.type)
    }

    func add(_ subquery: PendingSubquery) -> BoundExpression {
        subqueries.append(subquery)
        return .column(StandIn.subqueries + subqueries.count - 1, subquery.type)
    }
}

extension BoundExpression {
    /// Whether it reads a column of the query around.
    var isCorrelated: Bool { columnsUsed.contains(where: StandIn.isOuter) }

    /// The type under which it reads a column; nil when it does not.
    func type(ofColumn index: Int) -> SQLType? {
        if case .column(index, let type) = self { return type }
        return children.lazy.compactMap { $0.type(ofColumn: index) }.first
    }
}

extension LogicalPlan {
    /// Whether any operator of it reads a column of the query around.
    var isCorrelated: Bool { expressions.contains(where: \.isCorrelated) || inputs.contains(where: \.isCorrelated) }
}
