package import MillBase

/// Turns a text into statements by recursive descent, with precedence climbing for expressions and set operations.
///
/// The wire, the shell and file runners feed it; the binder and the printer consume the trees. Parsing is linear in the
/// text: no production backtracks over more than one type name.
///
/// No text can exhaust a thread's stack. Two bounds hold, both refused with 54001: productions nest at most
/// `Limits.nestingDepthMax` deep (a query counts for `queryDepth` levels, its frames being larger), and no node of the
/// result is higher than `heightMax`, which bounds what loops build without recursion: chains of left-associative
/// operators, joins and set operations. So a recursive walk over a tree needs no bound of its own. A release build parses,
/// prints, compares and frees the worst accepted text on a stack of 2 MiB, a debug build on 8 MiB; tests hold this.
package struct Parser {
    /// Levels of the highest tree. AND and OR are flat lists and do not count by their length.
    package static let heightMax = 400
    /// What a query inside another counts towards the nesting limit.
    static let queryDepth = 4

    // Mutable only because `>>` may have to be split where a type closes two brackets.
    var tokens: [Token]
    let bytes: [UInt8]
    let dialect: Dialect
    let lexicalFailure: SQLError?
    /// The next token.
    var index = 0
    /// Levels of nesting that are open.
    var depth = 0
    /// The height of the highest tree that was completed inside the production that is being parsed.
    var height = 0

    init(_ bytes: [UInt8], dialect: Dialect) throws(SQLError) {
        let lexer = try Lexer(bytes, dialect: dialect)
        tokens = lexer.tokens
        lexicalFailure = lexer.failure
        self.bytes = bytes
        self.dialect = dialect
    }

    // MARK: Entry points

    /// Every statement of a text that may hold several, separated by semicolons. Empty ones are skipped, so the result may be
    /// empty.
    ///
    /// - Throws: 42601 with the position of the offending token, 22021 for bytes that are not text, 54001 for nesting, 42622.
    package static func parseStatements(_ text: String, dialect: Dialect = .postgres) throws(SQLError) -> [ParsedStatement] {
        try parseStatements(utf8: Array(text.utf8), dialect: dialect)
    }

    /// The same for bytes that are not known to be UTF-8.
    package static func parseStatements(utf8 bytes: [UInt8], dialect: Dialect = .postgres) throws(SQLError) -> [ParsedStatement] {
        var parser = try Parser(bytes, dialect: dialect)
        var statements: [ParsedStatement] = []
        while true {
            while parser.accept(.semicolon) {}
            if parser.kind == .endOfText { return statements }
            let first = parser.index
            let statement = try parser.parseStatement()
            guard parser.kind == .semicolon || parser.kind == .endOfText else { throw parser.syntaxError() }
            let span = SourceSpan(Int(parser.tokens[first].start), parser.previousEnd)
            statements.append(
                ParsedStatement(statement: statement, span: span, text: String(decoding: bytes[span.start..<span.end], as: UTF8.self)))
        }
    }

    /// Exactly one statement, with or without a semicolon behind it.
    ///
    /// - Throws: as `parseStatements`; 42601 too for none or for several.
    package static func parseStatement(_ text: String, dialect: Dialect = .postgres) throws(SQLError) -> Statement {
        let statements = try parseStatements(text, dialect: dialect)
        guard let only = statements.first else { throw SQLError(.syntaxError, "syntax error at end of input") }
        guard statements.count == 1 else {
            throw SQLError(.syntaxError, "cannot insert multiple commands into a prepared statement", at: statements[1].span)
        }
        return only.statement
    }

    /// A lone scalar expression, as option values and stored column definitions hold it.
    package static func parseExpression(_ text: String, dialect: Dialect = .postgres) throws(SQLError) -> Expression {
        var parser = try Parser(Array(text.utf8), dialect: dialect)
        let expression = try parser.parseExpression()
        guard parser.kind == .endOfText else { throw parser.syntaxError() }
        return expression
    }

    /// A lone type name.
    package static func parseTypeName(_ text: String, dialect: Dialect = .postgres) throws(SQLError) -> TypeName {
        var parser = try Parser(Array(text.utf8), dialect: dialect)
        let type = try parser.parseTypeName()
        guard parser.kind == .endOfText else { throw parser.syntaxError() }
        return type
    }
}

// MARK: - Tokens

extension Parser {
    var token: Token { tokens[index] }

    var kind: Token.Kind { tokens[index].kind }

    /// The keyword of the next token; nil for anything else, a quoted identifier too.
    var keyword: Keyword? { tokens[index].keyword }

    /// The token `offset` further on, the last one behind the end.
    func ahead(_ offset: Int) -> Token { tokens[min(index + offset, tokens.count - 1)] }

    /// Where the token before the next one ends.
    var previousEnd: Int { index == 0 ? 0 : Int(tokens[index - 1].end) }

    var start: Int { Int(tokens[index].start) }

    /// From `start` to the end of the last token taken.
    func span(from start: Int) -> NodeSpan { NodeSpan(start, max(start, previousEnd)) }

    mutating func advance() {
        if index < tokens.count - 1 { index += 1 }
    }

    mutating func accept(_ kind: Token.Kind) -> Bool {
        guard tokens[index].kind == kind else { return false }
        advance()
        return true
    }

    mutating func accept(_ keyword: Keyword) -> Bool {
        guard tokens[index].keyword == keyword else { return false }
        advance()
        return true
    }

    /// All of the words in this order, or nothing.
    mutating func accept(_ first: Keyword, _ rest: Keyword...) -> Bool {
        guard isNext(first) else { return false }
        for (offset, keyword) in rest.enumerated() where ahead(offset + 1).keyword != keyword { return false }
        for _ in 0...rest.count { advance() }
        return true
    }

    func isNext(_ keyword: Keyword) -> Bool { tokens[index].keyword == keyword }

    mutating func expect(_ kind: Token.Kind) throws(SQLError) {
        guard accept(kind) else { throw syntaxError() }
    }

    mutating func expect(_ keyword: Keyword, _ rest: Keyword...) throws(SQLError) {
        guard accept(keyword) else { throw syntaxError(expecting: keyword.upper) }
        for keyword in rest {
            guard accept(keyword) else { throw syntaxError(expecting: keyword.upper) }
        }
    }

    /// The operator of the next token, if it is one.
    func isSymbol(_ symbol: StaticString) -> Bool {
        let token = tokens[index]
        guard token.kind == .symbol, Int(token.end - token.start) == symbol.utf8CodeUnitCount else { return false }
        for offset in 0..<symbol.utf8CodeUnitCount where bytes[Int(token.start) + offset] != symbol.utf8Start[offset] { return false }
        return true
    }

    mutating func acceptSymbol(_ symbol: StaticString) -> Bool {
        guard isSymbol(symbol) else { return false }
        advance()
        return true
    }

    mutating func expectSymbol(_ symbol: StaticString) throws(SQLError) {
        guard acceptSymbol(symbol) else { throw syntaxError(expecting: "\(symbol)") }
    }

    func text(of token: Token) -> String {
        String(decoding: bytes[Int(token.start)..<Int(token.end)], as: UTF8.self)
    }

    /// The error that the next token is not what the grammar allows here, in PostgreSQL's words.
    func syntaxError(expecting expected: String? = nil) -> SQLError {
        let token = tokens[index]
        let hint = expected.map { "\($0) is expected here." }
        switch token.kind {
        case .invalid: return lexicalFailure ?? SQLError(.syntaxError, "syntax error", at: token.span)
        case .endOfText: return SQLError(.syntaxError, "syntax error at end of input", hint: hint, at: token.span)
        default: return SQLError(.syntaxError, "syntax error at or near \"\(text(of: token))\"", hint: hint, at: token.span)
        }
    }
}

// MARK: - Bounds

extension Parser {
    /// Opens a level of nesting; the result goes to `leave`.
    mutating func enter(_ levels: Int = 1) throws(SQLError) -> Int {
        depth += levels
        guard depth <= Limits.nestingDepthMax else {
            throw SQLError(
                .statementTooComplex, "statement is nested too deeply",
                hint: "At most \(Limits.nestingDepthMax) levels of parentheses, queries and prefix operators are accepted.", at: token.span)
        }
        let outer = height
        height = 0
        return outer
    }

    /// Closes the level: what it built is one higher than its highest part.
    mutating func leave(_ outer: Int, _ levels: Int = 1) throws(SQLError) {
        depth -= levels
        try grow()
        height = max(outer, height)
    }

    /// A node was put on top of everything that this level has built so far.
    mutating func grow() throws(SQLError) {
        height += 1
        guard height <= Self.heightMax else {
            throw SQLError(
                .statementTooComplex, "expression is too complex",
                hint: "A chain of operators, joins or set operations has at most about \(Self.heightMax) links.", at: token.span)
        }
    }

    /// Where to go back to when a short look ahead did not work out.
    struct Mark {
        var index: Int
        var depth: Int
        var height: Int
    }

    var mark: Mark { Mark(index: index, depth: depth, height: height) }

    mutating func rewind(to mark: Mark) {
        index = mark.index
        depth = mark.depth
        height = mark.height
    }
}

// MARK: - Lists

extension Parser {
    /// One item or more, separated by commas.
    mutating func commaSeparated<Item>(_ item: (inout Parser) throws(SQLError) -> Item) throws(SQLError) -> [Item] {
        var items = [try item(&self)]
        while accept(.comma) { items.append(try item(&self)) }
        return items
    }

    /// The same in parentheses.
    mutating func parenthesized<Item>(_ item: (inout Parser) throws(SQLError) -> Item) throws(SQLError) -> [Item] {
        try expect(.leftParenthesis)
        let items = try commaSeparated(item)
        try expect(.rightParenthesis)
        return items
    }
}
