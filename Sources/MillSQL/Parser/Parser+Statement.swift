import MillBase

/// Which statement begins here.
extension Parser {
    mutating func parseStatement() throws(SQLError) -> Statement {
        let outer = try enter(Self.queryDepth)
        let first = index
        let statement: Statement
        do throws(SQLError) { statement = try parseAnyStatement() } catch {
            throw error.sqlState == .syntaxError ? refusal(ofStatementAt: first) ?? error : error
        }
        try leave(outer, Self.queryDepth)
        return statement
    }

    private mutating func parseAnyStatement() throws(SQLError) -> Statement {
        guard let keyword else {
            guard kind == .leftParenthesis else { throw syntaxError() }
            return .query(try parseQuery())
        }
        switch keyword {
        case .select, .values, .table: return .query(try parseQuery())
        case .with: return try parseWithStatement()
        case .insert: return .insert(try parseInsert(with: nil))
        case .update: return .update(try parseUpdate(with: nil))
        case .delete: return .delete(try parseDelete(with: nil))
        case .truncate: return try parseTruncate()
        case .copy: return try parseCopy()
        case .create: return try parseCreate()
        case .drop: return try parseDrop()
        case .alter: return try parseAlter()
        case .comment: return try parseComment()
        default: return try parseSessionStatement(keyword)
        }
    }

    /// Statements that define and change nothing in the catalog.
    private mutating func parseSessionStatement(_ keyword: Keyword) throws(SQLError) -> Statement {
        switch keyword {
        case .show: return try parseShow()
        case .describe, .desc: return try parseDescribe()
        case .set: return try parseSet()
        case .reset: return try parseReset()
        case .explain: return try parseExplain()
        case .begin, .start, .commit, .end, .rollback, .abort, .savepoint, .release: return try parseTransaction(keyword)
        case .declare, .fetch, .move, .close: return try parseCursor(keyword)
        case .prepare, .execute, .deallocate: return try parsePrepared(keyword)
        case .discard: return try parseDiscard()
        case .flush:
            advance()
            return .flush
        case .wait:
            advance()
            return .wait
        case .cancel: return try parseCancel()
        case .pause, .resume, .rebuild: return try parseJobControl(keyword)
        case .replay: return try parseReplay()
        default: throw syntaxError()
        }
    }

    /// WITH in front of a query or of a change to data.
    private mutating func parseWithStatement() throws(SQLError) -> Statement {
        let start = start
        let with = try parseWith()
        switch keyword {
        case .insert: return .insert(try parseInsert(with: with))
        case .update: return .update(try parseUpdate(with: with))
        case .delete: return .delete(try parseDelete(with: with))
        default: return .query(try parseQuery(with: with, from: start))
        }
    }

    /// The kind of object that the next words name.
    /// - Parameter expected: those that the statement takes, as its hint names them.
    mutating func parseObjectKind(
        expecting expected: String = "TABLE, SOURCE, VIEW, MATERIALIZED VIEW or another kind of object"
    ) throws(SQLError) -> ObjectKind {
        if accept(.materialized, .view) { return .materializedView }
        let kind: ObjectKind
        switch keyword {
        case .table: kind = .table
        case .source: kind = .source
        case .view: kind = .view
        case .sink: kind = .sink
        case .index: kind = .index
        case .schema: kind = .schema
        case .database: kind = .database
        case .catalog: kind = .catalog
        case .connection: kind = .connection
        case .secret: kind = .secret
        case .function: kind = .function
        default: throw syntaxError(expecting: expected)
        }
        advance()
        return kind
    }
}
