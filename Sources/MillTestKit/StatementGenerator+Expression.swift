/// Typed expressions, aggregates and constants.
extension StatementGenerator {
    /// An expression of `type` over the columns of `scope`.
    mutating func expression(_ type: ColumnType, _ scope: [ScopedColumn], _ depth: Int) -> String {
        let columns = scope.filter { $0.type == type }
        guard depth < depthMax + 2, !chance(4) else { return columns.isEmpty || chance(4) ? constant(type) : pick(columns).text }
        if isWild, chance(12) { return wildExpression(type, scope, depth) }
        if chance(25), depth < depthMax { return "(\(subquery(type, depth)) LIMIT 1)" }
        if chance(10) { return conditional(type, scope, depth) }
        if chance(15) { return "CAST(\(expression(type, scope, depth + 1)) AS \(type.rawValue))" }
        switch type {
        case .boolean: return condition(scope, depth)
        case .integer, .bigint, .double, .numeric: return arithmetic(type, scope, depth)
        case .varchar: return textual(scope, depth)
        case .date: return "(\(expression(.date, scope, depth + 1)) + \(random.below(400)))"
        case .timestamp:
            let word = pick(["+", "-"])
            return chance(4)
                ? "date_trunc('\(pick(["minute", "hour", "day"]))', \(expression(.timestamp, scope, depth + 1)))"
                : "\(expression(.timestamp, scope, depth + 1)) \(word) \(constant(.interval))"
        case .interval: return "(\(expression(.interval, scope, depth + 1)) + \(constant(.interval)))"
        }
    }

    private mutating func conditional(_ type: ColumnType, _ scope: [ScopedColumn], _ depth: Int) -> String {
        let first = expression(type, scope, depth + 1)
        let second = expression(type, scope, depth + 1)
        switch random.below(4) {
        case 0: return "COALESCE(\(first), \(second))"
        case 1: return "NULLIF(\(first), \(second))"
        case 2: return "CASE WHEN \(expression(.boolean, scope, depth + 1)) THEN \(first) ELSE \(second) END"
        default: return "CASE \(first) WHEN \(second) THEN \(first) END"
        }
    }

    private mutating func condition(_ scope: [ScopedColumn], _ depth: Int) -> String {
        let type = anyType()
        let left = "(\(expression(type, scope, depth + 1)))"
        let right = "(\(expression(type, scope, depth + 1)))"
        switch random.below(12) {
        case 0: return "\(expression(.boolean, scope, depth + 1)) AND \(expression(.boolean, scope, depth + 1))"
        case 1: return "(\(expression(.boolean, scope, depth + 1)) OR \(expression(.boolean, scope, depth + 1)))"
        case 2: return "NOT (\(expression(.boolean, scope, depth + 1)))"
        case 3: return "\(left) IS \(pick(["", "NOT "]))NULL"
        case 4: return "\(left) \(pick(["", "NOT "]))BETWEEN \(right) AND \(constant(type))"
        case 5: return "\(left) \(pick(["", "NOT "]))IN (\(constant(type)), \(constant(type)))"
        case 6: return "\(left) IS \(pick(["", "NOT "]))DISTINCT FROM \(right)"
        case 7: return "(\(expression(.varchar, scope, depth + 1))) \(pick(["LIKE", "NOT LIKE", "ILIKE"])) '\(pick(["a%", "%b_", ""]))'"
        case 8 where depth < depthMax: return "\(left) IN (\(subquery(type, depth)))"
        case 9 where depth < depthMax: return "EXISTS (\(subquery(type, depth)))"
        case 10 where depth < depthMax: return "\(left) \(pick(["= ANY", "> ALL", "<> SOME"])) (\(subquery(type, depth)))"
        default: return "\(left) \(pick(["=", "<>", "<", "<=", ">", ">=", "!="])) \(right)"
        }
    }

    private mutating func arithmetic(_ type: ColumnType, _ scope: [ScopedColumn], _ depth: Int) -> String {
        let left = expression(type, scope, depth + 1)
        switch random.below(8) {
        case 0: return "- (\(left))"
        case 1: return "abs(\(left))"
        case 2: return "GREATEST(\(left), \(expression(type, scope, depth + 1)))"
        case 3 where type == .integer: return "length(\(expression(.varchar, scope, depth + 1)))"
        case 4 where type == .numeric: return "EXTRACT(\(pick(["epoch", "hour", "day"])) FROM \(expression(.timestamp, scope, depth + 1)))"
        default:
            let operation = pick(type == .double ? ["+", "-", "*", "/"] : ["+", "-", "*", "/", "%"])
            return "(\(left) \(operation) \(expression(type, scope, depth + 1)))"
        }
    }

    private mutating func textual(_ scope: [ScopedColumn], _ depth: Int) -> String {
        let text = expression(.varchar, scope, depth + 1)
        switch random.below(8) {
        case 0: return "upper(\(text))"
        case 1: return "lower(\(text))"
        case 2: return "SUBSTRING(\(text) FROM \(1 + random.below(4)) FOR \(random.below(5)))"
        case 3: return "TRIM(\(pick(["BOTH", "LEADING", "TRAILING"])) 'x' FROM \(text))"
        case 4: return "replace(\(text), 'a', \(constant(.varchar)))"
        default: return "(\(text) || \(expression(.varchar, scope, depth + 1)))"
        }
    }

    mutating func aggregate(_ type: ColumnType, _ scope: [ScopedColumn], _ depth: Int) -> String {
        let argument = expression(type, scope, depth + 1)
        let filter = chance(6) ? " FILTER (WHERE \(expression(.boolean, scope, depth + 1)))" : ""
        switch type {
        case .boolean: return "\(pick(["bool_and", "bool_or"]))(\(argument))\(filter)"
        case .bigint where chance(2): return "count(\(pick(["*", "DISTINCT \(argument)", argument])))\(filter)"
        case .numeric, .double: return "\(pick(["sum", "avg", "min", "max"]))(\(argument))\(filter)"
        case .varchar where chance(3): return "string_agg(\(argument), ',' ORDER BY \(argument))\(filter)"
        default: return "\(pick(["min", "max"]))(\(argument))\(filter)"
        }
    }

    /// A window function that gives `type`; nil if there is none.
    mutating func windowCall(_ type: ColumnType, _ scope: [ScopedColumn]) -> String? {
        if type == .bigint { return rankCall(scope) }
        let order = pick(scope).text
        let window = "(PARTITION BY \(pick(scope).text) ORDER BY \(order)\(pick(["", " DESC", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"])))"
        guard let column = scope.first(where: { $0.type == type }) else { return nil }
        return "\(pick(["min", "max", "first_value", "last_value"]))(\(column.text)) OVER \(window)"
    }

    /// A number of the row in a window over columns.
    mutating func rankCall(_ scope: [ScopedColumn]) -> String {
        let partition = chance(3) ? "" : "PARTITION BY \(pick(scope).text)"
        let order = chance(8) ? "" : "ORDER BY \(pick(scope).text)\(pick(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]))"
        return "\(pick(["row_number", "rank", "dense_rank"]))() OVER (\([partition, order].filter { !$0.isEmpty }.joined(separator: " ")))"
    }

    mutating func constant(_ type: ColumnType) -> String {
        if chance(12) { return "NULL::\(type.rawValue)" }
        switch type {
        case .boolean: return pick(["TRUE", "FALSE"])
        case .integer: return "\(random.below(2000) - 1000)"
        case .bigint: return "\(pick([0, 1, -1, 1 << 40]) + random.below(100))::bigint"
        case .double: return pick(["0.5", "1e10", "-2.25", "3"]) + "::double precision"
        case .numeric: return "\(random.below(1000)).\(random.below(90) + 10)"
        case .varchar: return pick(["'a'", "'it''s'", "''", "E'tab\\t'", "'ключ'", "'abc'", "$$dollar$$"])
        case .date: return "DATE '2024-0\(1 + random.below(9))-1\(random.below(10))'"
        case .timestamp: return "TIMESTAMP '2024-01-0\(1 + random.below(9)) 0\(random.below(10)):00:00'"
        case .interval: return pick(["INTERVAL '15 SECONDS'", "INTERVAL '1' DAY", "INTERVAL '2' HOUR", "INTERVAL '1-2' YEAR TO MONTH"])
        }
    }

    // MARK: Constructs beyond the schema

    /// Shapes that the grammar allows and only a binder could judge.
    mutating func wildExpression(_ type: ColumnType, _ scope: [ScopedColumn], _ depth: Int) -> String {
        let inside = expression(anyType(), scope, depth + 1)
        let other = expression(type, scope, depth + 1)
        switch random.below(16) {
        case 0: return "ARRAY[\(inside), \(other)]"
        case 1: return "(\(inside)).field[1:\(random.below(9))]"
        case 2: return "(\(inside))::struct<a int, b \(type.rawValue)[]>"
        case 3: return "(\(inside)) \(pick(["->", "->>", "@>", "#>>", "~*", "!~", "<<", "&", "?"])) (\(other))"
        case 4: return "(\(inside)) OPERATOR(pg_catalog.~) (\(other))"
        case 5: return "(\(inside)) AT TIME ZONE 'UTC'"
        case 6: return "(\(inside)) COLLATE \"C\""
        case 7: return "ROW(\(inside), \(other))"
        case 8: return "- - \(random.below(5)) + ~ (\(other))"
        case 9: return "position((\(inside)) IN (\(other)))"
        case 10: return "percentile_cont(0.5) WITHIN GROUP (ORDER BY \(inside)) FILTER (WHERE \(other))"
        case 11: return "MAP {\(inside): \(other)}"
        case 12: return "f(x => \(inside), VARIADIC \(other))"
        case 13: return "\"Quoted \"\"name\"\"\".\"select\"(\(inside)) OVER (w ROWS 1 PRECEDING EXCLUDE TIES)"
        case 14: return "CURRENT_TIMESTAMP(\(random.below(7)))"
        default: return "$\(1 + random.below(9))::\(type.rawValue)[]"
        }
    }

    mutating func wildStatement() -> String {
        let table = pick(tables)
        let columns = table.columns.map { "\($0.name) \($0.type.rawValue)" }.joined(separator: ", ")
        switch random.below(9) {
        case 0: return "CREATE SOURCE s (\(columns)) WITH (connector = 'kafka', a.b.c = \(random.below(9)), 'q.r' = true) FORMAT PLAIN ENCODE JSON"
        case 1: return "CREATE TABLE t (\(columns), PRIMARY KEY (\(pick(table.columns).name))) APPEND ONLY"
        case 2: return "CREATE SINK s AS \(query()) WITH (connector = 'blackhole')"
        case 3: return "WITH x AS (\(query())) DELETE FROM \(table.name) AS d USING x WHERE \(wildExpression(.boolean, [], 3)) RETURNING *"
        case 4: return "INSERT INTO \(table.name) \(query()) ON CONFLICT (\(pick(table.columns).name)) DO UPDATE SET a = DEFAULT WHERE TRUE"
        case 5: return "DECLARE c SCROLL CURSOR FOR \(query())"
        case 6: return "COPY (\(query())) TO STDOUT WITH (FORMAT csv)"
        case 7: return "SELECT a FROM t GROUP BY ROLLUP (a, (b, c)), GROUPING SETS ((), (\(wildExpression(.integer, [], 3))))"
        default: return "PREPARE p (int, \(pick(table.columns).type.rawValue)) AS \(query())"
        }
    }
}
