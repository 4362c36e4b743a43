import MillBase
import MillColumnar
import MillDataflow
import MillExpr
import MillIO
import MillPlan
import MillStore
import MillTestKit
import Testing

/// What one run of a law works on: tables with random rows, and views over them and over each other.
struct LawCase {
    struct Table {
        let reference: RelationReference
        var relation: RandomRelation
    }

    struct View {
        let reference: RelationReference
        let plan: StreamPlan
    }

    var tables: [Table] = []
    var views: [View] = []
    /// Rows that may be changed in one epoch.
    var changesMax = 40

    /// Adds a table; returns its number.
    mutating func addTable(
        _ types: [SQLType], appendOnly: Bool = false, values: [Int: [Scalar]] = [:], using random: inout SeededGenerator
    ) -> Int {
        let schema = types.enumerated().map { Field("c\($0)", $1) }
        let id = ObjectID(UInt32(100 + tables.count))
        tables.append(
            Table(
                reference: RelationReference(id: id, name: "t\(tables.count)", kind: .table),
                relation: RandomRelation(schema, appendOnly: appendOnly, values: values, using: &random)))
        return tables.count - 1
    }

    mutating func addView(_ plan: StreamPlan) {
        let id = ObjectID(UInt32(200 + views.count))
        views.append(View(reference: RelationReference(id: id, name: "v\(views.count)", kind: .materializedView), plan: plan))
    }

    /// A node for a table as a view's input.
    func scan(_ table: Int, in builder: inout PlanBuilder, columns: [Int]? = nil) -> NodeIndex {
        let table = tables[table]
        return builder.relation(table.reference, table.relation.schema, columns: columns, appendOnly: table.relation.appendOnly)
    }

    func scanView(_ view: Int, in builder: inout PlanBuilder) -> NodeIndex {
        let view = views[view]
        return builder.relation(view.reference, view.plan[view.plan.root].schema)
    }
}

/// The disk of a law's run: checkpoints on files that a power cut tears.
struct LawDisk {
    let files = MemoryFileSystem()
    var store: StateStore
    /// A seal that has not been written yet.
    var sealed: Checkpoint?
    /// What was put into tables since the checkpoint that counts, and of that what came after `sealed`.
    var sinceWritten: [(batch: DeltaBatch, table: ObjectID)] = []
    var sinceSealed: [(batch: DeltaBatch, table: ObjectID)] = []
    /// The jobs in the checkpoint that counts.
    var epoch = Epoch(1)

    init(_ random: inout SeededGenerator) {
        store = Self.store(files, &random)
        _ = try? store.recover()
    }

    /// Small files and no slack, so that pages move from file to file.
    static func store(_ files: MemoryFileSystem, _ random: inout SeededGenerator) -> StateStore {
        StateStore(directory: "/state", files: files, fileBytesMax: random.pick([1000, 100_000]), slackBytes: random.pick([0, 1 << 20]))
    }
}

/// "Incremental equals recomputed": runs a case with random changes, workers, cuts and restarts, and compares every view after every
/// epoch with the reference over the rows as they are then.
struct LawRun {
    private var random: SeededGenerator
    private var law: LawCase
    private var driver: CircuitDriver
    private let seed: UInt64
    private var attached = 0
    /// nil in the runs that keep state in memory.
    private var disk: LawDisk?

    /// Runs a law for every seed of the settings and stops at the first failure.
    static func forAll(_ runs: Int = 1000, _ makeCase: (inout SeededGenerator) -> LawCase) {
        for seed in LawSettings(runs: runs).seeds {
            var run = LawRun(seed: seed, makeCase)
            if let problem = run.problem() {
                Issue.record("MILLRACE_SEED=\(seed): \(problem)")
                return
            }
        }
    }

    private init(seed: UInt64, _ makeCase: (inout SeededGenerator) -> LawCase) {
        self.seed = seed
        random = SeededGenerator(seed: seed &* 0x2545_F491_4F6C_DD1D)
        law = makeCase(&random)
        disk = random.oneIn(2) ? LawDisk(&random) : nil
        driver = Self.driver(law, &random)
    }

    private static func driver(_ law: LawCase, _ random: inout SeededGenerator) -> CircuitDriver {
        CircuitDriver(workerCount: random.number(1...4), seed: random.next(), backfillRowsMax: law.changesMax > 1000 ? 500 : random.pick([1, 4, 20, 65_536]))
    }

    private mutating func problem() -> String? {
        do throws(SQLError) {
            try attachTables()
            for epoch in 1...random.number(1...8) {
                if attached > 0, random.oneIn(disk == nil ? 10 : 4) { try restart() } else { try checkpoint() }
                // Views join at any time, but in their order.
                while attached < law.views.count, random.oneIn(2) { try attachNext() }
                change()
                if let problem = endEpoch("epoch \(epoch)") { return problem }
            }
            while attached < law.views.count { try attachNext() }
            var rounds = 0
            repeat {
                if random.oneIn(3) { change(most: 3) }
                if let problem = endEpoch("epoch \(rounds) of catching up") { return problem }
                rounds += 1
                if rounds > 5000 { return "catching up does not end" }
            } while !driver.catchingUp.isEmpty
            return nil
        } catch { return "\(error)" }
    }

    private mutating func attachTables() throws(SQLError) {
        for table in law.tables {
            var builder = PlanBuilder()
            let input = builder.tableInput(table.reference, table.relation.schema, appendOnly: table.relation.appendOnly)
            let width = table.relation.schema.count
            let key = table.reference.id.number % 3 == 0 ? [Int(seed % UInt64(width))] : Array(0..<width)
            try attach(JobPlan(id: table.reference.id, name: table.reference.name, plan: builder.materialize(input, key: key)))
        }
    }

    private mutating func attachNext() throws(SQLError) {
        let view = law.views[attached]
        try attach(JobPlan(id: view.reference.id, name: view.reference.name, plan: view.plan))
        attached += 1
    }

    private var recovered: RecoveredState?

    private func attach(_ job: JobPlan) throws(SQLError) {
        var job = job
        job.storage = disk.map { JobStorage(store: $0.store, recovered: recovered) }
        try driver.attach(job)
    }

    /// Seals now and then, and writes what was sealed at some later time.
    private mutating func checkpoint() throws(SQLError) {
        guard var disk else { return }
        defer { self.disk = disk }
        if let sealed = disk.sealed, random.oneIn(2) {
            do throws(IOFailure) { _ = try disk.store.write(sealed) { _ in false } } catch { throw error.sqlError }
            disk.sealed = nil
            disk.sinceWritten = disk.sinceSealed
        }
        if disk.sealed == nil, random.oneIn(2) {
            disk.epoch = disk.epoch.next
            disk.sealed = driver.seal(
                EpochPosition(epoch: disk.epoch, openedAtMicros: 0, dmlPosition: .zero, offsets: [:]), everything: disk.store.isDistrusted)
            disk.sinceSealed = []
        }
    }

    /// Cuts the power and goes on from the last checkpoint, mostly with another number of workers, and with what came since.
    private mutating func recover() throws(SQLError) {
        guard var disk else { return }
        disk.files.crash(random: SeededSource(random.next()))
        disk.sealed = nil
        disk.store = LawDisk.store(disk.files, &random)
        recovered = try disk.store.recover()
        defer { recovered = nil }
        let workers = random.oneIn(3) ? driver.workerCount : random.number(1...4)
        driver = CircuitDriver(workerCount: workers, seed: random.next(), backfillRowsMax: random.pick([1, 4, 20, 65_536]))
        self.disk = disk
        let views = attached
        attached = 0
        try attachTables()
        for _ in 0..<views { try attachNext() }
        for (batch, table) in disk.sinceWritten { driver.inject(batch, into: table) }
    }

    /// Builds the circuits anew, of another number of workers, and gives them all rows in one epoch.
    private mutating func restart() throws(SQLError) {
        guard disk == nil else { return try recover() }
        driver = Self.driver(law, &random)
        let views = attached
        attached = 0
        try attachTables()
        for _ in 0..<views { try attachNext() }
        for table in law.tables {
            let changes = table.relation.rows.shuffled(using: &random).map { (row: $0, weight: Int64(1)) }
            inject(changes, table)
        }
    }

    private mutating func change(most: Int? = nil) {
        for index in law.tables.indices {
            let count = random.oneIn(4) ? 0 : random.number(0...(most ?? law.changesMax))
            let changes = law.tables[index].relation.change(count, using: &random)
            inject(changes, law.tables[index])
        }
    }

    private mutating func inject(_ changes: [(row: [Scalar], weight: Int64)], _ table: LawCase.Table) {
        for batch in RandomRelation.batches(changes, table.relation.schema, using: &random) {
            driver.inject(batch, into: table.reference.id)
            disk?.sinceWritten.append((batch, table.reference.id))
            disk?.sinceSealed.append((batch, table.reference.id))
        }
    }

    private mutating func endEpoch(_ name: String) -> String? {
        let problems = driver.runEpoch()
        if let first = problems.first { return "after \(name): \(first)" }
        var relations: [ObjectID: [ReferenceRow]] = [:]
        for table in law.tables {
            relations[table.reference.id] = table.relation.reference
            if let problem = compare(table.reference, relations[table.reference.id] ?? [], byLook: true) { return "after \(name): \(problem)" }
        }
        let catchingUp = driver.catchingUp
        var byLook = true
        for view in law.views.prefix(attached) {
            // A view over one that is still taking over rows is not whole either.
            if catchingUp.contains(where: { $0 <= view.reference.id }) { break }
            relations[view.reference.id] = ReferencePlan.evaluate(view.plan, relations)
            byLook = byLook && !ReferencePlan.mayLookDifferent(view.plan)
            if let problem = compare(view.reference, relations[view.reference.id] ?? [], byLook: byLook) { return "after \(name): \(problem)\n\(view.plan)" }
        }
        return nil
    }

    /// - Parameter byLook: whether rows must look the same, or only be equal as SQL compares them.
    private func compare(_ reference: RelationReference, _ expected: [ReferenceRow], byLook: Bool) -> String? {
        var found = DeltaBatch.counts(driver.rows(of: reference.id))
        var expected = ReferencePlan.counts(expected)
        if !byLook { (found, expected) = (found.byKey, expected.byKey) }
        guard found != expected else { return nil }
        let missing = expected.filter { found[$0.key] != $0.value }
        let surplus = found.filter { expected[$0.key] != $0.value }
        return "\"\(reference.name)\" with \(driver.workerCount) workers should have \(Array(missing.prefix(3))), has \(Array(surplus.prefix(3)))"
    }
}

extension ReferenceCounts {
    /// Rows that SQL calls equal as one.
    fileprivate var byKey: ReferenceCounts { reduce(into: [:]) { counts, entry in counts[entry.key.key, default: 0] += entry.value } }
}
