/// Random SQL over a given schema, from a seed.
///
/// Feeds the parser's fuzz test and end-to-end runs of the engine. The statements are well typed as far as the schema says, so
/// an engine may refuse one only for what it does not support or for what its data does (a division by zero), never by a
/// crash. With `isWild` it also uses constructs that need objects which a schema does not describe. Same seed, same
/// statements, on every platform.
package struct StatementGenerator {
    package enum ColumnType: String, Sendable, CaseIterable {
        case boolean, integer, bigint, double = "double precision", numeric, varchar, date, timestamp, interval

        var isNumeric: Bool { self == .integer || self == .bigint || self == .double || self == .numeric }
    }

    package struct Column: Sendable {
        package var name: String
        package var type: ColumnType

        package init(_ name: String, _ type: ColumnType) {
            self.name = name
            self.type = type
        }
    }

    package struct Table: Sendable {
        package var name: String
        package var columns: [Column]

        package init(_ name: String, _ columns: [Column]) {
            self.name = name
            self.columns = columns
        }
    }

    /// What a name may refer to at one place of a query.
    struct ScopedColumn {
        var text: String
        var type: ColumnType
    }

    package let tables: [Table]
    /// Also constructs of the grammar that only a parser can judge.
    package var isWild: Bool
    /// Levels of nesting that a statement may still open.
    package var depthMax = 4

    var random: SplitMix64
    private var aliases = 0

    /// - Parameter tables: at least one, each with at least one column.
    package init(seed: UInt64, tables: [Table], isWild: Bool = false) {
        precondition(tables.allSatisfy { !$0.columns.isEmpty } && !tables.isEmpty, "a schema has tables and they have columns")
        self.tables = tables
        self.isWild = isWild
        random = SplitMix64(state: seed)
    }

    /// Two tables with every type, for tests that have no schema of their own.
    package static let sampleTables = [
        Table(
            "events",
            [
                Column("id", .bigint), Column("player", .varchar), Column("score", .integer), Column("bonus", .boolean),
                Column("value", .numeric), Column("ts", .timestamp),
            ]),
        Table(
            "players",
            [
                Column("name", .varchar), Column("rating", .double), Column("born", .date), Column("level", .integer),
                Column("played", .interval),
            ]),
    ]

    // MARK: Statements

    /// Any statement: mostly queries, some views and changes of data.
    package mutating func statement() -> String {
        aliases = 0
        switch random.below(20) {
        case 0: return "CREATE MATERIALIZED VIEW v\(random.below(100)) AS \(query())"
        case 1: return insert()
        case 2: return update()
        case 3: return delete()
        case 4 where isWild: return wildStatement()
        case 5: return "EXPLAIN \(query())"
        default: return query()
        }
    }

    /// A query of any number of columns.
    package mutating func query() -> String {
        let types = (0...random.below(3)).map { _ in anyType() }
        return query(types: types, depth: 0)
    }

    package mutating func insert() -> String {
        let table = pick(tables)
        let columns = table.columns.map(\.name).joined(separator: ", ")
        let target = "INSERT INTO \(table.name) (\(columns))"
        if chance(10) { return "INSERT INTO \(table.name) DEFAULT VALUES" + returning(table) }
        if chance(4) { return "\(target) \(query(types: table.columns.map(\.type), depth: 1))" + returning(table) }
        let rows = (0...random.below(3)).map { _ in
            "(" + table.columns.map { chance(12) ? "DEFAULT" : constant($0.type) }.joined(separator: ", ") + ")"
        }
        return "\(target) VALUES \(rows.joined(separator: ", "))" + conflict(table) + returning(table)
    }

    /// The first column stands for the key, which not every table has.
    private mutating func conflict(_ table: Table) -> String {
        guard chance(3) else { return "" }
        let key = table.columns[0].name
        guard chance(2) else { return chance(2) ? " ON CONFLICT DO NOTHING" : " ON CONFLICT (\(key)) DO NOTHING" }
        let scope = table.columns.flatMap { column in
            [table.name, "excluded"].map { ScopedColumn(text: "\($0).\(column.name)", type: column.type) }
        }
        let filter = chance(3) ? " WHERE \(expression(.boolean, scope, 2))" : ""
        return " ON CONFLICT (\(key)) DO UPDATE SET \(assignments(table, scope))\(filter)"
    }

    package mutating func update() -> String {
        let table = pick(tables)
        let (name, from, scope) = changed(table)
        let others = from.map { " FROM \($0)" } ?? ""
        return "UPDATE \(name) SET \(assignments(table, scope))\(others) WHERE \(expression(.boolean, scope, 2))" + returning(table)
    }

    package mutating func delete() -> String {
        let table = pick(tables)
        let (name, from, scope) = changed(table)
        return "DELETE FROM \(name)\(from.map { " USING \($0)" } ?? "") WHERE \(expression(.boolean, scope, 1))" + returning(table)
    }

    /// A table to change under its name or an alias, sometimes a further relation, and the columns of both.
    private mutating func changed(_ table: Table) -> (name: String, from: String?, scope: [ScopedColumn]) {
        let alias = chance(3) ? "changed" : nil
        var scope = table.columns.map { ScopedColumn(text: "\(alias ?? table.name).\($0.name)", type: $0.type) }
        let name = alias.map { "\(table.name) AS \($0)" } ?? table.name
        guard chance(4) else { return (name, nil, scope) }
        var others: [ScopedColumn] = []
        let other = relation(&others, 1)
        scope += others
        return (name, other, scope)
    }

    private mutating func assignments(_ table: Table, _ scope: [ScopedColumn]) -> String {
        let column = pick(table.columns)
        let other = pick(table.columns)
        guard other.name != column.name, chance(3) else {
            return "\(column.name) = \(chance(10) ? "DEFAULT" : expression(column.type, scope, 2))"
        }
        if chance(2) { return "(\(column.name), \(other.name)) = (\(query(types: [column.type, other.type], depth: 2)))" }
        return "(\(column.name), \(other.name)) = ROW(\(expression(column.type, scope, 2)), \(expression(other.type, scope, 2)))"
    }

    private mutating func returning(_ table: Table) -> String {
        guard chance(5) else { return "" }
        return chance(2) ? " RETURNING *" : " RETURNING \(pick(table.columns).name)"
    }

    // MARK: Queries

    private mutating func query(types: [ColumnType], depth: Int) -> String {
        var text = chance(6) && depth < depthMax ? setOperation(types, depth) : select(types, depth)
        if chance(4) {
            let keys = (0..<min(types.count, 1 + random.below(2))).map { "\($0 + 1)" + pick(["", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST"]) }
            text += " ORDER BY " + keys.joined(separator: ", ")
            if chance(2) { text += " LIMIT \(random.below(20))" }
            if chance(4) { text += " OFFSET \(random.below(5))" }
        }
        if chance(12), depth < depthMax {
            let table = pick(tables)
            text = "WITH c\(random.below(9)) AS (SELECT * FROM \(table.name)) \(text)"
        }
        return text
    }

    private mutating func setOperation(_ types: [ColumnType], _ depth: Int) -> String {
        let word = pick(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"])
        return "\(select(types, depth + 1)) \(word) \(select(types, depth + 1))"
    }

    private mutating func select(_ types: [ColumnType], _ depth: Int) -> String {
        var scope: [ScopedColumn] = []
        let from = fromClause(&scope, depth)
        let inner = depth + 1
        let filter = chance(2) ? " WHERE \(expression(.boolean, scope, inner))" : ""
        if chance(3) { return aggregated(types, scope, from + filter, inner) }
        let items = types.enumerated().map { item in
            let window = chance(15) ? windowCall(item.element, scope) : nil
            return (window ?? expression(item.element, scope, inner)) + alias(item.offset)
        }
        return "SELECT \(chance(8) ? "DISTINCT " : "")\(items.joined(separator: ", ")) FROM \(from)\(filter)"
    }

    private mutating func aggregated(_ types: [ColumnType], _ scope: [ScopedColumn], _ rest: String, _ depth: Int) -> String {
        let keys = (0..<random.below(3)).map { _ in pick(scope) }
        let items = types.enumerated().map { item in
            let type = item.element
            if let key = keys.first(where: { $0.type == type }), chance(2) { return key.text + alias(item.offset) }
            return aggregate(type, scope, depth) + alias(item.offset)
        }
        var text = "SELECT \(items.joined(separator: ", ")) FROM \(rest)"
        if !keys.isEmpty { text += " GROUP BY " + keys.map(\.text).joined(separator: ", ") }
        if chance(4) { text += " HAVING count(*) > \(random.below(3))" }
        return text
    }

    private mutating func alias(_ offset: Int) -> String {
        switch random.below(3) {
        case 0: " AS c\(offset)"
        case 1: " c\(offset)"
        default: ""
        }
    }

    private mutating func fromClause(_ scope: inout [ScopedColumn], _ depth: Int) -> String {
        var text = relation(&scope, depth)
        while chance(4), depth < depthMax {
            var right: [ScopedColumn] = []
            let joined = relation(&right, depth + 1)
            let both = scope + right
            if chance(8) {
                text += " CROSS JOIN \(joined)"
            } else {
                let kind = pick(["JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN"])
                text += " \(kind) \(joined) ON \(joinCondition(scope, right) ?? expression(.boolean, both, depth + 2))"
            }
            scope = both
        }
        return text
    }

    private mutating func joinCondition(_ left: [ScopedColumn], _ right: [ScopedColumn]) -> String? {
        let pairs = left.flatMap { column in right.filter { $0.type == column.type }.map { (column.text, $0.text) } }
        guard !pairs.isEmpty else { return nil }
        let pair = pick(pairs)
        return "\(pair.0) = \(pair.1)"
    }

    private mutating func relation(_ scope: inout [ScopedColumn], _ depth: Int) -> String {
        aliases += 1
        let name = "r\(aliases)"
        if chance(6), depth < depthMax {
            let types = (0...random.below(2)).map { _ in anyType() }
            let inner = query(types: types, depth: depth + 1)
            scope = types.enumerated().map { ScopedColumn(text: "\(name).x\($0.offset)", type: $0.element) }
            let columns = types.indices.map { "x\($0)" }.joined(separator: ", ")
            return "(\(inner)) AS \(name) (\(columns))"
        }
        let table = pick(tables)
        scope = table.columns.map { ScopedColumn(text: "\(name).\($0.name)", type: $0.type) }
        if chance(8) { return ranked(table, name, &scope) }
        guard let time = table.columns.first(where: { $0.type == .timestamp }), chance(6) else {
            return "\(table.name) \(chance(2) ? "AS " : "")\(name)"
        }
        scope.append(ScopedColumn(text: "\(name).window_start", type: .timestamp))
        scope.append(ScopedColumn(text: "\(name).window_end", type: .timestamp))
        return switch random.below(3) {
        case 0: "TUMBLE(\(table.name), \(time.name), INTERVAL '\(1 + random.below(60)) SECONDS') AS \(name)"
        case 1: "HOP(\(table.name), \(time.name), INTERVAL '1' MINUTE, INTERVAL '\(2 + random.below(4))' MINUTE) AS \(name)"
        default:
            "SESSION(\(table.name)\(chance(3) ? "" : " PARTITION BY \(pick(table.columns).name)"), \(time.name), "
                + "INTERVAL '\(1 + random.below(60))' MINUTE) AS \(name)"
        }
    }

    /// A table's rows with their numbers, most often cut by them.
    private mutating func ranked(_ table: Table, _ name: String, _ scope: inout [ScopedColumn]) -> String {
        let number = rankCall(table.columns.map { ScopedColumn(text: $0.name, type: $0.type) })
        let bound = random.below(5)
        let cut = pick(["", " WHERE n <= \(bound)", " WHERE n = \(bound)", " WHERE \(bound) > n", " WHERE n BETWEEN 2 AND \(bound)"])
        scope.append(ScopedColumn(text: "\(name).n", type: .bigint))
        return "(SELECT * FROM (SELECT *, \(number) AS n FROM \(table.name)) AS q\(cut)) AS \(name)"
    }

    // MARK: Choices

    mutating func chance(_ oneIn: Int) -> Bool { random.below(oneIn) == 0 }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[random.below(elements.count)] }

    mutating func anyType() -> ColumnType { pick(ColumnType.allCases) }

    /// A query for use inside an expression.
    mutating func subquery(_ type: ColumnType, _ depth: Int) -> String { select([type], depth + 1) }
}

/// The generator of Steele, Lea and Flood: small, and the same everywhere.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    package var state: UInt64

    package init(state: UInt64) { self.state = state }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }

    /// From 0 to `bound` - 1.
    package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }
}
