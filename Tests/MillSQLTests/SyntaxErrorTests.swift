import MillBase
import MillSQL
import Testing

struct ExpectedError: Sendable, CustomTestStringConvertible {
    var sql: String
    var message: String
    var start: Int
    var state = SQLState.syntaxError

    var testDescription: String { sql }
}

private let expected = [
    ExpectedError(sql: "SELEC 1", message: "syntax error at or near \"SELEC\"", start: 0),
    ExpectedError(sql: "SELECT a,", message: "syntax error at end of input", start: 9),
    ExpectedError(sql: "SELECT a FROM", message: "syntax error at end of input", start: 13),
    ExpectedError(sql: "SELECT a, FROM t", message: "syntax error at or near \"FROM\"", start: 10),
    ExpectedError(sql: "SELECT DISTINCT FROM t", message: "syntax error at or near \"FROM\"", start: 16),
    ExpectedError(sql: "SELECT * FROM t WHERE", message: "syntax error at end of input", start: 21),
    ExpectedError(sql: "SELECT 1; SELECT (", message: "syntax error at end of input", start: 18),
    ExpectedError(sql: "SELECT a < b < c", message: "syntax error at or near \"<\"", start: 13),
    ExpectedError(sql: "SELECT a BETWEEN 1 AND 2 BETWEEN 3 AND 4", message: "syntax error at or near \"BETWEEN\"", start: 25),
    ExpectedError(sql: "SELECT 'abc", message: "unterminated quoted string at or near \"'abc\"", start: 7),
    ExpectedError(sql: "SELECT \"abc", message: "unterminated quoted identifier at or near \"\"abc\"", start: 7),
    ExpectedError(sql: "SELECT \"\"", message: "zero-length delimited identifier at or near \"\"\"\"", start: 7),
    ExpectedError(sql: "SELECT $a$ x", message: "unterminated dollar-quoted string at or near \"$a$ x\"", start: 7),
    ExpectedError(sql: "SELECT /* /* */", message: "unterminated /* comment at or near \"/* /* */\"", start: 7),
    ExpectedError(sql: "SELECT 1a", message: "trailing junk after numeric literal at or near \"1a\"", start: 7),
    ExpectedError(sql: "SELECT 1__0", message: "trailing junk after numeric literal at or near \"1__0\"", start: 7),
    ExpectedError(sql: "SELECT 0x", message: "invalid hexadecimal integer at or near \"0x\"", start: 7),
    ExpectedError(sql: "SELECT $1a", message: "trailing junk after parameter at or near \"$1a\"", start: 7),
    ExpectedError(sql: "SELECT $0", message: "there is no parameter $0", start: 7, state: .undefinedParameter),
    ExpectedError(sql: "SELECT E'\\uD800'", message: "invalid Unicode surrogate pair", start: 7),
    ExpectedError(sql: "SELECT E'\\uZZZZ'", message: "invalid Unicode escape", start: 7, state: .invalidEscapeSequence),
    ExpectedError(sql: "SELECT B'012'", message: "\"2\" is not a valid binary digit", start: 7, state: .invalidTextRepresentation),
    ExpectedError(sql: "SELECT 1 LIMIT 1 LIMIT 2", message: "multiple LIMIT clauses not allowed", start: 17),
    ExpectedError(sql: "CREATE TABLE t (a int,)", message: "syntax error at or near \")\"", start: 22),
    ExpectedError(sql: "CREATE SOURCE s (a int) WITH (x 'y' z)", message: "syntax error at or near \"z\"", start: 36),
    ExpectedError(sql: "DROP t", message: "syntax error at or near \"t\"", start: 5),
    ExpectedError(sql: "INSERT t VALUES (1)", message: "syntax error at or near \"t\"", start: 7),
    ExpectedError(sql: "UPDATE t SET a", message: "syntax error at end of input", start: 14),
    ExpectedError(sql: "SELECT count(*", message: "syntax error at end of input", start: 14),
    ExpectedError(sql: "SELECT * FROM (a)", message: "syntax error at or near \")\"", start: 16),
    ExpectedError(sql: "SELEC 'abc", message: "syntax error at or near \"SELEC\"", start: 0),
    ExpectedError(sql: "SELECT \\", message: "syntax error at or near \"\\\"", start: 7),
    ExpectedError(sql: "CANCEL JOB 99999999999999999999", message: "integer 99999999999999999999 is out of range", start: 11, state: .numericValueOutOfRange),
]

@Test(arguments: expected)
func syntaxErrorsPointAtTheToken(_ expected: ExpectedError) throws {
    let error = try #require(failure(expected.sql))
    #expect(error.message == expected.message)
    #expect(error.span?.start == expected.start)
    #expect(error.sqlState == expected.state)
}

@Test func hintsSayWhatIsMissing() {
    #expect(failure("SELECT CASE WHEN 1 2 END")?.hint == "THEN is expected here.")
    #expect(failure("CREATE SINK s WITH (a = 1)")?.hint == "FROM or AS is expected here.")
    #expect(failure("PAUSE v")?.hint == "SOURCE, MATERIALIZED VIEW or SINK is expected here.")
    #expect(failure("SHOW CREATE CATALOG")?.hint == "MATERIALIZED VIEW, TABLE, SOURCE, VIEW or SINK is expected here.")
    #expect(failure("REBUILD v")?.hint == "MATERIALIZED VIEW is expected here.")
    #expect(failure("DROP v")?.hint == "TABLE, SOURCE, VIEW, MATERIALIZED VIEW or another kind of object is expected here.")
}

@Test func bytesThatAreNoTextAreRefusedWithTheirPosition() {
    let cases: [([UInt8], Int)] = [
        (Array("SELECT '".utf8) + [0xff] + Array("'".utf8), 8),
        (Array("SELECT 'é".utf8) + [0xc3], 10),
        (Array("SELECT 1".utf8) + [0], 8),
        ([0xed, 0xa0, 0x80], 0),
    ]
    for (bytes, position) in cases {
        do {
            _ = try Parser.parseStatements(utf8: bytes)
            Issue.record("accepted \(bytes)")
        } catch {
            #expect(error.sqlState == .characterNotInRepertoire)
            #expect(error.span?.start == position)
        }
    }
}

@Test func aNameThatIsTooLongIsRefused() {
    let long = String(repeating: "a", count: 256)
    #expect(failure("SELECT \(long)")?.sqlState == .nameTooLong)
    #expect(failure("SELECT \"\(long)\"")?.sqlState == .nameTooLong)
    #expect(failure("SELECT \(long.dropLast())") == nil)
}

@Test(arguments: [
    ("REFRESH MATERIALIZED VIEW CONCURRENTLY v", "REFRESH MATERIALIZED VIEW"),
    ("vacuum full t", "VACUUM"),
    ("ANALYZE t", "ANALYZE"),
    ("GRANT SELECT ON t TO joe", "GRANT"),
    ("REVOKE ALL ON t FROM joe", "REVOKE"),
    ("CREATE USER joe", "CREATE USER"),
    ("CREATE ROLE joe LOGIN PASSWORD 'x'", "CREATE ROLE"),
    ("CREATE OR REPLACE FUNCTION f() RETURNS int AS 'SELECT 1' LANGUAGE sql", "CREATE FUNCTION"),
    ("LISTEN changes", "LISTEN"),
    ("NOTIFY changes, 'x'", "NOTIFY"),
    ("ALTER SINK s SET (topic = 'y')", "ALTER SINK"),
    ("EXPLAIN VACUUM", "VACUUM"),
    ("DO $$ BEGIN END $$", "DO"),
])
func statementsThatAreNotThereAreRefusedByName(_ sql: String, _ name: String) throws {
    let error = try #require(failure("SELECT 1; " + sql))
    #expect(error.sqlState == .featureNotSupported)
    #expect(error.message == "\(name) is not supported")
    #expect(error.hint != nil)
    #expect(error.span?.start == (sql.hasPrefix("EXPLAIN") ? 18 : 10))
}

@Test func wordsThatOnlyBeginLikeAStatementAreSyntaxErrors() {
    for sql in ["VACUUMS", "\"VACUUM\"", "CREATE", "REVOKED x", "CREATE USERS", "SELECT vacuum FROM"] {
        #expect(failure(sql)?.sqlState == .syntaxError, "\(sql)")
    }
    #expect(failure("SELECT vacuum AS listen, grant_ AS notify FROM merge") == nil)
}

@Test func createTableAsTakesItsNamesFromTheQuery() {
    let names = failure("CREATE TABLE t (a, b) AS SELECT 1, 2")
    #expect(names?.sqlState == .featureNotSupported)
    #expect(names?.message == "columns without types in CREATE TABLE AS are not supported")
    #expect(names?.span?.start == 16)
    for sql in ["CREATE TABLE t AS SELECT 1 AS a WITH NO DATA", "CREATE MATERIALIZED VIEW t AS SELECT 1 AS a WITH NO DATA"] {
        #expect(failure(sql)?.message == "WITH NO DATA is not supported")
        #expect(failure(sql.replacing(" NO", with: "")) == nil)
    }
    #expect(failure("CREATE TABLE t (a, b)")?.hint == "a type is expected here.")
}
