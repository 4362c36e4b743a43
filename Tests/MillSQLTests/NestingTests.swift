import MillBase
import MillSQL
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Texts that would exhaust a stack if nothing bounded them, each as a function of its size.
private let towers: [(name: String, build: @Sendable (Int) -> String)] = [
    ("parentheses", { "SELECT " + repeated("(", $0) + "1" + repeated(")", $0) }),
    ("open parentheses", { "SELECT " + repeated("(", $0) }),
    ("NOT", { "SELECT " + repeated("NOT ", $0) + "a" }),
    ("minus", { "SELECT " + repeated("- ", $0) + "a" }),
    ("prefix operator", { "SELECT " + repeated("~ ", $0) + "a" }),
    ("CASE", { "SELECT " + repeated("CASE WHEN a THEN ", $0) + "1" + repeated(" END", $0) }),
    ("CASE operand", { "SELECT " + repeated("CASE ", $0) + "1" + repeated(" WHEN 1 THEN 2 END", $0) }),
    ("calls", { "SELECT " + repeated("f(", $0) + "1" + repeated(")", $0) }),
    ("position", { "SELECT " + repeated("position(", $0) + "1" + repeated(",1)", $0) }),
    ("trim", { "SELECT " + repeated("trim(", $0) + "1" + repeated(")", $0) }),
    ("casts", { "SELECT " + repeated("CAST(", $0) + "1" + repeated(" AS int)", $0) }),
    ("cast chain", { "SELECT 1" + repeated("::int", $0) }),
    ("subscripts", { "SELECT a" + repeated("[a", $0) + repeated("]", $0) }),
    ("subscript chain", { "SELECT a" + repeated("[1]", $0) }),
    ("field chain", { "SELECT (a)" + repeated(".b", $0) }),
    ("array", { "SELECT ARRAY" + repeated("[", $0) + repeated("]", $0) }),
    ("rows", { "SELECT " + repeated("(1, ", $0) + "1" + repeated(")", $0) }),
    ("additions", { "SELECT a" + repeated(" + a", $0) }),
    ("comparisons in AND", { "SELECT a" + repeated(" AND a = 1", $0) }),
    ("alternating AND OR", { "SELECT " + repeated("a AND (a OR ", $0) + "a" + repeated(")", $0) }),
    ("IS NULL", { "SELECT a" + repeated(" IS NULL", $0) }),
    ("IN", { "SELECT a" + repeated(" IN (1)", $0) }),
    ("collate", { "SELECT a" + repeated(" COLLATE c", $0) }),
    ("time zones", { "SELECT a" + repeated(" AT TIME ZONE 'x'", $0) }),
    ("quantified", { "SELECT a" + repeated(" = ANY (b)", $0) }),
    ("subqueries", { repeated("SELECT (", $0) + "SELECT 1" + repeated(")", $0) }),
    ("parenthesised queries", { repeated("(", $0) + "SELECT 1" + repeated(")", $0) }),
    ("query sums", { "SELECT " + repeated("(", $0) + "(SELECT 1)" + repeated(" + 1)", $0) }),
    ("derived tables", { repeated("SELECT * FROM (", $0) + "SELECT 1" + repeated(") t", $0) }),
    ("parenthesised joins", { "SELECT * FROM " + repeated("(", $0) + "a" + repeated(" CROSS JOIN b)", $0) }),
    ("joins", { "SELECT * FROM a" + repeated(" JOIN b ON true", $0) }),
    ("nested joins", { "SELECT * FROM a" + repeated(" JOIN b", $0) + repeated(" ON true", $0) }),
    ("cross joins behind a join", { "SELECT * FROM a JOIN b" + repeated(" CROSS JOIN c", $0) + " ON true" }),
    ("unions", { "SELECT 1" + repeated(" UNION SELECT 1", $0) }),
    ("unions of parentheses", { repeated("(SELECT 1 UNION ", $0) + "SELECT 1" + repeated(")", $0) }),
    ("common tables", { repeated("WITH a AS (", $0) + "SELECT 1" + repeated(") SELECT 1", $0) }),
    ("common tables in open", { repeated("WITH a AS (", $0) }),
    ("EXPLAIN", { repeated("EXPLAIN ", $0) + "SELECT 1" }),
    ("PREPARE", { repeated("PREPARE p AS ", $0) + "SELECT 1" }),
    ("grouping sets", { "SELECT 1 FROM t GROUP BY " + repeated("GROUPING SETS (", $0) + "a" + repeated(")", $0) }),
    ("windows", { "SELECT " + repeated("sum(1) OVER (ORDER BY ", $0) + "1" + repeated(")", $0) }),
    ("filters", { "SELECT " + repeated("f(1) FILTER (WHERE ", $0) + "a" + repeated(")", $0) }),
    ("types", { "SELECT a::" + repeated("struct<a ", $0) + "int" + repeated(">", $0) }),
    ("array types", { "SELECT a::int" + repeated("[]", $0) }),
    ("comments", { "SELECT 1 " + repeated("/* ", $0) + repeated("*/ ", $0) }),
]

private func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

/// Runs `body` on a thread of its own with a stack of `bytes`.
private func onStack(ofBytes bytes: Int, _ body: @escaping @Sendable () -> Void) {
    final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setstacksize(&attributes, bytes)
    #if canImport(Glibc)
        var thread = pthread_t()
        let made = pthread_create(
            &thread, &attributes,
            { argument in
                argument.map { Unmanaged<Work>.fromOpaque($0).takeRetainedValue().body() }
                return nil
            }, Unmanaged.passRetained(Work(body)).toOpaque())
        #expect(made == 0)
        pthread_join(thread, nil)
    #else
        var thread: pthread_t?
        let made = pthread_create(
            &thread, &attributes,
            { argument in
                Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, Unmanaged.passRetained(Work(body)).toOpaque())
        #expect(made == 0)
        if let thread { pthread_join(thread, nil) }
    #endif
    pthread_attr_destroy(&attributes)
}

#if DEBUG
    private let stackBytes = 8 << 20
#else
    private let stackBytes = 2 << 20
#endif

/// Parses, and if that succeeds prints, parses again, compares, hashes and frees.
private func walk(_ sql: String, _ name: String) {
    do {
        let statements = try Parser.parseStatements(sql)
        for statement in statements {
            // Printing adds the parentheses that the text may have left out, so reading it back may hit the bound.
            let text = statement.statement.description
            if let again = try? Parser.parseStatement(text) {
                #expect(again == statement.statement, "\(name)")
                #expect(again.hashValue == statement.statement.hashValue, "\(name)")
            }
        }
    } catch {
        #expect(error.sqlState == .statementTooComplex || error.sqlState == .syntaxError, "\(name): \(error)")
    }
}

@Test func noTextExhaustsASmallStack() {
    onStack(ofBytes: stackBytes) {
        for tower in towers {
            for size in [1, 30, 60, 85, 127, 200, 255, 300, 390, 395, 397, 398, 399, 400, 1000, 100_000] { walk(tower.build(size), tower.name) }
        }
    }
}

@Test func moderateNestingIsAccepted() throws {
    for tower in towers where !tower.name.contains("open") {
        _ = try Parser.parseStatements(tower.build(20))
    }
}

@Test func longChainsOfAndAndOrAreFlat() throws {
    let terms = "a = 1" + repeated(" OR a = 2", 50_000)
    guard case .or(let operands) = try Parser.parseExpression(terms).kind else {
        Issue.record("not a chain")
        return
    }
    #expect(operands.count == 50_001)
}
