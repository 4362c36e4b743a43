import MillBase

/// CREATE of everything but sources and tables; DROP, ALTER, COMMENT.
extension Parser {
    mutating func parseCreate() throws(SQLError) -> Statement {
        try expect(.create)
        let orReplace = accept(.or, .replace)
        let isTemporary = accept(.temporary) || accept(.temp)
        switch keyword {
        case .source, .table: return try parseCreateRelation(orReplace: orReplace, isTemporary: isTemporary)
        case .view, .materialized: return try parseCreateView(orReplace: orReplace, isTemporary: isTemporary)
        default: break
        }
        guard !isTemporary else { throw syntaxError() }
        if isNext(.sink) { return try parseCreateSink(orReplace: orReplace) }
        guard !orReplace else { throw syntaxError() }
        switch keyword {
        case .schema, .database, .catalog: return try parseCreateNamespace()
        case .index, .unique: return try parseCreateIndex()
        default: throw syntaxError()
        }
    }

    mutating func parseIfNotExists() throws(SQLError) -> Bool {
        guard accept(.if) else { return false }
        try expect(.not, .exists)
        return true
    }

    mutating func parseIfExists() throws(SQLError) -> Bool {
        guard accept(.if) else { return false }
        try expect(.exists)
        return true
    }

    private mutating func parseCreateView(orReplace: Bool, isTemporary: Bool) throws(SQLError) -> Statement {
        let isMaterialized = accept(.materialized)
        try expect(.view)
        let ifNotExists = try parseIfNotExists()
        let name = try parseObjectName()
        let columns = try parseOptionalColumnList()
        let options = accept(.with) ? try parseOptionList() : []
        try expect(.as)
        let query = try parseQuery()
        let emit = try parseEmit()
        if isMaterialized { try parseWithData() }
        return .createView(
            CreateView(
                isMaterialized: isMaterialized, orReplace: orReplace, isTemporary: isTemporary, ifNotExists: ifNotExists, name: name,
                columns: columns, options: options, query: query, emitOnWindowClose: emit))
    }

    /// WITH DATA, which needs no saying.
    /// - Throws: 0A000 for WITH NO DATA.
    mutating func parseWithData() throws(SQLError) {
        guard isNext(.with) else { return }
        let isWithout = ahead(1).keyword == .no
        guard text(of: ahead(isWithout ? 2 : 1)).uppercased() == "DATA" else { return }
        guard !isWithout else {
            throw SQLError(
                .featureNotSupported, "WITH NO DATA is not supported", hint: "The rows of the query are there from the start: leave it out.",
                at: SourceSpan(start, Int(ahead(2).end)))
        }
        advance()
        advance()
    }

    /// EMIT ON WINDOW CLOSE; false if absent.
    private mutating func parseEmit() throws(SQLError) -> Bool {
        guard accept(.emit) else { return false }
        try expect(.on, .window, .close)
        return true
    }

    private mutating func parseCreateSink(orReplace: Bool) throws(SQLError) -> Statement {
        try expect(.sink)
        let ifNotExists = try parseIfNotExists()
        let name = try parseObjectName()
        var into: ObjectName?
        var columns: [Identifier] = []
        if accept(.into) {
            into = try parseObjectName()
            columns = try parseOptionalColumnList()
        }
        let input: CreateSink.Input
        var emit = false
        if accept(.from) {
            input = .relation(try parseObjectName())
        } else {
            guard accept(.as) else { throw syntaxError(expecting: "FROM or AS") }
            input = .query(try parseQuery())
            emit = try parseEmit()
        }
        let options = accept(.with) ? try parseOptionList() : []
        let format = isNext(.format) ? try parseFormat() : nil
        return .createSink(
            CreateSink(
                orReplace: orReplace, ifNotExists: ifNotExists, name: name, into: into, columns: columns, input: input,
                emitOnWindowClose: emit, options: options, format: format))
    }

    private mutating func parseCreateNamespace() throws(SQLError) -> Statement {
        let kind: CreateNamespace.Kind = isNext(.schema) ? .schema : isNext(.catalog) ? .catalog : .database
        advance()
        let ifNotExists = try parseIfNotExists()
        let name = try parseObjectName()
        var options: [WithOption] = []
        if accept(.with) {
            if kind != .database || self.kind == .leftParenthesis {
                options = try parseOptionList()
            } else {
                // PostgreSQL's `CREATE DATABASE d WITH ENCODING = 'UTF8'`.
                while Self.isLabel(token) { options.append(try parseBareOption()) }
            }
        }
        return .createNamespace(CreateNamespace(kind: kind, ifNotExists: ifNotExists, name: name, options: options))
    }

    private mutating func parseBareOption() throws(SQLError) -> WithOption {
        let start = start
        let key = try parseLabel().name
        _ = acceptSymbol("=")
        return WithOption(key: key, isKeyQuoted: false, value: try parseOptionValue(), span: span(from: start))
    }

    private mutating func parseCreateIndex() throws(SQLError) -> Statement {
        let isUnique = accept(.unique)
        try expect(.index)
        _ = accept(.concurrently)
        let ifNotExists = try parseIfNotExists()
        let name = isNext(.on) ? nil : try parseIdentifier()
        try expect(.on)
        let table = try parseObjectName()
        let method = accept(.using) ? try parseIdentifier() : nil
        let keys = try parenthesized { parser throws(SQLError) in try parser.parseOrderItem() }
        let include = accept(.include) ? try parseColumnList() : []
        var distributedBy: [Expression] = []
        if accept(.distributed, .by) {
            distributedBy = try parenthesized { parser throws(SQLError) in try parser.parseExpression() }
        }
        return .createIndex(
            CreateIndex(
                isUnique: isUnique, ifNotExists: ifNotExists, name: name, table: table, method: method, keys: keys, include: include,
                distributedBy: distributedBy))
    }

    // MARK: DROP, ALTER, COMMENT

    mutating func parseDrop() throws(SQLError) -> Statement {
        try expect(.drop)
        let kind = try parseObjectKind()
        let ifExists = try parseIfExists()
        let names = try commaSeparated { parser throws(SQLError) in try parser.parseObjectName() }
        return .drop(Drop(kind: kind, ifExists: ifExists, names: names, cascade: parseBehavior()))
    }

    /// CASCADE, RESTRICT or nothing, which is RESTRICT.
    private mutating func parseBehavior() -> Bool {
        if accept(.cascade) { return true }
        _ = accept(.restrict)
        return false
    }

    mutating func parseAlter() throws(SQLError) -> Statement {
        try expect(.alter)
        let kind = try parseObjectKind()
        let ifExists = try parseIfExists()
        let name = try parseObjectName()
        return .alter(Alter(kind: kind, ifExists: ifExists, name: name, action: try parseAlterAction()))
    }

    private mutating func parseAlterAction() throws(SQLError) -> Alter.Action {
        switch keyword {
        case .rename:
            advance()
            if accept(.to) { return .rename(try parseIdentifier()) }
            _ = accept(.column)
            let column = try parseIdentifier()
            try expect(.to)
            return .renameColumn(column, try parseIdentifier())
        case .add:
            advance()
            _ = accept(.column)
            let ifNotExists = try parseIfNotExists()
            return .addColumn(try parseColumnDefinition(), ifNotExists: ifNotExists)
        case .drop:
            advance()
            _ = accept(.column)
            let ifExists = try parseIfExists()
            return .dropColumn(try parseIdentifier(), ifExists: ifExists, cascade: parseBehavior())
        case .owner:
            advance()
            try expect(.to)
            return .owner(try parseIdentifier())
        case .set:
            advance()
            if accept(.schema) { return .setSchema(try parseIdentifier()) }
            let name = try parseSettingName()
            guard acceptSymbol("=") || accept(.to) else { throw syntaxError(expecting: "=") }
            return .set(name, try parseSettingValue())
        default: throw syntaxError(expecting: "RENAME, ADD, DROP, OWNER or SET")
        }
    }

    mutating func parseComment() throws(SQLError) -> Statement {
        try expect(.comment, .on)
        let kind: ObjectKind
        if accept(.column) { kind = .column } else { kind = try parseObjectKind() }
        let name = try parseObjectName()
        try expect(.is)
        return .comment(Comment(kind: kind, name: name, text: accept(.null) ? nil : try parseString()))
    }
}
