package import MillBase
import MillCatalog
import MillColumnar
import MillExpr
import MillPlan
package import MillSQL

/// CREATE SOURCE, TABLE and VIEW: columns, keys and options.
extension Binder {
    /// - Throws: 42701 for a column named twice, 42704 for an unknown type, 42P16 for a wrong primary key, 0A000 for what is
    ///   not there.
    package func bind(createRelation statement: CreateRelation) throws(SQLError) -> BoundRelation {
        let kind: CatalogObject.Kind = statement.kind == .source ? .source : .table
        let (schemaName, name) = try target(statement.name)
        try refuseUnsupported(statement)
        var columns: [CatalogColumn] = []
        var keys: [(columns: [Identifier], span: SourceSpan)] = []
        var watermark: WatermarkDefinition?
        for element in statement.elements {
            switch element {
            case .column(let definition):
                guard !columns.contains(where: { $0.name == definition.name.name }) else {
                    throw SQLError(.duplicateColumn, "column \"\(definition.name.name)\" specified more than once", at: definition.name.span.source)
                }
                columns.append(try bindColumn(definition, &keys))
            case .constraint(let constraint):
                switch constraint.kind {
                case .primaryKey(let names): keys.append((names, constraint.span.source))
                case .unique: throw unsupported("a UNIQUE constraint", hint: "Use PRIMARY KEY.", at: constraint.span.source)
                case .check: throw unsupported("a CHECK constraint", at: constraint.span.source)
                case .foreignKey: throw unsupported("a FOREIGN KEY constraint", at: constraint.span.source)
                }
            case .watermark(let definition):
                if watermark != nil {
                    throw SQLError(.invalidTableDefinition, "multiple watermarks are not allowed", hint: "Keep one WATERMARK FOR.", at: definition.span.source)
                }
                watermark = definition
            case .wildcard(let span):
                // All columns that a source's records have, where they say.
                if kind == .source, statement.elements.count == 1 { continue }
                throw unsupported("* in a column list", hint: "List the columns.", at: span.source)
            }
        }
        var query: BoundQuery?
        if let written = statement.query { (columns, query) = try bindInitialRows(written, columns, statement) }
        guard columns.count <= Limits.columnsMax else {
            throw SQLError(.tooManyColumns, "tables can have at most \(Limits.columnsMax) columns", at: statement.name.span.source)
        }
        let primaryKey = try bindPrimaryKey(keys, &columns)
        if kind == .table, primaryKey.isEmpty { try addRowID(&columns, &query, at: statement.name.span.source) }
        return BoundRelation(
            kind: kind, schemaName: schemaName, name: name, columns: columns, primaryKey: primaryKey,
            watermark: try watermark.map { (definition) throws(SQLError) in try bindWatermark(definition, columns) },
            options: options(of: statement), query: query)
    }

    /// - Throws: 42703 for a column that is not there, 42804 for one that is no time, and what is wrong with the expression, which must
    ///   mean the same at any time.
    private func bindWatermark(_ definition: WatermarkDefinition, _ columns: [CatalogColumn]) throws(SQLError) -> SourceWatermark {
        let span = definition.column.span.source
        guard let index = columns.firstIndex(where: { $0.name == definition.column.name && !$0.isHidden }) else {
            throw SQLError(.undefinedColumn, "column \"\(definition.column.name)\" named in WATERMARK does not exist", at: span)
        }
        let column = columns[index]
        guard column.type == .timestamp || column.type == .timestamptz else {
            throw SQLError(
                .datatypeMismatch, "column \"\(column.name)\" has type \(column.type.name), a watermark needs a timestamp or timestamptz",
                hint: "Declare the column as timestamp or timestamptz.", at: span)
        }
        let binder = Binder(catalog: catalog, context: BinderContext(.view))
        let scope = Scope(relation: nil, columns: columns.map { ($0.name, $0.type, $0.isHidden) })
        let written = definition.expression.span.source
        let bound = try binder.bind(definition.expression, ExpressionContext(scope: scope, outer: nil, clause: .watermark))
        guard binder.parameters.isEmpty else {
            throw SQLError(.undefinedParameter, "there is no parameter $1", hint: "A watermark cannot have parameters.", at: written)
        }
        let expression = try binder.assigned(bound, to: column, at: written)
        guard !expression.columnsUsed.isEmpty else {
            throw SQLError(
                .invalidTableDefinition, "a watermark that reads no column never moves",
                hint: "Write WATERMARK FOR \(column.name) AS \(column.name) - INTERVAL '5 seconds'.", at: written)
        }
        return SourceWatermark(column: index, expression: expression)
    }

    /// - Throws: the query's error, 42701 for a column named twice, 42601 for more names than columns.
    package func bind(createView statement: CreateView) throws(SQLError) -> BoundView {
        let (schemaName, name) = try target(statement.name)
        if statement.isTemporary { throw unsupported("a temporary view", at: statement.name.span.source) }
        if statement.emitOnWindowClose, !statement.isMaterialized {
            throw SQLError(
                .invalidTableDefinition, "EMIT ON WINDOW CLOSE is for materialized views", hint: "Write CREATE MATERIALIZED VIEW.",
                at: statement.name.span.source)
        }
        let plan = try relation(try bindQuery(statement.query, outer: nil))
        if let number = parameters.indices.first {
            throw SQLError(.undefinedParameter, "there is no parameter $\(number + 1)", hint: "A view cannot have parameters.")
        }
        let schema = plan.schema
        guard statement.columns.count <= schema.count else {
            throw SQLError(
                .syntaxError, "CREATE VIEW specifies more column names than columns", at: statement.columns[schema.count].span.source)
        }
        let names = statement.columns.map(\.name) + schema.dropFirst(statement.columns.count).map(\.name)
        var seen: Set<String> = []
        for (index, name) in names.enumerated() where !seen.insert(name).inserted {
            let span = statement.columns.indices.contains(index) ? statement.columns[index].span : itemSpan(statement.query, index)
            throw SQLError(
                .duplicateColumn, "column \"\(name)\" specified more than once", hint: "Give one of them another name with AS.",
                at: (span ?? statement.query.span).source)
        }
        guard !names.isEmpty else { throw SQLError(.invalidTableDefinition, "view must have at least one column", at: statement.name.span.source) }
        let columns = zip(names, schema).map { CatalogColumn($0, $1.type) }
        let renamed = names == schema.map(\.name)
            ? plan
            : .project(LogicalProject(input: plan, expressions: schema.indices.map { .column($0, schema[$0].type) }, names: names))
        return BoundView(
            kind: statement.isMaterialized ? .materializedView : .view, schemaName: schemaName, name: name, columns: columns,
            query: BoundQuery(plan: renamed), options: statement.options.map { CatalogOption($0.key, Binder.text(of: $0)) })
    }

    /// Where an output column was written, if the SELECT's items are its columns one to one.
    private func itemSpan(_ query: Query, _ index: Int) -> NodeSpan? {
        guard case .select(let select) = query.body, select.items.indices.contains(index) else { return nil }
        for item in select.items { guard case .expression = item else { return nil } }
        guard case .expression(let expression, let alias) = select.items[index] else { return nil }
        return alias?.span ?? expression.span
    }

    /// The schema and name that CREATE names.
    private func target(_ name: ObjectName) throws(SQLError) -> (schema: String, name: String) {
        let schema = name.parts.count >= 2 ? name.parts[name.parts.count - 2].name : Catalog.searchPath[0]
        guard catalog.schemaExists(schema) else {
            throw SQLError(.invalidSchemaName, "schema \"\(schema)\" does not exist", at: name.span.source)
        }
        guard name.last.name.utf8.count <= Limits.identifierBytesMax else {
            throw SQLError(.nameTooLong, "identifier is longer than \(Limits.identifierBytesMax) bytes", at: name.last.span.source)
        }
        return (schema, name.last.name)
    }

    private func refuseUnsupported(_ statement: CreateRelation) throws(SQLError) {
        let span = statement.name.span.source
        if statement.isTemporary { throw unsupported("a temporary table", at: span) }
        if let column = statement.versionColumns.first { throw unsupported("WITH VERSION COLUMN", at: column.span.source) }
        if let include = statement.includes.first { throw unsupported("INCLUDE", at: include.span.source) }
        if let upstream = statement.upstream { throw unsupported("FROM source TABLE", at: upstream.span.source) }
        if statement.kind == .source, let query = statement.query { throw unsupported("CREATE SOURCE AS", at: query.span.source) }
    }

    // MARK: Columns

    private func bindColumn(
        _ definition: ColumnDefinition, _ keys: inout [(columns: [Identifier], span: SourceSpan)]
    ) throws(SQLError) -> CatalogColumn {
        guard let typeName = definition.type else { throw unsupported("a generated column", at: definition.span.source) }
        guard definition.name.name.utf8.count <= Limits.identifierBytesMax else {
            throw SQLError(.nameTooLong, "identifier is longer than \(Limits.identifierBytesMax) bytes", at: definition.name.span.source)
        }
        var column = CatalogColumn(definition.name.name, try type(of: typeName))
        column.lengthMax = try Self.length(of: typeName)
        for constraint in definition.constraints {
            let span = constraint.span.source
            switch constraint.kind {
            case .null, .collate: break
            case .notNull: column.isNullable = false
            case .primaryKey: keys.append(([definition.name], span))
            case .defaultValue(let expression):
                column.defaultText = expression.description
                let scope = ExpressionContext(scope: Scope(), outer: nil, clause: .defaultValue)
                _ = try assigned(try bind(expression, scope), to: column, at: expression.span.source)
            case .unique: throw unsupported("a UNIQUE constraint", hint: "Use PRIMARY KEY.", at: span)
            case .generated: throw unsupported("a generated column", at: span)
            case .identity: throw unsupported("an identity column", at: span)
            case .check: throw unsupported("a CHECK constraint", at: span)
            case .references: throw unsupported("a REFERENCES constraint", at: span)
            }
        }
        return column
    }

    /// The one primary key, whose columns are NOT NULL.
    private func bindPrimaryKey(
        _ keys: [(columns: [Identifier], span: SourceSpan)], _ columns: inout [CatalogColumn]
    ) throws(SQLError) -> [Int] {
        guard let key = keys.first else { return [] }
        if keys.count > 1 {
            throw SQLError(.invalidTableDefinition, "multiple primary keys are not allowed", hint: "List the columns in one PRIMARY KEY.", at: keys[1].span)
        }
        var numbers: [Int] = []
        for name in key.columns {
            guard let index = columns.firstIndex(where: { $0.name == name.name }) else {
                throw SQLError(.undefinedColumn, "column \"\(name.name)\" named in key does not exist", at: name.span.source)
            }
            guard !numbers.contains(index) else {
                throw SQLError(.duplicateColumn, "column \"\(name.name)\" appears twice in primary key constraint", at: name.span.source)
            }
            numbers.append(index)
            columns[index].isNullable = false
        }
        return numbers
    }

    /// CREATE TABLE ... AS: the query's columns, renamed by a column list without types' say.
    private func bindInitialRows(
        _ written: Query, _ columns: [CatalogColumn], _ statement: CreateRelation
    ) throws(SQLError) -> ([CatalogColumn], BoundQuery) {
        var plan = try relation(try bindQuery(written, outer: nil))
        guard columns.isEmpty else {
            guard columns.count == plan.schema.count else {
                throw SQLError(.syntaxError, "CREATE TABLE AS specifies \(columns.count) columns, its query has \(plan.schema.count)", at: written.span.source)
            }
            plan = try coercing(plan, to: columns.map(\.type), .assignment, at: written.span.source)
            return (columns, BoundQuery(plan: plan))
        }
        var seen: Set<String> = []
        for field in plan.schema where !seen.insert(field.name).inserted {
            throw SQLError(.duplicateColumn, "column \"\(field.name)\" specified more than once", at: written.span.source)
        }
        return (plan.schema.map { CatalogColumn($0.name, $0.type) }, BoundQuery(plan: plan))
    }

    /// Rows without a key are told apart by a hidden number, which whoever stores them gives.
    private func addRowID(_ columns: inout [CatalogColumn], _ query: inout BoundQuery?, at span: SourceSpan) throws(SQLError) {
        guard !columns.contains(where: { $0.name == CatalogColumn.rowID.name }) else {
            throw SQLError(
                .duplicateColumn, "column name \"\(CatalogColumn.rowID.name)\" conflicts with a system column name",
                hint: "Give the table a PRIMARY KEY, or the column another name.", at: span)
        }
        if let plan = query?.plan {
            let values = columns.indices.map { BoundExpression.column($0, columns[$0].type) } + [.literal(.null, CatalogColumn.rowID.type)]
            columns.append(.rowID)
            query = BoundQuery(plan: .project(LogicalProject(input: plan, expressions: values, names: columns.map(\.name))))
        } else {
            columns.append(.rowID)
        }
    }

    // MARK: Options

    private func options(of statement: CreateRelation) -> [CatalogOption] {
        var options = statement.options.map { CatalogOption($0.key, Binder.text(of: $0)) }
        if statement.isAppendOnly { options.append(CatalogOption("append_only", "true")) }
        if let format = statement.format {
            options.append(CatalogOption("format", format.format.name.lowercased()))
            options.append(CatalogOption("encode", format.encode.name.name.lowercased()))
            options += format.encode.options.map { CatalogOption($0.key, Binder.text(of: $0)) }
            if let key = format.keyEncode {
                options.append(CatalogOption("key.encode", key.name.name.lowercased()))
                options += key.options.map { CatalogOption("key." + $0.key, Binder.text(of: $0)) }
            }
        }
        return options
    }

    /// An option's value as connectors read it: text. A key alone is `true`.
    package static func text(of option: WithOption) -> String {
        switch option.value {
        case .string(let text), .number(let text), .word(let text): text
        case .boolean(let value): value ? "true" : "false"
        case .secret(let name, _): "secret:" + name.parts.map(\.name).joined(separator: ".")
        case nil: "true"
        }
    }
}
