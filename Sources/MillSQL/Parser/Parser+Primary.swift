import MillBase

/// Operands: constants, names, parentheses, CASE, constructors, and what may be attached to them without an operator.
extension Parser {
    /// An operand with its subscripts and field selections.
    mutating func parsePrimary() throws(SQLError) -> Expression {
        let start = start
        let base = try parseBase()
        return try parseIndirections(base, from: start)
    }

    private mutating func parseBase() throws(SQLError) -> Expression {
        let start = start
        switch kind {
        case .integer, .decimal: return Expression(.literal(.number(try parseNumber())), span(from: start))
        case .string, .escapeString, .unicodeString, .dollarString:
            return Expression(.literal(.string(try parseString())), span(from: start))
        case .bits: return Expression(.literal(.bits(try parseBits())), span(from: start))
        case .hexBits: return Expression(.literal(.hexBits(try parseBits())), span(from: start))
        case .parameter: return try parseParameter()
        case .leftParenthesis: return try parseParenthesizedExpression()
        case .quotedIdentifier, .unicodeIdentifier: return try parseNamed()
        case .word:
            guard let keyword else { return try parseNamed() }
            return try parseWord(keyword)
        default: throw syntaxError()
        }
    }

    private mutating func parseParameter() throws(SQLError) -> Expression {
        let token = token
        guard let number = Int(text(of: token).dropFirst()), number >= 1, number <= Self.parameterMax else {
            throw SQLError(.undefinedParameter, "there is no parameter \(text(of: token))", at: token.span)
        }
        advance()
        return Expression(.parameter(number), NodeSpan(token.span))
    }

    /// What the wire can number.
    private static let parameterMax = 65535

    private mutating func literal(_ literal: Literal) -> Expression {
        let span = NodeSpan(token.span)
        advance()
        return Expression(.literal(literal), span)
    }

    /// A primary that begins with a keyword.
    private mutating func parseWord(_ keyword: Keyword) throws(SQLError) -> Expression {
        switch keyword {
        case .null: return literal(.null)
        case .true: return literal(.boolean(true))
        case .false: return literal(.boolean(false))
        case .case: return try parseCase()
        case .cast, .tryCast: return try parseCast(keyword)
        case .array: return try parseArray()
        case .exists where ahead(1).kind == .leftParenthesis: return try parseExists()
        case .row where ahead(1).kind == .leftParenthesis: return try parseRow()
        case .interval: return try parseInterval()
        case .map where ahead(1).kind == .leftBrace: return try parseMapConstructor()
        case .currentDate, .currentTime, .currentTimestamp, .localtime, .localtimestamp, .currentUser, .currentRole, .sessionUser, .user,
            .currentCatalog:
            return try parseKeywordCall(keyword)
        case .currentSchema where ahead(1).kind != .leftParenthesis: return try parseKeywordCall(keyword)
        case .extract, .position, .substring, .overlay, .trim:
            if ahead(1).kind == .leftParenthesis { return try parseSpecialCall(keyword) }
        case .coalesce, .nullif, .greatest, .least, .grouping:
            if ahead(1).kind == .leftParenthesis { return try parseCall(try parseDottedName()) }
        default: break
        }
        if keyword.isTypeWord || keyword == .double, let constant = try parseTypedConstant() { return constant }
        return try parseNamed()
    }

    /// A type that the grammar knows in front of a string; nil, and nothing taken, if it is something else.
    private mutating func parseTypedConstant() throws(SQLError) -> Expression? {
        let mark = mark
        let start = start
        // Whatever fails here is read again as a name, and reported as that.
        guard let type = try? parseSimpleType(), isString else {
            rewind(to: mark)
            return nil
        }
        let typeSpan = span(from: start)
        let text = try parseString()
        return Expression(.typedLiteral(TypeName(type, typeSpan), text), span(from: start))
    }

    /// A column, a call, or a type's name in front of a string.
    private mutating func parseNamed() throws(SQLError) -> Expression {
        let start = start
        guard Self.isColumnName(token) || Self.isFunctionName(token) else { throw syntaxError() }
        let first = token
        let name = try parseDottedName()
        if kind == .leftParenthesis {
            if hasModifiersAndString {
                let type = TypeName(.named(name, modifiers: try parseModifiers()), span(from: start))
                return Expression(.typedLiteral(type, try parseString()), span(from: start))
            }
            if name.parts.count == 1, !Self.isFunctionName(first) { throw syntaxError() }
            return try parseCall(name)
        }
        if isString, name.parts.count > 1 || Self.isFunctionName(first) {
            let type = TypeName(.named(name, modifiers: []), name.span)
            return Expression(.typedLiteral(type, try parseString()), span(from: start))
        }
        guard Self.isColumnName(first) else { throw syntaxError() }
        return Expression(.column(name), name.span)
    }

    /// `(3) '...'` behind the name of a type.
    private var hasModifiersAndString: Bool {
        var offset = 1
        while ahead(offset).kind == .integer {
            offset += 1
            guard ahead(offset).kind == .comma else { break }
            offset += 1
        }
        return offset > 1 && ahead(offset).kind == .rightParenthesis && Self.isString(ahead(offset + 1))
    }

    /// `INTERVAL '...'` with its fields, or a column of that name.
    private mutating func parseInterval() throws(SQLError) -> Expression {
        let start = start
        let mark = mark
        advance()
        if isString {
            let text = try parseString()
            let fields = kind == .leftParenthesis ? nil : try parseIntervalFields()
            return Expression(.interval(text, fields), span(from: start))
        }
        if kind == .leftParenthesis, ahead(1).kind == .integer, ahead(2).kind == .rightParenthesis {
            let fields = try parseIntervalFields()
            if isString { return Expression(.interval(try parseString(), fields), span(from: start)) }
        }
        rewind(to: mark)
        return try parseNamed()
    }

    // MARK: Parentheses

    enum Parenthesized {
        case query(Query)
        /// One item or more.
        case list([Expression])
    }

    private mutating func parseParenthesizedExpression() throws(SQLError) -> Expression {
        let start = start
        switch try parseParenthesized() {
        case .query(let query): return Expression(.subquery(query), span(from: start))
        case .list(let items):
            return items.count == 1 ? Expression(items[0].kind, items[0].span) : Expression(.row(items), span(from: start))
        }
    }

    /// `(query)` or `(expression, ...)`. `((SELECT ...` may begin either: decided by what follows the inner parentheses,
    /// without going back.
    mutating func parseParenthesized() throws(SQLError) -> Parenthesized {
        let outer = try enter()
        try expect(.leftParenthesis)
        let result: Parenthesized
        if beginsQuery() {
            result = .query(try parseQuery())
        } else if kind == .leftParenthesis {
            result = try parseDoublyParenthesized()
        } else {
            result = .list(try parseExpressionList())
        }
        try expect(.rightParenthesis)
        try leave(outer)
        return result
    }

    private mutating func parseDoublyParenthesized() throws(SQLError) -> Parenthesized {
        let start = start
        let first: Expression
        switch try parseParenthesized() {
        case .query(let query):
            if kind == .rightParenthesis { return .query(query) }
            if continuesQuery { return .query(try finishQuery(with: nil, body: Self.term(query), from: start)) }
            first = Expression(.subquery(query), span(from: start))
        case .list(let items): first = items.count == 1 ? items[0] : Expression(.row(items), span(from: start))
        }
        let primary = try parseIndirections(first, from: start)
        let operand = try parseCasts(primary, from: start)
        var items = [try parseOperators(operand, from: start, minimum: Precedence.or)]
        while accept(.comma) { items.append(try parseExpression()) }
        return .list(items)
    }

    mutating func parseExpressionList() throws(SQLError) -> [Expression] {
        var items = [try parseExpression()]
        while accept(.comma) { items.append(try parseExpression()) }
        return items
    }

    /// `[i]`, `[i:j]`, `.field`.
    private mutating func parseIndirections(_ first: Expression, from start: Int) throws(SQLError) -> Expression {
        var expression = first
        while true {
            if kind == .leftBracket {
                expression = try parseSubscript(expression, from: start)
            } else if kind == .dot, Self.isLabel(ahead(1)) {
                advance()
                expression = Expression(.field(expression, try parseLabel()), span(from: start))
            } else {
                return expression
            }
            try grow()
        }
    }

    private mutating func parseSubscript(_ base: Expression, from start: Int) throws(SQLError) -> Expression {
        advance()
        let from = kind == .colon ? nil : try parseExpression()
        guard accept(.colon) else {
            try expect(.rightBracket)
            guard let from else { throw syntaxError() }
            return Expression(.element(base, at: from), span(from: start))
        }
        let to = kind == .rightBracket ? nil : try parseExpression()
        try expect(.rightBracket)
        return Expression(.slice(base, from: from, to: to), span(from: start))
    }

    // MARK: CASE, CAST, EXISTS, constructors

    private mutating func parseCase() throws(SQLError) -> Expression {
        let start = start
        advance()
        let operand = isNext(.when) ? nil : try parseExpression()
        var branches: [Case.Branch] = []
        repeat {
            try expect(.when)
            let condition = try parseExpression()
            try expect(.then)
            branches.append(Case.Branch(condition: condition, result: try parseExpression()))
        } while isNext(.when)
        let otherwise = accept(.else) ? try parseExpression() : nil
        try expect(.end)
        return Expression(.caseWhen(Case(operand: operand, branches: branches, otherwise: otherwise)), span(from: start))
    }

    private mutating func parseCast(_ keyword: Keyword) throws(SQLError) -> Expression {
        let start = start
        if keyword == .tryCast, ahead(1).kind != .leftParenthesis { return try parseNamed() }
        advance()
        try expect(.leftParenthesis)
        let operand = try parseExpression()
        try expect(.as)
        let type = try parseTypeName()
        try expect(.rightParenthesis)
        return Expression(keyword == .cast ? .cast(operand, type) : .tryCast(operand, type), span(from: start))
    }

    private mutating func parseExists() throws(SQLError) -> Expression {
        let start = start
        advance()
        let inside = token
        guard case .query(let query) = try parseParenthesized() else {
            throw SQLError(.syntaxError, "syntax error at or near \"\(text(of: inside))\"", hint: "EXISTS takes a query.", at: inside.span)
        }
        return Expression(.exists(query), span(from: start))
    }

    private mutating func parseRow() throws(SQLError) -> Expression {
        let start = start
        advance()
        advance()
        let items = kind == .rightParenthesis ? [] : try parseExpressionList()
        try expect(.rightParenthesis)
        return Expression(.row(items), span(from: start))
    }

    private mutating func parseArray() throws(SQLError) -> Expression {
        let start = start
        advance()
        if kind == .leftParenthesis {
            let inside = token
            guard case .query(let query) = try parseParenthesized() else {
                throw SQLError(.syntaxError, "syntax error at or near \"\(text(of: inside))\"", hint: "ARRAY(...) takes a query.", at: inside.span)
            }
            return Expression(.arrayQuery(query), span(from: start))
        }
        return Expression(.array(try parseArrayElements()), span(from: start))
    }

    /// `[a, b]`; brackets directly inside are nested arrays.
    private mutating func parseArrayElements() throws(SQLError) -> [Expression] {
        let outer = try enter()
        try expect(.leftBracket)
        var elements: [Expression] = []
        if kind != .rightBracket {
            repeat {
                if kind == .leftBracket {
                    let start = start
                    elements.append(Expression(.array(try parseArrayElements()), span(from: start)))
                } else {
                    elements.append(try parseExpression())
                }
            } while accept(.comma)
        }
        try expect(.rightBracket)
        try leave(outer)
        return elements
    }

    private mutating func parseMapConstructor() throws(SQLError) -> Expression {
        let start = start
        advance()
        advance()
        var entries: [MapEntry] = []
        if kind != .rightBrace {
            repeat {
                let key = try parseExpression()
                try expect(.colon)
                entries.append(MapEntry(key: key, value: try parseExpression()))
            } while accept(.comma)
        }
        try expect(.rightBrace)
        return Expression(.map(entries), span(from: start))
    }
}
