import MillBase

/// SET, SHOW, EXPLAIN and the control of jobs.
extension Parser {
    mutating func parseSettingName() throws(SQLError) -> SettingName {
        let start = start
        var name = try parseLabel().name
        while accept(.dot) { name += "." + (try parseLabel().name) }
        return SettingName(name, span(from: start))
    }

    /// DEFAULT, or one value or more.
    mutating func parseSettingValue() throws(SQLError) -> SettingValue {
        if accept(.default) { return .standard }
        return .list(
            try commaSeparated { parser throws(SQLError) in
                // ON is reserved, but a usual value.
                parser.accept(.on) ? .word("on") : try parser.parseOptionValue()
            })
    }

    mutating func parseSet() throws(SQLError) -> Statement {
        try expect(.set)
        var scope = SetParameter.Scope.session
        if isNext(.session), ahead(1).keyword != .to, !isEquals(ahead(1)) {
            advance()
            if accept(.characteristics) {
                try expect(.as, .transaction)
                return .transaction(.set(try parseTransactionModes(), isSession: true))
            }
        } else if accept(.local) {
            scope = .local
        }
        if accept(.transaction) { return .transaction(.set(try parseTransactionModes(), isSession: false)) }
        if accept(.time, .zone) { return .set(SetParameter(scope: scope, name: SettingName("timezone"), value: try parseTimeZone())) }
        let name = try parseSettingName()
        // `SET NAMES 'utf8'`, `SET SCHEMA 'public'`, `SET ROLE x` have no sign.
        let hasSign = acceptSymbol("=") || accept(.to)
        switch name.name {
        case "names" where !hasSign:
            return .set(SetParameter(scope: scope, name: SettingName("client_encoding", name.span), value: try parseSettingValue()))
        case "schema" where !hasSign:
            return .set(SetParameter(scope: scope, name: SettingName("search_path", name.span), value: try parseSettingValue()))
        case "role" where !hasSign, "authorization" where !hasSign: break
        default: guard hasSign else { throw syntaxError(expecting: "= or TO") }
        }
        return .set(SetParameter(scope: scope, name: name, value: try parseSettingValue()))
    }

    private func isEquals(_ token: Token) -> Bool {
        token.kind == .symbol && token.end - token.start == 1 && bytes[Int(token.start)] == UInt8(ascii: "=")
    }

    /// LOCAL, DEFAULT, a name, or an offset in hours.
    private mutating func parseTimeZone() throws(SQLError) -> SettingValue {
        if accept(.local) || accept(.default) { return .standard }
        if isNext(.interval) {
            advance()
            let text = try parseString()
            if accept(.hour) { try expect(.to, .minute) }
            return .list([.string(text)])
        }
        return .list([try parseOptionValue()])
    }

    mutating func parseReset() throws(SQLError) -> Statement {
        try expect(.reset)
        if accept(.all) { return .reset(nil) }
        if accept(.time, .zone) { return .reset(SettingName("timezone")) }
        return .reset(try parseSettingName())
    }

    // MARK: SHOW, DESCRIBE

    mutating func parseShow() throws(SQLError) -> Statement {
        try expect(.show)
        if accept(.all) || accept(.parameters) { return .show(.allParameters(like: try parseLikeFilter())) }
        if isNext(.create) {
            advance()
            let kinds: [Keyword] = [.materialized, .table, .source, .view, .sink, .index]
            guard let keyword, kinds.contains(keyword) else { throw syntaxError(expecting: "MATERIALIZED VIEW, TABLE, SOURCE, VIEW or SINK") }
            let kind = try parseObjectKind()
            return .show(.create(kind, try parseObjectName()))
        }
        if accept(.columns) {
            try expect(.from)
            let name = try parseObjectName()
            return .show(.columns(of: name, like: try parseLikeFilter()))
        }
        if accept(.time, .zone) { return .show(.parameter(SettingName("timezone"))) }
        if accept(.transaction, .isolation, .level) { return .show(.parameter(SettingName("transaction_isolation"))) }
        if let list = acceptObjectList() {
            let schema = accept(.from) ? try parseObjectName() : nil
            return .show(.objects(list, from: schema, like: try parseLikeFilter()))
        }
        return .show(.parameter(try parseSettingName()))
    }

    private mutating func parseLikeFilter() throws(SQLError) -> String? {
        accept(.like) ? try parseString() : nil
    }

    private mutating func acceptObjectList() -> Show.ObjectList? {
        if accept(.materialized, .views) { return .materializedViews }
        if accept(.internalWord, .tables) { return .internalTables }
        guard let keyword, let list = Show.ObjectList(rawValue: keyword.upper) else { return nil }
        advance()
        return list
    }

    mutating func parseDescribe() throws(SQLError) -> Statement {
        advance()
        _ = accept(.table)
        return .describe(try parseObjectName())
    }

    // MARK: EXPLAIN

    mutating func parseExplain() throws(SQLError) -> Statement {
        try expect(.explain)
        var explain = Explain(isAnalyze: false, options: [], subject: .statement(.flush))
        if accept(.analyze) || accept(.analyse) { explain.isAnalyze = true }
        if kind == .leftParenthesis, Self.isLabel(ahead(1)), !beginsQuery(at: 1) {
            explain.options = try parenthesized { parser throws(SQLError) in
                let name = try parser.parseUpperWord()
                let hasValue = parser.kind != .comma && parser.kind != .rightParenthesis
                return Explain.Option(name: name, value: hasValue ? try parser.parseExplainValue() : nil)
            }
        } else if isNext(.verbose) {
            explain.options = [Explain.Option(name: try parseUpperWord(), value: nil)]
        }
        explain.subject = accept(.materialized, .view) ? .materializedView(try parseObjectName()) : .statement(try parseStatement())
        return .explain(explain)
    }

    private mutating func parseExplainValue() throws(SQLError) -> WithOption.Value {
        accept(.on) ? .word("on") : try parseOptionValue()
    }

    // MARK: Jobs

    mutating func parseCancel() throws(SQLError) -> Statement {
        try expect(.cancel)
        guard accept(.job) || accept(.jobs) else { throw syntaxError(expecting: "JOB") }
        return .cancelJobs(try commaSeparated { parser throws(SQLError) in try parser.parseInteger() })
    }

    mutating func parseJobControl(_ keyword: Keyword) throws(SQLError) -> Statement {
        guard let verb = JobControl.Verb(rawValue: keyword.upper) else { throw syntaxError() }
        advance()
        let kind = try parseObjectKind(expecting: verb == .rebuild ? "MATERIALIZED VIEW" : "SOURCE, MATERIALIZED VIEW or SINK")
        return .jobControl(JobControl(verb: verb, kind: kind, name: try parseObjectName()))
    }

    mutating func parseReplay() throws(SQLError) -> Statement {
        try expect(.replay, .rejects, .from)
        var replay = ReplayRejects(source: try parseObjectName())
        if accept(.where) { replay.condition = try parseExpression() }
        if accept(.using) { replay.record = try parseExpression() }
        return .replayRejects(replay)
    }

    mutating func parseDiscard() throws(SQLError) -> Statement {
        try expect(.discard)
        if accept(.all) { return .discard(.all) }
        if accept(.plans) { return .discard(.plans) }
        if accept(.sequences) { return .discard(.sequences) }
        guard accept(.temp) || accept(.temporary) else { throw syntaxError(expecting: "ALL") }
        return .discard(.temporary)
    }
}
