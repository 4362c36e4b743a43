import MillBase
import MillColumnar
import MillExpr
import MillSQL
import MillTestKit

/// Statements of a user who means harm: every function and operator with the ends of every type, damaged text, definitions in
/// any order. Drawn from a seed.
struct HostileStatements {
    var random: SplitMix64
    var generator: StatementGenerator

    init(seed: UInt64, tables: [StatementGenerator.Table]) {
        random = SplitMix64(state: seed ^ 0x5eed)
        generator = StatementGenerator(seed: seed, tables: tables)
    }

    mutating func next() -> String {
        generator.isWild = random.below(3) == 0
        switch random.below(20) {
        case 0..<9: return generator.statement()
        case 9..<14: return random.below(8) == 0 ? operators() : calls()
        case 14..<17: return damaged(random.below(2) == 0 ? generator.statement() : pick(Self.definitions))
        case 17: return damaged(calls())
        default: return pick(Self.definitions)
        }
    }

    // MARK: Calls with the ends of types

    /// Every function over extreme constants, columns or both, as a query, a filter or a group.
    private mutating func calls() -> String {
        let call = call(depth: 0)
        switch random.below(8) {
        case 0: return "SELECT v FROM extremes WHERE (\(call)) IS NOT NULL"
        case 1: return "SELECT \(call), count(*) FROM extremes GROUP BY 1"
        case 2: return "SELECT min(\(call)), max(\(call)), count(DISTINCT \(call)) FROM extremes"
        case 3: return "SELECT \(pick(["sum", "avg", "bool_and", "string_agg", "min", "count", "array_agg", "stddev"]))(\(call)) FROM extremes"
        default: return "SELECT \(call) FROM extremes"
        }
    }

    private mutating func call(depth: Int) -> String {
        let name = pick(Self.functions)
        let signatures = FunctionRegistry.signatures(of: name)
        guard !signatures.isEmpty else { return value(.int64) }
        var types = signatures[random.below(signatures.count)].function.argumentTypes
        if random.below(20) == 0 { types.append(.int64) }
        let arguments = types.map { type in
            depth < 2 && random.below(6) == 0 ? self.call(depth: depth + 1) : value(random.below(25) == 0 ? pick(Self.types) : type)
        }
        return "\"\(name)\"(\(arguments.joined(separator: ", ")))"
    }

    private mutating func operators() -> String {
        let symbol = pick(["+", "-", "*", "/", "%", "^", "||", "<<", ">>", "&", "|", "#", "->", "->>", "~", "~*", "=", "<", "<>", "<=", "LIKE", "ILIKE"])
        let left = value(pick(Self.types))
        let right = value(pick(Self.types))
        return "SELECT (\(left)) \(symbol) (\(right)), CAST(\(left) AS \(pick(Self.types).name)), -(\(right)) FROM extremes"
    }

    private static let functions = FunctionRegistry.names
    private static let types: [SQLType] = [
        .boolean, .int16, .int32, .int64, .float32, .float64, .numeric, .varchar, .bytea, .date, .time, .timestamp, .timestamptz, .interval, .jsonb,
    ]

    /// A column of `extremes` or a constant at an end of its type.
    private mutating func value(_ type: SQLType) -> String {
        if random.below(3) == 0, let column = Self.columns[type.base] { return column }
        let text: String
        switch type.base {
        case .boolean: text = pick(["true", "false"])
        case .int16: text = pick(["32767", "-32768", "0", "-1"])
        case .int32: text = pick(["2147483647", "-2147483648", "0", "-1", "1", "64", "1000000"])
        case .int64: text = pick(["9223372036854775807", "-9223372036854775808", "0", "-1", "1", "63", "1000000000000"])
        case .float32, .float64: text = pick(["NaN", "Infinity", "-Infinity", "-0", "1e308", "1e-320", "0.5", "9.3e18", "1e38"])
        case .numeric:
            text = pick([
                "0", "-0.00000000000000000000000000000000000001", "99999999999999999999999999999999999999", "NaN", "Infinity", "-Infinity", "0.1",
                "-99999999999999999999999999999999999999", "12345678901234567890.123456789012345678", "-1", "40",
            ])
        case .date: text = pick(["infinity", "-infinity", "5874897-12-31", "4713-01-01 BC", "2024-02-29", "0001-01-01"])
        case .time: text = pick(["00:00:00", "23:59:59.999999", "24:00:00"])
        case .timestamp, .timestamptz: text = pick(["infinity", "-infinity", "294276-12-31 23:59:59.999999", "4713-01-01 00:00:00 BC", "1970-01-01", "2024-02-29 23:59:60"])
        case .interval:
            text = pick([
                "178000000 years", "-178000000 years", "2147483647 days", "-2147483648 days", "9223372036854 seconds", "-9223372036854 seconds",
                "0", "1 month -1 day", "1 day", "1 microsecond", "2562047788:00:54.775807",
            ])
        case .bytea: text = pick(["\\x", "\\x00ff", "\\xdeadbeef"])
        case .jsonb: text = pick(["null", "[]", "{}", "[1,[2,[3]]]", "{\"a\":{\"b\":1e400}}", "1e-400", "\"\\u0000\"", "-0"])
        default:
            text = pick([
                "", "a", "%", "_", "\\", "%\\", "é", "👩‍👩‍👧‍👦", "(", "[a-", "a{99999}", "(((((a*)*)*)*)*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "UTC", "+99:99",
                "year", "epoch", "YYYY-MM-DD HH24:MI:SS.US TZ", "99999999999999999999", "%s %1$s %99999999999s %", "\\1\\9\\&", "-", ",", "hex", "base64",
            ])
        }
        if random.below(15) == 0 { return "NULL" }
        if type.base == .varchar, random.below(12) == 0 { return "repeat('\(text.replacing("'", with: "''"))', \(1 << random.below(18)))" }
        let quoted = "'\(text.replacing("'", with: "''"))'"
        return random.below(8) == 0 ? quoted : "\(quoted)::\(type.name)"
    }

    private static let columns: [SQLType: String] = [
        .boolean: "b", .int16: "i2", .int32: "i4", .int64: "i8", .float32: "f4", .float64: "f8", .numeric: "n", .varchar: "v", .bytea: "y", .date: "d",
        .time: "t", .timestamp: "ts", .timestamptz: "tz", .interval: "iv", .jsonb: "j",
    ]

    // MARK: Definitions

    static let setup = [
        """
        CREATE TABLE extremes (b boolean, i2 smallint, i4 int, i8 bigint, f4 real, f8 double precision, n numeric, v varchar, y bytea, d date, t time, \
        ts timestamp, tz timestamptz, iv interval, j jsonb)
        """,
        "INSERT INTO extremes (v) VALUES (NULL), ('')",
        """
        INSERT INTO extremes VALUES (true, 32767, 2147483647, 9223372036854775807, 'Infinity', 'NaN', 99999999999999999999999999999999999999, 'é%_\\', \
        '\\x00', 'infinity', '24:00:00', 'infinity', 'infinity', '178000000 years', '{"a":[1,null,{"b":"c"}]}')
        """,
        """
        INSERT INTO extremes VALUES (false, -32768, -2147483648, -9223372036854775808, '-0', '-Infinity', -0.00000000000000000001, 'abc', '\\xff', \
        '4713-01-01 BC', '00:00:00', '4713-01-01 BC', '4713-01-01 BC', '-178000000 years', '[]')
        """,
        """
        INSERT INTO extremes VALUES (true, 0, 0, 0, 0, '1e308', 'NaN', '2024-02-29', '', '2024-02-29', '12:34:56.789', '2024-02-29 12:34:56.789', \
        '2024-02-29 12:34:56.789+14', '1 mon -1 day 00:00:01', '"x"')
        """,
        "CREATE TABLE events (id bigint PRIMARY KEY, player varchar, score integer, bonus boolean, value numeric, ts timestamp)",
        "CREATE TABLE players (name varchar, rating double precision, born date, level integer, played interval)",
        """
        INSERT INTO events SELECT i8, v, i4, b, n, ts FROM extremes WHERE i8 IS NOT NULL
        """,
        """
        INSERT INTO events VALUES (1, 'ann', 10, true, 1.50, '2024-01-01 00:00:00'), (2, 'bob', 20, false, 2.25, '2024-01-01 00:00:30'), \
        (3, 'ann', NULL, NULL, NULL, NULL), (4, 'cyd', -5, true, 0, '2024-01-02 00:01:00')
        """,
        "INSERT INTO players SELECT v, f8, d, i4, iv FROM extremes",
        "INSERT INTO players VALUES ('ann', 1.5, '2000-02-29', 3, '1 hour'), ('bob', 'NaN', NULL, 3, '1 day')",
        "CREATE SOURCE readings (id bigint, player varchar, score integer, bonus boolean, value numeric, ts timestamp) WITH (connector = 'file', path = '/in')",
        "CREATE MATERIALIZED VIEW totals AS SELECT player, count(*) AS level, sum(score) AS rating FROM events GROUP BY player",
        "CREATE VIEW named AS SELECT p.name, e.score FROM players p JOIN events e ON e.player = p.name",
        "CREATE TABLE bid (auction bigint, bidder bigint, price bigint, channel varchar, url varchar, date_time timestamp, extra varchar)",
        "INSERT INTO bid VALUES (1, 2, 3, 'web', 'u', '2024-01-01 00:00:01', ''), (1, 3, 9223372036854775807, NULL, NULL, '2024-01-01 00:00:11', NULL)",
    ]

    static let readings = """
        {"id": 1, "player": "ann", "score": 7, "bonus": true, "value": 1.25, "ts": "2024-01-01T00:00:01Z"}
        {"id": 2, "player": null, "score": "x", "bonus": 1, "value": "1e30", "ts": 1704067200}
        not json
        {"id": 9223372036854775808, "player": {"a": 1}, "ts": "yesterday"}
        {"id": 3, "player": "bob", "score": 2147483648, "value": 0.1, "ts": "2024-01-01 00:00:59.5"}

        """

    static let tables = [
        StatementGenerator.Table(
            "events", [.init("id", .bigint), .init("player", .varchar), .init("score", .integer), .init("bonus", .boolean), .init("value", .numeric), .init("ts", .timestamp)]),
        StatementGenerator.Table(
            "players", [.init("name", .varchar), .init("rating", .double), .init("born", .date), .init("level", .integer), .init("played", .interval)]),
        StatementGenerator.Table(
            "readings", [.init("id", .bigint), .init("player", .varchar), .init("score", .integer), .init("bonus", .boolean), .init("value", .numeric), .init("ts", .timestamp)]),
        StatementGenerator.Table("totals", [.init("player", .varchar), .init("level", .bigint), .init("rating", .bigint)]),
        StatementGenerator.Table("named", [.init("name", .varchar), .init("score", .integer)]),
        StatementGenerator.Table(
            "extremes",
            [
                .init("b", .boolean), .init("i4", .integer), .init("i8", .bigint), .init("f8", .double), .init("n", .numeric), .init("v", .varchar),
                .init("d", .date), .init("ts", .timestamp), .init("iv", .interval),
            ]),
    ]

    static let definitions = [
        """
        CREATE MATERIALIZED VIEW hot AS WITH counts AS (SELECT auction, count(*) AS num, window_start FROM HOP(bid, date_time, INTERVAL '2' SECOND, \
        INTERVAL '10' SECOND) GROUP BY auction, window_start) SELECT x.auction, x.num FROM counts x JOIN (SELECT max(num) AS maxn, window_start \
        FROM counts GROUP BY window_start) y ON x.window_start = y.window_start AND x.num >= y.maxn
        """,
        """
        SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN (SELECT max(price) AS maxprice, window_end \
        FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_end) m ON b.price = m.maxprice \
        WHERE b.date_time BETWEEN m.window_end - INTERVAL '10' SECOND AND m.window_end
        """,
        "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid WHERE mod(auction, 123) = 0",
        "DROP MATERIALIZED VIEW hot",
        """
        CREATE SOURCE IF NOT EXISTS balloon_game_events (player string, balloon_color string, score integer, page_id integer, \
        favorite_color_bonus boolean, event_ts timestamptz) WITH (connector='file', path='/in', topic='balloon-game', scan.startup.mode='latest') \
        FORMAT PLAIN ENCODE JSON
        """,
        """
        CREATE MATERIALIZED VIEW IF NOT EXISTS mv_leaderboard AS SELECT player, sum(score) as total_score, count(case when bonus = true then 1 end) \
        as bonus_hits, max(ts) as event_ts FROM events GROUP BY player
        """,
        "CREATE MATERIALIZED VIEW w1 AS SELECT score, count(*) AS c, min(value), max(ts) FROM events GROUP BY score",
        "CREATE MATERIALIZED VIEW w2 AS SELECT * FROM totals ORDER BY level DESC LIMIT 2",
        "CREATE MATERIALIZED VIEW w3 AS SELECT window_start, count(*) FROM TUMBLE(events, ts, INTERVAL '1' MINUTE) GROUP BY window_start",
        "CREATE MATERIALIZED VIEW w4 AS SELECT window_start, count(*) FROM HOP(readings, ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE) GROUP BY window_start",
        "CREATE MATERIALIZED VIEW w5 AS SELECT e.id, p.name FROM events e LEFT JOIN players p ON e.player = p.name AND e.score > p.level",
        "CREATE MATERIALIZED VIEW w6 AS SELECT a.id FROM events a JOIN events b ON a.player = b.player WHERE a.id <> b.id",
        "CREATE MATERIALIZED VIEW w7 AS SELECT DISTINCT player FROM readings UNION ALL SELECT name FROM players",
        "CREATE MATERIALIZED VIEW w8 AS SELECT count(DISTINCT score) FILTER (WHERE bonus), avg(value) FROM events",
        "CREATE MATERIALIZED VIEW w9 AS SELECT score / (score - 10) AS q, 1 / score FROM events",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS w1 AS SELECT 1 AS one",
        "CREATE MATERIALIZED VIEW constant AS SELECT 1 AS one, NULL AS nothing",
        "CREATE OR REPLACE VIEW named AS SELECT 1 AS name, 2 AS score",
        "CREATE VIEW u1 AS SELECT * FROM w1",
        "DROP MATERIALIZED VIEW w1", "DROP MATERIALIZED VIEW w1 CASCADE", "DROP MATERIALIZED VIEW IF EXISTS w2, w3 CASCADE", "DROP VIEW u1",
        "DROP MATERIALIZED VIEW w4", "DROP MATERIALIZED VIEW w5", "DROP MATERIALIZED VIEW w6", "DROP MATERIALIZED VIEW w7", "DROP MATERIALIZED VIEW w8",
        "DROP MATERIALIZED VIEW w9", "DROP MATERIALIZED VIEW IF EXISTS constant", "DROP SOURCE readings", "DROP TABLE scratch CASCADE", "DROP VIEW nothing",
        "CREATE TABLE scratch (a int PRIMARY KEY, b varchar NOT NULL DEFAULT 'x', c numeric(5, 2))",
        "CREATE TABLE scratch AS SELECT * FROM events", "CREATE TABLE IF NOT EXISTS scratch (a int)", "CREATE TABLE empty ()",
        "CREATE TABLE twice (a int, a int)", "CREATE TABLE keyed (a int, PRIMARY KEY (nothing))", "CREATE TABLE keyed (a int PRIMARY KEY, b int PRIMARY KEY)",
        "CREATE TABLE generated (a int, b int AS a * 2 STORED)", "CREATE TABLE marked (ts timestamp, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)",
        "CREATE SOURCE missing (a int) WITH (connector = 'file', path = '/nowhere')", "CREATE SOURCE odd (a int) WITH (connector = 'none')",
        "CREATE SOURCE kept (a int) WITH (connector = 'file', path = '[')", "CREATE SOURCE plain (a int)",
        "INSERT INTO scratch (a) VALUES (1), (1), (2)", "INSERT INTO scratch VALUES (1, NULL, 1)", "INSERT INTO scratch (a, b) SELECT score, player FROM events",
        "INSERT INTO events VALUES (1, 'ann', 11, true, 1.50, '2024-01-01 00:00:00')", "INSERT INTO totals VALUES (1)", "INSERT INTO readings VALUES (1)",
        "INSERT INTO scratch (a, a) VALUES (1, 2)", "INSERT INTO scratch VALUES (1, 'x', 99999)", "INSERT INTO scratch DEFAULT VALUES",
        "INSERT INTO scratch (a) VALUES (DEFAULT) RETURNING *, a + 1", "INSERT INTO events (id) VALUES (9) RETURNING id / 0",
        "SHOW TABLES", "SHOW SOURCES", "SHOW MATERIALIZED VIEWS", "SHOW VIEWS", "SHOW SINKS", "SHOW JOBS", "SHOW ALL", "SHOW FUNCTIONS", "SHOW TABLES LIKE '%e\\_'",
        "SHOW CREATE TABLE events", "SHOW CREATE MATERIALIZED VIEW w1", "SHOW COLUMNS FROM readings", "DESCRIBE events", "DESCRIBE w1", "SHOW timezone", "SHOW nothing",
        "SET on_error = null", "SET on_error TO raise", "SET timezone = 'Mars'", "SET a.b = 1, 2", "RESET ALL", "DISCARD ALL", "SET statement_timeout = -1",
        "FLUSH", "WAIT", "BEGIN", "COMMIT", "ROLLBACK", "BEGIN; INSERT INTO scratch VALUES (5, 'five', 5); SELECT * FROM scratch; COMMIT", "COMMIT AND CHAIN",
        "SAVEPOINT s", "PREPARE q AS SELECT $1 + 1", "PREPARE q (int) AS INSERT INTO scratch VALUES ($1, 'p', 0)", "EXECUTE q(1)", "EXECUTE q(1/0)", "EXECUTE q",
        "EXECUTE q('x')", "DEALLOCATE q", "DEALLOCATE ALL", "PREPARE r AS EXECUTE r", "EXECUTE r", "PREPARE s AS SELECT 1; EXECUTE s",
        "EXPLAIN SELECT * FROM totals t JOIN events e ON t.player = e.player", "EXPLAIN (LOGICAL) SELECT 1", "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT player, count(*) FROM events GROUP BY player", "EXPLAIN INSERT INTO scratch VALUES (1)", "EXPLAIN EXPLAIN SELECT 1",
        "SELECT * FROM pg_catalog.pg_class", "SELECT * FROM information_schema.tables", "SELECT * FROM readings_rejects", "SELECT * FROM w1_errors", "SELECT * FROM w9",
        "SELECT * FROM w1, w2, w3", "SELECT * FROM w4 ORDER BY 1 OFFSET 1", "SELECT 1 LIMIT 9223372036854775807 OFFSET 9223372036854775807", "SELECT 1 LIMIT -1",
        "SELECT 1 LIMIT NULL", "SELECT * FROM generate_series(1, 9223372036854775807)", "SELECT * FROM generate_series(1, 10, 0)", "TABLE events", "VALUES (1), (2, 3)",
        "VALUES (1), ('a')", "SELECT", "SELECT FROM events", "SELECT *", "SELECT repeat('a', 2147483647)", "SELECT repeat(repeat('a', 100000), 100000)",
        "SELECT lpad('a', 2147483647, 'b')", "SELECT * FROM HOP(events, ts, INTERVAL '1 microsecond', INTERVAL '1000 days')",
        "SELECT * FROM TUMBLE(events, ts, INTERVAL '0')", "SELECT * FROM TUMBLE(events, ts, INTERVAL '-1 day')", "SELECT * FROM TUMBLE(events, ts, INTERVAL '1 month')",
        "SELECT * FROM TUMBLE(extremes, ts, INTERVAL '106751991 days')", "SELECT * FROM HOP(extremes, ts, INTERVAL '106751991 days', INTERVAL '106751991 days')",
        "SELECT sum(i8), avg(i8), sum(n), sum(f8), sum(iv), avg(iv), sum(i4), sum(i2), avg(n) FROM extremes", "SELECT sum(i8 * 2) FROM extremes",
        "SELECT * FROM events a, events b, events c, events d, players e, players f", "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
        "WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a", "SELECT a.* FROM events", "SELECT events.*, e.* FROM events e", "SELECT max(max(score)) FROM events",
        "SELECT player, score FROM events GROUP BY player", "SELECT (SELECT id FROM events)", "SELECT id FROM events WHERE count(*) > 1", "SELECT 1 ORDER BY 2",
        "SELECT DISTINCT player FROM events ORDER BY score", "SELECT id FROM events UNION SELECT player FROM events", "SELECT 1 UNION SELECT 1, 2",
        "SELECT CASE WHEN 1 THEN 2 END", "SELECT 1 + 'a'", "SELECT 'a'::int", "SELECT 99999999999999999999999999999999999999999999", "SELECT 1e400", "SELECT -9223372036854775808",
        "SELECT INTERVAL '1' DAY * 1e300", "SELECT DATE 'infinity' - DATE '-infinity'", "SELECT timestamp 'infinity' - timestamp '-infinity'",
        "COPY events FROM STDIN", "DECLARE c CURSOR FOR SELECT 1", "CREATE SINK k FROM events WITH (connector = 'blackhole')", "CREATE INDEX i ON events (score)",
        "CREATE SCHEMA s", "CREATE SCHEMA s; CREATE TABLE s.t (a int); SELECT * FROM s.t; DROP TABLE s.t; DROP SCHEMA s", "DROP SCHEMA s CASCADE", "CREATE DATABASE d",
        "UPDATE events SET score = 1", "DELETE FROM events", "ALTER TABLE events ADD COLUMN z int", "TRUNCATE events", "GRANT ALL ON events TO root", "CANCEL JOBS 1", "",
        ";;;", "--", "/*", "SELECT $1", "SELECT $65535", "SELECT $0", "SELECT $99999999999999999999",
    ]

    // MARK: Damage

    /// Deletes, doubles, swaps and inserts tokens.
    private mutating func damaged(_ sql: String) -> String {
        let bytes = Array(sql.utf8)
        guard let lexer = try? Lexer(bytes) else { return sql }  // What no lexer takes is damaged enough.
        var pieces = lexer.tokens.map { String(decoding: bytes[Int($0.start)..<Int($0.end)], as: UTF8.self) }
        for _ in 0...random.below(3) where !pieces.isEmpty {
            let index = random.below(pieces.count)
            switch random.below(5) {
            case 0: pieces.remove(at: index)
            case 1: pieces.insert(pieces[index], at: index)
            case 2: pieces.swapAt(index, random.below(pieces.count))
            case 3: pieces[index] = pick(Self.strangers)
            default: pieces.insert(pick(Self.strangers), at: index)
            }
        }
        return pieces.joined(separator: " ")
    }

    private static let strangers = [
        "(", ")", "[", "]", ",", ";", ".", "::", "NOT", "SELECT", "FROM", "AS", "=", "-", "*", "1", "'x'", "\"q\"", "IN", "WITH", "END", "NULL", "events", "id", "player",
        "ts", "int", "interval", "count(*)", "sum(score)", "DISTINCT", "OVER ()", "GROUP BY", "ORDER BY 1", "LIMIT", "-9223372036854775808", "1e999", "'NaN'", "AND", "OR",
        "CASE", "WHEN", "THEN", "JOIN", "LEFT", "ON", "TRUE", "UNION", "ALL", "EXISTS", "LATERAL", "VALUES", "(SELECT 1)", "$1", "ROW(1, 2)", "ARRAY[1]", "''",
    ]

    private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[random.below(elements.count)] }
}
