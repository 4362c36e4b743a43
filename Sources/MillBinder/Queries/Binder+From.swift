import MillBase
import MillCatalog
import MillColumnar
import MillExpr
import MillPlan
import MillSQL

/// One item of FROM, or several joined: a plan, and the names of its columns.
struct FromItem {
    var plan: LogicalPlan
    var scope: Scope

    /// The columns that `*` shows, alone.
    var visiblePlan: LogicalPlan {
        guard scope.entries.contains(where: \.isHidden) else { return plan }
        let shown = scope.entries.filter { !$0.isHidden && !$0.isMerged }
        return .project(LogicalProject(input: plan, expressions: shown.map(\.expression), names: shown.map(\.name)))
    }
}

/// The FROM clause: relations, views, common tables, derived tables and joins.
extension Binder {
    /// All items, crossed. No items: one row without columns.
    func bindFrom(_ items: [TableReference], outer: Scope?) throws(SQLError) -> FromItem {
        guard let first = items.first else {
            return FromItem(plan: .values(LogicalValues(rows: [[]], schema: [])), scope: Scope())
        }
        return try crossing(try bindItem(first, outer: outer), with: items.dropFirst(), outer: outer)
    }

    /// An item crossed with further ones, whose columns come behind its own.
    func crossing(_ first: FromItem, with items: some Sequence<TableReference>, outer: Scope?) throws(SQLError) -> FromItem {
        var result = first
        for item in items {
            let right = try bindItem(item, outer: outer)
            let scope = try joined(result, right, at: item.span.source)
            result = FromItem(plan: .join(LogicalJoin(left: result.plan, right: right.plan, kind: .inner, condition: nil)), scope: scope)
        }
        return result
    }

    private func bindItem(_ item: TableReference, outer: Scope?) throws(SQLError) -> FromItem {
        switch item {
        case .table(let table):
            if let found = try bindCatalogTable(table) { return found }
            if let version = table.version {
                throw unsupported(
                    "FOR SYSTEM_TIME and SYSTEM_VERSION of \"\(table.name.last.name)\"", hint: "Only tables of attached catalogs keep older states.",
                    at: version.span.source)
            }
            return try bindRelation(table.name, alias: table.alias)
        case .function(let function): return try bindTableFunction(function, outer: outer)
        case .subquery(let derived): return try bindDerivedTable(derived, outer: outer)
        case .join(let join): return try bindJoin(join, outer: outer)
        }
    }

    // MARK: Relations

    func bindRelation(_ name: ObjectName, alias: TableAlias?) throws(SQLError) -> FromItem {
        if name.parts.count == 1, let common = commonTables.reversed().lazy.compactMap({ $0[name.last.name] }).first {
            try count(relations: common.relationCount, at: name.span.source)
            return try aliased(common.plan, names: common.names, alias?.name, alias?.columns ?? [], defaultName: .init(name: name.last.name, schema: nil))
        }
        let object = try relation(named: name)
        depend(on: object)
        if object.kind != .view { try count(relations: 1, at: name.span.source) }
        let plan: LogicalPlan
        switch object.kind {
        case .view:
            guard let query = object.query else {
                throw SQLError(
                    .objectNotInPrerequisiteState, "what view \"\(object.name)\" means is not known", hint: "Drop it and create it again.",
                    at: name.span.source)
            }
            plan = try relation(query)
            try count(relations: plan.scanCount, at: name.span.source)
        case .sink: throw SQLError(.wrongObjectType, "\"\(object.name)\" is a sink", hint: "A sink cannot be read.", at: name.span.source)
        case .source: plan = scan(object, .source)
        case .table: plan = scan(object, .table)
        case .materializedView: plan = scan(object, .materializedView)
        case .system: plan = scan(object, .system)
        }
        let hidden = Set(object.columns.indices.filter { object.columns[$0].isHidden })
        return try aliased(
            plan, names: object.columns.map(\.name), hidden: hidden, alias?.name, alias?.columns ?? [], defaultName: .init(name: object.name, schema: object.schemaName))
    }

    /// Finds a relation to read, by `table`, `schema.table` or `database.schema.table`.
    func relation(named name: ObjectName) throws(SQLError) -> CatalogObject {
        let schema = name.parts.count >= 2 ? name.parts[name.parts.count - 2].name : nil
        guard let object = catalog.object(schema: schema, name: name.last.name) else {
            let shown = name.parts.suffix(2).map(\.name).joined(separator: ".")
            let hint = name.parts.count >= 3 ? "SHOW CATALOGS lists the catalogs whose tables have such names." : nil
            throw SQLError(.undefinedTable, "relation \"\(shown)\" does not exist", hint: hint, at: name.span.source)
        }
        return object
    }

    func scan(_ object: CatalogObject, _ kind: RelationReference.Kind) -> LogicalPlan {
        .scan(
            LogicalScan(
                relation: RelationReference(id: object.id, name: object.name, kind: kind), columns: Array(object.columns.indices), schema: object.schema))
    }

    /// A plan under its alias, with its columns renamed.
    func aliased(
        _ plan: LogicalPlan, names: [String], hidden: Set<Int> = [], _ alias: Identifier?, _ columnAliases: [Identifier],
        defaultName: Scope.Relation?
    ) throws(SQLError) -> FromItem {
        let relation = alias.map { Scope.Relation(name: $0.name, schema: nil) } ?? defaultName
        let names = if let alias { try renamed(names, by: columnAliases, of: alias) } else { names }
        let schema = plan.schema
        let columns = schema.indices.map { (name: names[$0], type: schema[$0].type, isHidden: hidden.contains($0)) }
        return FromItem(plan: plan, scope: Scope(relation: relation, columns: columns))
    }

    private func bindDerivedTable(_ derived: DerivedTable, outer: Scope?) throws(SQLError) -> FromItem {
        let plan: LogicalPlan
        do { plan = try relation(try bindQuery(derived.query, outer: outer)) } catch {
            // A lateral item that reads its neighbours fails on their names; one that does not is an ordinary one.
            if derived.isLateral, error.sqlState == .undefinedColumn || error.sqlState == .undefinedTable {
                throw unsupported("LATERAL with references to the items before it", hint: "Write it as a join.", at: derived.span.source)
            }
            throw error
        }
        return try aliased(plan, names: plan.schema.map(\.name), derived.alias?.name, derived.alias?.columns ?? [], defaultName: nil)
    }

    // MARK: Joins

    /// Both scopes over the join's columns.
    private func joined(_ left: FromItem, _ right: FromItem, at span: SourceSpan) throws(SQLError) -> Scope {
        for relation in right.scope.relations
        where left.scope.relations.contains(where: { $0.name == relation.name && $0.schema == relation.schema }) {
            throw SQLError(.duplicateAlias, "table name \"\(relation.name)\" specified more than once", at: span)
        }
        let shifted = right.scope.shifted(by: left.plan.schema.count)
        var scope = left.scope
        scope.entries += shifted.entries
        scope.relations += shifted.relations
        return scope
    }

    private func bindJoin(_ join: Join, outer: Scope?) throws(SQLError) -> FromItem {
        if join.isAsOf { throw unsupported("ASOF JOIN", at: join.span.source) }
        let left = try bindItem(join.left, outer: outer)
        let right = try bindItem(join.right, outer: outer)
        var scope = try joined(left, right, at: join.right.span.source)
        let kind: JoinKind =
            switch join.kind {
            case .inner, .cross: .inner
            case .left: .left
            case .right: .right
            case .full: .full
            }
        var condition: BoundExpression?
        switch join.condition {
        case .none: break
        case .on(let expression):
            let context = ExpressionContext(scope: scope, outer: outer, clause: .joinCondition)
            condition = try requireBoolean(try bind(expression, context), in: "JOIN/ON", at: expression.span.source)
        case .using(let columns, let alias):
            if let alias { throw unsupported("an alias of USING", at: alias.span.source) }
            (condition, scope) = try merging(columns, left, right, kind, scope)
        case .natural:
            let names = left.scope.entries.filter { !$0.isHidden && !$0.isMerged }.map(\.name)
            let common = names.filter { name in right.scope.entries.contains { $0.name == name && !$0.isHidden && !$0.isMerged } }
            (condition, scope) = try merging(common.map { Identifier($0, join.span) }, left, right, kind, scope)
        }
        return FromItem(plan: .join(LogicalJoin(left: left.plan, right: right.plan, kind: kind, condition: condition)), scope: scope)
    }

    /// USING: equalities, and one column for each pair, in front of `*`.
    private func merging(
        _ columns: [Identifier], _ left: FromItem, _ right: FromItem, _ kind: JoinKind, _ scope: Scope
    ) throws(SQLError) -> (BoundExpression?, Scope) {
        var scope = scope
        var equalities: [BoundExpression] = []
        var merged: [Scope.Entry] = []
        let shiftedRight = right.scope.shifted(by: left.plan.schema.count)
        for column in columns {
            let span = column.span.source
            let a = try sideColumn(column, left.scope, "left")
            let b = try sideColumn(column, shiftedRight, "right")
            let equality = try bindOperator(OperatorName("="), a.expression, b.expression, spans: [span, span], at: span)
            equalities.append(equality)
            let (values, type) = try unify([a.expression, b.expression], spans: [span, span], of: "JOIN/USING")
            let value: BoundExpression =
                switch kind {
                case .right: values[1]
                case .full: .coalesce(values, type)
                default: values[0]
                }
            merged.append(Scope.Entry(relation: nil, name: column.name, expression: value))
            for index in scope.entries.indices where scope.entries[index].name == column.name { scope.entries[index].isMerged = true }
        }
        // A merged column of an inner USING that is merged again has no relation: nothing can name it any more.
        scope.entries.removeAll { $0.isMerged && $0.relation == nil }
        scope.entries = merged + scope.entries
        return (BoundExpression.conjunction(equalities), scope)
    }

    private func sideColumn(_ column: Identifier, _ scope: Scope, _ side: String) throws(SQLError) -> Scope.Entry {
        let found = scope.entries.filter { $0.name == column.name && !$0.isMerged }
        guard let entry = found.first else {
            throw SQLError(
                .undefinedColumn, "column \"\(column.name)\" specified in USING clause does not exist in \(side) table", at: column.span.source)
        }
        guard found.count == 1 else {
            throw SQLError(.ambiguousColumn, "common column name \"\(column.name)\" appears more than once in \(side) table", at: column.span.source)
        }
        return entry
    }
}

extension LogicalPlan {
    /// Scans in it, equal ones counted each time.
    fileprivate var scanCount: Int {
        if case .scan = self { return 1 }
        return inputs.reduce(0) { $0 + $1.scanCount }
    }
}
