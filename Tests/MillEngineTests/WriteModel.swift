import MillTestKit

/// Random statements that change two tables, and what the tables hold after each: written anew in plain Swift.
///
/// `t (id int PRIMARY KEY, n int, s varchar)` and `bag (x int, y int)` without a key.
struct WriteModel {
    struct Row: Hashable {
        var n: Int?
        var s: String
    }

    struct Pair: Hashable {
        var x: Int
        var y: Int
    }

    struct Tables: Equatable {
        var t: [Int: Row] = [:]
        var bag: [Pair: Int] = [:]

        mutating func move(_ pair: Pair, to other: Pair?) {
            let count = bag.removeValue(forKey: pair) ?? 0
            if let other, count > 0 { bag[other, default: 0] += count }
        }
    }

    static let definitions = "CREATE TABLE t (id int PRIMARY KEY, n int, s varchar); CREATE TABLE bag (x int, y int)"

    private(set) var tables = Tables()
    private var random: SplitMix64
    private var committed: Tables?
    private var savepoints: [(name: String, tables: Tables)] = []

    init(seed: UInt64) { random = SplitMix64(state: seed) }

    var isInBlock: Bool { committed != nil }

    /// The next statement, and how many rows it counts; nil when it does not count.
    mutating func next() -> (text: String, count: Int?) {
        switch random.below(16) {
        case 0: return boundary()
        case 1, 2: return insert()
        case 3, 4: return upsert()
        case 5: return insertOrNothing()
        case 6, 7: return update()
        case 8: return changeKey()
        case 9: return delete()
        case 10, 11: return fill()
        case 12: return updateBag()
        case 13: return deleteBag()
        case 14: return updateFrom()
        default: return insertFrom()
        }
    }

    /// Ends the open block, if there is one.
    mutating func finish() -> String {
        guard isInBlock else { return "SELECT 1" }
        committed = nil
        savepoints = []
        return "COMMIT"
    }

    private mutating func below(_ bound: Int) -> Int { random.below(bound) }

    private mutating func boundary() -> (String, Int?) {
        guard let before = committed else {
            committed = tables
            return ("BEGIN", nil)
        }
        switch below(4) {
        case 0:
            (tables, committed, savepoints) = (before, nil, [])
            return ("ROLLBACK", nil)
        case 1:
            savepoints.append(("s\(savepoints.count)", tables))
            return ("SAVEPOINT s\(savepoints.count - 1)", nil)
        case 2 where !savepoints.isEmpty:
            savepoints.removeSubrange((below(savepoints.count) + 1)...)
            let last = savepoints[savepoints.count - 1]
            tables = last.tables
            return ("ROLLBACK TO \(last.name)", nil)
        default: return (finish(), nil)
        }
    }

    private mutating func rows() -> [(id: Int, row: Row)] {
        (0...below(4)).map { _ in (below(12), Row(n: below(5) == 0 ? nil : below(10), s: "s\(below(3))")) }
    }

    private static func text(_ rows: [(id: Int, row: Row)]) -> String {
        rows.map { "(\($0.id), \($0.row.n.map(String.init) ?? "NULL"), '\($0.row.s)')" }.joined(separator: ", ")
    }

    private mutating func insert() -> (String, Int?) {
        let rows = rows()
        for (id, row) in rows { tables.t[id] = row }
        return ("INSERT INTO t VALUES \(Self.text(rows))", rows.count)
    }

    private mutating func upsert() -> (String, Int?) {
        var seen: Set<Int> = []
        let rows = rows().filter { seen.insert($0.id).inserted }
        var count = 0
        for (id, row) in rows {
            if let old = tables.t[id] {
                guard old.s != "s1" else { continue }
                tables.t[id] = Row(n: old.n.flatMap { n in row.n.map { n + $0 } }, s: old.s)
            } else {
                tables.t[id] = row
            }
            count += 1
        }
        return ("INSERT INTO t VALUES \(Self.text(rows)) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n WHERE t.s <> 's1'", count)
    }

    private mutating func insertOrNothing() -> (String, Int?) {
        let rows = rows()
        var count = 0
        for (id, row) in rows where tables.t[id] == nil {
            tables.t[id] = row
            count += 1
        }
        return ("INSERT INTO t VALUES \(Self.text(rows)) ON CONFLICT DO NOTHING", count)
    }

    private mutating func update() -> (String, Int?) {
        let (low, id, byKey) = (below(10), below(12), below(2) == 0)
        let hit = tables.t.filter { byKey ? $0.key == id : ($0.value.n ?? -1) >= low }
        for (id, row) in hit { tables.t[id] = Row(n: row.n.map { ($0 + 1) % 10 }, s: row.s + "") }
        return ("UPDATE t SET n = (n + 1) % 10 WHERE \(byKey ? "id = \(id)" : "n >= \(low)")", hit.count)
    }

    /// Moves all rows of some remainder beyond the others, so no key meets another.
    private mutating func changeKey() -> (String, Int?) {
        let remainder = below(3)
        let hit = tables.t.filter { $0.key % 3 == remainder && $0.key < 100 }
        let free = hit.keys.allSatisfy { tables.t[$0 + 100] == nil }
        guard free else { return delete() }
        for id in hit.keys { tables.t[id] = nil }
        for (id, row) in hit { tables.t[id + 100] = row }
        return ("UPDATE t SET id = id + 100 WHERE id % 3 = \(remainder) AND id < 100", hit.count)
    }

    private mutating func delete() -> (String, Int?) {
        let (first, second) = (below(12), 100 + below(12))
        let hit = tables.t.keys.filter { $0 == first || $0 == second }
        for id in hit { tables.t[id] = nil }
        return ("DELETE FROM t WHERE id IN (\(first), \(second))", hit.count)
    }

    private mutating func fill() -> (String, Int?) {
        let pairs = (0...below(4)).map { _ in Pair(x: below(6), y: below(3)) }
        for pair in pairs { tables.bag[pair, default: 0] += 1 }
        return ("INSERT INTO bag VALUES " + pairs.map { "(\($0.x), \($0.y))" }.joined(separator: ", "), pairs.count)
    }

    private mutating func updateBag() -> (String, Int?) {
        let x = below(6)
        let hit = tables.bag.filter { $0.key.x == x && $0.key.y > 0 }
        for pair in hit.keys { tables.bag[pair] = nil }
        for (pair, count) in hit { tables.bag[Pair(x: pair.x, y: pair.y - 1), default: 0] += count }
        return ("UPDATE bag SET y = y - 1 WHERE x = \(x) AND y > 0", hit.values.reduce(0, +))
    }

    private mutating func deleteBag() -> (String, Int?) {
        let y = below(3)
        let hit = tables.bag.filter { pair, _ in pair.y == y && tables.t[pair.x] != nil }
        for pair in hit.keys { tables.bag[pair] = nil }
        return ("DELETE FROM bag USING t WHERE t.id = bag.x AND y = \(y)", hit.values.reduce(0, +))
    }

    private mutating func updateFrom() -> (String, Int?) {
        let totals = tables.bag.reduce(into: [Int: Int]()) { $0[$1.key.x, default: 0] += $1.value }
        let hit = tables.t.filter { totals[$0.key] != nil }
        for (id, row) in hit { tables.t[id] = Row(n: totals[id], s: row.s) }
        return ("UPDATE t SET n = b.c FROM (SELECT x, count(*) AS c FROM bag GROUP BY x) b WHERE b.x = t.id", hit.count)
    }

    private mutating func insertFrom() -> (String, Int?) {
        guard tables.bag.values.reduce(0, +) < 60 else { return deleteBag() }
        let rows = tables.t.filter { $0.key < 4 }
        for (id, row) in rows { tables.bag[Pair(x: id, y: row.n.map { $0 % 3 } ?? 0), default: 0] += 1 }
        return ("INSERT INTO bag SELECT id, coalesce(n % 3, 0) FROM t WHERE id < 4", rows.count)
    }
}
