package import MillBase
import MillCatalog
import MillColumnar
import MillExpr
import MillPlan
package import MillSQL

/// INSERT: which columns, in which types, and what the others get.
extension Binder {
    /// - Throws: 42P01, 42809 when the target is no table, 42703 and 42701 for its columns, 42601 for the number of
    ///   expressions, 42804 where a value cannot be assigned, 42P10 when ON CONFLICT names no key.
    package func bind(insert: Insert) throws(SQLError) -> BoundInsert {
        try binding(insert.with) { () throws(SQLError) in
            let table = try writableTable(insert.table, "insert into")
            let targets = try insertTargets(insert, table)
            let plan = try filled(try bindInput(insert, table, targets), table, targets)
            let conflict: BoundConflict? =
                if let written = insert.onConflict { try bind(conflict: written, table, alias: insert.alias) } else { nil }
            let item = try aliased(
                .scan(Self.givenRows(table.schema)), names: table.columns.map(\.name), hidden: table.hiddenColumns, insert.alias, [],
                defaultName: .init(name: table.name, schema: table.schemaName))
            return BoundInsert(
                table: table, query: BoundQuery(plan: settlingParameters(plan)), conflict: conflict,
                returning: try bindReturning(insert.returning, over: item) { $0 })
        }
    }

    /// Numbers of the columns that the input gives, in its order.
    private func insertTargets(_ insert: Insert, _ table: CatalogObject) throws(SQLError) -> [Int] {
        let shown = table.columns.indices.filter { !table.columns[$0].isHidden }
        guard !insert.columns.isEmpty else { return shown }
        var targets: [Int] = []
        for column in insert.columns {
            guard let index = shown.first(where: { table.columns[$0].name == column.name }) else {
                throw SQLError(
                    .undefinedColumn, "column \"\(column.name)\" of relation \"\(table.name)\" does not exist", at: column.span.source)
            }
            guard !targets.contains(index) else {
                throw SQLError(.duplicateColumn, "column \"\(column.name)\" specified more than once", at: column.span.source)
            }
            targets.append(index)
        }
        return targets
    }

    /// The input's rows, its columns of the targets' types.
    private func bindInput(_ insert: Insert, _ table: CatalogObject, _ targets: [Int]) throws(SQLError) -> LogicalPlan {
        guard case .query(let query) = insert.input else { return .values(LogicalValues(rows: [[]], schema: [])) }
        if case .values(let rows, let span) = query.body, query.with == nil, query.orderBy.isEmpty, query.limit == nil, query.offset == nil {
            return try bindInsertedValues(rows, insert, table, targets, at: span.source)
        }
        let plan = try relation(unsettled: try bindQuery(query, outer: nil))
        try checkWidth(plan.schema.count, insert, table, targets, excess: query.span.source)
        let types = targets.prefix(plan.schema.count).map { table.columns[$0].type }
        for (index, field) in plan.schema.enumerated() where !Coercion.assignment(from: field.type, to: types[index]) {
            throw mismatch(table.columns[targets[index]].name, types[index], field.type, at: query.span.source)
        }
        return try coercing(plan, to: Array(types), .assignment, at: query.span.source)
    }

    /// As `relation`, but literals without a type keep it, for the target columns to give.
    private func relation(unsettled query: BoundQuery) throws(SQLError) -> LogicalPlan {
        if query.limit == nil, query.offset == 0, query.visible == query.plan.schema.count { return query.plan }
        return try relation(query)
    }

    /// VALUES cell by cell, so that each literal is read as its column's type and DEFAULT may stand for one.
    private func bindInsertedValues(
        _ rows: [[Expression]], _ insert: Insert, _ table: CatalogObject, _ targets: [Int], at span: SourceSpan
    ) throws(SQLError) -> LogicalPlan {
        let width = rows.first?.count ?? 0
        let schema = Array(targets.prefix(width).map { Field(table.columns[$0].name, table.columns[$0].type) })
        var parts: [LogicalPlan] = []
        var bound: [[BoundExpression]] = []
        for row in rows {
            let scope = ExpressionContext(scope: Scope(), outer: nil, clause: .values)
            guard row.count == width else {
                throw SQLError(.syntaxError, "VALUES lists must all be the same length", at: row.first?.span.source ?? span)
            }
            try checkWidth(row.count, insert, table, targets, excess: row.indices.contains(targets.count) ? row[targets.count].span.source : span)
            var cells: [BoundExpression] = []
            for (index, cell) in row.enumerated() {
                let column = table.columns[targets[index]]
                if case .defaultValue = cell.kind {
                    cells.append(try defaultValue(of: column))
                    continue
                }
                cells.append(try assigned(try bind(cell, scope), to: column, at: cell.span.source))
            }
            guard !scope.subqueries.isEmpty else {
                bound.append(cells)
                continue
            }
            let builder = SelectPlan(self, plan: .values(LogicalValues(rows: [[]], schema: [])), context: scope)
            for index in cells.indices { cells[index] = try builder.output(cells[index], mentions: [:]) }
            parts.append(.project(LogicalProject(input: builder.plan, expressions: cells, names: schema.map(\.name))))
        }
        if !bound.isEmpty || parts.isEmpty { parts.insert(.values(LogicalValues(rows: bound, schema: schema)), at: 0) }
        return parts.count == 1 ? parts[0] : .union(LogicalUnion(inputs: parts, schema: schema))
    }

    private func checkWidth(_ count: Int, _ insert: Insert, _ table: CatalogObject, _ targets: [Int], excess: SourceSpan) throws(SQLError) {
        if count > targets.count {
            throw SQLError(.syntaxError, "INSERT has more expressions than target columns", at: excess)
        }
        if count < targets.count, !insert.columns.isEmpty {
            throw SQLError(.syntaxError, "INSERT has more target columns than expressions", at: insert.columns[count].span.source)
        }
    }

    /// A value as a column's type, by an assignment cast.
    func assigned(_ value: BoundExpression, to column: CatalogColumn, at span: SourceSpan?) throws(SQLError) -> BoundExpression {
        guard Coercion.assignment(from: value.type, to: column.type) else { throw mismatch(column.name, column.type, value.type, at: span) }
        return try coerce(value, to: column.type, .assignment, at: span)
    }

    private func mismatch(_ column: String, _ type: SQLType, _ given: SQLType, at span: SourceSpan?) -> SQLError {
        SQLError(
            .datatypeMismatch, "column \"\(column)\" is of type \(type.name) but expression is of type \(given.name)",
            hint: "You will need to rewrite or cast the expression.", at: span)
    }

    /// All columns of the table: those of the input in their places, defaults in the others.
    private func filled(_ plan: LogicalPlan, _ table: CatalogObject, _ targets: [Int]) throws(SQLError) -> LogicalPlan {
        let given = targets.prefix(plan.schema.count)
        if Array(given) == Array(table.columns.indices) { return plan }
        var expressions: [BoundExpression] = []
        for (index, column) in table.columns.enumerated() {
            if let place = given.firstIndex(of: index) {
                expressions.append(.column(place, column.type))
            } else {
                expressions.append(try defaultValue(of: column))
            }
        }
        return .project(LogicalProject(input: plan, expressions: expressions, names: table.columns.map(\.name)))
    }

    /// DEFAULT's expression, NULL without one.
    func defaultValue(of column: CatalogColumn) throws(SQLError) -> BoundExpression {
        guard let text = column.defaultText else { return .literal(.null, column.type) }
        let expression = try Parser.parseExpression(text)
        let scope = ExpressionContext(scope: Scope(), outer: nil, clause: .defaultValue)
        do { return try assigned(try bind(expression, scope), to: column, at: nil) } catch {
            // The text is not part of this statement: its positions say nothing here.
            var error = error
            error.span = nil
            throw error
        }
    }
}
