import MillBase

/// How tightly operators bind, from PostgreSQL's `gram.y`. The printer uses the same numbers.
enum Precedence {
    static let or = 1
    static let and = 2
    static let not = 3
    /// IS, ISNULL, NOTNULL.
    static let isTest = 4
    /// `< > = <= >= <>`: not associative.
    static let comparison = 5
    /// BETWEEN, IN, LIKE, ILIKE, SIMILAR: not associative.
    static let range = 6
    /// Every other operator, prefix ones too.
    static let other = 7
    static let additive = 8
    static let multiplicative = 9
    static let power = 10
    static let atTimeZone = 11
    static let collate = 12
    static let unarySign = 13
    static let cast = 14
    static let primary = 15

    static func of(_ symbol: String) -> Int {
        switch symbol {
        case "<", ">", "=", "<=", ">=", "<>": comparison
        case "+", "-": additive
        case "*", "/", "%": multiplicative
        case "^": power
        default: other
        }
    }
}

/// Operators, by precedence climbing.
extension Parser {
    mutating func parseExpression() throws(SQLError) -> Expression {
        try parseExpression(minimum: Precedence.or)
    }

    /// An expression whose operators all bind at least as tightly as `minimum`. A prefix operator takes its own operand by its own
    /// precedence, wherever it stands.
    mutating func parseExpression(minimum: Int) throws(SQLError) -> Expression {
        let start = start
        let outer = try enter()
        let first = try parsePrefixed()
        let expression = try parseOperators(first, from: start, minimum: minimum)
        try leave(outer)
        return expression
    }

    /// NOT, signs and other prefix operators, or a primary with its casts.
    private mutating func parsePrefixed() throws(SQLError) -> Expression {
        if kind == .symbol || isNext(.not) || beginsOperatorName { return try parsePrefixOperator() }
        let start = start
        let primary = try parsePrimary()
        return try parseCasts(primary, from: start)
    }

    private var beginsOperatorName: Bool { isNext(.operator) && ahead(1).kind == .leftParenthesis }

    private mutating func parsePrefixOperator() throws(SQLError) -> Expression {
        let start = start
        if accept(.not) {
            let operand = try parseExpression(minimum: Precedence.not)
            return Expression(.not(operand), span(from: start))
        }
        // A star here is a misplaced wildcard, not an operator.
        if isStar(token) { throw syntaxError() }
        let operation = try parseOperatorName()
        let isSign = operation.schema.isEmpty && (operation.symbol == "-" || operation.symbol == "+")
        if !isSign, operation.schema.isEmpty, Precedence.of(operation.symbol) != Precedence.other {
            index -= 1
            throw syntaxError()
        }
        let operand = try parseExpression(minimum: isSign ? Precedence.unarySign : Precedence.other)
        if operation.symbol == "-", isSign, case .literal(.number(let digits)) = operand.kind, !digits.hasPrefix("-") {
            return Expression(.literal(.number("-" + digits)), span(from: start))
        }
        return Expression(.unary(operation, operand), span(from: start))
    }

    /// `::type`, any number of times.
    mutating func parseCasts(_ first: Expression, from start: Int) throws(SQLError) -> Expression {
        var expression = first
        while accept(.doubleColon) {
            let type = try parseTypeName()
            try grow()
            expression = Expression(.cast(expression, type), span(from: start))
        }
        return expression
    }

    /// Everything that may follow an operand, as long as it binds at least as tightly as `minimum`.
    mutating func parseOperators(_ first: Expression, from start: Int, minimum: Int) throws(SQLError) -> Expression {
        var left = first
        // An operator that is not associative may not follow its like.
        var forbidden = 0
        while true {
            if kind == .symbol || beginsOperatorName {
                let mark = mark
                let operation = try parseOperatorName()
                let precedence = operation.schema.isEmpty ? Precedence.of(operation.symbol) : Precedence.other
                guard precedence >= minimum else {
                    rewind(to: mark)
                    return left
                }
                guard precedence != forbidden else {
                    rewind(to: mark)
                    throw syntaxError()
                }
                if let quantified = try parseQuantified(left, operation, from: start) {
                    left = quantified
                    forbidden = 0
                    continue
                }
                let right = try parseExpression(minimum: precedence + 1)
                try grow()
                left = Expression(.binary(left, operation, right), span(from: start))
                forbidden = precedence == Precedence.comparison ? precedence : 0
                continue
            }
            guard let keyword else { return left }
            let mark = mark
            guard let (expression, next) = try parseWordOperator(left, keyword, from: start, minimum: minimum, forbidden: forbidden) else {
                rewind(to: mark)
                return left
            }
            left = expression
            forbidden = next
        }
    }

    // MARK: Operators that are words

    /// - Returns: nil if the word is no operator here or binds too loosely; else the expression and the precedence that may not follow.
    private mutating func parseWordOperator(
        _ left: Expression, _ keyword: Keyword, from start: Int, minimum: Int, forbidden: Int
    ) throws(SQLError) -> (Expression, Int)? {
        switch keyword {
        case .and, .or:
            let precedence = keyword == .and ? Precedence.and : Precedence.or
            guard precedence >= minimum else { return nil }
            return (try parseConnective(left, keyword, precedence, from: start), 0)
        case .is:
            guard Precedence.isTest >= minimum else { return nil }
            guard forbidden != Precedence.isTest else { throw syntaxError() }
            return try parseIs(left, from: start)
        case .isnull, .notnull:
            guard Precedence.isTest >= minimum else { return nil }
            advance()
            try grow()
            return (Expression(.isTest(left, .null, negated: keyword == .notnull), span(from: start)), 0)
        case .between, .in, .like, .ilike, .similar, .not:
            guard Precedence.range >= minimum else { return nil }
            return try parseRange(left, from: start, forbidden: forbidden)
        case .at:
            guard Precedence.atTimeZone >= minimum, accept(.at, .time, .zone) else { return nil }
            let zone = try parseExpression(minimum: Precedence.atTimeZone + 1)
            try grow()
            return (Expression(.atTimeZone(left, zone: zone), span(from: start)), 0)
        case .collate:
            guard Precedence.collate >= minimum else { return nil }
            advance()
            let collation = try parseDottedName()
            try grow()
            return (Expression(.collate(left, collation), span(from: start)), 0)
        default: return nil
        }
    }

    /// A whole chain of AND or of OR as one node, the parenthesised chain on its left included, as PostgreSQL does.
    private mutating func parseConnective(
        _ left: Expression, _ word: Keyword, _ precedence: Int, from start: Int
    ) throws(SQLError) -> Expression {
        var operands: [Expression]
        switch left.kind {
        case .and(let inner) where word == .and: operands = inner
        case .or(let inner) where word == .or: operands = inner
        default: operands = [left]
        }
        while accept(word) { operands.append(try parseExpression(minimum: precedence + 1)) }
        try grow()
        return Expression(word == .and ? .and(operands) : .or(operands), span(from: start))
    }

    /// What follows IS.
    private mutating func parseIs(_ left: Expression, from start: Int) throws(SQLError) -> (Expression, Int) {
        advance()
        let negated = accept(.not)
        let test: IsTest
        switch keyword {
        case .null: test = .null
        case .true: test = .true
        case .false: test = .false
        case .unknown: test = .unknown
        case .distinct:
            advance()
            try expect(.from)
            let right = try parseExpression(minimum: Precedence.isTest + 1)
            try grow()
            return (Expression(.isDistinct(left, right, negated: negated), span(from: start)), Precedence.isTest)
        default: throw syntaxError(expecting: "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        }
        advance()
        try grow()
        return (Expression(.isTest(left, test, negated: negated), span(from: start)), 0)
    }

    /// [NOT] BETWEEN, IN, LIKE, ILIKE, SIMILAR TO.
    private mutating func parseRange(
        _ left: Expression, from start: Int, forbidden: Int
    ) throws(SQLError) -> (Expression, Int)? {
        let negated = isNext(.not)
        let word = negated ? ahead(1).keyword : keyword
        switch word {
        case .between, .in, .like, .ilike: break
        case .similar: guard ahead(negated ? 2 : 1).keyword == .to else { return nil }
        default: return nil
        }
        guard forbidden != Precedence.range else { throw syntaxError() }
        if negated { advance() }
        switch word {
        case .between:
            advance()
            let symmetric = accept(.symmetric)
            if !symmetric { _ = accept(.asymmetric) }
            let low = try parseExpression(minimum: Precedence.range + 1)
            try expect(.and)
            let high = try parseExpression(minimum: Precedence.range + 1)
            try grow()
            let between = Between(operand: left, low: low, high: high, symmetric: symmetric, negated: negated)
            return (Expression(.between(between), span(from: start)), Precedence.range)
        case .in: return (try parseIn(left, negated: negated, from: start), 0)
        default: return try parseLike(left, negated: negated, from: start)
        }
    }

    private mutating func parseIn(_ left: Expression, negated: Bool, from start: Int) throws(SQLError) -> Expression {
        advance()
        guard kind == .leftParenthesis else { throw syntaxError(expecting: "(") }
        let contents = try parseParenthesized()
        try grow()
        switch contents {
        case .query(let query): return Expression(.inQuery(left, query, negated: negated), span(from: start))
        case .list(let items): return Expression(.inList(left, items, negated: negated), span(from: start))
        }
    }

    private mutating func parseLike(_ left: Expression, negated: Bool, from start: Int) throws(SQLError) -> (Expression, Int) {
        let operatorStart = self.start
        let kind: LikeKind
        switch keyword {
        case .like: kind = .like
        case .ilike: kind = .ilike
        default:
            kind = .similarTo
            advance()
        }
        advance()
        if kind != .similarTo {
            let symbol = (negated ? "!~~" : "~~") + (kind == .ilike ? "*" : "")
            if let quantified = try parseQuantified(left, OperatorName(symbol, span(from: operatorStart)), from: start) {
                return (quantified, 0)
            }
        }
        let pattern = try parseExpression(minimum: Precedence.range + 1)
        let escape = accept(.escape) ? try parseExpression(minimum: Precedence.range + 1) : nil
        try grow()
        let like = Like(operand: left, kind: kind, pattern: pattern, escape: escape, negated: negated)
        return (Expression(.like(like), span(from: start)), Precedence.range)
    }

    // MARK: Operators that are symbols

    /// A symbol, or `OPERATOR(schema.symbol)`.
    mutating func parseOperatorName() throws(SQLError) -> OperatorName {
        let start = start
        var schema: [Identifier] = []
        let isQualified = beginsOperatorName
        if isQualified {
            advance()
            advance()
            while Self.isColumnName(token) {
                schema.append(try parseIdentifier())
                try expect(.dot)
            }
        }
        guard kind == .symbol else { throw syntaxError(expecting: "an operator") }
        var symbol = text(of: token)
        if symbol == "!=" { symbol = "<>" }
        advance()
        if isQualified {
            try expect(.rightParenthesis)
            // Without a schema the form still lowers the precedence, so it must be remembered.
            if schema.isEmpty { schema = [Identifier("pg_catalog", span(from: start))] }
        }
        return OperatorName(symbol, schema: schema, span(from: start))
    }

    /// `ANY (...)`, `SOME (...)`, `ALL (...)` behind an operator; nil if none is there.
    private mutating func parseQuantified(
        _ left: Expression, _ operation: OperatorName, from start: Int
    ) throws(SQLError) -> Expression? {
        let isAll = isNext(.all)
        guard isAll || isNext(.any) || isNext(.some) else { return nil }
        advance()
        guard kind == .leftParenthesis else { throw syntaxError(expecting: "(") }
        let contents = try parseParenthesized()
        let operand: Quantified.Operand
        switch contents {
        case .query(let query): operand = .query(query)
        case .list(let items):
            guard items.count == 1 else {
                index -= 1
                throw syntaxError()
            }
            operand = .array(items[0])
        }
        try grow()
        return Expression(
            .quantified(Quantified(left: left, operation: operation, isAll: isAll, operand: operand)), span(from: start))
    }
}
