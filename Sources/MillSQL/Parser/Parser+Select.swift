import MillBase

/// SELECT and its clauses up to WINDOW.
extension Parser {
    mutating func parseSelect() throws(SQLError) -> Select {
        var select = Select(span: NodeSpan(start, start))
        let start = start
        try expect(.select)
        if accept(.distinct) {
            if accept(.on) {
                select.quantifier = .distinctOn(try parenthesized { parser throws(SQLError) in try parser.parseExpression() })
            } else {
                select.quantifier = .distinct
            }
        } else {
            _ = accept(.all)
        }
        if !endsSelectList { select.items = try parseSelectItems() }
        if accept(.from) { select.from = try parseFromList() }
        if accept(.where) { select.filter = try parseExpression() }
        if accept(.group, .by) {
            select.groupBy = try commaSeparated { parser throws(SQLError) in try parser.parseGroupingElement() }
        }
        if accept(.having) { select.having = try parseExpression() }
        if accept(.window) {
            select.windows = try commaSeparated { parser throws(SQLError) in
                let name = try parser.parseIdentifier()
                try parser.expect(.as)
                return NamedWindow(name: name, specification: try parser.parseWindowSpecification())
            }
        }
        select.span = span(from: start)
        return select
    }

    /// An empty list, which PostgreSQL allows.
    private var endsSelectList: Bool {
        switch kind {
        case .endOfText, .semicolon, .rightParenthesis: return !isDistinctBefore
        default: break
        }
        switch keyword {
        case .from, .where, .group, .having, .window, .order, .limit, .offset, .fetch, .union, .except, .intersect:
            return !isDistinctBefore
        default: return false
        }
    }

    private var isDistinctBefore: Bool { index > 0 && tokens[index - 1].keyword == .distinct }

    mutating func parseSelectItems() throws(SQLError) -> [SelectItem] {
        try commaSeparated { parser throws(SQLError) in try parser.parseSelectItem() }
    }

    private mutating func parseSelectItem() throws(SQLError) -> SelectItem {
        let start = start
        if acceptSymbol("*") {
            return .wildcard(of: nil, except: try parseWildcardExceptions(), span(from: start))
        }
        if let relation = try parseQualifiedWildcard() {
            return .wildcard(of: relation, except: try parseWildcardExceptions(), span(from: start))
        }
        let expression = try parseExpression()
        if kind == .dot, isStar(ahead(1)) {
            advance()
            advance()
            return .fieldWildcard(expression, span(from: start))
        }
        if accept(.as) { return .expression(expression, alias: try parseLabel()) }
        if Self.isLabel(token), keyword?.mayBeBareLabel ?? true { return .expression(expression, alias: try parseLabel()) }
        return .expression(expression, alias: nil)
    }

    func isStar(_ token: Token) -> Bool {
        token.kind == .symbol && token.end - token.start == 1 && bytes[Int(token.start)] == UInt8(ascii: "*")
    }

    /// `t.*`, `s.t.*`; nil, and nothing taken, if the next tokens are not that.
    private mutating func parseQualifiedWildcard() throws(SQLError) -> ObjectName? {
        guard Self.isColumnName(token), ahead(1).kind == .dot else { return nil }
        var offset = 2
        while Self.isLabel(ahead(offset)), ahead(offset + 1).kind == .dot { offset += 2 }
        guard isStar(ahead(offset)) else { return nil }
        let name = try parseDottedName()
        advance()
        advance()
        return name
    }

    /// RisingWave's `* EXCEPT (a, t.b)`. EXCEPT in front of a query is the set operation.
    private mutating func parseWildcardExceptions() throws(SQLError) -> [ObjectName] {
        guard isNext(.except), ahead(1).kind == .leftParenthesis, Self.isColumnName(ahead(2)), !beginsQuery(at: 2) else { return [] }
        advance()
        return try parenthesized { parser throws(SQLError) in try parser.parseObjectName() }
    }

    // MARK: GROUP BY

    private mutating func parseGroupingElement() throws(SQLError) -> GroupingElement {
        let start = start
        let outer = try enter()
        let element: GroupingElement
        if kind == .leftParenthesis, ahead(1).kind == .rightParenthesis {
            advance()
            advance()
            element = .empty(span(from: start))
        } else if isNext(.rollup), ahead(1).kind == .leftParenthesis {
            advance()
            element = .rollup(try parseColumnSets(), span(from: start))
        } else if isNext(.cube), ahead(1).kind == .leftParenthesis {
            advance()
            element = .cube(try parseColumnSets(), span(from: start))
        } else if accept(.grouping, .sets) {
            let elements = try parenthesized { parser throws(SQLError) in try parser.parseGroupingElement() }
            element = .sets(elements, span(from: start))
        } else {
            element = .expression(try parseExpression())
        }
        try leave(outer)
        return element
    }

    /// `(a, (b, c))`: a parenthesised list is one set of several columns.
    private mutating func parseColumnSets() throws(SQLError) -> [[Expression]] {
        try parenthesized { parser throws(SQLError) in
            let expression = try parser.parseExpression()
            if case .row(let columns) = expression.kind { return columns }
            return [expression]
        }
    }

    // MARK: Windows

    mutating func parseWindowSpecification() throws(SQLError) -> WindowSpecification {
        let start = start
        try expect(.leftParenthesis)
        var window = WindowSpecification(span: NodeSpan(start, start))
        if Self.isColumnName(token), !beginsWindowClause { window.base = try parseIdentifier() }
        if accept(.partition, .by) {
            window.partitionBy = try commaSeparated { parser throws(SQLError) in try parser.parseExpression() }
        }
        if accept(.order, .by) { window.orderBy = try parseOrderItems() }
        window.frame = try parseFrame()
        try expect(.rightParenthesis)
        window.span = span(from: start)
        return window
    }

    private var beginsWindowClause: Bool {
        switch keyword {
        case .partition, .range, .rows, .groups: true
        default: false
        }
    }

    private mutating func parseFrame() throws(SQLError) -> WindowFrame? {
        let start = start
        let unit: WindowFrame.Unit
        switch keyword {
        case .rows: unit = .rows
        case .range: unit = .range
        case .groups: unit = .groups
        default: return nil
        }
        advance()
        var frame = WindowFrame(unit: unit, start: .currentRow, end: .currentRow, exclusion: .noOthers, span: NodeSpan(start, start))
        if accept(.between) {
            frame.start = try parseFrameBound()
            try expect(.and)
            frame.end = try parseFrameBound()
        } else {
            frame.start = try parseFrameBound()
        }
        if accept(.exclude) { frame.exclusion = try parseFrameExclusion() }
        frame.span = span(from: start)
        return frame
    }

    private mutating func parseFrameBound() throws(SQLError) -> WindowFrame.Bound {
        if accept(.unbounded, .preceding) { return .unboundedPreceding }
        if accept(.unbounded, .following) { return .unboundedFollowing }
        if accept(.current, .row) { return .currentRow }
        let value = try parseExpression()
        if accept(.preceding) { return .preceding(value) }
        try expect(.following)
        return .following(value)
    }

    private mutating func parseFrameExclusion() throws(SQLError) -> WindowFrame.Exclusion {
        if accept(.current, .row) { return .currentRow }
        if accept(.group) { return .group }
        if accept(.ties) { return .ties }
        try expect(.no, .others)
        return .noOthers
    }
}
