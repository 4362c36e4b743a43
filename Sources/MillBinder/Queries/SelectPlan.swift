import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// The plan of one SELECT while it grows: joins for subqueries, filters, the grouping, window functions.
///
/// Columns of FROM keep their numbers until `group`, because everything else is joined to the right of them. After
/// `group` the plan's columns are the keys and the aggregates' results; expressions bound over FROM are rewritten.
final class SelectPlan {
    private let binder: Binder
    private let context: ExpressionContext
    private(set) var plan: LogicalPlan
    /// The columns that pending subqueries became.
    private var attached: [Int: BoundExpression] = [:]
    /// The columns that window functions' calls became.
    private var windowColumns: [Int] = []
    /// Group keys, once grouped.
    private var keys: [BoundExpression]?

    init(_ binder: Binder, plan: LogicalPlan, context: ExpressionContext) {
        self.binder = binder
        self.plan = plan
        self.context = context
    }

    // MARK: WHERE

    /// Plain conditions first, then EXISTS and IN as semi joins, then what needs a subquery's value.
    func filter(_ condition: Expression) throws(SQLError) {
        let conjuncts = if case .and(let operands) = condition.kind { operands } else { [condition] }
        var plain: [BoundExpression] = []
        var matches: [(PendingSubquery, JoinKind)] = []
        var later: [BoundExpression] = []
        for conjunct in conjuncts {
            if let match = try subqueryMatch(conjunct) {
                matches.append(match)
                continue
            }
            let place = conjuncts.count == 1 ? "WHERE" : "AND"
            let bound = try binder.requireBoolean(try binder.bind(conjunct, context), in: place, at: conjunct.span.source)
            if bound.columnsUsed.contains(where: { $0 >= StandIn.subqueries }) { later.append(bound) } else { plain.append(bound) }
        }
        if let predicate = BoundExpression.conjunction(plain) { plan = .filter(LogicalFilter(input: plan, predicate: predicate)) }
        for (subquery, kind) in matches { try match(subquery, kind) }
        var predicates: [BoundExpression] = []
        for expression in later { predicates.append(try attach(expression, mentions: [:])) }
        if let predicate = BoundExpression.conjunction(predicates) { plan = .filter(LogicalFilter(input: plan, predicate: predicate)) }
    }

    /// `EXISTS`, `NOT EXISTS` and `IN` as a condition of their own; NOT IN is not one, because NULL makes it unknown.
    private func subqueryMatch(_ conjunct: Expression) throws(SQLError) -> (PendingSubquery, JoinKind)? {
        switch conjunct.kind {
        case .exists(let query): return (try binder.pendingExists(query, context, at: conjunct.span.source), .semi)
        case .not(let operand):
            guard case .exists(let query) = operand.kind else { return nil }
            return (try binder.pendingExists(query, context, at: operand.span.source), .anti)
        case .inQuery(let operand, let query, negated: false):
            let pending = try binder.pendingIn(operand, query, context, at: conjunct.span.source)
            // A left side that has subqueries of its own takes the general way.
            guard case .isIn(let operands) = pending.kind, !operands.contains(where: { $0.columnsUsed.contains { $0 >= StandIn.subqueries } })
            else { throw binder.unsupported("a subquery on both sides of IN", at: conjunct.span.source) }
            return (pending, .semi)
        default: return nil
        }
    }

    private func match(_ subquery: PendingSubquery, _ kind: JoinKind) throws(SQLError) {
        plan = try SubqueryJoin(binder, subquery, outer: plan).matching(kind)
    }

    // MARK: Grouping

    /// Groups what FROM and WHERE gave; the aggregates are those of the context.
    func group(by keys: [BoundExpression]) throws(SQLError) {
        var bound: [BoundExpression] = []
        for key in keys { bound.append(try attach(key, mentions: [:])) }
        var calls: [AggregateCall] = []
        for call in context.aggregates {
            var call = call
            if let argument = call.argument { call.argument = try attach(argument, mentions: [:]) }
            calls.append(call)
        }
        let names = bound.enumerated().map { columnName($1) ?? "key_\($0 + 1)" } + calls.map(\.function.rawValue)
        plan = .aggregate(LogicalAggregate(input: plan, keys: bound, calls: calls, names: names))
        self.keys = keys
        attached = [:]
    }

    func filterGroups(_ condition: BoundExpression, mentions: [Int: ObjectName]) throws(SQLError) {
        let predicate = try output(condition, mentions: mentions)
        plan = .filter(LogicalFilter(input: plan, predicate: predicate))
    }

    /// An output expression over the present plan, subqueries joined.
    func output(_ expression: BoundExpression, mentions: [Int: ObjectName]) throws(SQLError) -> BoundExpression {
        let value = try attach(try regrouped(expression, mentions: mentions), mentions: mentions)
        return value.remapped { StandIn.isWindow($0) ? windowColumns[$0 - StandIn.windows] : $0 }
    }

    // MARK: Window functions

    /// Adds the columns of the window functions that the context has collected: for each window one ranking, and one join with the groups
    /// that its partitions are. Both are over the same rows, so whatever windows are made of becomes columns first.
    func computeWindowCalls() throws(SQLError) {
        windowColumns = Array(repeating: 0, count: context.windowCalls.count)
        var windows: [(window: Window, ranks: [Int: RankFunction], aggregates: [Int: AggregateCall])] = []
        var seen: [PendingWindowCall.Window] = []
        for call in context.windowCalls where !seen.contains(call.window) {
            seen.append(call.window)
            var found = (window: try window(call), ranks: [Int: RankFunction](), aggregates: [Int: AggregateCall]())
            for (place, other) in context.windowCalls.enumerated() where other.window == call.window {
                switch other.function {
                case .rank(let function): found.ranks[place] = function
                case .aggregate(var call):
                    call.argument = try call.argument.map { (argument) throws(SQLError) in try output(argument, mentions: other.mentions) }
                    call.filter = try call.filter.map { (filter) throws(SQLError) in try output(filter, mentions: other.mentions) }
                    found.aggregates[place] = call
                }
            }
            windows.append(found)
        }
        let rows = plan
        for (window, ranks, _) in windows where !ranks.isEmpty {
            let places = ranks.keys.sorted()
            let functions = places.compactMap { ranks[$0] }
            for (offset, place) in places.enumerated() { windowColumns[place] = plan.schema.count + offset }
            plan = .rank(LogicalRank(input: plan, window: window, functions: functions, names: functions.map(\.rawValue)))
        }
        for (window, _, aggregates) in windows where !aggregates.isEmpty { join(rows, groupedBy: window.partition, aggregates) }
    }

    private func window(_ call: PendingWindowCall) throws(SQLError) -> Window {
        var expressions: [BoundExpression] = []
        for expression in call.window.partition + call.window.order.map(\.expression) {
            expressions.append(try output(expression, mentions: call.mentions))
        }
        let columns = appending(expressions)
        let partition = columns.prefix(call.window.partition.count).reduce(into: [Int]()) { if !$0.contains($1) { $0.append($1) } }
        let order = zip(columns.dropFirst(call.window.partition.count), call.window.order).map { column, key in
            SortKey(column: column, descending: key.descending, nullsFirst: key.nullsFirst)
        }
        return Window(partition: partition, order: order)
    }

    /// Joins the plan, which begins with the columns of `rows`, to their groups: each row has one, that of its partition, where missing
    /// values are equal.
    private func join(_ rows: LogicalPlan, groupedBy partition: [Int], _ aggregates: [Int: AggregateCall]) {
        let schema = rows.schema
        let places = aggregates.keys.sorted()
        let calls = places.compactMap { aggregates[$0] }
        let keys = partition.map { BoundExpression.column($0, schema[$0].type) }
        let names = partition.map { schema[$0].name } + calls.map(\.function.rawValue)
        let groups = LogicalPlan.aggregate(LogicalAggregate(input: rows, keys: keys, calls: calls, names: names))
        let width = plan.schema.count
        let same = keys.enumerated().map { BoundExpression.isNotDistinct($1, .column(width + $0, $1.type)) }
        plan = .join(LogicalJoin(left: plan, right: groups, kind: .inner, condition: BoundExpression.conjunction(same)))
        for (offset, place) in places.enumerated() { windowColumns[place] = width + keys.count + offset }
    }

    /// The columns of the plan that expressions are; those that are none yet are put behind the others.
    private func appending(_ expressions: [BoundExpression]) -> [Int] {
        let schema = plan.schema
        var all = schema.indices.map { BoundExpression.column($0, schema[$0].type) }
        let columns = expressions.map { expression in
            if let known = all.firstIndex(of: expression) { return known }
            all.append(expression)
            return all.count - 1
        }
        if all.count > schema.count {
            let names = schema.map(\.name) + (schema.count..<all.count).map { "window_\($0 - schema.count + 1)" }
            plan = .project(LogicalProject(input: plan, expressions: all, names: names))
        }
        return columns
    }

    private func columnName(_ expression: BoundExpression) -> String? {
        guard case .column(let index, _) = expression, plan.schema.indices.contains(index) else { return nil }
        return plan.schema[index].name
    }

    /// An expression over FROM as one over the groups.
    /// - Throws: 42803 for a column that is neither grouped nor aggregated.
    private func regrouped(_ expression: BoundExpression, mentions: [Int: ObjectName]) throws(SQLError) -> BoundExpression {
        guard let keys else { return expression }
        if let key = keys.firstIndex(of: expression) { return .column(key, expression.type) }
        if case .column(let index, let type) = expression {
            if index >= StandIn.subqueries || StandIn.isOuter(index) || StandIn.isWindow(index) { return expression }
            if index >= StandIn.aggregates { return .column(keys.count + index - StandIn.aggregates, type) }
            throw ungrouped(index, mentions: mentions)
        }
        var children: [BoundExpression] = []
        for child in expression.children { children.append(try regrouped(child, mentions: mentions)) }
        return children.isEmpty ? expression : expression.with(children: children)
    }

    private func ungrouped(_ column: Int, mentions: [Int: ObjectName]) -> SQLError {
        let entry = context.scope.entries.first { $0.expression.columnsUsed.contains(column) }
        let shown = [entry?.relation, entry?.name ?? mentions[column]?.last.name].compactMap { $0 }.joined(separator: ".")
        return SQLError(
            .groupingError, "column \"\(shown)\" must appear in the GROUP BY clause or be used in an aggregate function",
            at: mentions[column]?.span.source)
    }

    // MARK: Subqueries in expressions

    /// Replaces the stand-ins of subqueries by columns, joining each subquery to the plan when it is met first.
    private func attach(_ expression: BoundExpression, mentions: [Int: ObjectName]) throws(SQLError) -> BoundExpression {
        guard expression.columnsUsed.contains(where: { $0 >= StandIn.subqueries }) else { return expression }
        if case .column(let index, _) = expression, index >= StandIn.subqueries {
            if let known = attached[index] { return known }
            let value = try attach(context.subqueries[index - StandIn.subqueries], mentions: mentions)
            attached[index] = value
            return value
        }
        var children: [BoundExpression] = []
        for child in expression.children { children.append(try attach(child, mentions: mentions)) }
        return children.isEmpty ? expression : expression.with(children: children)
    }

    private func attach(_ subquery: PendingSubquery, mentions: [Int: ObjectName]) throws(SQLError) -> BoundExpression {
        var subquery = subquery
        if case .isIn(let operands) = subquery.kind {
            var values: [BoundExpression] = []
            for operand in operands { values.append(try output(operand, mentions: mentions)) }
            subquery.kind = .isIn(values)
        }
        var join = SubqueryJoin(binder, subquery, outer: plan)
        if keys != nil {
            join.mapOuter = { [self] expression throws(SQLError) in try regrouped(expression, mentions: mentions) }
        }
        let value = try join.value()
        plan = join.outer
        return value
    }
}
