package import MillBase
import MillColumnar
import MillExpr
package import MillPlan
package import MillSQL

/// Queries: WITH, set operations, VALUES, and what stands around a SELECT.
extension Binder {
    /// A whole query, as SELECT runs it.
    /// - Throws: the statement's error, with a span where the text is to blame.
    package func bind(query: Query) throws(SQLError) -> BoundQuery {
        var bound = try settlingOutput(try bindQuery(query, outer: nil))
        bound.plan = settlingParameters(bound.plan)
        return bound
    }

    /// A query in any place. Its columns may still be of type unknown, for the context to settle.
    func bindQuery(_ query: Query, outer: Scope?) throws(SQLError) -> BoundQuery {
        try binding(query.with) { () throws(SQLError) in try bindQueryBody(query, outer: outer) }
    }

    /// What `body` binds sees the tables of a WITH clause.
    func binding<Result>(_ with: WithClause?, _ body: () throws(SQLError) -> Result) throws(SQLError) -> Result {
        guard let with else { return try body() }
        commonTables.append([:])
        defer { commonTables.removeLast() }
        try bindCommonTables(with)
        return try body()
    }

    private func bindQueryBody(_ query: Query, outer: Scope?) throws(SQLError) -> BoundQuery {
        if query.withTies { throw unsupported("WITH TIES", at: query.span.source) }
        var bound: BoundQuery
        if case .select(let select) = query.body {
            bound = try bindSelect(select, orderBy: query.orderBy, outer: outer)
        } else {
            let plan = try bindBody(query.body, outer: outer)
            bound = BoundQuery(plan: plan, order: try bindOutputOrder(query.orderBy, schema: plan.schema))
        }
        bound.limit = try bindCount(query.limit, .limit)
        bound.offset = try bindCount(query.offset, .offset) ?? 0
        return bound
    }

    /// The rows of a query as a relation: its order matters only where it decides what a limit keeps.
    func relation(_ query: BoundQuery) throws(SQLError) -> LogicalPlan {
        let query = try settlingOutput(query)
        var plan = query.plan
        if query.limit != nil || query.offset != 0 {
            let window = Window(partition: [], order: query.order)
            plan = .rank(LogicalRank(input: plan, window: window, cut: Cut(limit: query.limit, offset: query.offset)))
        }
        let schema = plan.schema
        guard query.visible < schema.count else { return plan }
        let columns = schema.indices.prefix(query.visible)
        return .project(
            LogicalProject(input: plan, expressions: columns.map { .column($0, schema[$0].type) }, names: columns.map { schema[$0].name }))
    }

    private func bindCommonTables(_ with: WithClause) throws(SQLError) {
        if with.isRecursive {
            throw unsupported("WITH RECURSIVE", hint: "Write it without RECURSIVE if no table refers to itself.", at: with.span.source)
        }
        let level = commonTables.count - 1
        for table in with.tables {
            guard commonTables[level][table.name.name] == nil else {
                throw SQLError(
                    .duplicateAlias, "WITH query name \"\(table.name.name)\" specified more than once", at: table.name.span.source)
            }
            let before = relationCount
            let plan = try relation(try bindQuery(table.query, outer: nil))
            let added = relationCount - before
            relationCount = before
            let names = try renamed(plan.schema.map(\.name), by: table.columns, of: table.name)
            commonTables[level][table.name.name] = CommonRelation(plan: plan, names: names, relationCount: added)
        }
    }

    /// Column names with the first ones replaced by an alias list.
    func renamed(_ names: [String], by aliases: [Identifier], of relation: Identifier) throws(SQLError) -> [String] {
        guard aliases.count <= names.count else {
            throw SQLError(
                .invalidColumnReference,
                "table \"\(relation.name)\" has \(names.count) columns available but \(aliases.count) columns specified", at: relation.span.source)
        }
        return aliases.map(\.name) + names.dropFirst(aliases.count)
    }

    // MARK: Bodies

    func bindBody(_ body: QueryBody, outer: Scope?) throws(SQLError) -> LogicalPlan {
        switch body {
        case .select(let select): return try bindSelect(select, orderBy: [], outer: outer).plan
        case .values(let rows, let span): return try bindValues(rows, outer: outer, at: span.source)
        case .table(let name):
            let item = try bindRelation(name, alias: nil)
            return item.visiblePlan
        case .setOperation(let operation): return try bindSetOperation(operation, outer: outer)
        case .nested(let query): return try relation(try bindQuery(query, outer: outer))
        }
    }

    private func bindValues(_ rows: [[Expression]], outer: Scope?, at span: SourceSpan) throws(SQLError) -> LogicalPlan {
        let scope = ExpressionContext(scope: Scope(), outer: outer, clause: .values)
        let width = rows.first?.count ?? 0
        var columns: [[BoundExpression]] = Array(repeating: [], count: width)
        for row in rows {
            guard row.count == width else {
                throw SQLError(.syntaxError, "VALUES lists must all be the same length", at: row.first?.span.source ?? span)
            }
            for (index, cell) in row.enumerated() { columns[index].append(try bind(cell, scope)) }
        }
        var schema: Schema = []
        for index in columns.indices {
            var type = SQLType.unknown
            // A column of nothing but unknowns stays unknown, for INSERT or UNION to settle.
            if columns[index].contains(where: { $0.type != .unknown }) {
                (columns[index], type) = try unify(columns[index], spans: rows.map { $0[index].span.source }, of: "VALUES")
            }
            schema.append(Field("column\(index + 1)", type))
        }
        let bound = rows.indices.map { row in columns.map { $0[row] } }
        return .values(LogicalValues(rows: bound, schema: schema))
    }

    // MARK: Set operations

    private func bindSetOperation(_ operation: SetOperation, outer: Scope?) throws(SQLError) -> LogicalPlan {
        let name = "\(operation.kind)".uppercased()
        var left = try bindBody(operation.left, outer: outer)
        var right = try bindBody(operation.right, outer: outer)
        guard left.schema.count == right.schema.count else {
            throw SQLError(.syntaxError, "each \(name) query must have the same number of columns", at: operation.span.source)
        }
        var types: [SQLType] = []
        for (a, b) in zip(left.schema, right.schema) {
            do { types.append(try Coercion.common([a.type, b.type], of: name)) } catch { throw error.located(at: operation.span.source) }
        }
        left = try coercing(left, to: types, .implicit, at: operation.span.source)
        right = try coercing(right, to: types, .implicit, at: operation.span.source)
        let schema = zip(left.schema, types).map { Field($0.name, $1) }
        switch (operation.kind, operation.isAll) {
        case (.union, true):
            if case .union(var node) = left, node.schema == schema {
                node.inputs.append(right)
                return .union(node)
            }
            return .union(LogicalUnion(inputs: [left, right], schema: schema))
        case (.union, false): return distinct(.union(LogicalUnion(inputs: [left, right], schema: schema)))
        case (.intersect, false), (.except, false): return try marked(left, right, schema: schema, isExcept: operation.kind == .except)
        case (.intersect, true), (.except, true): throw unsupported("\(name) ALL", hint: "Without ALL it is.", at: operation.span.source)
        }
    }

    /// SELECT DISTINCT over a plan's columns.
    func distinct(_ plan: LogicalPlan) -> LogicalPlan {
        let schema = plan.schema
        let keys = schema.indices.map { BoundExpression.column($0, schema[$0].type) }
        return .aggregate(LogicalAggregate(input: plan, keys: keys, calls: [], names: schema.map(\.name)))
    }

    /// INTERSECT and EXCEPT as one grouping of both sides with a mark: NULLs are equal to each other, as there they are, and
    /// one retraction moves one count.
    private func marked(_ left: LogicalPlan, _ right: LogicalPlan, schema: Schema, isExcept: Bool) throws(SQLError) -> LogicalPlan {
        let columns = schema.indices.map { BoundExpression.column($0, schema[$0].type) }
        let names = schema.map(\.name)
        func side(_ plan: LogicalPlan, isLeft: Bool) -> LogicalPlan {
            .project(LogicalProject(input: plan, expressions: columns + [.literal(.boolean(isLeft), .boolean)], names: names + ["is_left"]))
        }
        let union = LogicalPlan.union(
            LogicalUnion(inputs: [side(left, isLeft: true), side(right, isLeft: false)], schema: schema + [Field("is_left", .boolean)]))
        let mark = BoundExpression.column(schema.count, .boolean)
        let calls = [
            AggregateCall(.count, argument: nil, filter: mark, type: .int64), AggregateCall(.count, argument: nil, filter: .not(mark), type: .int64),
        ]
        let groups = LogicalPlan.aggregate(LogicalAggregate(input: union, keys: columns, calls: calls, names: names + ["left_rows", "right_rows"]))
        let zero = BoundExpression.literal(.int(0), .int64)
        let span = SourceSpan(0, 0)
        let inLeft = try bindOperator(OperatorName(">"), .column(schema.count, .int64), zero, spans: [], at: span)
        let inRight = try bindOperator(OperatorName(isExcept ? "=" : ">"), .column(schema.count + 1, .int64), zero, spans: [], at: span)
        return .project(
            LogicalProject(input: .filter(LogicalFilter(input: groups, predicate: .and([inLeft, inRight]))), expressions: columns, names: names))
    }

    // MARK: Types of whole outputs

    /// The plan with its columns as values of these types, cast inside its topmost projection where it has one.
    func coercing(_ plan: LogicalPlan, to types: [SQLType], _ kind: Coercion.Context, at span: SourceSpan?) throws(SQLError) -> LogicalPlan {
        let schema = plan.schema
        if zip(schema, types).allSatisfy({ $0.type == $1 }) { return plan }
        switch plan {
        case .project(var node):
            for index in types.indices { node.expressions[index] = try coerce(node.expressions[index], to: types[index], kind, at: span) }
            return .project(node)
        case .values(var node):
            for row in node.rows.indices {
                for column in types.indices { node.rows[row][column] = try coerce(node.rows[row][column], to: types[column], kind, at: span) }
            }
            node.schema = zip(schema, types).map { Field($0.name, $1) }
            return .values(node)
        default:
            var expressions: [BoundExpression] = []
            for (index, type) in types.enumerated() {
                expressions.append(try coerce(.column(index, schema[index].type), to: type, kind, at: span))
            }
            return .project(LogicalProject(input: plan, expressions: expressions, names: schema.map(\.name)))
        }
    }

    /// Columns that nothing gave a type are text.
    func settlingOutput(_ query: BoundQuery) throws(SQLError) -> BoundQuery {
        var query = query
        query.plan = try coercing(query.plan, to: query.plan.schema.map { $0.type == .unknown ? .varchar : $0.type }, .implicit, at: nil)
        return query
    }

    // MARK: Order and cut

    /// ORDER BY of a query that is not one SELECT: only its output columns, by name or position.
    private func bindOutputOrder(_ items: [OrderItem], schema: Schema) throws(SQLError) -> [SortKey] {
        var keys: [SortKey] = []
        for item in items {
            let span = item.expression.span.source
            let column: Int
            if let position = try ordinal(item.expression, count: schema.count, of: "ORDER BY") {
                column = position
            } else if case .column(let name) = item.expression.kind, name.parts.count == 1 {
                let matches = schema.indices.filter { schema[$0].name == name.last.name }
                guard let first = matches.first else {
                    throw SQLError(.undefinedColumn, "column \"\(name.last.name)\" does not exist", at: span)
                }
                guard matches.count == 1 else { throw SQLError(.ambiguousColumn, "ORDER BY \"\(name.last.name)\" is ambiguous", at: span) }
                column = first
            } else {
                throw SQLError(
                    .featureNotSupported, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                    detail: "Only result column names can be used, not expressions or functions.",
                    hint: "Add the expression/function to every SELECT, or move the UNION into a FROM clause.", at: span)
            }
            keys.append(sortKey(column, item))
        }
        return keys
    }

    func sortKey(_ column: Int, _ item: OrderItem) -> SortKey {
        SortKey(column: column, descending: item.isDescending, nullsFirst: item.nullsFirst ?? item.isDescending)
    }

    /// An output column by its position, where the expression is a bare integer.
    func ordinal(_ expression: Expression, count: Int, of clause: String) throws(SQLError) -> Int? {
        guard case .literal(let literal) = expression.kind else { return nil }
        guard case .number(let text) = literal, let position = Int(text) else {
            throw SQLError(.syntaxError, "non-integer constant in \(clause)", at: expression.span.source)
        }
        guard (1...max(count, 1)).contains(position), position <= count else {
            throw SQLError(.invalidColumnReference, "\(clause) position \(position) is not in select list", at: expression.span.source)
        }
        return position - 1
    }

    /// The constant of LIMIT or OFFSET; nil for none and for NULL.
    private func bindCount(_ expression: Expression?, _ clause: Clause) throws(SQLError) -> Int? {
        guard let expression else { return nil }
        let span = expression.span.source
        let bound = try coerce(
            try bind(expression, ExpressionContext(scope: Scope(), outer: nil, clause: clause)), to: .int64, .assignment, at: span)
        if bound.contains({ if case .parameter = $0 { true } else { false } }) { return nil }
        let value: Scalar?
        do { value = try constant(bound) } catch { throw error.located(at: span) }
        guard let value else { throw SQLError(.syntaxError, "the argument of \(clause.rawValue) must be a constant", at: span) }
        guard case .int(let count) = value else { return nil }
        guard count >= 0 else {
            throw SQLError(
                clause == .limit ? .invalidRowCountInLimitClause : .invalidRowCountInResultOffsetClause, "\(clause.rawValue) must not be negative",
                at: span)
        }
        return Int(count)
    }
}
