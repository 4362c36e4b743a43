import MillColumnar
import MillExpr
import MillPlan
import MillTestKit
import Testing

/// Every operator under the law of `LawRun`, a thousand random runs each.
@Suite struct OperatorLawTests {
    private static func randomTypes(_ count: ClosedRange<Int>, using random: inout SeededGenerator) -> [SQLType] {
        (0..<random.number(count)).map { _ in random.pick(RandomValues.types) }
    }

    @Test func filterKeepsTheRowsWhosePredicateIsTrue() {
        LawRun.forAll { random in
            var law = LawCase()
            let table = law.addTable([.boolean] + Self.randomTypes(0...2, using: &random), using: &random)
            var builder = PlanBuilder()
            let rows = law.scan(table, in: &builder)
            law.addView(builder.materialize(builder.filter(rows, .column(0, .boolean))))
            return law
        }
    }

    @Test func projectChoosesAndRepeatsColumns() {
        LawRun.forAll { random in
            var law = LawCase()
            let types = Self.randomTypes(1...4, using: &random)
            let table = law.addTable(types, using: &random)
            var builder = PlanBuilder()
            let rows = law.scan(table, in: &builder)
            var expressions = (0..<random.number(1...4)).map { _ in
                let column = random.number(0...types.count - 1)
                return BoundExpression.column(column, types[column])
            }
            expressions.append(.literal(random.pick([.int(5), .null]), .int64))
            law.addView(builder.materialize(builder.project(rows, expressions)))
            return law
        }
    }

    @Test func timeWindowGivesARowForEachWindow() {
        LawRun.forAll { random in
            var law = LawCase()
            let timeType = random.pick([SQLType.date, .timestamp, .timestamptz])
            let table = law.addTable([.int32, timeType], using: &random)
            var builder = PlanBuilder()
            let rows = law.scan(table, in: &builder)
            let day: Int64 = 86_400_000_000
            let slide = random.pick([1, 7, 1_000_000, day, 3 * day / 2])
            // Tumbling, hopping by whole and broken parts, and windows with gaps between them.
            let size = random.pick([slide, 2 * slide, slide * 5 / 2, max(slide / 2, 1), slide * 7 + 1])
            let window = TimeWindow(
                timeColumn: 1, boundType: timeType == .timestamptz ? .timestamptz : .timestamp, slideMicros: slide, sizeMicros: size,
                offsetMicros: random.pick([0, 0, 1, -3, day + 5]))
            law.addView(builder.materialize(builder.timeWindow(rows, window)))
            return law
        }
    }

    @Test func panesChangeNoWindow() {
        LawRun.forAll { random in
            var law = LawCase()
            let timeType = random.pick([SQLType.timestamp, .timestamptz])
            let table = law.addTable([random.pick([.int32, .varchar]), timeType], using: &random)
            var builder = PlanBuilder()
            let rows = law.scan(table, in: &builder)
            let slide: Int64 = random.pick([1, 7, 1_000_000, 3_600_000_000])
            let window = TimeWindow(
                timeColumn: 1, boundType: timeType, slideMicros: slide, sizeMicros: random.pick([slide, 2 * slide, slide * 5 / 2, slide * 7 + 1]),
                offsetMicros: random.pick([0, 0, 1, -3, 5_000_000]))
            let through = builder.timeWindow(builder.panes(rows, window), window)
            law.addView(builder.materialize(builder.aggregate(through, keys: [0, 2], [AggregateCall(.count, argument: nil, type: .int64)])))
            var beside = PlanBuilder()
            let panes = beside.panes(law.scan(table, in: &beside), window)
            law.addView(beside.materialize(beside.aggregate(beside.timeWindow(panes, window), keys: [3], [])))
            return law
        }
    }

    @Test func unionAddsItsInputs() {
        LawRun.forAll { random in
            var law = LawCase()
            let types = Self.randomTypes(1...3, using: &random)
            let tables = (0..<random.number(1...3)).map { _ in law.addTable(types, using: &random) }
            var builder = PlanBuilder()
            var inputs = tables.map { law.scan($0, in: &builder) }
            if random.oneIn(2) { inputs.append(inputs[0]) }
            let literals = (0..<random.number(0...3)).map { _ in types.map { random.pick(RandomValues.all($0) + [.null]) } }
            inputs.append(builder.values(literals, builder.schema(inputs[0])))
            law.addView(builder.materialize(builder.union(inputs)))
            return law
        }
    }

    // MARK: Aggregates

    /// The functions that take a type, as calls.
    private static func calls(_ column: Int, _ type: SQLType) -> [AggregateCall] {
        let argument = BoundExpression.column(column, type)
        var calls: [AggregateCall] = [
            AggregateCall(.count, argument: nil, type: .int64), AggregateCall(.count, argument: argument, type: .int64),
            AggregateCall(.min, argument: argument, type: type), AggregateCall(.max, argument: argument, type: type),
            AggregateCall(.singleValue, argument: argument, type: type),
        ]
        switch type {
        case .int16, .int32: calls += [AggregateCall(.sum, argument: argument, type: .int64), AggregateCall(.avg, argument: argument, type: .numeric)]
        case .int64, .numeric:
            calls += [AggregateCall(.sum, argument: argument, type: .numeric), AggregateCall(.avg, argument: argument, type: .numeric)]
        case .float32, .float64:
            calls += [AggregateCall(.sum, argument: argument, type: type), AggregateCall(.avg, argument: argument, type: .float64)]
        case .boolean:
            calls += [AggregateCall(.boolAnd, argument: argument, type: .boolean), AggregateCall(.boolOr, argument: argument, type: .boolean)]
        default: break
        }
        return calls
    }

    private static func aggregateCase(_ type: SQLType, keys: Int, appendOnly: Bool, using random: inout SeededGenerator) -> LawCase {
        var law = LawCase()
        let keyTypes = (0..<keys).map { _ in random.pick(RandomValues.types) }
        let table = law.addTable(keyTypes + [.boolean, type], appendOnly: appendOnly, using: &random)
        var builder = PlanBuilder()
        let rows = law.scan(table, in: &builder)
        let possible = calls(keys + 1, type)
        let chosen = (0..<random.number(1...4)).map { _ in
            var call = random.pick(possible)
            if random.oneIn(3) { call.filter = .column(keys, .boolean) }
            if random.oneIn(3), call.argument != nil, call.function != .singleValue { call.distinct = true }
            return call
        }
        law.addView(builder.materialize(builder.aggregate(rows, keys: Array(0..<keys), chosen)))
        return law
    }

    @Test(arguments: RandomValues.types) func aggregatesOfEveryFunction(type: SQLType) {
        LawRun.forAll { random in
            Self.aggregateCase(type, keys: random.number(1...2), appendOnly: random.oneIn(4), using: &random)
        }
    }

    @Test func aggregateWithoutKeysAlwaysHasOneRow() {
        LawRun.forAll { random in
            Self.aggregateCase(random.pick(RandomValues.types), keys: 0, appendOnly: random.oneIn(4), using: &random)
        }
    }

    @Test func distinctKeepsOneOfEachRow() {
        LawRun.forAll { random in
            var law = LawCase()
            let types = Self.randomTypes(1...3, using: &random)
            let table = law.addTable(types, using: &random)
            var builder = PlanBuilder()
            let rows = law.scan(table, in: &builder)
            law.addView(builder.materialize(builder.aggregate(rows, keys: Array(types.indices), [])))
            return law
        }
    }

    // MARK: Joins

    private static func joinCase(_ kind: JoinKind, residual: Bool, using random: inout SeededGenerator) -> LawCase {
        var law = LawCase()
        let keyCount = random.pick([1, 1, 1, 2, 0])
        let keyTypes = (0..<keyCount).map { _ in random.pick(RandomValues.types) }
        let appendOnly = random.oneIn(5)
        let left = law.addTable(keyTypes + [.boolean, .int32], appendOnly: appendOnly, using: &random)
        let right = law.addTable(keyTypes + [.boolean, .int32], appendOnly: appendOnly || random.oneIn(5), using: &random)
        law.changesMax = 16
        var builder = PlanBuilder()
        let leftRows = law.scan(left, in: &builder)
        let rightRows = law.scan(right, in: &builder)
        let width = keyCount + 2
        let keys = Array(0..<keyCount)
        let condition = residual ? Self.residual(keyCount, width, using: &random) : nil
        let joined = builder.join(kind, leftRows, rightRows, leftKeys: keys, rightKeys: keys, residual: condition)
        law.addView(builder.materialize(joined))
        return law
    }

    private static func residual(_ keyCount: Int, _ width: Int, using random: inout SeededGenerator) -> BoundExpression {
        let less = ScalarFunction(name: "less", argumentTypes: [.int32, .int32])
        return random.pick([
            .column(keyCount, .boolean), .column(width + keyCount, .boolean),
            .call(less, [.column(keyCount + 1, .int32), .column(width + keyCount + 1, .int32)], .boolean, nil),
            .or([.column(keyCount, .boolean), .isNull(.column(width + keyCount + 1, .int32))]),
        ])
    }

    private static let kinds: [JoinKind] = [.inner, .left, .right, .full, .semi, .anti]

    @Test(arguments: kinds) func joinsOfEveryKind(kind: JoinKind) {
        LawRun.forAll { random in Self.joinCase(kind, residual: false, using: &random) }
    }

    @Test(arguments: kinds) func joinsWithAResidualCondition(kind: JoinKind) {
        LawRun.forAll { random in Self.joinCase(kind, residual: true, using: &random) }
    }

    @Test func selfJoinSharesItsInput() {
        LawRun.forAll { random in
            var law = LawCase()
            law.changesMax = 12
            let table = law.addTable([.int32, .varchar, .boolean], using: &random)
            var builder = PlanBuilder()
            let rows = law.scan(table, in: &builder)
            let kind = random.pick(Self.kinds)
            let joined = builder.join(
                kind, rows, rows, leftKeys: [0], rightKeys: [0], residual: random.oneIn(2) ? .column(2, .boolean) : nil)
            law.addView(builder.materialize(joined))
            return law
        }
    }

    @Test func joinOnASkewedKeyGivesEveryPair() {
        LawRun.forAll(20) { random in
            var law = LawCase()
            law.changesMax = 120
            let left = law.addTable([.boolean, .int16], using: &random)
            let right = law.addTable([.boolean, .int16], using: &random)
            var builder = PlanBuilder()
            let joined = builder.join(
                random.pick(Self.kinds), law.scan(left, in: &builder), law.scan(right, in: &builder), leftKeys: [0], rightKeys: [0])
            law.addView(builder.materialize(builder.aggregate(joined, keys: [0, 1], [AggregateCall(.count, argument: nil, type: .int64)])))
            return law
        }
    }

    // MARK: Sessions

    /// A table of partition columns, a time whose values are near each other, a flag and a value; and a session window over it.
    private static func sessionCase(
        _ law: inout LawCase, value: SQLType, appendOnly: Bool, using random: inout SeededGenerator
    ) -> (table: Int, window: SessionWindow) {
        let partitionTypes = (0..<random.pick([0, 1, 1, 1, 2])).map { _ in random.pick(RandomValues.types) }
        let timeColumn = partitionTypes.count
        let timeType = random.pick([SQLType.timestamp, .timestamp, .timestamptz, .date])
        // Few times leave gaps that a row closes or opens; many give long sessions.
        let near = (0..<random.pick([3, 8, 20, 60])).map { _ in Scalar.int(Int64(random.number(-30...30))) }
        let far: [Scalar] = random.oneIn(3) ? RandomValues.all(timeType) : []
        let table = law.addTable(
            partitionTypes + [timeType, .boolean, value], appendOnly: appendOnly, values: [timeColumn: near + far], using: &random)
        let unit: Int64 = timeType == .date ? 86_400_000_000 : 1
        let gap = random.pick([unit, 2 * unit, 3 * unit, 7 * unit, 3 * unit + 1 - unit % 2, 100 * unit, SessionWindow.gapMicrosBound - 1])
        let window = SessionWindow(
            timeColumn: timeColumn, boundType: timeType == .timestamptz ? .timestamptz : .timestamp, gapMicros: gap,
            partition: Array(0..<timeColumn))
        return (table, window)
    }

    @Test func sessionWindowSplitsAndJoinsSessions() {
        LawRun.forAll { random in
            var law = LawCase()
            let type = random.pick(RandomValues.types)
            let (table, window) = Self.sessionCase(&law, value: type, appendOnly: random.oneIn(4), using: &random)
            var builder = PlanBuilder()
            law.addView(builder.materialize(builder.sessionWindow(law.scan(table, in: &builder), window)))
            return law
        }
    }

    @Test(arguments: RandomValues.types) func aggregatesOfSessionsAreMerged(type: SQLType) {
        LawRun.forAll { random in
            var law = LawCase()
            let (table, window) = Self.sessionCase(&law, value: type, appendOnly: true, using: &random)
            var builder = PlanBuilder()
            let width = window.partition.count + 3
            let possible = Self.calls(width - 1, type).filter { $0.function != .singleValue }
            let calls = (0..<random.number(0...4)).map { _ in
                var call = random.pick(possible)
                if random.oneIn(3) { call.filter = .column(width - 2, .boolean) }
                return call
            }
            let keys = window.partition + random.pick([[width, width + 1], [width], [width + 1]])
            let rows = law.scan(table, in: &builder)
            law.addView(builder.materialize(builder.sessionAggregate(rows, window, keys: keys.shuffled(using: &random), calls)))
            return law
        }
    }

    @Test func sessionsLongerThanABatch() {
        LawRun.forAll(2) { random in
            var law = LawCase()
            law.changesMax = 6000
            let times = (0..<5000).map { Scalar.int($0 * 3) }
            let table = law.addTable([.boolean, .timestamp, .varchar], values: [1: times], using: &random)
            var builder = PlanBuilder()
            let window = SessionWindow(timeColumn: 1, boundType: .timestamp, gapMicros: random.pick([3, 9, 30]), partition: [0])
            law.addView(builder.materialize(builder.sessionWindow(law.scan(table, in: &builder), window)))
            return law
        }
    }

    // MARK: Ranks

    private static func rankCase(
        _ cut: (inout SeededGenerator) -> Cut?, appendOnly: Bool = false, isNumbered: Bool = true, using random: inout SeededGenerator
    ) -> LawCase {
        var law = LawCase()
        let types = randomTypes(1...4, using: &random)
        let table = law.addTable(types, appendOnly: appendOnly, using: &random)
        var builder = PlanBuilder()
        let rows = law.scan(table, in: &builder)
        var columns = Array(types.indices).shuffled(using: &random)
        let partition = columns.prefix(random.pick([0, 1, 1, 1, 2]))
        columns = random.oneIn(4) ? columns : Array(columns.dropFirst(partition.count))
        let order = columns.prefix(random.number(0...2)).map {
            SortKey(column: $0, descending: random.oneIn(2), nullsFirst: random.oneIn(2))
        }
        let cut = cut(&random)
        let functions = isNumbered ? RankFunction.allCases.shuffled(using: &random).prefix(random.number(0...3)) : []
        let shown = cut == nil && functions.isEmpty ? [.rowNumber] : Array(functions)
        law.addView(builder.materialize(builder.rank(rows, Window(partition: Array(partition), order: order), shown, cut)))
        return law
    }

    private static func cut(_ random: inout SeededGenerator) -> Cut {
        Cut(
            random.pick([.rowNumber, .rowNumber, .rank, .denseRank]), limit: random.pick([0, 1, 1, 2, 5, 100, nil]),
            offset: random.pick([0, 0, 0, 1, 3]))
    }

    @Test func ranksFollowTheOrder() {
        LawRun.forAll { random in Self.rankCase({ _ in nil }, using: &random) }
    }

    @Test func cutsKeepTheFirstOfEachPartition() {
        LawRun.forAll { random in Self.rankCase(Self.cut, using: &random) }
    }

    @Test func cutsForgetWhatAppendOnlyInputPushesOut() {
        LawRun.forAll { random in Self.rankCase(Self.cut, appendOnly: true, using: &random) }
    }

    @Test func theFirstRowOfAppendOnlyInputIsKeptAlone() {
        LawRun.forAll { random in Self.rankCase({ _ in Cut(limit: 1) }, appendOnly: true, isNumbered: false, using: &random) }
    }

    @Test func firstRowsOfAppendOnlyInputAreKeptAlone() {
        LawRun.forAll { random in
            Self.rankCase(
                { random in
                    let last = random.pick([1, 2, 3, 4, 5, 8, 9, 10, 20, 127, 128, 129])
                    let offset = random.pick([0, 0, 0, 1, last / 2])
                    return Cut(limit: last - offset, offset: offset)
                }, appendOnly: true, using: &random)
        }
    }

    @Test func oneLargePartitionIsRankedAcrossBatches() {
        LawRun.forAll(2) { random in
            var law = LawCase()
            law.changesMax = 6000
            let table = law.addTable([.int64, .varchar, .float64], using: &random)
            var builder = PlanBuilder()
            let window = Window(partition: [], order: [SortKey(column: 0, descending: true, nullsFirst: false)])
            law.addView(builder.materialize(builder.rank(law.scan(table, in: &builder), window, RankFunction.allCases, nil)))
            return law
        }
    }

    // MARK: Order, and views over views

    @Test func topNCutsTheSameRowsAsSorting() {
        LawRun.forAll { random in
            var law = LawCase()
            let types = Self.randomTypes(1...3, using: &random)
            let table = law.addTable(types, using: &random)
            var builder = PlanBuilder()
            let rows = law.scan(table, in: &builder)
            var columns = Array(types.indices).shuffled(using: &random)
            columns.removeLast(random.number(0...columns.count - 1))
            let order = columns.map { SortKey(column: $0, descending: random.oneIn(2), nullsFirst: random.oneIn(2)) }
            let limit = random.pick([nil, 0, 1, 3, 10, 1000])
            law.addView(builder.materialize(builder.topN(rows, order: order, limit: limit, offset: random.pick([0, 0, 1, 5, 50]))))
            return law
        }
    }

    @Test func viewsOverViewsOverViews() {
        LawRun.forAll { random in
            var law = LawCase()
            law.changesMax = 20
            let first = law.addTable([.int32, .numeric], using: &random)
            let second = law.addTable([.int32, .varchar], using: &random)
            var sums = PlanBuilder()
            let grouped = sums.aggregate(
                law.scan(first, in: &sums), keys: [0],
                [
                    AggregateCall(.max, argument: .column(1, .numeric), type: .numeric), AggregateCall(.count, argument: nil, type: .int64),
                ])
            law.addView(sums.materialize(grouped, key: [0]))
            var joins = PlanBuilder()
            let joined = joins.join(
                random.pick([.inner, .left, .full]), law.scanView(0, in: &joins), law.scan(second, in: &joins), leftKeys: [0], rightKeys: [0])
            law.addView(joins.materialize(joined))
            var tops = PlanBuilder()
            let top = tops.topN(
                law.scanView(1, in: &tops), order: [SortKey(column: 1, descending: true, nullsFirst: false)], limit: 3, offset: 0)
            law.addView(tops.materialize(tops.union([top, law.scanView(1, in: &tops)])))
            return law
        }
    }

    @Test func largeBatchesCrossPagesAndLimits() {
        LawRun.forAll(1) { random in
            var law = LawCase()
            law.changesMax = 5000
            let left = law.addTable([.int64, .varchar, .boolean], using: &random)
            let right = law.addTable([.int64, .numeric, .float64], using: &random)
            var builder = PlanBuilder()
            let counted = [AggregateCall(.count, argument: nil, type: .int64)]
            let grouped = builder.aggregate(law.scan(left, in: &builder), keys: [0, 1], counted)
            let others = builder.aggregate(law.scan(right, in: &builder), keys: [0, 1], counted)
            law.addView(builder.materialize(builder.join(.full, grouped, others, leftKeys: [0], rightKeys: [0])))
            return law
        }
    }
}
