package import MillBase
import MillCatalog
import MillColumnar
import MillExpr
import MillPlan
package import MillSQL

/// UPDATE and DELETE, and what they share with INSERT: the table, its assigned columns, RETURNING.
extension Binder {
    /// - Throws: 42P01, 42809 when the target is no table, 42703 for its columns, 42601 for one assigned twice, 42804 where a value
    ///   cannot be assigned.
    package func bind(update: Update) throws(SQLError) -> BoundUpdate {
        try binding(update.with) { () throws(SQLError) in
            let table = try writableTable(update.table.name, "update")
            let from = try crossing(try target(update.table, table), with: update.from, outer: nil)
            let context = ExpressionContext(scope: from.scope, outer: nil, clause: .filter)
            let builder = SelectPlan(self, plan: from.plan, context: context)
            if let filter = update.filter { try builder.filter(filter) }
            let changes = try bindAssignments(update.assignments, table, context, builder)
            let old = table.columns.indices.map { BoundExpression.column($0, table.columns[$0].type) }
            let new = old.indices.map { changes[$0] ?? old[$0] }
            let rows = try rows(of: from, builder.plan, old + new, returning: update.returning) { $0 < old.count ? old.count + $0 : nil }
            return BoundUpdate(table: table, query: rows.query, assigned: changes.keys.sorted(), returning: rows.returning)
        }
    }

    /// - Throws: 42P01, 42809 when the target is no table.
    package func bind(delete: Delete) throws(SQLError) -> BoundDelete {
        try binding(delete.with) { () throws(SQLError) in
            let table = try writableTable(delete.table.name, "delete from")
            let from = try crossing(try target(delete.table, table), with: delete.using, outer: nil)
            let builder = SelectPlan(self, plan: from.plan, context: ExpressionContext(scope: from.scope, outer: nil, clause: .filter))
            if let filter = delete.filter { try builder.filter(filter) }
            let old = table.columns.indices.map { BoundExpression.column($0, table.columns[$0].type) }
            let rows = try rows(of: from, builder.plan, old, returning: delete.returning) { $0 < old.count ? $0 : nil }
            return BoundDelete(table: table, query: rows.query, returning: rows.returning)
        }
    }

    // MARK: The table

    /// The table that a statement changes; a WITH table of its name is not meant.
    func writableTable(_ name: ObjectName, _ verb: String) throws(SQLError) -> CatalogObject {
        try refuseWriting(name)
        let object = try relation(named: name)
        guard object.kind == .table else {
            throw SQLError(
                .wrongObjectType, "cannot \(verb) \(object.kind.rawValue) \"\(object.name)\"", hint: "Only the rows of tables can be changed.",
                at: name.span.source)
        }
        depend(on: object)
        return object
    }

    private func target(_ written: NamedTable, _ table: CatalogObject) throws(SQLError) -> FromItem {
        if let column = written.alias?.columns.first { throw unsupported("column names behind the alias of a table to change", at: column.span.source) }
        let outside = commonTables
        commonTables = []
        defer { commonTables = outside }
        return try bindRelation(written.name, alias: written.alias)
    }

    /// The number of the column that SET names.
    private func assignedColumn(_ name: ObjectName, _ table: CatalogObject) throws(SQLError) -> Int {
        if name.parts.count > 1 {
            throw SQLError(
                .undefinedColumn, "column \"\(name.parts[0].name)\" of relation \"\(table.name)\" does not exist",
                hint: "SET target columns cannot be qualified with the relation name.", at: name.span.source)
        }
        guard let index = table.columns.firstIndex(where: { $0.name == name.last.name }) else {
            let names = Scope(relation: nil, columns: table.columns.map { ($0.name, $0.type, $0.isHidden) })
            throw SQLError(
                .undefinedColumn, "column \"\(name.last.name)\" of relation \"\(table.name)\" does not exist", hint: names.suggestion(for: name),
                at: name.span.source)
        }
        guard !table.columns[index].isHidden else {
            throw SQLError(.featureNotSupported, "cannot assign to system column \"\(name.last.name)\"", at: name.span.source)
        }
        return index
    }

    /// The new values by column, over the builder's plan.
    func bindAssignments(
        _ assignments: [Assignment], _ table: CatalogObject, _ context: ExpressionContext, _ builder: SelectPlan
    ) throws(SQLError) -> [Int: BoundExpression] {
        context.clause = .update
        var changes: [Int: BoundExpression] = [:]
        for assignment in assignments {
            var columns: [Int] = []
            for name in assignment.columns {
                let column = try assignedColumn(name, table)
                guard changes[column] == nil, !columns.contains(column) else {
                    throw SQLError(.syntaxError, "multiple assignments to same column \"\(name.last.name)\"", at: name.span.source)
                }
                columns.append(column)
            }
            for (column, value) in zip(columns, try bindAssigned(assignment, columns, table, context)) {
                changes[column] = try builder.output(value, mentions: [:])
            }
        }
        return changes
    }

    /// One value for each column of an assignment.
    private func bindAssigned(
        _ assignment: Assignment, _ columns: [Int], _ table: CatalogObject, _ context: ExpressionContext
    ) throws(SQLError) -> [BoundExpression] {
        let span = assignment.value.span.source
        guard assignment.isRow else { return [try bindAssigned(assignment.value, to: table.columns[columns[0]], context)] }
        switch assignment.value.kind {
        case .row(let cells):
            guard cells.count == columns.count else { throw SQLError(.syntaxError, "number of columns does not match number of values", at: span) }
            var values: [BoundExpression] = []
            for (cell, column) in zip(cells, columns) { values.append(try bindAssigned(cell, to: table.columns[column], context)) }
            return values
        case .subquery(let query):
            let plan = try bindInner(query, context, at: span)
            guard plan.schema.count == columns.count else {
                throw SQLError(.syntaxError, "number of columns does not match number of values", at: span)
            }
            var values: [BoundExpression] = []
            for (place, column) in columns.enumerated() {
                let field = plan.schema[place]
                // One query a column: each is joined as a value of its own.
                let single = LogicalProject(input: plan, expressions: [.column(place, field.type)], names: [field.name])
                let value = context.add(PendingSubquery(kind: .scalar, query: .project(single), type: field.type, span: span))
                values.append(try assigned(value, to: table.columns[column], at: span))
            }
            return values
        default:
            throw unsupported("assigning to a list of columns anything but a row or a subquery", hint: "Write ROW(...).", at: span)
        }
    }

    private func bindAssigned(_ value: Expression, to column: CatalogColumn, _ context: ExpressionContext) throws(SQLError) -> BoundExpression {
        if case .defaultValue = value.kind { return try defaultValue(of: column) }
        return try assigned(try bind(value, context), to: column, at: value.span.source)
    }

    // MARK: Results

    /// Given rows of some columns, as a plan scans them.
    static func givenRows(_ schema: Schema) -> LogicalScan {
        LogicalScan(relation: .givenRows, columns: Array(schema.indices), schema: schema)
    }

    /// The query of the rows to change, with the columns behind `columns` that RETURNING reads of other relations, and RETURNING over it.
    ///
    /// - Parameter place: where in `columns` RETURNING finds a column of the changed table; nil for one of another relation.
    private func rows(
        of from: FromItem, _ plan: LogicalPlan, _ columns: [BoundExpression], returning items: [SelectItem], place: (Int) -> Int?
    ) throws(SQLError) -> (query: BoundQuery, returning: BoundQuery?) {
        var others: [Int] = []
        let schema = from.plan.schema
        var returning = try bindReturning(items, over: from) { expression in
            expression.remapped { column in
                if let known = place(column) { return known }
                if !others.contains(column) { others.append(column) }
                return columns.count + (others.firstIndex(of: column) ?? 0)
            }
        }
        let all = columns + others.map { .column($0, schema[$0].type) }
        let project = LogicalProject(input: plan, expressions: all, names: all.indices.map { "column\($0 + 1)" })
        if case .project(var output)? = returning?.plan {
            output.input = .scan(Self.givenRows(project.schema))
            returning = BoundQuery(plan: .project(output))
        }
        return (BoundQuery(plan: settlingParameters(.project(project))), returning)
    }

    /// RETURNING over given rows; nil without.
    /// - Parameter map: makes expressions over `from` ones over the given rows.
    func bindReturning(
        _ items: [SelectItem], over from: FromItem, _ map: (BoundExpression) -> BoundExpression
    ) throws(SQLError) -> BoundQuery? {
        guard !items.isEmpty else { return nil }
        var output = try bindOutput(items, over: from)
        output.expressions = output.expressions.map(map)
        return BoundQuery(plan: settlingParameters(.project(output)))
    }
}

extension CatalogObject {
    /// Numbers of the columns that `*` does not show.
    var hiddenColumns: Set<Int> { Set(columns.indices.filter { columns[$0].isHidden }) }
}
