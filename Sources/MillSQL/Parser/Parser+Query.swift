import MillBase

/// Queries: WITH, set operations, VALUES, ORDER BY, LIMIT.
extension Parser {
    /// Whether the token at `offset` can only begin a query.
    func beginsQuery(at offset: Int = 0) -> Bool {
        switch ahead(offset).keyword {
        case .select, .with, .table: true
        case .values: ahead(offset + 1).kind == .leftParenthesis
        default: false
        }
    }

    /// A query, in parentheses or not.
    mutating func parseQuery() throws(SQLError) -> Query {
        let start = start
        return try parseQuery(with: isNext(.with) ? try parseWith() : nil, from: start)
    }

    /// A query whose WITH has been read.
    mutating func parseQuery(with: WithClause?, from start: Int) throws(SQLError) -> Query {
        let outer = try enter(Self.queryDepth)
        let first = try parseQueryTerm()
        let query = try finishQuery(with: with, body: first, from: start)
        try leave(outer, Self.queryDepth)
        return query
    }

    /// What may follow the first term of a query: set operations, ORDER BY, LIMIT.
    mutating func finishQuery(with: WithClause?, body: QueryBody, from start: Int) throws(SQLError) -> Query {
        let body = try parseSetOperations(body, from: start, minimum: 1)
        var query = Query(with: with, body: body, span: NodeSpan(start, start))
        if accept(.order, .by) { query.orderBy = try parseOrderItems() }
        try parseLimits(&query)
        query.span = span(from: start)
        // Parentheses around a query that adds nothing to them leave no node.
        if with == nil, query.orderBy.isEmpty, query.limit == nil, query.offset == nil, case .nested(let inner) = query.body { return inner }
        return query
    }

    /// True where the next token continues a query whose first term is complete.
    var continuesQuery: Bool {
        switch keyword {
        case .union, .intersect, .except, .order, .limit, .offset, .fetch: true
        default: false
        }
    }

    /// A parenthesised query as a term of a larger one.
    static func term(_ query: Query) -> QueryBody {
        let isPlain = query.with == nil && query.orderBy.isEmpty && query.limit == nil && query.offset == nil
        return isPlain ? query.body : .nested(query)
    }

    private mutating func parseQueryTerm() throws(SQLError) -> QueryBody {
        switch keyword {
        case .select: return .select(try parseSelect())
        case .values: return try parseValues()
        case .table:
            advance()
            return .table(try parseObjectName())
        default:
            guard accept(.leftParenthesis) else { throw syntaxError(expecting: "a query") }
            let query = try parseQuery()
            try expect(.rightParenthesis)
            return Self.term(query)
        }
    }

    /// Precedence climbing: INTERSECT (2) before UNION and EXCEPT (1), all left-associative.
    private mutating func parseSetOperations(_ first: QueryBody, from start: Int, minimum: Int) throws(SQLError) -> QueryBody {
        var left = first
        while true {
            let kind: SetOperation.Kind
            switch keyword {
            case .union: kind = .union
            case .except: kind = .except
            case .intersect: kind = .intersect
            default: return left
            }
            let precedence = kind == .intersect ? 2 : 1
            guard precedence >= minimum else { return left }
            advance()
            let isAll = accept(.all)
            if !isAll { _ = accept(.distinct) }
            let rightStart = self.start
            let term = try parseQueryTerm()
            let right = try parseSetOperations(term, from: rightStart, minimum: precedence + 1)
            try grow()
            left = .setOperation(SetOperation(kind: kind, isAll: isAll, left: left, right: right, span: span(from: start)))
        }
    }

    private mutating func parseValues() throws(SQLError) -> QueryBody {
        let start = start
        try expect(.values)
        var rows: [[Expression]] = []
        repeat {
            try expect(.leftParenthesis)
            var row: [Expression] = []
            repeat { row.append(try parseExpressionOrDefault()) } while accept(.comma)
            try expect(.rightParenthesis)
            rows.append(row)
        } while accept(.comma)
        return .values(rows, span(from: start))
    }

    /// DEFAULT is accepted here for INSERT; `parseValues` is shared, so the binder refuses it in other VALUES.
    mutating func parseExpressionOrDefault() throws(SQLError) -> Expression {
        guard isNext(.default) else { return try parseExpression() }
        let start = start
        advance()
        return Expression(.defaultValue, span(from: start))
    }

    mutating func parseWith() throws(SQLError) -> WithClause {
        let start = start
        try expect(.with)
        let isRecursive = accept(.recursive)
        let tables = try commaSeparated { parser throws(SQLError) in try parser.parseCommonTable() }
        return WithClause(isRecursive: isRecursive, tables: tables, span: span(from: start))
    }

    private mutating func parseCommonTable() throws(SQLError) -> CommonTable {
        let outer = try enter()
        let name = try parseIdentifier()
        let columns = try parseOptionalColumnList()
        try expect(.as)
        var materialized: Bool?
        if accept(.materialized) {
            materialized = true
        } else if accept(.not, .materialized) {
            materialized = false
        }
        try expect(.leftParenthesis)
        let query = try parseQuery()
        try expect(.rightParenthesis)
        try leave(outer)
        return CommonTable(name: name, columns: columns, materialized: materialized, query: query)
    }

    // MARK: ORDER BY, LIMIT, OFFSET, FETCH

    mutating func parseOrderItems() throws(SQLError) -> [OrderItem] {
        try commaSeparated { parser throws(SQLError) in try parser.parseOrderItem() }
    }

    mutating func parseOrderItem() throws(SQLError) -> OrderItem {
        var item = OrderItem(expression: try parseExpression(), isDescending: false, nullsFirst: nil)
        if accept(.desc) { item.isDescending = true } else { _ = accept(.asc) }
        if accept(.nulls) {
            if accept(.first) {
                item.nullsFirst = true
            } else {
                try expect(.last)
                item.nullsFirst = false
            }
        }
        return item
    }

    /// LIMIT and OFFSET in either order, each at most once.
    private mutating func parseLimits(_ query: inout Query) throws(SQLError) {
        var hasLimit = false
        var hasOffset = false
        while true {
            if isNext(.limit) {
                guard !hasLimit else { throw duplicate("LIMIT") }
                hasLimit = true
                advance()
                if !accept(.all) { query.limit = try parseExpression() }
            } else if isNext(.offset) {
                guard !hasOffset else { throw duplicate("OFFSET") }
                hasOffset = true
                advance()
                query.offset = try parseExpression()
                if !accept(.row) { _ = accept(.rows) }
            } else if isNext(.fetch) {
                guard !hasLimit else { throw duplicate("LIMIT") }
                hasLimit = true
                try parseFetchFirst(&query)
            } else {
                return
            }
        }
    }

    private func duplicate(_ clause: String) -> SQLError {
        SQLError(.syntaxError, "multiple \(clause) clauses not allowed", at: token.span)
    }

    /// `FETCH {FIRST | NEXT} [count] {ROW | ROWS} {ONLY | WITH TIES}`.
    private mutating func parseFetchFirst(_ query: inout Query) throws(SQLError) {
        let start = start
        advance()
        guard accept(.first) || accept(.next) else { throw syntaxError(expecting: "FIRST") }
        if isNext(.row) || isNext(.rows) {
            query.limit = Expression(.literal(.number("1")), span(from: start))
        } else {
            query.limit = try parsePrimary()
        }
        guard accept(.row) || accept(.rows) else { throw syntaxError(expecting: "ROWS") }
        if accept(.with) {
            try expect(.ties)
            query.withTies = true
        } else {
            try expect(.only)
        }
    }
}
