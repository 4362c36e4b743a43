import MillBase

/// FROM: relations, table functions, derived tables and joins.
extension Parser {
    mutating func parseFromList() throws(SQLError) -> [TableReference] {
        try commaSeparated { parser throws(SQLError) in try parser.parseTableReference() }
    }

    mutating func parseTableReference() throws(SQLError) -> TableReference {
        let start = start
        let outer = try enter(2)
        let first = try parseTableFactor()
        let table = try parseJoins(first, from: start)
        try leave(outer, 2)
        return table
    }

    // MARK: Joins

    /// Every join that follows, left-associative.
    private mutating func parseJoins(_ first: TableReference, from start: Int) throws(SQLError) -> TableReference {
        var left = first
        while let opening = try parseJoinOpening() {
            let right = try parseTableFactor()
            var condition = Join.Condition.none
            if opening.isNatural {
                condition = .natural
            } else if opening.kind != .cross {
                if isNext(.on) || isNext(.using) {
                    condition = try parseJoinCondition()
                } else {
                    // `a JOIN b JOIN c ON ... ON ...`: the inner join comes first.
                    let outer = try enter(2)
                    let nested = try parseNestedJoin(right)
                    try leave(outer, 2)
                    try grow()
                    left = .join(
                        Join(
                            kind: opening.kind, isAsOf: opening.isAsOf, left: left, right: nested, condition: try parseJoinCondition(),
                            span: span(from: start)))
                    continue
                }
            }
            try grow()
            left = .join(
                Join(kind: opening.kind, isAsOf: opening.isAsOf, left: left, right: right, condition: condition, span: span(from: start)))
        }
        return left
    }

    /// Joins onto `first` until an ON or USING is left over for the join in front of it.
    private mutating func parseNestedJoin(_ first: TableReference) throws(SQLError) -> TableReference {
        let start = first.span.source.start
        var left = first
        while !isNext(.on), !isNext(.using) {
            guard let opening = try parseJoinOpening() else { throw syntaxError(expecting: "ON") }
            var right = try parseTableFactor()
            var condition = Join.Condition.none
            if opening.isNatural {
                condition = .natural
            } else if opening.kind != .cross {
                if !isNext(.on), !isNext(.using) {
                    let outer = try enter(2)
                    right = try parseNestedJoin(right)
                    try leave(outer, 2)
                }
                condition = try parseJoinCondition()
            }
            try grow()
            left = .join(
                Join(kind: opening.kind, isAsOf: opening.isAsOf, left: left, right: right, condition: condition, span: span(from: start)))
        }
        return left
    }

    private struct JoinOpening {
        var kind: Join.Kind
        var isNatural: Bool
        var isAsOf: Bool
    }

    private mutating func parseJoinOpening() throws(SQLError) -> JoinOpening? {
        if accept(.cross) {
            try expect(.join)
            return JoinOpening(kind: .cross, isNatural: false, isAsOf: false)
        }
        let isAsOf = isNext(.asof) && beginsAsOfJoin
        let isNatural = !isAsOf && isNext(.natural)
        if isAsOf || isNatural { advance() }
        let kind: Join.Kind
        switch keyword {
        case .join:
            advance()
            return JoinOpening(kind: .inner, isNatural: isNatural, isAsOf: isAsOf)
        case .inner: kind = .inner
        case .left: kind = .left
        case .right: kind = .right
        case .full: kind = .full
        default:
            guard !isAsOf, !isNatural else { throw syntaxError(expecting: "JOIN") }
            return nil
        }
        advance()
        if kind != .inner { _ = accept(.outer) }
        try expect(.join)
        return JoinOpening(kind: kind, isNatural: isNatural, isAsOf: isAsOf)
    }

    private var beginsAsOfJoin: Bool {
        switch ahead(1).keyword {
        case .join, .inner, .left: true
        default: false
        }
    }

    private mutating func parseJoinCondition() throws(SQLError) -> Join.Condition {
        if accept(.on) { return .on(try parseExpression()) }
        guard accept(.using) else { throw syntaxError(expecting: "ON or USING") }
        let columns = try parseColumnList()
        return .using(columns, alias: accept(.as) ? try parseIdentifier() : nil)
    }

    // MARK: One relation

    private mutating func parseTableFactor() throws(SQLError) -> TableReference {
        let start = start
        let isLateral = accept(.lateral)
        if kind == .leftParenthesis {
            switch try parseParenthesizedTable() {
            case .query(let query):
                let alias = try parseTableAlias()
                return .subquery(DerivedTable(isLateral: isLateral, query: query, alias: alias, span: span(from: start)))
            case .table(let table):
                guard !isLateral else { throw syntaxError() }
                return table
            }
        }
        _ = accept(.only)
        if isNext(.table), ahead(1).kind == .leftParenthesis { return try parseWrappedTableFunction(isLateral: isLateral, from: start) }
        if isFunctionNext { return try parseTableFunction(isLateral: isLateral, from: start) }
        guard !isLateral else { throw syntaxError(expecting: "a subquery or a function") }
        let name = try parseObjectName()
        // `t *` is PostgreSQL's old spelling of "with the tables that inherit".
        _ = acceptSymbol("*")
        let version = try parseTableVersion()
        let alias = try parseTableAlias()
        return .table(NamedTable(name: name, version: version, alias: alias, span: span(from: start)))
    }

    /// `FOR {SYSTEM_TIME | TIMESTAMP | SYSTEM_VERSION | VERSION} AS OF expr`; nil if absent.
    private mutating func parseTableVersion() throws(SQLError) -> TableVersion? {
        if accept(.for, .systemTime) || accept(.for, .timestamp) {
            try expect(.as, .of)
            return .time(try parseExpression())
        }
        if accept(.for, .systemVersion) || accept(.for, .version) {
            try expect(.as, .of)
            return .version(try parseExpression())
        }
        return nil
    }

    private enum ParenthesizedTable {
        case query(Query)
        case table(TableReference)
    }

    /// `(query)`, `(a JOIN b ...)` or `((query) AS a JOIN b ...)`: decided by what follows the inner parentheses, without
    /// going back.
    private mutating func parseParenthesizedTable() throws(SQLError) -> ParenthesizedTable {
        let outer = try enter(2)
        let start = start
        try expect(.leftParenthesis)
        let inside = self.start
        var result: ParenthesizedTable
        if beginsQuery() {
            result = .query(try parseQuery())
        } else if kind == .leftParenthesis {
            result = try parseParenthesizedTable()
            if case .query(let query) = result {
                if continuesQuery {
                    result = .query(try finishQuery(with: nil, body: Self.term(query), from: inside))
                } else if kind != .rightParenthesis {
                    let alias = try parseTableAlias()
                    let derived = DerivedTable(isLateral: false, query: query, alias: alias, span: span(from: inside))
                    result = .table(try parseJoins(.subquery(derived), from: inside))
                }
            } else if case .table(let table) = result {
                result = .table(try parseJoins(table, from: inside))
            }
        } else {
            result = .table(try parseTableReference())
        }
        try expect(.rightParenthesis)
        if case .table(let table) = result {
            guard case .join = table else {
                throw SQLError(
                    .syntaxError, "syntax error at or near \")\"", hint: "Parentheses in FROM hold a query or a join.",
                    at: SourceSpan(previousEnd - 1, previousEnd))
            }
            if Self.isColumnName(token) || isNext(.as), beginsTableAlias {
                throw SQLError(.featureNotSupported, "an alias for a parenthesized join is not supported", at: SourceSpan(start, previousEnd))
            }
        }
        try leave(outer, 2)
        return result
    }

    private var isFunctionNext: Bool {
        guard Self.isFunctionName(token) || Self.isColumnName(token) else { return false }
        var offset = 1
        while ahead(offset).kind == .dot, Self.isLabel(ahead(offset + 1)) { offset += 2 }
        return ahead(offset).kind == .leftParenthesis
    }

    private mutating func parseTableFunction(isLateral: Bool, from start: Int) throws(SQLError) -> TableReference {
        try parseFunctionAlias(try parseTableCall(), isLateral: isLateral, from: start)
    }

    /// `TABLE(f(...))`: how Flink writes `f(...)`.
    private mutating func parseWrappedTableFunction(isLateral: Bool, from start: Int) throws(SQLError) -> TableReference {
        try expect(.table)
        try expect(.leftParenthesis)
        guard isFunctionNext else { throw syntaxError(expecting: "a function") }
        let call = try parseTableCall()
        try expect(.rightParenthesis)
        return try parseFunctionAlias(call, isLateral: isLateral, from: start)
    }

    private mutating func parseTableCall() throws(SQLError) -> FunctionCall {
        // Words that are not names of functions begin the standard's special forms.
        let expression = Self.isFunctionName(token) ? try parseCall(try parseDottedName(), takesTables: true) : try parsePrimary()
        guard case .call(let call) = expression.kind else {
            throw SQLError(.syntaxError, "syntax error at or near \"\(text(of: tokens[index - 1]))\"", at: expression.span.source)
        }
        return call
    }

    private mutating func parseFunctionAlias(_ call: FunctionCall, isLateral: Bool, from start: Int) throws(SQLError) -> TableReference {
        let withOrdinality = accept(.with, .ordinality)
        let alias = try parseTableAlias()
        return .function(
            TableFunction(isLateral: isLateral, call: call, withOrdinality: withOrdinality, alias: alias, span: span(from: start)))
    }

    /// A word that may name the relation before it. Clauses of Millrace that follow a FROM list begin with free words, which
    /// a table may not be called there without AS.
    private var beginsTableAlias: Bool {
        if isNext(.as) { return true }
        guard Self.isColumnName(token) else { return false }
        switch keyword {
        case .emit: return ahead(1).keyword != .on
        case .format: return ahead(2).keyword != .encode
        case .asof: return !beginsAsOfJoin
        default: return true
        }
    }

    mutating func parseTableAlias() throws(SQLError) -> TableAlias? {
        guard beginsTableAlias else { return nil }
        _ = accept(.as)
        let name = try parseIdentifier()
        return TableAlias(name: name, columns: try parseOptionalColumnList())
    }
}
