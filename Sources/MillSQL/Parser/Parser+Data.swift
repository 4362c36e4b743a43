import MillBase

/// INSERT, UPDATE, DELETE, TRUNCATE, COPY.
extension Parser {
    mutating func parseInsert(with: WithClause?) throws(SQLError) -> Insert {
        try expect(.insert, .into)
        let table = try parseObjectName()
        let alias = accept(.as) ? try parseIdentifier() : nil
        var columns: [Identifier] = []
        // A parenthesis may also open the query.
        if kind == .leftParenthesis, !beginsQuery(at: 1), ahead(1).kind != .leftParenthesis { columns = try parseColumnList() }
        let input: Insert.Input
        if accept(.default) {
            try expect(.values)
            input = .defaultValues
        } else {
            input = .query(try parseQuery())
        }
        let conflict = isNext(.on) ? try parseOnConflict() : nil
        return Insert(
            with: with, table: table, alias: alias, columns: columns, input: input, onConflict: conflict, returning: try parseReturning())
    }

    private mutating func parseReturning() throws(SQLError) -> [SelectItem] {
        accept(.returning) ? try parseSelectItems() : []
    }

    private mutating func parseOnConflict() throws(SQLError) -> OnConflict {
        let start = start
        try expect(.on, .conflict)
        var target: OnConflict.Target?
        if accept(.on) {
            try expect(.constraint)
            target = .constraint(try parseIdentifier())
        } else if kind == .leftParenthesis {
            let keys = try parenthesized { parser throws(SQLError) in try parser.parseExpression() }
            target = .columns(keys, filter: accept(.where) ? try parseExpression() : nil)
        }
        try expect(.doWord)
        let action: OnConflict.Action
        if accept(.nothing) {
            action = .nothing
        } else {
            try expect(.update, .set)
            let assignments = try parseAssignments()
            action = .update(assignments, filter: accept(.where) ? try parseExpression() : nil)
        }
        return OnConflict(target: target, action: action, span: span(from: start))
    }

    private mutating func parseAssignments() throws(SQLError) -> [Assignment] {
        try commaSeparated { parser throws(SQLError) in
            let isRow = parser.kind == .leftParenthesis
            let columns =
                isRow
                ? try parser.parenthesized { parser throws(SQLError) in try parser.parseObjectName() } : [try parser.parseObjectName()]
            try parser.expectSymbol("=")
            return Assignment(columns: columns, isRow: isRow, value: try parser.parseExpressionOrDefault())
        }
    }

    /// The relation that UPDATE and DELETE change. SET is no alias.
    private mutating func parseTarget() throws(SQLError) -> NamedTable {
        let start = start
        _ = accept(.only)
        let name = try parseObjectName()
        let alias = isNext(.set) ? nil : try parseTableAlias()
        return NamedTable(name: name, version: nil, alias: alias, span: span(from: start))
    }

    mutating func parseUpdate(with: WithClause?) throws(SQLError) -> Update {
        try expect(.update)
        let table = try parseTarget()
        try expect(.set)
        let assignments = try parseAssignments()
        let from = accept(.from) ? try parseFromList() : []
        let filter = accept(.where) ? try parseExpression() : nil
        return Update(with: with, table: table, assignments: assignments, from: from, filter: filter, returning: try parseReturning())
    }

    mutating func parseDelete(with: WithClause?) throws(SQLError) -> Delete {
        try expect(.delete, .from)
        let table = try parseTarget()
        let using = accept(.using) ? try parseFromList() : []
        let filter = accept(.where) ? try parseExpression() : nil
        return Delete(with: with, table: table, using: using, filter: filter, returning: try parseReturning())
    }

    mutating func parseTruncate() throws(SQLError) -> Statement {
        try expect(.truncate)
        _ = accept(.table)
        let tables = try commaSeparated { parser throws(SQLError) in try parser.parseObjectName() }
        let cascade = accept(.cascade)
        if !cascade { _ = accept(.restrict) }
        return .truncate(Truncate(tables: tables, cascade: cascade))
    }

    // MARK: COPY

    mutating func parseCopy() throws(SQLError) -> Statement {
        try expect(.copy)
        let subject: Copy.Subject
        if accept(.leftParenthesis) {
            subject = .query(try parseQuery())
            try expect(.rightParenthesis)
        } else {
            let table = try parseObjectName()
            subject = .table(table, columns: try parseOptionalColumnList())
        }
        let isFrom = isNext(.from)
        if isFrom, case .query = subject { throw syntaxError(expecting: "TO") }
        guard accept(.from) || accept(.to) else { throw syntaxError(expecting: "FROM or TO") }
        let endpoint: Copy.Endpoint
        if accept(.stdin) {
            endpoint = .stdin
        } else if accept(.stdout) {
            endpoint = .stdout
        } else {
            endpoint = .file(try parseString())
        }
        return .copy(Copy(subject: subject, isFrom: isFrom, endpoint: endpoint, options: try parseCopyOptions()))
    }

    /// `WITH (FORMAT csv, HEADER)`, or the older `[WITH] CSV HEADER DELIMITER ','`.
    private mutating func parseCopyOptions() throws(SQLError) -> [WithOption] {
        _ = accept(.with)
        if kind == .leftParenthesis { return try parseOptionList() }
        var options: [WithOption] = []
        while Self.isLabel(token) {
            let start = start
            let word = try parseLabel().name
            let isFormat = word == "csv" || word == "binary"
            var option = WithOption(
                key: isFormat ? "format" : word, isKeyQuoted: false, value: isFormat ? .word(word) : nil, span: span(from: start))
            if !isFormat {
                _ = accept(.as)
                if isString { option.value = .string(try parseString()) }
            }
            option.span = span(from: start)
            options.append(option)
        }
        return options
    }
}
