import MillBase
import MillColumnar
import MillExpr
import MillOptimizer
import MillPlan
import MillSQL
import Testing

@Suite struct StreamPlanTests {
    private static let tables = """
        CREATE TABLE t (a INT, b INT); CREATE TABLE u (a INT, d INT); CREATE TABLE k (a INT PRIMARY KEY, x BIGINT);
        CREATE SOURCE s (a BIGINT, ts TIMESTAMP) WITH (connector = 'file');
        """

    private static let further = [
        "SELECT * FROM k JOIN s ON k.a = s.a JOIN u ON u.a = k.a",
        "SELECT k.x, count(*) FROM k LEFT JOIN t ON k.a = t.a + 1 GROUP BY k.x",
        "SELECT a, window_start, count(*) FROM HOP(s, ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY a, window_start",
        "SELECT a, window_start, count(*) FROM SESSION(s PARTITION BY a, ts, INTERVAL '2' SECOND) GROUP BY a, window_start",
        "SELECT count(*), max(a) FROM SESSION(s, ts, INTERVAL '2' SECOND) GROUP BY window_end",
        "SELECT * FROM SESSION(s PARTITION BY a, ts, INTERVAL '2' SECOND) JOIN k USING (a)",
        "SELECT x.a FROM t x RIGHT JOIN t y ON x.a = y.b AND x.b < y.a",
        "SELECT a % 2 AS m, count(DISTINCT b), sum(a * b) FROM t GROUP BY a % 2",
        "SELECT * FROM (VALUES (1, 2), (3, 1 + 1)) v(p, q) JOIN t ON v.p = t.a",
        "SELECT a FROM t WHERE b = (SELECT max(b) FROM t y WHERE y.a = t.a)",
    ]

    private static func world() throws -> PlanWorld {
        var world = PlanWorld()
        _ = try world.run(tables)
        return world
    }

    private static func bind(_ sql: String, _ world: PlanWorld) throws -> BoundQuery {
        guard case .query(let query) = try Parser.parseStatement(sql) else { throw SQLError(.syntaxError, "no query") }
        return Optimizer.optimize(try world.bind(query))
    }

    @Test(arguments: OptimizerLawTests.queries + further) func everyOperatorHasItsRowsTogether(sql: String) throws {
        let world = try Self.world()
        let query = try Self.bind(sql, world)
        for plan in [
            StreamPlanner.planQuery(query, relationProperties: world.relationProperties),
            try StreamPlanner.planView(query, relationProperties: world.relationProperties),
            try StreamPlanner.planChangelog(query, relationProperties: world.relationProperties),
        ] {
            for (index, node) in plan.nodes.enumerated() { check(node, index, plan) }
            let consumed = Set(plan.nodes.flatMap(\.inputs))
            #expect(plan.nodes.indices.dropLast().allSatisfy { consumed.contains(NodeIndex($0)) }, "every node but the root is read")
            #expect(plan[plan.root].schema.map(\.type) == query.plan.schema.map(\.type))
        }
    }

    private func check(_ node: StreamNode, _ index: Int, _ plan: StreamPlan) {
        #expect(node.inputs.allSatisfy { $0.number < index }, "inputs come first")
        let width = node.schema.count
        #expect((node.properties.uniqueKey ?? []).allSatisfy { $0 < width })
        if case .hash(let columns) = node.properties.distribution { #expect(!columns.isEmpty && columns.allSatisfy { $0 < width }) }
        let inputs = node.inputs.map { plan[$0] }
        let inputWidth = inputs.first?.schema.count ?? 0
        switch node.operation {
        case .source(_, let columns), .relation(_, let columns): #expect(columns.count == width)
        case .values(let rows): #expect(rows.allSatisfy { $0.count == width })
        case .filter(let predicate): #expect(predicate.columnsUsed.allSatisfy { $0 >= 0 && $0 < inputWidth })
        case .project(let expressions):
            #expect(expressions.allSatisfy { $0.columnsUsed.allSatisfy { $0 >= 0 && $0 < inputWidth } })
            #expect(expressions.map(\.type) == node.schema.map(\.type))
        case .timeWindow(let window): #expect(window.timeColumn < inputWidth && width == inputWidth + 2)
        case .panes(let window): #expect(window.timeColumn < inputWidth && width == inputWidth)
        case .sessionWindow(let window):
            #expect(isTogether(inputs[0], window.partition))
            #expect(window.timeColumn < inputWidth && width == inputWidth + 2)
        case .sessionAggregate(let window, let keys, let calls):
            #expect(isTogether(inputs[0], window.partition) && inputs[0].properties.appendOnly)
            #expect(Set(keys.filter { $0 < inputWidth }) == Set(window.partition) && keys.contains { $0 >= inputWidth })
            #expect(width == keys.count + calls.count)
        case .exchange(let distribution): #expect(node.properties.distribution == distribution)
        case .aggregate(let keys, let calls):
            #expect(isTogether(inputs[0], keys))
            #expect(width == keys.count + calls.count)
        case .join(let kind, let leftKeys, let rightKeys, let residual):
            #expect(leftKeys.count == rightKeys.count && kind != .right)
            #expect(isTogether(inputs[0], leftKeys) && isTogether(inputs[1], rightKeys))
            if case .hash(let left) = inputs[0].properties.distribution, case .hash(let right) = inputs[1].properties.distribution {
                let places = left.map { leftKeys.firstIndex(of: $0) }
                #expect(places == right.map { rightKeys.firstIndex(of: $0) }, "both sides hash the same keys")
            } else {
                #expect(inputs.allSatisfy { $0.properties.distribution == .single })
            }
            let total = inputWidth + inputs[1].schema.count
            #expect((residual?.columnsUsed ?? []).allSatisfy { $0 >= 0 && $0 < total })
            #expect(zip(leftKeys, rightKeys).allSatisfy { inputs[0].schema[$0].type == inputs[1].schema[$1].type })
        case .union: #expect(inputs.allSatisfy { $0.schema.count == width })
        case .rank(let window, _, _):
            #expect(isTogether(inputs[0], window.partition))
        case .materialize(let key): #expect(isTogether(inputs[0], key))
        case .result, .blackhole, .sink: break
        }
    }

    private func isTogether(_ node: StreamNode, _ keys: [Int]) -> Bool {
        switch node.properties.distribution {
        case .single: true
        case .any: false
        case .hash(let columns): !keys.isEmpty && columns.allSatisfy(keys.contains)
        }
    }

    @Test func equalPartsAreOneNode() throws {
        let world = try Self.world()
        let count = "SELECT a, window_start AS w, count(*) AS n FROM HOP(s, ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND) GROUP BY a, window_start"
        let query = try Self.bind("SELECT p.a FROM (\(count)) p JOIN (SELECT max(n) AS m, w FROM (\(count)) q GROUP BY w) r ON p.w = r.w AND p.n >= r.m", world)
        let plan = try StreamPlanner.planView(query, relationProperties: world.relationProperties)
        let counts = plan.nodes.count { if case .aggregate(_, let calls) = $0.operation { calls.first?.function == .count } else { false } }
        let sources = plan.nodes.count { if case .source = $0.operation { true } else { false } }
        #expect(counts == 1 && sources == 1)
    }

    @Test func aSourceUsedTwiceIsReadOnceForAllItsColumns() throws {
        let world = try Self.world()
        let query = try Self.bind("SELECT x.a FROM s x JOIN (SELECT max(ts) AS m FROM s) y ON x.ts = y.m", world)
        let plan = try StreamPlanner.planView(query, relationProperties: world.relationProperties)
        let columns = plan.nodes.compactMap { if case .source(_, let columns) = $0.operation { columns } else { nil } }
        #expect(columns == [[0, 1]])
    }

    @Test func aJobCannotReadASystemRelation() {
        let scan = LogicalScan(
            relation: RelationReference(id: ObjectID(1), name: "pg_class", kind: .system), columns: [0], schema: [Field("oid", .int32)])
        let query = BoundQuery(plan: .scan(scan))
        let properties: StreamPlanner.RelationProperties = { _ in StreamProperties(appendOnly: false, distribution: .any) }
        #expect { try StreamPlanner.planView(query, relationProperties: properties) } throws: { ($0 as? SQLError)?.sqlState == .featureNotSupported }
        let plan = StreamPlanner.planQuery(query, relationProperties: properties)
        #expect(plan.explained == """
            StreamResult <single, append-only>
              StreamScan { pg_class: [oid] } <single, append-only>
            """)
    }
}
