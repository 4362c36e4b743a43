import MillBase
import MillColumnar
import MillExpr
import MillIO
import MillPlan
import MillState
import MillStore
import MillTestKit
import Testing

@testable import MillDataflow

/// The law of late rows: what a job shows is what batch SQL gives over its operators' inputs without the rows that it names late; with
/// EMIT ON WINDOW CLOSE of that the part that is closed. Random deltas, watermarks, workers, cuts and restarts.
@Suite struct LateRowLawTests {
    @Test(arguments: LateRowRun.Form.allCases) func aJobIsBatchOverItsInputWithoutLateRows(form: LateRowRun.Form) {
        for seed in LawSettings(runs: 300).seeds {
            var run = LateRowRun(seed: seed, form)
            if let problem = run.problem() {
                Issue.record("MILLRACE_SEED=\(seed) \(form): \(problem)")
                return
            }
        }
    }
}

struct LateRowRun {
    enum Form: String, CaseIterable {
        case byWindow, byWindowInParts, byWindowAndKey, inPanes, byTime, overGroups, overView, join, near, sessions, ranks, firstRows
    }

    private struct Table {
        let reference: RelationReference
        var rows: [[Scalar]] = []
    }

    private static let minute: Int64 = 60_000_000
    private static let schema: Schema = [Field("id", .int64), Field("at", .timestamp), Field("k", .int32), Field("v", .int64), Field("s", .varchar)]

    private let form: Form
    private var random: SeededGenerator
    private var tables: [Table] = []
    private var views: [(reference: RelationReference, plan: StreamPlan)] = []
    private var driver: CircuitDriver
    private let files = MemoryFileSystem()
    private let isAppendOnly: Bool
    private let emitsOnClose: Bool
    private var nextID: Int64 = 0
    /// Minutes that event time has come to.
    private var minutes: Int64 = 0
    private var step = WatermarkStep()
    private var epoch = Epoch(1)

    init(seed: UInt64, _ form: Form) {
        self.form = form
        var random = SeededGenerator(seed: seed &* 0x9E37_79B9_7F4A_7C15)
        let isRarelyAppendOnly = random.oneIn(3)
        let mayWait = random.oneIn(2)
        isAppendOnly = form == .sessions || form == .byWindowInParts || form == .firstRows || isRarelyAppendOnly
        emitsOnClose = ![.join, .near, .ranks, .firstRows].contains(form) && mayWait
        driver = CircuitDriver(workerCount: random.number(1...3), seed: random.next())
        self.random = random
        for number in 0..<(form == .join || form == .near ? 2 : 1) {
            tables.append(Table(reference: RelationReference(id: ObjectID(UInt32(100 + number)), name: "t\(number)", kind: .table)))
        }
        makeViews()
    }

    private func scan(_ table: Int, _ builder: inout PlanBuilder) -> NodeIndex {
        builder.relation(tables[table].reference, Self.schema, appendOnly: isAppendOnly, watermarks: [1])
    }

    private mutating func addView(_ plan: StreamPlan) {
        views.append((RelationReference(id: ObjectID(UInt32(200 + views.count)), name: "v\(views.count)", kind: .materializedView), plan))
    }

    private var calls: [AggregateCall] {
        var distinct = AggregateCall(.count, argument: .column(2, .int32), type: .int64)
        distinct.distinct = true
        return [
            AggregateCall(.count, argument: nil, type: .int64), AggregateCall(.max, argument: .column(4, .varchar), type: .varchar),
            AggregateCall(.sum, argument: .column(3, .int64), type: .numeric), AggregateCall(.min, argument: .column(3, .int64), type: .int64),
        ] + (form == .sessions ? [] : [distinct])
    }

    private mutating func makeViews() {
        var builder = PlanBuilder()
        builder.emitsOnClose = emitsOnClose
        let rows = scan(0, &builder)
        let slide = random.pick([1, 5, 7]) * Self.minute
        let window = TimeWindow(
            timeColumn: 1, boundType: .timestamp, slideMicros: slide, sizeMicros: random.pick([slide, 2 * slide, slide / 2, 3 * slide + 1]),
            offsetMicros: random.pick([0, 1, -Self.minute]))
        switch form {
        case .byWindow: addView(builder.materialize(builder.aggregate(builder.timeWindow(rows, window), keys: [5, 6], calls)))
        case .byWindowInParts:
            let ofParts = calls.filter { !$0.distinct }
            let parts = builder.partialAggregate(builder.timeWindow(rows, window), keys: [5, 6], ofParts)
            let wholes = ofParts.enumerated().map { place, call in
                let isCount = call.function == .count
                return AggregateCall(isCount ? .sum : call.function, argument: .column(2 + place, call.type), type: isCount ? .numeric : call.type)
            }
            addView(builder.materialize(builder.aggregate(parts, keys: [0, 1], wholes)))
        case .byWindowAndKey: addView(builder.materialize(builder.aggregate(builder.timeWindow(rows, window), keys: [2, 6], calls)))
        case .inPanes: addView(builder.materialize(builder.aggregate(builder.timeWindow(builder.panes(rows, window), window), keys: [2, 6], [calls[0]])))
        case .byTime: addView(builder.materialize(builder.aggregate(rows, keys: [1], calls)))
        case .overGroups:
            let groups = builder.aggregate(builder.timeWindow(rows, window), keys: [2, 5], [calls[0]])
            let most = AggregateCall(.max, argument: .column(2, .int64), type: .int64)
            addView(builder.materialize(builder.aggregate(groups, keys: [1], [most])))
        case .overView:
            addView(builder.materialize(builder.aggregate(builder.timeWindow(rows, window), keys: [2, 5], [calls[0]])))
            let properties = views[0].plan[views[0].plan.root].properties
            var upper = PlanBuilder()
            upper.emitsOnClose = random.oneIn(2)
            let below = upper.relation(
                views[0].reference, views[0].plan[views[0].plan.root].schema, appendOnly: properties.appendOnly, watermarks: properties.watermarks)
            addView(upper.materialize(upper.aggregate(below, keys: [1], [AggregateCall(.sum, argument: .column(2, .int64), type: .numeric)])))
        case .join:
            let kind = random.pick([JoinKind.inner, .left, .full, .semi, .anti])
            let keys = random.pick([[1], [1, 2], [2, 1]])
            addView(builder.materialize(builder.join(kind, rows, scan(1, &builder), leftKeys: keys, rightKeys: keys)))
        case .near:
            let keys = random.pick([[2], []])
            addView(builder.materialize(builder.join(.inner, rows, scan(1, &builder), leftKeys: keys, rightKeys: keys, residual: nearness())))
        case .ranks, .firstRows:
            let functions: [RankFunction] = random.pick([[.rowNumber], [.rank, .denseRank], []])
            let isCut = form == .firstRows || functions.isEmpty || random.oneIn(2)
            let by: RankFunction = form == .firstRows || random.oneIn(2) ? .rowNumber : .rank
            let cut = Cut(by, limit: random.number(1...3), offset: random.number(0...1))
            let order = Window(partition: random.pick([[6], [2, 5], [5]]), order: [SortKey(column: 3, descending: random.oneIn(2), nullsFirst: false)])
            addView(builder.materialize(builder.rank(builder.timeWindow(rows, window), order, functions, isCut ? cut : nil)))
        case .sessions:
            let window = SessionWindow(
                timeColumn: 1, boundType: .timestamp, gapMicros: random.pick([1, 3, 10]) * Self.minute, partition: random.pick([[], [2]]))
            addView(builder.materialize(builder.sessionAggregate(rows, window, keys: window.partition + random.pick(emitsOnClose ? [[5, 6], [6]] : [[5, 6], [5], [6]]), calls)))
        }
    }

    /// `l.at >= r.at - ... AND l.at + ... <= r.at`, or one of both, which closes nothing.
    private mutating func nearness() -> BoundExpression {
        func minutes(_ range: ClosedRange<Int>) -> BoundExpression {
            .literal(.interval(Interval(months: 0, days: 0, micros: Int64(random.number(range)) * Self.minute)), .interval)
        }
        func call(_ name: String, _ a: BoundExpression, _ b: BoundExpression, _ type: SQLType) -> BoundExpression {
            .call(ScalarFunction(name: name, argumentTypes: [a.type, b.type]), [a, b], type, nil)
        }
        let (left, right) = (BoundExpression.column(1, .timestamp), BoundExpression.column(6, .timestamp))
        let lower = call(random.pick(["greater", "greater_or_equal"]), left, call("subtract", right, minutes(-3...10), .timestamp), .boolean)
        let upper = call(random.pick(["less", "less_or_equal"]), call("add", left, minutes(-10...3), .timestamp), right, .boolean)
        return random.pick([.and([lower, upper]), .and([upper, lower]), lower, upper])
    }

    mutating func problem() -> String? {
        do throws(SQLError) {
            try attach(nil)
            // Views over views take over what is there, which is nothing.
            if let problem = runEpoch("the first epoch") { return problem }
            let rounds = random.number(3...12)
            for round in 1...rounds {
                change()
                if random.oneIn(2) { advance(to: (minutes - Int64(random.number(0...25))) * Self.minute + Int64(random.number(-1...1))) }
                if let problem = runEpoch("epoch \(round)") { return problem }
                if random.oneIn(4) { try restart() }
            }
            advance(to: (minutes + 1_000_000) * Self.minute)
            if let problem = runEpoch("the last epoch") { return problem }
            return try leftOver()
        } catch { return "\(error)" }
    }

    private mutating func advance(to time: Int64) { step.now = max(step.now ?? .min, time) }

    /// Rows around the present minute, some without a time, and deletions of any.
    private mutating func change() {
        minutes += Int64(random.number(0...15))
        for index in tables.indices {
            var changes: [(row: [Scalar], weight: Int64)] = []
            for _ in 0..<random.number(0...20) {
                if !isAppendOnly, !tables[index].rows.isEmpty, random.oneIn(3) {
                    let place = random.number(0...tables[index].rows.count - 1)
                    changes.append((tables[index].rows.remove(at: place), -1))
                    continue
                }
                nextID += 1
                let minute = minutes + Int64(random.number(-30...5))
                let at: Scalar = random.oneIn(12) ? .null : random.oneIn(20) ? .int(random.pick([.max, .min])) : .int(minute * Self.minute + Int64(random.number(-1...1)))
                let text = random.pick(["a", "twelve bytes", "more than twelve bytes", "quoted \" and \\ and \n"])
                let row: [Scalar] = [
                    .int(nextID), at, random.oneIn(8) ? .null : .int(Int64(random.number(0...3))), .int(Int64(random.number(-5...5))), .string(text),
                ]
                tables[index].rows.append(row)
                changes.append((row, 1))
            }
            for batch in RandomRelation.batches(changes, Self.schema, using: &random) { driver.inject(batch, into: tables[index].reference.id) }
        }
    }

    private mutating func runEpoch(_ name: String) -> String? {
        let steps = Dictionary(uniqueKeysWithValues: tables.map { (WatermarkKey(job: $0.reference.id, source: $0.reference.id), step) })
        let problems = driver.runEpoch(EpochWatermarks(openedAtMicros: 1, steps: steps, behind: driver.catchingUp))
        if let first = problems.first { return "after \(name): \(first)" }
        step.passed = step.now
        var relations: [ObjectID: [ReferenceRow]] = [:]
        for table in tables { relations[table.reference.id] = table.rows.map { row in row.map { ReferenceValue($0) } } }
        for view in views {
            let late = driver.lateRows(of: view.reference.id)
            if late.droppedCount != 0 { return "late rows were dropped" }
            let expected = reference(view.reference.id, view.plan, relations, late.entries)
            relations[view.reference.id] = expected
            let (found, wanted) = (DeltaBatch.counts(driver.rows(of: view.reference.id)), ReferencePlan.counts(expected))
            if found != wanted {
                let missing = wanted.filter { found[$0.key] != $0.value }.prefix(3)
                let surplus = found.filter { wanted[$0.key] != $0.value }.prefix(3)
                return "after \(name), closed by \(step), \"\(view.reference.name)\" should have \(Array(missing)), has \(Array(surplus))\n\(view.plan.explained)"
            }
        }
        return nil
    }

    /// Batch SQL without late rows, which an operator names as it was given them.
    private func reference(
        _ view: ObjectID, _ plan: StreamPlan, _ relations: [ObjectID: [ReferenceRow]], _ late: [LateRows.Entry]
    ) -> [ReferenceRow] {
        var weights: [String: Int64] = [:]
        for entry in late { weights[entry.row, default: 0] += entry.weight }
        let marks = plan.watermarks { _, columns in
            guard let now = step.now else { return [:] }
            if case .relation(let relation, _) = plan.nodes[0].operation, relation.kind == .materializedView {
                let below = views[0].plan
                return below.watermarks { _, columns in Watermarks(uniqueKeysWithValues: columns.map { ($0, now) }) }[below.root.number]
            }
            return Watermarks(uniqueKeysWithValues: columns.map { ($0, now) })
        }
        return ReferencePlan.evaluate(
            plan, relations,
            inputs: { node, inputs in
                guard node.closing != nil else { return inputs }
                return zip(inputs, node.inputs).map { rows, input in without(weights, rows, view, input, plan[input].schema) }
            },
            output: { index, rows in
                guard let closing = plan[index].closing, closing.emitsOnClose else { return rows }
                return rows.filter { isClosed($0, plan[index], marks[plan[index].inputs[0].number]) }
            })
    }

    private func isClosed(_ row: ReferenceRow, _ node: StreamNode, _ marks: Watermarks) -> Bool {
        switch node.operation {
        case .aggregate(let keys, _):
            guard let column = node.closing?.columns[0], let place = keys.firstIndex(of: column), case .integer(let time) = row[place] else { return false }
            return time.magnitude < UInt64(Int64.max / 4) && time < marks[column] ?? .min
        case .sessionAggregate(let window, let keys, _):
            guard let mark = marks[window.timeColumn], let place = keys.firstIndex(of: 6), case .integer(let end) = row[place] else { return false }
            return end < mark
        default: return true
        }
    }

    /// The rows that operators were given at some time, by how they are named when they are late.
    private final class Seen {
        var rows: [Place: ReferenceRow] = [:]

        struct Place: Hashable {
            var view: ObjectID
            var input: NodeIndex
            var text: String
        }
    }

    private let seen = Seen()

    /// Rows without the late ones; what a late deletion would have taken away is there again.
    private func without(_ late: [String: Int64], _ rows: [ReferenceRow], _ view: ObjectID, _ input: NodeIndex, _ schema: Schema) -> [ReferenceRow] {
        var late = late
        var kept: [ReferenceRow] = []
        for row in rows {
            let text = Self.json(row, schema)
            seen.rows[Seen.Place(view: view, input: input, text: text)] = row
            if late[text, default: 0] > 0 { late[text]? -= 1 } else { kept.append(row) }
        }
        for (text, weight) in late where weight < 0 {
            guard let row = seen.rows[Seen.Place(view: view, input: input, text: text)] else { continue }
            kept += Array(repeating: row, count: Int(-weight))
        }
        return kept
    }

    private static func json(_ row: ReferenceRow, _ schema: Schema) -> String {
        let scalars = row.map { value -> Scalar in
            switch value {
            case .integer(let value): .int(value)
            case .bytes(let bytes): .string(String(decoding: bytes, as: UTF8.self))
            default: .null
            }
        }
        return LateRows.json(RandomRelation.batch([(row: scalars, weight: 1)], schema), 0, schema)
    }

    // MARK: Restarts

    private mutating func restart() throws(SQLError) {
        guard driver.catchingUp.isEmpty else { return }
        let recovered = try sealAndRecover()
        driver = CircuitDriver(workerCount: random.oneIn(3) ? driver.workerCount : random.number(1...4), seed: random.next())
        try attach(recovered)
    }

    private mutating func sealAndRecover() throws(SQLError) -> RecoveredState? {
        epoch = epoch.next
        let sealed = driver.seal(EpochPosition(epoch: epoch, openedAtMicros: 0, dmlPosition: .zero, offsets: [:]), everything: false)
        do throws(IOFailure) { _ = try store.write(sealed) { _ in false } } catch { throw error.sqlError }
        store = StateStore(directory: "/state", files: files)
        return try store.recover()
    }

    private lazy var store: StateStore = {
        let store = StateStore(directory: "/state", files: files)
        _ = try? store.recover()
        return store
    }()

    private mutating func attach(_ recovered: RecoveredState?) throws(SQLError) {
        for table in tables {
            var builder = PlanBuilder()
            let input = builder.tableInput(table.reference, Self.schema, appendOnly: isAppendOnly, watermarks: [1])
            try attach(table.reference, builder.materialize(input, key: [0]), recovered)
        }
        for view in views { try attach(view.reference, view.plan, recovered) }
    }

    private mutating func attach(_ reference: RelationReference, _ plan: StreamPlan, _ recovered: RecoveredState?) throws(SQLError) {
        try driver.attach(
            JobPlan(id: reference.id, name: reference.name, plan: plan, storage: JobStorage(store: store, recovered: recovered)))
    }

    /// Behind the end of time operators keep nothing but what has no time.
    private mutating func leftOver() throws(SQLError) -> String? {
        guard let record = try sealAndRecover()?.record else { return "nothing was stored" }
        for view in views {
            for table in record.tables where table.place.job == view.reference.id && view.plan.nodes[table.place.node].closing != nil {
                let rows = tables.flatMap(\.rows).filter { row in
                    guard case .int(let time) = row[1] else { return true }
                    return time.magnitude > UInt64(Int64.max / 4)
                }
                // A partition of sessions and a key of a join may be there for those without a time.
                if table.shape.count > UInt64(rows.count) { return "table \(table.place) of \(form) has \(table.shape.count) rows" }
            }
        }
        return nil
    }
}
