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
            if bound.columnsUsed.contains(where: { $0 >= Placeholder.subqueries }) { later.append(bound) } else { plain.append(bound) }
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
            guard case .isIn(let operands) = pending.kind, !operands.contains(where: { $0.columnsUsed.contains { $0 >= Placeholder.subqueries } })
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
        return value.remapped { Placeholder.isWindow($0) ? windowColumns[$0 - Placeholder.windows] : $0 }
    }

    // MARK: Window functions

    /// Adds the columns of the window functions that the context has collected, one ranking for each window.
    func computeWindowCalls() throws(SQLError) {
        windowColumns = Array(repeating: 0, count: context.windowCalls.count)
        var windows: [PendingWindowCall.Window] = []
        for call in context.windowCalls where !windows.contains(call.window) { windows.append(call.window) }
        for window in windows {
            let places = context.windowCalls.indices.filter { context.windowCalls[$0].window == window }
            let mentions = context.windowCalls[places[0]].mentions
            var expressions: [BoundExpression] = []
            for expression in window.partition + window.order.map(\.expression) {
                expressions.append(try output(expression, mentions: mentions))
            }
            let columns = appending(expressions)
            let partition = columns.prefix(window.partition.count).reduce(into: [Int]()) { if !$0.contains($1) { $0.append($1) } }
            let order = zip(columns.dropFirst(window.partition.count), window.order).map { column, key in
                SortKey(column: column, descending: key.descending, nullsFirst: key.nullsFirst)
            }
            let functions = places.map { context.windowCalls[$0].function }
            let width = plan.schema.count
            plan = .rank(
                LogicalRank(
                    input: plan, window: Window(partition: partition, order: order), functions: functions, names: functions.map(\.rawValue))
            )
            for (offset, place) in places.enumerated() { windowColumns[place] = width + offset }
        }
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
            if index >= Placeholder.subqueries || Placeholder.isOuter(index) || Placeholder.isWindow(index) { return expression }
            if index >= Placeholder.aggregates { return .column(keys.count + index - Placeholder.aggregates, type) }
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

    /// Replaces the placeholders of subqueries by columns, joining each subquery to the plan when it is met first.
    private func attach(_ expression: BoundExpression, mentions: [Int: ObjectName]) throws(SQLError) -> BoundExpression {
        guard expression.columnsUsed.contains(where: { $0 >= Placeholder.subqueries }) else { return expression }
        if case .column(let index, _) = expression, index >= Placeholder.subqueries {
            if let known = attached[index] { return known }
            let value = try attach(context.subqueries[index - Placeholder.subqueries], mentions: mentions)
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
