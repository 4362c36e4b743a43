import MillBase

/// Calls of functions, plain and in the standard's special forms.
extension Parser {
    /// Arguments and what follows them; the next token is the opening parenthesis.
    ///
    /// - Parameter takesTables: the call stands in FROM, where an argument may be a relation with a PARTITION BY.
    mutating func parseCall(_ name: ObjectName, takesTables: Bool = false) throws(SQLError) -> Expression {
        let start = name.span.source.start
        var call = FunctionCall(name)
        let outer = try enter()
        try expect(.leftParenthesis)
        if isStar(token) {
            advance()
            call.syntax = .star
        } else if kind != .rightParenthesis {
            try parseArguments(&call, takesTables: takesTables)
        }
        try expect(.rightParenthesis)
        if accept(.within, .group) {
            try expect(.leftParenthesis)
            try expect(.order, .by)
            call.withinGroup = try parseOrderItems()
            try expect(.rightParenthesis)
        }
        if isNext(.filter), ahead(1).kind == .leftParenthesis {
            advance()
            advance()
            try expect(.where)
            call.filter = try parseExpression()
            try expect(.rightParenthesis)
        }
        if accept(.over) {
            call.over = kind == .leftParenthesis ? .inline(try parseWindowSpecification()) : .named(try parseIdentifier())
        }
        try leave(outer)
        return Expression(.call(call), span(from: start))
    }

    private mutating func parseArguments(_ call: inout FunctionCall, takesTables: Bool) throws(SQLError) {
        if accept(.distinct) { call.isDistinct = true } else { _ = accept(.all) }
        repeat {
            if accept(.variadic) { call.isVariadic = true }
            var name: Identifier?
            if Self.isLabel(token), ahead(1).kind == .arrow || ahead(1).kind == .colonEquals {
                name = try parseLabel()
                advance()
            }
            var argument = FunctionCall.Argument(name: name, value: takesTables ? try parseTableArgument() : try parseExpression())
            if takesTables, accept(.partition, .by) { argument.partitionBy = try parsePartition() }
            call.arguments.append(argument)
        } while !call.isVariadic && accept(.comma)
        if accept(.order, .by) { call.orderBy = try parseOrderItems() }
    }

    /// An expression, or `TABLE name` as Flink writes it: the name alone says the same.
    private mutating func parseTableArgument() throws(SQLError) -> Expression {
        guard accept(.table) else { return try parseExpression() }
        let name = try parseObjectName()
        return Expression(.column(name), name.span)
    }

    /// One expression, or several in parentheses: a comma behind them begins the next argument.
    private mutating func parsePartition() throws(SQLError) -> [Expression] {
        guard kind == .leftParenthesis else { return [try parseExpression()] }
        return try parenthesized { parser throws(SQLError) in try parser.parseExpression() }
    }

    /// `CURRENT_TIMESTAMP`, `CURRENT_TIMESTAMP(3)`, `CURRENT_USER`, ...
    mutating func parseKeywordCall(_ keyword: Keyword) throws(SQLError) -> Expression {
        let start = start
        advance()
        var call = FunctionCall(ObjectName(keyword.rawValue, span(from: start)), syntax: .keyword)
        switch keyword {
        case .currentTime, .currentTimestamp, .localtime, .localtimestamp:
            if accept(.leftParenthesis) {
                let argument = self.start
                if kind != .rightParenthesis {
                    let digits = String(try parseInteger())
                    call.arguments = [.init(name: nil, value: Expression(.literal(.number(digits)), span(from: argument)))]
                }
                try expect(.rightParenthesis)
            }
        default: break
        }
        return Expression(.call(call), span(from: start))
    }

    /// EXTRACT, POSITION, SUBSTRING, OVERLAY and TRIM: with their own words inside, or as plain calls of that name.
    mutating func parseSpecialCall(_ keyword: Keyword) throws(SQLError) -> Expression {
        let start = start
        advance()
        let name = ObjectName(keyword.rawValue, span(from: start))
        let outer = try enter()
        try expect(.leftParenthesis)
        let call: FunctionCall
        switch keyword {
        case .extract: call = try parseExtract(name)
        case .trim: call = try parseTrim(name.span)
        case .position: call = try parsePosition(name)
        case .overlay: call = try parseOverlay(name)
        default: call = try parseSubstring(name)
        }
        try expect(.rightParenthesis)
        try leave(outer)
        return Expression(.call(call), span(from: start))
    }

    private mutating func parseExtract(_ name: ObjectName) throws(SQLError) -> FunctionCall {
        guard Self.isLabel(token) || isString, ahead(1).keyword == .from else {
            return FunctionCall(name, kind == .rightParenthesis ? [] : try parseExpressionList())
        }
        let fieldStart = start
        let field = isString ? try parseString() : try parseLabel().name
        let fieldSpan = span(from: fieldStart)
        advance()
        let operand = try parseExpression()
        return FunctionCall(name, [Expression(.literal(.string(field)), fieldSpan), operand], syntax: .extract)
    }

    private mutating func parsePosition(_ name: ObjectName) throws(SQLError) -> FunctionCall {
        if kind == .rightParenthesis { return FunctionCall(name) }
        // The first operand stops in front of IN.
        let start = start
        let part = try parseExpression(minimum: Precedence.range + 1)
        if accept(.in) {
            let whole = try parseExpression(minimum: Precedence.range + 1)
            return FunctionCall(name, [whole, part], syntax: .position)
        }
        var arguments = [try parseOperators(part, from: start, minimum: Precedence.or)]
        while accept(.comma) { arguments.append(try parseExpression()) }
        return FunctionCall(name, arguments)
    }

    private mutating func parseOverlay(_ name: ObjectName) throws(SQLError) -> FunctionCall {
        if kind == .rightParenthesis { return FunctionCall(name) }
        var arguments = [try parseExpression()]
        guard accept(.placing) else {
            while accept(.comma) { arguments.append(try parseExpression()) }
            return FunctionCall(name, arguments)
        }
        arguments.append(try parseExpression())
        try expect(.from)
        arguments.append(try parseExpression())
        if accept(.for) { arguments.append(try parseExpression()) }
        return FunctionCall(name, arguments, syntax: .overlay)
    }

    private mutating func parseSubstring(_ name: ObjectName) throws(SQLError) -> FunctionCall {
        if kind == .rightParenthesis { return FunctionCall(name) }
        var arguments = [try parseExpression()]
        if accept(.from) {
            arguments.append(try parseExpression())
            if accept(.for) { arguments.append(try parseExpression()) }
            return FunctionCall(name, arguments, syntax: .substringFrom)
        }
        if accept(.for) {
            let count = try parseExpression()
            if accept(.from) { return FunctionCall(name, [arguments[0], try parseExpression(), count], syntax: .substringFrom) }
            return FunctionCall(name, [arguments[0], Expression(.literal(.number("1")), count.span), count], syntax: .substringFor)
        }
        while accept(.comma) { arguments.append(try parseExpression()) }
        return FunctionCall(name, arguments)
    }

    /// `TRIM([LEADING | TRAILING | BOTH] [characters] FROM text)`, `TRIM(text [, characters])`.
    private mutating func parseTrim(_ nameSpan: NodeSpan) throws(SQLError) -> FunctionCall {
        var name = "btrim"
        if accept(.leading) { name = "ltrim" } else if accept(.trailing) { name = "rtrim" } else { _ = accept(.both) }
        let function = ObjectName(name, nameSpan)
        if accept(.from) { return FunctionCall(function, try parseExpressionList(), syntax: .trim) }
        let first = try parseExpression()
        if accept(.from) { return FunctionCall(function, [try parseExpression(), first], syntax: .trim) }
        var arguments = [first]
        while accept(.comma) { arguments.append(try parseExpression()) }
        return FunctionCall(function, arguments, syntax: .trim)
    }
}
