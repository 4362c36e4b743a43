import MillBase
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// One SELECT: FROM, WHERE, grouping, output, DISTINCT and ORDER BY, in the order of their meaning.
///
/// Output expressions are bound over the columns of FROM, with stand-ins for aggregates and subqueries. A grouped
/// SELECT then rewrites them over the groups (`regrouped`), window functions are computed over these, and every subquery is joined to the plan where its operands
/// are at hand (`SelectPlan.attach`).
extension Binder {
    /// An output column or hidden sort column on its way through the stages.
    private struct Item {
        var expression: BoundExpression
        var name: String
        var span: SourceSpan
        var mentions: [Int: ObjectName]
    }

    /// Says how to write it instead, with the statement's own keys and order.
    private func distinctOnError(_ keys: [Expression], _ orderBy: [OrderItem], at span: SourceSpan) -> SQLError {
        let names = keys.map(\.description)
        let order = orderBy.filter { !names.contains($0.expression.description) }.map { $0.expression.description + ($0.isDescending ? " DESC" : "") }
        let window = "PARTITION BY \(names.joined(separator: ", ")) ORDER BY \(order.isEmpty ? "..." : order.joined(separator: ", "))"
        return unsupported(
            "DISTINCT ON",
            hint: "Number the rows of each key and keep the first: "
                + "SELECT ... FROM (SELECT ..., row_number() OVER (\(window)) AS number FROM ...) AS numbered WHERE number = 1.",
            at: span)
    }

    func bindSelect(_ select: Select, orderBy: [OrderItem], outer: Scope?) throws(SQLError) -> BoundQuery {
        if case .distinctOn(let keys) = select.quantifier { throw distinctOnError(keys, orderBy, at: keys.first?.span.source ?? select.span.source) }
        let from = try bindFrom(select.from, outer: outer)
        let context = ExpressionContext(scope: from.scope, outer: outer, clause: .filter)
        let builder = SelectPlan(self, plan: from.plan, context: context)
        if let filter = select.filter { try builder.filter(filter) }

        context.clause = .select
        try bindWindowClause(select.windows, context)
        var items = try bindItems(select.items, context)
        let visible = items.count
        let names = items.map(\.name)
        let keys = try bindGroupBy(select.groupBy, items: items, select.items, context)
        context.clause = .having
        let having: Item? =
            if let expression = select.having {
                try bindItem(expression, context) { bound throws(SQLError) in
                    try self.requireBoolean(bound, in: "HAVING", at: expression.span.source)
                }
            } else { nil }
        context.clause = .orderBy
        let isDistinct = select.quantifier == .distinct
        let order = try bindOrderBy(orderBy, &items, visible: visible, isDistinct: isDistinct, context)

        if !select.groupBy.isEmpty || !context.aggregates.isEmpty || having != nil {
            try builder.group(by: keys)
            if let having { try builder.filterGroups(having.expression, mentions: having.mentions) }
        }
        try builder.computeWindowCalls()
        var expressions: [BoundExpression] = []
        for item in items {
            let expression = try builder.output(item.expression, mentions: item.mentions)
            expressions.append(isDistinct ? try settled(expression) : expression)
        }
        var plan = LogicalPlan.project(
            LogicalProject(input: builder.plan, expressions: expressions, names: names + (visible..<items.count).map { "sort_\($0 - visible + 1)" }))
        if isDistinct { plan = distinct(plan) }
        return BoundQuery(plan: plan, order: order, visible: visible)
    }

    /// RETURNING and the like: output expressions over one relation, without grouping or subqueries.
    func bindOutput(_ items: [SelectItem], over from: FromItem) throws(SQLError) -> LogicalProject {
        let bound = try bindItems(items, ExpressionContext(scope: from.scope, outer: nil, clause: .returning))
        var expressions: [BoundExpression] = []
        for item in bound { expressions.append(try settled(item.expression)) }
        return LogicalProject(input: from.plan, expressions: expressions, names: bound.map(\.name))
    }

    private func bindItem(
        _ expression: Expression, _ context: ExpressionContext, _ check: (BoundExpression) throws(SQLError) -> BoundExpression
    ) throws(SQLError) -> Item {
        context.mentions = [:]
        let bound = try check(try bind(expression, context))
        return Item(expression: bound, name: OutputName.of(expression), span: expression.span.source, mentions: context.mentions)
    }

    // MARK: Output

    private func bindItems(_ items: [SelectItem], _ context: ExpressionContext) throws(SQLError) -> [Item] {
        var bound: [Item] = []
        for item in items {
            switch item {
            case .expression(let expression, let alias):
                var item = try bindItem(expression, context) { bound throws(SQLError) in bound }
                if let alias { item.name = alias.name }
                bound.append(item)
            case .wildcard(let relation, let except, let span): bound += try expand(relation, except: except, context, at: span.source)
            case .fieldWildcard(_, let span): throw unsupported("the fields of a struct", at: span.source)
            }
            guard bound.count <= Limits.columnsMax else {
                throw SQLError(.tooManyColumns, "target lists can have at most \(Limits.columnsMax) entries")
            }
        }
        return bound
    }

    /// `*` and `t.*`.
    private func expand(
        _ relation: ObjectName?, except: [ObjectName], _ context: ExpressionContext, at span: SourceSpan
    ) throws(SQLError) -> [Item] {
        let scope = context.scope
        var entries: [Scope.Entry]
        if let relation {
            let probe = ObjectName(relation.parts + [Identifier("*", relation.span)], relation.span)
            guard scope.hasRelation(probe) else {
                throw SQLError(.undefinedTable, "missing FROM-clause entry for table \"\(relation.last.name)\"", at: relation.span.source)
            }
            entries = scope.entries.filter { $0.relation == relation.last.name && !$0.isHidden }
        } else {
            guard !scope.entries.isEmpty else { throw SQLError(.syntaxError, "SELECT * with no tables specified is not valid", at: span) }
            entries = scope.entries.filter { !$0.isHidden && !$0.isMerged }
        }
        for name in except {
            guard let excluded = try scope.find(name) else {
                throw SQLError(.undefinedColumn, "column \"\(name.last.name)\" does not exist", at: name.span.source)
            }
            entries.removeAll { $0.expression == excluded.expression && $0.name == excluded.name }
        }
        return entries.map { entry in
            let name = ObjectName([entry.relation, entry.name].compactMap { $0.map { Identifier($0, NodeSpan(span)) } }, NodeSpan(span))
            var mentions: [Int: ObjectName] = [:]
            for column in entry.expression.columnsUsed { mentions[column] = name }
            return Item(expression: entry.expression, name: entry.name, span: span, mentions: mentions)
        }
    }

    // MARK: GROUP BY

    private func bindGroupBy(
        _ elements: [GroupingElement], items: [Item], _ selectItems: [SelectItem], _ context: ExpressionContext
    ) throws(SQLError) -> [BoundExpression] {
        context.clause = .groupBy
        var keys: [BoundExpression] = []
        for element in elements {
            let expression: Expression
            switch element {
            case .expression(let written): expression = written
            case .empty: continue
            case .rollup(_, let span): throw unsupported("ROLLUP", at: span.source)
            case .cube(_, let span): throw unsupported("CUBE", at: span.source)
            case .sets(_, let span): throw unsupported("GROUPING SETS", at: span.source)
            }
            let key = try settled(try bindKey(expression, items, context))
            if !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    /// A position, an input column, an output name, or any expression: in this order, as PostgreSQL has it.
    private func bindKey(_ expression: Expression, _ items: [Item], _ context: ExpressionContext) throws(SQLError) -> BoundExpression {
        let span = expression.span.source
        var named: Item?
        if let position = try ordinal(expression, count: items.count, of: "GROUP BY") {
            named = items[position]
        } else if case .column(let name) = expression.kind, name.parts.count == 1, try context.scope.find(name) == nil {
            let matches = items.filter { $0.name == name.last.name }
            if let first = matches.first {
                guard matches.allSatisfy({ $0.expression == first.expression }) else {
                    throw SQLError(.ambiguousColumn, "GROUP BY \"\(name.last.name)\" is ambiguous", at: span)
                }
                named = first
            }
        }
        guard let named else { return try bind(expression, context) }
        if named.expression.columnsUsed.contains(where: { $0 >= StandIn.aggregates && $0 < StandIn.subqueries }) {
            throw SQLError(.groupingError, "aggregate functions are not allowed in GROUP BY", at: named.span)
        }
        if named.expression.columnsUsed.contains(where: StandIn.isWindow) {
            throw SQLError(.windowingError, "window functions are not allowed in GROUP BY", at: named.span)
        }
        return named.expression
    }

    // MARK: ORDER BY

    /// An output name, a position, or any expression over FROM; what is no output column becomes a hidden one.
    private func bindOrderBy(
        _ orderBy: [OrderItem], _ items: inout [Item], visible: Int, isDistinct: Bool, _ context: ExpressionContext
    ) throws(SQLError) -> [SortKey] {
        var keys: [SortKey] = []
        for orderItem in orderBy {
            let expression = orderItem.expression
            let span = expression.span.source
            if let position = try ordinal(expression, count: visible, of: "ORDER BY") {
                keys.append(sortKey(position, orderItem))
                continue
            }
            if case .column(let name) = expression.kind, name.parts.count == 1 {
                let matches = (0..<visible).filter { items[$0].name == name.last.name }
                if let first = matches.first {
                    guard matches.allSatisfy({ items[$0].expression == items[first].expression }) else {
                        throw SQLError(.ambiguousColumn, "ORDER BY \"\(name.last.name)\" is ambiguous", at: span)
                    }
                    keys.append(sortKey(first, orderItem))
                    continue
                }
            }
            let item = try bindItem(expression, context) { bound throws(SQLError) in try self.settled(bound) }
            if let existing = items.firstIndex(where: { $0.expression == item.expression }) {
                keys.append(sortKey(existing, orderItem))
                continue
            }
            guard !isDistinct else {
                throw SQLError(
                    .invalidColumnReference, "for SELECT DISTINCT, ORDER BY expressions must appear in select list", at: span)
            }
            items.append(item)
            keys.append(sortKey(items.count - 1, orderItem))
        }
        return keys
    }
}
