import MillBase
import MillCatalog
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// ON CONFLICT: the key it means, and what DO UPDATE makes of a stored row and the row `excluded` from insertion.
extension Binder {
    /// - Throws: 42P10 when the columns are not the primary key, 42704 for another constraint's name, 42601 for DO UPDATE without a key.
    func bind(conflict: OnConflict, _ table: CatalogObject, alias: Identifier?) throws(SQLError) -> BoundConflict {
        let names = table.columns.map(\.name)
        var scope = Scope(
            relation: alias.map { .init(name: $0.name, schema: nil) } ?? .init(name: table.name, schema: table.schemaName),
            columns: table.columns.map { ($0.name, $0.type, $0.isHidden) })
        try check(conflict, table, scope)
        guard case .update(let assignments, let filter) = conflict.action else { return .nothing }
        let excluded = Scope(
            relation: .init(name: "excluded", schema: nil), columns: table.columns.map { ($0.name, $0.type, $0.isHidden) }
        ).shifted(by: names.count)
        scope.entries += excluded.entries
        scope.relations += excluded.relations
        let context = ExpressionContext(scope: scope, outer: nil, clause: .filter)
        let builder = SelectPlan(self, plan: .scan(Self.givenRows(table.schema + table.schema)), context: context)
        if let filter { try builder.filter(filter) }
        let changes = try bindAssignments(assignments, table, context, builder)
        let old = table.columns.indices.map { BoundExpression.column($0, table.columns[$0].type) }
        let project = LogicalProject(input: builder.plan, expressions: old + old.indices.map { changes[$0] ?? old[$0] }, names: names + names)
        return .update(BoundQuery(plan: settlingParameters(.project(project))), assigned: changes.keys.sorted())
    }

    /// Whether the conflict target means the primary key.
    private func check(_ conflict: OnConflict, _ table: CatalogObject, _ scope: Scope) throws(SQLError) {
        switch conflict.target {
        case nil:
            guard case .update = conflict.action else { return }
            throw SQLError(
                .syntaxError, "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                hint: "For example, ON CONFLICT (column_name).", at: conflict.span.source)
        case .constraint(let name):
            guard !table.primaryKey.isEmpty, name.name == table.primaryKeyName else {
                throw SQLError(.undefinedObject, "constraint \"\(name.name)\" for table \"\(table.name)\" does not exist", at: name.span.source)
            }
        case .columns(let expressions, let filter):
            let context = ExpressionContext(scope: scope, outer: nil, clause: .filter)
            var columns: Set<Int> = []
            for expression in expressions {
                if case .column(let column, _) = try bind(expression, context) { columns.insert(column) } else { columns.insert(-1) }
            }
            if let filter { _ = try requireBoolean(try bind(filter, context), in: "WHERE", at: filter.span.source) }
            guard !columns.isEmpty, columns == Set(table.primaryKey) else {
                let key = table.primaryKey.map { table.columns[$0].name }.joined(separator: ", ")
                throw SQLError(
                    .invalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                    hint: key.isEmpty ? "Table \"\(table.name)\" has no primary key." : "The primary key of table \"\(table.name)\" is (\(key)).",
                    at: expressions.first?.span.source ?? conflict.span.source)
            }
        }
    }
}
