import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// Joins one subquery to the plan around it.
///
/// As a condition of WHERE, EXISTS and IN are semi joins. As a value inside an expression every subquery is a join that
/// adds at most one row per outer row:
/// - scalar: its one row crossed in, or, correlated, a left join with one row per value of the correlated columns and a check of how
///   many there were;
/// - EXISTS: the number of its rows, joined the same way;
/// - IN: its number of rows and of present values, and the distinct values themselves, because `x IN (...)` is NULL where
///   x is NULL or missing among values of which one is NULL, and false over no rows.
struct SubqueryJoin {
    private let binder: Binder
    private let subquery: PendingSubquery
    /// The plan around; `value` adds columns to its right.
    private(set) var outer: LogicalPlan
    /// Makes expressions over FROM ones over `outer`: the grouping's rewriting, else nothing.
    var mapOuter: (BoundExpression) throws(SQLError) -> BoundExpression = { expression throws(SQLError) in expression }

    init(_ binder: Binder, _ subquery: PendingSubquery, outer: LogicalPlan) {
        self.binder = binder
        self.subquery = subquery
        self.outer = outer
    }

    /// The plan with the rows of `outer` that have a match (`semi`) or none (`anti`).
    func matching(_ kind: JoinKind) throws(SQLError) -> LogicalPlan {
        var lifted = try lift(subquery.query)
        var conditions: [BoundExpression] = []
        if case .isIn(let operands) = subquery.kind {
            if lifted.emptyRow != nil { throw binder.unsupported("IN over a correlated aggregate", hint: "Use = instead of IN.", at: subquery.span) }
            for (index, operand) in operands.enumerated() { conditions.append(try equal(operand, column(lifted.plan, index, behind: outer))) }
        } else if lifted.emptyRow != nil {
            // An aggregate has a row whatever matches.
            guard kind == .anti else { return outer }
            return .filter(LogicalFilter(input: outer, predicate: .literal(.boolean(false), .boolean)))
        }
        for predicate in lifted.predicates { conditions.append(try joined(predicate)) }
        if conditions.isEmpty {
            // Whether there is any row at all: one row of a count, instead of all rows.
            let counted = LogicalPlan.aggregate(LogicalAggregate(input: lifted.plan, keys: [], calls: [Self.rowCount], names: ["count"]))
            lifted.plan = .filter(LogicalFilter(input: counted, predicate: try isPositive(.column(0, .int64))))
        }
        return .join(LogicalJoin(left: outer, right: lifted.plan, kind: kind, condition: BoundExpression.conjunction(conditions)))
    }

    /// Adds the subquery's columns to `outer` and gives the expression of its value.
    mutating func value() throws(SQLError) -> BoundExpression {
        switch subquery.kind {
        case .scalar: return try scalar()
        case .exists: return try exists()
        case .isIn(let operands): return try isIn(operands)
        }
    }

    // MARK: The three kinds

    private mutating func scalar() throws(SQLError) -> BoundExpression {
        let lifted = try liftToEqualities(subquery.query)
        let type = subquery.type
        guard !lifted.predicates.isEmpty else {
            return cross(Self.hasOneRow(lifted.plan) ? lifted.plan : single(lifted.plan), column: 0, type)
        }
        let (keys, conditions) = try correlation(lifted)
        guard let empty = lifted.emptyRow?[0] else {
            let plan = counted(lifted.plan, keys: keys)
            let rows = column(plan, keys.count + 1, behind: outer)
            let value = leftJoin(plan, on: conditions(plan, outer.schema.count), column: keys.count, type)
            let isOneRow = try FunctionRegistry.resolve(name: "is_one_row", arguments: [.int64]).call([rows], at: subquery.span)
            return .caseWhen([.init(isOneRow, value)], otherwise: nil, type)
        }
        // One row per value of the correlated columns already, because they are the grouping's only keys.
        var expressions = keys
        expressions.append(.column(0, type))
        expressions.append(.literal(.boolean(true), .boolean))
        let names = keys.indices.map { "outer_\($0 + 1)" } + [lifted.plan.schema[0].name, "is_matched"]
        let plan = LogicalPlan.project(LogicalProject(input: lifted.plan, expressions: expressions, names: names))
        let value = leftJoin(plan, on: conditions(plan, outer.schema.count), column: keys.count, type)
        if case .literal(.null, _) = empty { return value }
        guard case .column(let index, _) = value else { return value }
        return .caseWhen([.init(.isNull(.column(index + 1, .boolean)), empty)], otherwise: value, type)
    }

    private mutating func exists() throws(SQLError) -> BoundExpression {
        let lifted = try liftToEqualities(subquery.query)
        if lifted.emptyRow != nil { return .literal(.boolean(true), .boolean) }
        let (keys, conditions) = try correlation(lifted)
        let names = keys.indices.map { "outer_\($0 + 1)" } + ["count"]
        let plan = LogicalPlan.aggregate(LogicalAggregate(input: lifted.plan, keys: keys, calls: [Self.rowCount], names: names))
        if keys.isEmpty { return try isPositive(cross(plan, column: 0, .int64)) }
        return .not(.isNull(leftJoin(plan, on: conditions(plan, outer.schema.count), column: keys.count, .int64)))
    }

    private mutating func isIn(_ operands: [BoundExpression]) throws(SQLError) -> BoundExpression {
        guard operands.count == 1, let operand = operands.first else {
            throw binder.unsupported("IN of several columns inside an expression", hint: "Use EXISTS.", at: subquery.span)
        }
        let lifted = try liftToEqualities(subquery.query)
        if lifted.emptyRow != nil { throw binder.unsupported("IN over a correlated aggregate", hint: "Use = instead of IN.", at: subquery.span) }
        let (keys, conditions) = try correlation(lifted)
        let element = BoundExpression.column(0, lifted.plan.schema[0].type)
        let names = keys.indices.map { "outer_\($0 + 1)" }
        // How many rows there are, and how many of them present.
        let present = AggregateCall(.count, argument: element, type: .int64)
        let counts = LogicalPlan.aggregate(
            LogicalAggregate(input: lifted.plan, keys: keys, calls: [Self.rowCount, present], names: names + ["rows", "present"]))
        let rows: BoundExpression
        let isEmpty: BoundExpression
        if keys.isEmpty {
            rows = cross(counts, column: 0, .int64)
            isEmpty = .not(try isPositive(rows))
        } else {
            rows = leftJoin(counts, on: conditions(counts, outer.schema.count), column: keys.count, .int64)
            isEmpty = .isNull(rows)
        }
        guard case .column(let index, _) = rows else { return rows }
        let presentRows = BoundExpression.column(index + 1, .int64)
        // The distinct values; a NULL among them equals nothing.
        let values = LogicalPlan.aggregate(
            LogicalAggregate(input: lifted.plan, keys: keys + [element], calls: [], names: names + [lifted.plan.schema[0].name]))
        var on = conditions(values, outer.schema.count)
        on.append(try equal(operand, column(values, keys.count, behind: outer)))
        let match = leftJoin(values, on: on, column: keys.count, element.type)
        return .caseWhen(
            [
                .init(isEmpty, .literal(.boolean(false), .boolean)),
                .init(.isNull(operand), .literal(.null, .boolean)),
                .init(.not(.isNull(match)), .literal(.boolean(true), .boolean)),
                .init(.not(.isNotDistinct(rows, presentRows)), .literal(.null, .boolean)),
            ], otherwise: .literal(.boolean(false), .boolean), .boolean)
    }

    // MARK: Correlation

    private func lift(_ plan: LogicalPlan) throws(SQLError) -> Decorrelation.Result {
        try Decorrelation(binder: binder, span: subquery.span).lift(plan)
    }

    /// As `lift`, with conditions other than equalities settled: the subquery is joined, by these conditions, to the distinct
    /// values of the outer columns that they read, which leaves the equality with these values to say of the row around.
    private func liftToEqualities(_ plan: LogicalPlan) throws(SQLError) -> Decorrelation.Result {
        var lifted = try lift(plan)
        let others = lifted.predicates.filter { Decorrelation.equality($0) == nil }
        guard !others.isEmpty, lifted.emptyRow == nil else { return lifted }
        var columns: [(standIn: Int, value: BoundExpression)] = []
        for standIn in others.reduce(into: Set<Int>(), { $0.formUnion($1.columnsUsed) }).sorted(by: >) where StandIn.isOuter(standIn) {
            let type = others.lazy.compactMap { $0.type(ofColumn: standIn) }.first ?? .unknown
            columns.append((standIn, try outerExpression(.column(standIn, type))))
        }
        // A superset of the values will do: where the plan around is itself correlated, its conditions are left out.
        let around = Self.withoutCorrelatedConditions(outer)
        let domain = LogicalPlan.aggregate(
            LogicalAggregate(input: around, keys: columns.map(\.value), calls: [], names: columns.indices.map { "outer_\($0 + 1)" }))
        let width = lifted.plan.schema.count
        var conditions: [BoundExpression] = []
        for predicate in others {
            conditions.append(
                predicate.remapped { index in columns.firstIndex { $0.standIn == index }.map { width + $0 } ?? index })
        }
        lifted.plan = .join(LogicalJoin(left: lifted.plan, right: domain, kind: .inner, condition: BoundExpression.conjunction(conditions)))
        lifted.predicates.removeAll { Decorrelation.equality($0) == nil }
        for (index, column) in columns.enumerated() {
            lifted.predicates.append(
                .isNotDistinct(.column(column.standIn, column.value.type), .column(width + index, column.value.type)))
        }
        return lifted
    }

    /// The plan with at least its rows, and without the conditions that read the query around it.
    private static func withoutCorrelatedConditions(_ plan: LogicalPlan) -> LogicalPlan {
        guard plan.isCorrelated else { return plan }
        func kept(_ condition: BoundExpression?) -> BoundExpression? {
            BoundExpression.conjunction((condition?.conjuncts ?? []).filter { !$0.isCorrelated })
        }
        switch plan {
        case .filter(let node):
            let input = withoutCorrelatedConditions(node.input)
            return kept(node.predicate).map { .filter(LogicalFilter(input: input, predicate: $0)) } ?? input
        case .project(var node):
            node.input = withoutCorrelatedConditions(node.input)
            return .project(node)
        case .join(var node) where node.kind == .inner || node.kind == .left:
            node.left = withoutCorrelatedConditions(node.left)
            if node.kind == .inner {
                node.right = withoutCorrelatedConditions(node.right)
                node.condition = kept(node.condition)
            }
            return .join(node)
        default: return plan
        }
    }

    /// The subquery's own sides of the correlating equalities, and the conditions of a join of so many columns with a plan
    /// that has these sides as its first columns.
    private func correlation(
        _ lifted: Decorrelation.Result
    ) throws(SQLError) -> (keys: [BoundExpression], conditions: (LogicalPlan, Int) -> [BoundExpression]) {
        var keys: [BoundExpression] = []
        var equalities: [(outer: BoundExpression, key: Int, rebuild: (BoundExpression, BoundExpression) -> BoundExpression)] = []
        for predicate in lifted.predicates {
            guard let (outerSide, own, rebuild) = Decorrelation.equality(predicate) else {
                throw binder.unsupported(
                    "a subquery that refers to the query around by another condition than =", hint: "Write it as a join.", at: subquery.span)
            }
            let key = keys.firstIndex(of: own) ?? keys.count
            if key == keys.count { keys.append(own) }
            equalities.append((try outerExpression(outerSide), key, rebuild))
        }
        return (keys, { plan, width in equalities.map { $0.rebuild($0.outer, .column(width + $0.key, plan.schema[$0.key].type)) } })
    }

    /// A lifted predicate as a condition of the join of `outer` and the subquery.
    private func joined(_ predicate: BoundExpression) throws(SQLError) -> BoundExpression {
        if case .column(let index, let type) = predicate {
            if StandIn.isOuter(index) { return try mapOuter(.column(-1 - index, type)) }
            return .column(outer.schema.count + index, type)
        }
        var children: [BoundExpression] = []
        for child in predicate.children { children.append(try joined(child)) }
        return children.isEmpty ? predicate : predicate.with(children: children)
    }

    private func outerExpression(_ expression: BoundExpression) throws(SQLError) -> BoundExpression {
        try mapOuter(expression.remapped { -1 - $0 })
    }

    // MARK: Joins

    private func column(_ plan: LogicalPlan, _ index: Int, behind outer: LogicalPlan) -> BoundExpression {
        .column(outer.schema.count + index, plan.schema[index].type)
    }

    private mutating func cross(_ plan: LogicalPlan, column: Int, _ type: SQLType) -> BoundExpression {
        let index = outer.schema.count + column
        outer = .join(LogicalJoin(left: outer, right: plan, kind: .inner, condition: nil))
        return .column(index, type)
    }

    private mutating func leftJoin(_ plan: LogicalPlan, on conditions: [BoundExpression], column: Int, _ type: SQLType) -> BoundExpression {
        let index = outer.schema.count + column
        outer = .join(LogicalJoin(left: outer, right: plan, kind: .left, condition: BoundExpression.conjunction(conditions)))
        return .column(index, type)
    }

    /// The one row of a subquery that stands by itself, 21000 where there are more.
    private func single(_ plan: LogicalPlan) -> LogicalPlan {
        let type = plan.schema[0].type
        let call = AggregateCall(.singleValue, argument: .column(0, type), type: type)
        return .aggregate(LogicalAggregate(input: plan, keys: [], calls: [call], names: [plan.schema[0].name]))
    }

    /// One row per value of the keys: the keys, the value if there is one row, and the number of rows. Which rows are too many shows only
    /// where the row around asks for them.
    private func counted(_ plan: LogicalPlan, keys: [BoundExpression]) -> LogicalPlan {
        let type = plan.schema[0].type
        let calls = [AggregateCall(.min, argument: .column(0, type), type: type), Self.rowCount]
        let names = keys.indices.map { "outer_\($0 + 1)" } + [plan.schema[0].name, "count"]
        return .aggregate(LogicalAggregate(input: plan, keys: keys, calls: calls, names: names))
    }

    private static let rowCount = AggregateCall(.count, argument: nil, type: .int64)

    /// Whether a plan has exactly one row whatever its input.
    private static func hasOneRow(_ plan: LogicalPlan) -> Bool {
        switch plan {
        case .aggregate(let node): node.keys.isEmpty && !node.calls.isEmpty
        case .project(let node): hasOneRow(node.input)
        case .values(let node): node.rows.count == 1
        case .join(let node): node.kind == .inner && node.condition == nil && hasOneRow(node.left) && hasOneRow(node.right)
        case .scan, .filter, .union, .timeWindow, .sessionWindow, .rank: false
        }
    }

    private func equal(_ left: BoundExpression, _ right: BoundExpression) throws(SQLError) -> BoundExpression {
        try binder.bindOperator(OperatorName("="), left, right, spans: [], at: subquery.span)
    }

    private func isPositive(_ count: BoundExpression) throws(SQLError) -> BoundExpression {
        try binder.bindOperator(OperatorName(">"), count, .literal(.int(0), .int64), spans: [], at: subquery.span)
    }
}
