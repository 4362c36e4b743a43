import MillBase
import MillSQL
import Testing

@Test func everyTutorialStatementParsesAndPrints() throws {
    let counts = try TutorialStatements.all.map { try verified($0).count }
    #expect(counts == [6, 1, 5, 6])
}

@Test(arguments: ValidStatements.all)
func everyProductionSurvivesPrinting(_ sql: String) throws {
    #expect(try verified(sql).count == 1)
}

@Test(arguments: ValidStatements.all + TutorialStatements.all)
func everyPrefixGivesATreeOrAnError(_ sql: String) throws {
    let bytes = Array(sql.utf8)
    for length in 0...bytes.count {
        do {
            _ = try Parser.parseStatements(utf8: Array(bytes[..<length]))
        } catch {
            let span = try #require(error.span, "an error without a position: \(error)")
            #expect(span.start <= span.end && span.end <= length)
        }
    }
}

@Test func severalStatementsKeepTheirTextAndPosition() throws {
    let parsed = try Parser.parseStatements(";; SELECT 1 ; -- nothing\n;FLUSH;")
    #expect(parsed.map(\.text) == ["SELECT 1", "FLUSH"])
    #expect(parsed.map(\.span) == [SourceSpan(3, 11), SourceSpan(26, 31)])
    #expect(try Parser.parseStatements(" -- only a comment").isEmpty)
}

@Test func aLoneStatementRefusesCompany() {
    #expect(throws: SQLError.self) { try Parser.parseStatement("SELECT 1; SELECT 2") }
    #expect(throws: SQLError.self) { try Parser.parseStatement("") }
}

@Test func precedenceIsPostgreSQLs() throws {
    func same(_ left: String, _ right: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(try Parser.parseExpression(left) == Parser.parseExpression(right), sourceLocation: sourceLocation)
    }
    try same("a + b * c", "a + (b * c)")
    try same("-a ^ b", "(-a) ^ b")
    try same("a ^ b ^ c", "(a ^ b) ^ c")
    try same("-a::int", "-(a::int)")
    try same("NOT a = b", "NOT (a = b)")
    try same("a || b + c", "a || (b + c)")
    try same("a < b IS NULL", "(a < b) IS NULL")
    try same("a LIKE b || c", "a LIKE (b || c)")
    try same("a = b LIKE c", "a = (b LIKE c)")
    try same("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d")
    try same("a OR b AND NOT c", "a OR (b AND (NOT c))")
    try same("a -> b = c", "(a -> b) = c")
    try same("a = NOT b = c", "a = (NOT (b = c))")
    try same("a * ~ b + c", "a * (~ (b + c))")
    try same("a IN (1) = b", "(a IN (1)) = b")
    try same("-a AT TIME ZONE z", "(-a) AT TIME ZONE z")
    try same("a != b", "a <> b")
}

@Test func theTreeIsWhatTheBinderExpects() throws {
    #expect(try Parser.parseExpression("EXTRACT(Epoch FROM x)") == Expression(.call(call("extract", [string("epoch"), column("x")], .extract))))
    #expect(try Parser.parseExpression("POSITION(a IN b)") == Expression(.call(call("position", [column("b"), column("a")], .position))))
    #expect(try Parser.parseExpression("TRIM(LEADING a FROM b)") == Expression(.call(call("ltrim", [column("b"), column("a")], .trim))))
    #expect(try Parser.parseExpression("-9223372036854775808") == Expression(.literal(.number("-9223372036854775808"))))
    #expect(try Parser.parseExpression("0xff") == Expression(.literal(.number("255"))))
    #expect(try Parser.parseTypeName("timestamp (3) with time zone") == TypeName(.named(ObjectName("timestamptz"), modifiers: [3])))
    #expect(try Parser.parseTypeName("character varying") == TypeName(.named(ObjectName("varchar"), modifiers: [])))
    #expect(try Parser.parseTypeName("int[][]").kind == .array(TypeName(.array(TypeName(.named(ObjectName("int"), modifiers: []))))))
}

private func call(_ name: String, _ arguments: [Expression], _ syntax: FunctionCall.Syntax) -> FunctionCall {
    FunctionCall(ObjectName(name), arguments, syntax: syntax)
}

private func column(_ name: String) -> Expression { Expression(.column(ObjectName(name))) }

private func string(_ text: String) -> Expression { Expression(.literal(.string(text))) }

@Test func printingQuotesOnlyWhereNeeded() throws {
    #expect(try printed("select A, \"B\", \"c\", \"select\", \"left\" from T as X") == "SELECT a, \"B\", c, \"select\", \"left\" FROM t AS x")
    #expect(try printed("select (((a)) + ((b * c)))") == "SELECT a + b * c")
    #expect(try printed("select (a + b) * c, a - (b - c)") == "SELECT (a + b) * c, a - (b - c)")
}

@Test func spansPointAtWhatWasWritten() throws {
    guard case .query(let query) = try Parser.parseStatement("SELECT aa, bb + 1 FROM tt"), case .select(let select) = query.body,
        case .expression(let sum, _) = select.items[1], case .table(let table) = select.from[0]
    else {
        Issue.record("not the tree that was expected")
        return
    }
    #expect(sum.span.source == SourceSpan(11, 17))
    #expect(table.name.span.source == SourceSpan(23, 25))
    #expect(query.span.source == SourceSpan(0, 25))
}
