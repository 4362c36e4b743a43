import MillBase

/// CREATE SOURCE and CREATE TABLE.
extension Parser {
    /// The next token is SOURCE or TABLE.
    mutating func parseCreateRelation(orReplace: Bool, isTemporary: Bool) throws(SQLError) -> Statement {
        let kind: CreateRelation.Kind = isNext(.source) ? .source : .table
        advance()
        let ifNotExists = try parseIfNotExists()
        var relation = CreateRelation(kind: kind, name: try parseObjectName())
        relation.orReplace = orReplace
        relation.isTemporary = isTemporary
        relation.ifNotExists = ifNotExists
        if kind == .table { try refuseNamesOnly() }
        if accept(.leftParenthesis) {
            if self.kind != .rightParenthesis {
                relation.elements = try commaSeparated { parser throws(SQLError) in try parser.parseTableElement() }
            }
            try expect(.rightParenthesis)
        }
        try parseRelationClauses(&relation)
        return .createRelation(relation)
    }

    /// The clauses behind the columns, in any order, each at most once (INCLUDE as often as wanted).
    private mutating func parseRelationClauses(_ relation: inout CreateRelation) throws(SQLError) {
        while true {
            switch keyword {
            case .append where !relation.isAppendOnly:
                advance()
                try expect(.only)
                relation.isAppendOnly = true
            case .on where relation.onConflict == nil:
                relation.onConflict = try parseConflictBehavior()
            case .include: relation.includes.append(try parseInclude())
            case .with where ahead(1).keyword == .version && relation.versionColumns.isEmpty:
                advance()
                advance()
                try expect(.column)
                relation.versionColumns = try parseColumnList()
            case .with where relation.options.isEmpty:
                advance()
                relation.options = try parseOptionList()
            case .format where relation.format == nil: relation.format = try parseFormat()
            case .from where relation.upstream == nil: relation.upstream = try parseUpstream()
            case .as where relation.query == nil && relation.kind == .table:
                advance()
                relation.query = try parseQuery()
                try parseWithData()
            default: return
            }
        }
    }

    /// - Throws: 0A000 for `(a, b) AS`, which names the columns of the query behind it.
    private func refuseNamesOnly() throws(SQLError) {
        guard kind == .leftParenthesis else { return }
        var offset = 1
        while Self.isLabel(ahead(offset)), ahead(offset + 1).kind == .comma { offset += 2 }
        guard Self.isLabel(ahead(offset)), ahead(offset + 1).kind == .rightParenthesis, ahead(offset + 2).keyword == .as else { return }
        throw SQLError(
            .featureNotSupported, "columns without types in CREATE TABLE AS are not supported",
            hint: "Give their types, or name them in the query: SELECT expression AS name.", at: ahead(1).span)
    }

    /// `ON CONFLICT {OVERWRITE | IGNORE | DO NOTHING | DO UPDATE FULL | DO UPDATE IF NOT NULL}`.
    private mutating func parseConflictBehavior() throws(SQLError) -> CreateRelation.ConflictBehavior {
        try expect(.on, .conflict)
        if accept(.overwrite) || accept(.doWord, .update, .full) { return .overwrite }
        if accept(.doWord, .update, .if, .not, .null) { return .updateIfNotNull }
        if accept(.doWord, .nothing) { return .ignore }
        let word = try parseLabel()
        guard word.name == "ignore" else {
            index -= 1
            throw syntaxError(expecting: "OVERWRITE, IGNORE or DO UPDATE IF NOT NULL")
        }
        return .ignore
    }

    private mutating func parseUpstream() throws(SQLError) -> UpstreamTable {
        let start = start
        advance()
        let source = try parseObjectName()
        try expect(.table)
        return UpstreamTable(source: source, externalName: try parseString(), span: span(from: start))
    }

    private mutating func parseInclude() throws(SQLError) -> IncludeClause {
        let start = start
        advance()
        var include = IncludeClause(kind: try parseLabel(), span: NodeSpan(start, start))
        if isString { include.field = try parseString() }
        if Self.isLabel(token), !endsInclude { include.type = try parseTypeName() }
        if accept(.as) { include.alias = try parseLabel() }
        include.span = span(from: start)
        return include
    }

    private var endsInclude: Bool {
        switch keyword {
        case .as, .include, .with, .format, .append, .on, .from: true
        default: false
        }
    }

    // MARK: Elements

    private mutating func parseTableElement() throws(SQLError) -> TableElement {
        let start = start
        if acceptSymbol("*") { return .wildcard(span(from: start)) }
        if accept(.watermark, .for) {
            let column = try parseIdentifier()
            try expect(.as)
            let expression = try parseExpression()
            return .watermark(WatermarkDefinition(column: column, expression: expression, span: span(from: start)))
        }
        switch keyword {
        case .constraint, .primary, .unique, .check, .foreign: return .constraint(try parseTableConstraint())
        default: return .column(try parseColumnDefinition())
        }
    }

    private mutating func parseTableConstraint() throws(SQLError) -> TableConstraint {
        let start = start
        let name = accept(.constraint) ? try parseIdentifier() : nil
        let kind: TableConstraint.Kind
        if accept(.primary) {
            try expect(.key)
            kind = .primaryKey(try parseColumnList())
        } else if accept(.unique) {
            kind = .unique(try parseColumnList())
        } else if accept(.check) {
            try expect(.leftParenthesis)
            kind = .check(try parseExpression())
            try expect(.rightParenthesis)
        } else {
            try expect(.foreign, .key)
            let columns = try parseColumnList()
            try expect(.references)
            kind = .foreignKey(columns, references: try parseObjectName(), try parseOptionalColumnList())
        }
        return TableConstraint(name: name, kind: kind, span: span(from: start))
    }

    mutating func parseColumnDefinition() throws(SQLError) -> ColumnDefinition {
        let start = start
        let name = try parseIdentifier()
        var type: TypeName?
        if !isNext(.as) { type = try parseTypeName() }
        var constraints: [ColumnConstraint] = []
        while let constraint = try parseColumnConstraint() { constraints.append(constraint) }
        guard type != nil || !constraints.isEmpty else { throw syntaxError(expecting: "a type") }
        return ColumnDefinition(name: name, type: type, constraints: constraints, span: span(from: start))
    }

    private mutating func parseColumnConstraint() throws(SQLError) -> ColumnConstraint? {
        let start = start
        let name = accept(.constraint) ? try parseIdentifier() : nil
        guard let kind = try parseColumnConstraintKind() else {
            guard name == nil else { throw syntaxError() }
            return nil
        }
        return ColumnConstraint(name: name, kind: kind, span: span(from: start))
    }

    private mutating func parseColumnConstraintKind() throws(SQLError) -> ColumnConstraint.Kind? {
        switch keyword {
        case .null:
            advance()
            return .null
        case .not:
            advance()
            try expect(.null)
            return .notNull
        case .primary:
            advance()
            try expect(.key)
            return .primaryKey
        case .unique:
            advance()
            return .unique
        case .default:
            advance()
            return .defaultValue(try parseExpression(minimum: Precedence.isTest + 1))
        case .as:
            advance()
            return .generated(try parseExpression())
        case .generated: return try parseGenerated()
        case .check:
            advance()
            try expect(.leftParenthesis)
            let condition = try parseExpression()
            try expect(.rightParenthesis)
            return .check(condition)
        case .references:
            advance()
            return .references(try parseObjectName(), try parseOptionalColumnList())
        case .collate:
            advance()
            return .collate(try parseDottedName())
        default: return nil
        }
    }

    /// `GENERATED ALWAYS AS (expr) STORED`, `GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY`.
    private mutating func parseGenerated() throws(SQLError) -> ColumnConstraint.Kind {
        advance()
        let isAlways = accept(.always)
        if !isAlways { try expect(.by, .default) }
        try expect(.as)
        if accept(.identity) { return .identity(isAlways: isAlways) }
        guard isAlways else { throw syntaxError(expecting: "IDENTITY") }
        try expect(.leftParenthesis)
        let expression = try parseExpression()
        try expect(.rightParenthesis)
        _ = accept(.stored)
        return .generated(expression)
    }
}
