import MillBase

/// Transactions, cursors and prepared statements.
extension Parser {
    mutating func parseTransaction(_ keyword: Keyword) throws(SQLError) -> Statement {
        advance()
        switch keyword {
        case .start:
            try expect(.transaction)
            return .transaction(.begin(try parseTransactionModes()))
        case .begin:
            skipTransactionWord()
            return .transaction(.begin(try parseTransactionModes()))
        case .commit, .end:
            skipTransactionWord()
            return .transaction(.commit(andChain: try parseChain()))
        case .savepoint: return .transaction(.savepoint(try parseIdentifier()))
        case .release:
            _ = accept(.savepoint)
            return .transaction(.release(try parseIdentifier()))
        default:
            skipTransactionWord()
            if keyword == .rollback, accept(.to) {
                _ = accept(.savepoint)
                return .transaction(.rollbackTo(try parseIdentifier()))
            }
            return .transaction(.rollback(andChain: try parseChain()))
        }
    }

    private mutating func skipTransactionWord() {
        if !accept(.work) { _ = accept(.transaction) }
    }

    /// `AND [NO] CHAIN`.
    private mutating func parseChain() throws(SQLError) -> Bool {
        guard accept(.and) else { return false }
        let isNegated = accept(.no)
        try expect(.chain)
        return !isNegated
    }

    mutating func parseTransactionModes() throws(SQLError) -> [TransactionMode] {
        var modes: [TransactionMode] = []
        while true {
            if accept(.isolation) {
                try expect(.level)
                modes.append(.isolation(try parseIsolationLevel()))
            } else if accept(.read) {
                if accept(.only) {
                    modes.append(.readOnly)
                } else {
                    try expect(.write)
                    modes.append(.readWrite)
                }
            } else if accept(.deferrable) {
                modes.append(.deferrable(true))
            } else if accept(.not) {
                try expect(.deferrable)
                modes.append(.deferrable(false))
            } else {
                return modes
            }
            _ = accept(.comma)
        }
    }

    private mutating func parseIsolationLevel() throws(SQLError) -> String {
        if accept(.serializable) { return "SERIALIZABLE" }
        if accept(.repeatable) {
            try expect(.read)
            return "REPEATABLE READ"
        }
        try expect(.read)
        if accept(.committed) { return "READ COMMITTED" }
        try expect(.uncommitted)
        return "READ UNCOMMITTED"
    }

    // MARK: Cursors

    mutating func parseCursor(_ keyword: Keyword) throws(SQLError) -> Statement {
        advance()
        switch keyword {
        case .declare: return try parseDeclare()
        case .close: return .cursor(.close(accept(.all) ? nil : try parseIdentifier()))
        default:
            let direction = try parseFetchDirection()
            if !accept(.from) { _ = accept(.in) }
            return .cursor(.fetch(direction, cursor: try parseIdentifier(), isMove: keyword == .move))
        }
    }

    private mutating func parseDeclare() throws(SQLError) -> Statement {
        let name = try parseIdentifier()
        var options: [String] = []
        options: while true {
            switch keyword {
            case .binary, .insensitive: options.append(try parseUpperWord().name)
            case .scroll: options.append(try parseUpperWord().name)
            case .no where ahead(1).keyword == .scroll:
                advance()
                advance()
                options.append("NO SCROLL")
            default: break options
            }
        }
        if accept(.subscription) {
            try expect(.cursor, .for)
            return .cursor(.declare(name, options: options, withHold: nil, try parseSubscriptionInput()))
        }
        try expect(.cursor)
        var withHold: Bool?
        if accept(.with, .hold) { withHold = true } else if accept(.without, .hold) { withHold = false }
        try expect(.for)
        return .cursor(.declare(name, options: options, withHold: withHold, .query(try parseQuery())))
    }

    private mutating func parseSubscriptionInput() throws(SQLError) -> CursorInput {
        let name = try parseObjectName()
        if accept(.full) { return .subscription(name, since: nil, isFull: true) }
        return .subscription(name, since: accept(.since) ? try parseExpression() : nil, isFull: false)
    }

    private mutating func parseFetchDirection() throws(SQLError) -> FetchDirection {
        switch keyword {
        case .next:
            advance()
            return .next
        case .prior:
            advance()
            return .prior
        case .first:
            advance()
            return .first
        case .last:
            advance()
            return .last
        case .absolute:
            advance()
            return .absolute(try parseSignedInteger())
        case .relative:
            advance()
            return .relative(try parseSignedInteger())
        case .all:
            advance()
            return .forward(nil)
        case .forward, .backward:
            let isForward = isNext(.forward)
            advance()
            var count: Int? = 1
            if accept(.all) { count = nil } else if kind == .integer || kind == .symbol { count = try parseSignedInteger() }
            return isForward ? .forward(count) : .backward(count)
        default:
            if kind == .integer || kind == .symbol { return .forward(try parseSignedInteger()) }
            return .next
        }
    }

    // MARK: Prepared statements

    mutating func parsePrepared(_ keyword: Keyword) throws(SQLError) -> Statement {
        advance()
        switch keyword {
        case .prepare:
            let name = try parseIdentifier()
            var types: [TypeName] = []
            if kind == .leftParenthesis {
                types = try parenthesized { parser throws(SQLError) in try parser.parseTypeName() }
            }
            try expect(.as)
            return .prepared(.prepare(name, types: types, try parseStatement()))
        case .execute:
            let name = try parseIdentifier()
            var arguments: [Expression] = []
            if accept(.leftParenthesis) {
                if kind != .rightParenthesis { arguments = try parseExpressionList() }
                try expect(.rightParenthesis)
            }
            return .prepared(.execute(name, arguments))
        default:
            _ = accept(.prepare)
            return .prepared(.deallocate(accept(.all) ? nil : try parseIdentifier()))
        }
    }
}
