import MillBase
import MillColumnar
import MillConnectorKit
import MillExpr
import MillIO
import MillPlan
import MillState
import MillStore
import MillTestKit
import Synchronization
import Testing

@testable import MillDataflow

/// A source of numbers in memory: split `s` of `n` gives 0, 1, 2 ... as far as it has been filled, 8 bytes each.
private final class NumberConnector: SourceConnector {
    let isBounded = false
    let splits: [SourceSplit]
    private let state: Mutex<State>

    private struct State {
        var filled: [Int64]
        var listeners: [@Sendable () -> Void] = []
    }

    init(splits count: Int) {
        splits = (0..<count).map { SourceSplit(name: "numbers/\($0)", topic: "numbers", partition: Int32($0)) }
        state = Mutex(State(filled: Array(repeating: 0, count: count)))
    }

    /// Adds `count` records to a split and tells its readers.
    func fill(_ split: Int, _ count: Int64) {
        let listeners = state.withLock { state in
            state.filled[split] += count
            return state.listeners
        }
        for listener in listeners { listener() }
    }

    func filled(_ split: SourceSplit) -> Int64 { state.withLock { $0.filled[Int(split.partition)] } }
    var total: Int64 { state.withLock { $0.filled.reduce(0, +) } }

    func resolveOrigin() throws(SQLError) -> [SourceSplit: SplitOffset] { [:] }
    func currentSplits() throws(SQLError) -> [SourceSplit] { splits }
    func highWatermarks(_ splits: [SourceSplit]) throws(SQLError) -> [SourceSplit: SplitOffset] { [:] }

    func openReader(_ split: SourceSplit, at offset: SplitOffset, onData: @escaping @Sendable () -> Void) throws(SQLError) -> any SplitReader {
        state.withLock { $0.listeners.append(onData) }
        return NumberReader(self, split, offset.position)
    }
}

private final class NumberReader: SplitReader {
    private let connector: NumberConnector
    private let split: SourceSplit
    private var position: Int64

    init(_ connector: NumberConnector, _ split: SourceSplit, _ position: Int64) {
        self.connector = connector
        self.split = split
        self.position = position
    }

    private final class Buffer {
        let bytes: UnsafeMutableRawPointer
        init(_ count: Int) { bytes = .allocate(byteCount: count + 64, alignment: 8) }
        deinit { bytes.deallocate() }
    }

    func poll(maxRecords: Int, maxBytes: Int) throws(SQLError) -> RawChunk? {
        let end = min(connector.filled(split), position + Int64(min(maxRecords, 1000)))
        guard end > position else { return nil }
        let positions = Array(position..<end)
        let buffer = Buffer(positions.count * 8)
        for (index, position) in positions.enumerated() { buffer.bytes.storeBytes(of: position, toByteOffset: index * 8, as: Int64.self) }
        position = end
        return RawChunk(
            bytes: UnsafeRawPointer(buffer.bytes), byteCount: positions.count * 8, starts: positions.indices.map { UInt32($0 * 8) },
            lengths: positions.map { _ in 8 }, positions: positions, timestamps: nil, nextOffset: SplitOffset(end), owner: buffer)
    }

    var isFinished: Bool { false }
    var highWatermark: SplitOffset? { SplitOffset(connector.filled(split)) }
    func close() {}
}

/// Column 0 is the number, column 1 the number modulo 10.
private final class NumberDecoder: Decoder {
    private let columns: [Int]
    init(_ columns: [Int]) { self.columns = columns }

    var takesAnyOrder: Bool { true }
    func mayStop(at chunk: RawChunk) -> Bool { false }

    func decode(_ chunk: RawChunk) -> DecodedChunk {
        let made = columns.map { index -> Column in
            let column = Column(.int64, uninitialized: chunk.count)
            for row in 0..<chunk.count {
                let number = chunk.bytes.load(fromByteOffset: Int(chunk.starts[row]), as: Int64.self)
                column.values(Int64.self)[row] = index == 0 ? number : number % 10
            }
            return column
        }
        let rejects = chunk.positions.filter { $0 % 777 == 0 }.map { Reject(position: $0, column: "n", raw: [], reason: "every 777th") }
        return DecodedChunk(batches: [DeltaBatch(columns: made, count: chunk.count)], rejects: rejects)
    }
}

/// Several workers on one thread, whose messages arrive when chance wants, in the order of their sender.
private final class CircuitGroup {
    private(set) var circuits: [WorkerCircuit] = []
    private let mail: Mail
    private(set) var lentCount = 0

    private final class Mail {
        /// By sender * workers + receiver.
        var queues: [[PeerMessage]]
        init(_ workers: Int) { queues = Array(repeating: [], count: workers * workers) }
    }

    init(_ workers: Int, _ makeSource: @escaping (ObjectID, Int) throws(SQLError) -> SourceInput) {
        mail = Mail(workers)
        circuits = (0..<workers).map { [mail] here in
            WorkerCircuit(
                here: WorkerIndex(here), workerCount: workers, makeSource: { (id) throws(SQLError) in try makeSource(id, here) },
                send: { peer, message in mail.queues[here * workers + peer.number].append(message) })
        }
    }

    /// Delivers one message to one of these, if there is any.
    private func deliver(to open: [Int], _ random: inout SeededGenerator) {
        let waiting = mail.queues.indices.filter { !mail.queues[$0].isEmpty && open.contains($0 % circuits.count) }
        guard !waiting.isEmpty else { return }
        let queue = random.pick(waiting)
        let message = mail.queues[queue].removeFirst()
        if case .chunk = message { lentCount += 1 }
        circuits[queue % circuits.count].receive(message)
    }

    /// Workers open the epoch in any order, and those that have are served between the chunks of the others.
    func runEpoch(_ budget: EpochBudget, _ random: inout SeededGenerator) {
        var unopened = Array(circuits.indices)
        var open: [Int] = []
        while !unopened.isEmpty {
            let next = unopened.remove(at: random.number(0...unopened.count - 1))
            let patience = random.number(1...20)
            open.append(next)
            circuits[next].openEpoch(budget, takesMore: { [mail, circuits] peer in mail.queues[next * circuits.count + peer.number].count < patience }) {
                for _ in 0..<random.number(0...4) { deliver(to: open, &random) }
                return true
            }
        }
        while mail.queues.contains(where: { !$0.isEmpty }) { deliver(to: open, &random) }
        for circuit in circuits { #expect(circuit.isEpochDone && circuit.checkInvariants().isEmpty) }
    }
}

@Suite struct ConductorTests {
    private static let sourceID = ObjectID(1)

    private static func conductor(_ workers: Int, _ connector: NumberConnector, _ options: Conductor.Options = .init()) throws -> Conductor {
        try Conductor(workerCount: workers, clock: SystemClock(), options: options) { (id, worker, onData) throws(SQLError) in
            try input(id, connector, connector.splits.filter { Int($0.partition) % workers == worker.number }, onData)
        }
    }

    private static func input(
        _ id: ObjectID, _ connector: NumberConnector, _ splits: [SourceSplit], watermark: SourceWatermark? = nil,
        onRejects: @escaping SourceInput.RejectHandler = { _, _ in },
        _ onData: @escaping @Sendable () -> Void
    ) throws(SQLError) -> SourceInput {
        let input = SourceInput(
            definition: SourceDefinition(
                id: id, name: "numbers", connector: connector, makeDecoder: { columns in NumberDecoder(columns) }, origin: [:]),
            watermark: watermark, onData: onData, onRejects: onRejects)
        for split in splits { try input.add(split) }
        return input
    }

    /// count(*) and sum of the numbers, by last digit or of all.
    private static func sums(
        _ id: UInt32, byDigit: Bool, of kind: RelationReference.Kind = .source, from source: ObjectID = sourceID
    ) -> JobPlan {
        var builder = PlanBuilder()
        let relation = RelationReference(id: source, name: "numbers", kind: kind)
        let rows = builder.tableInput(relation, [Field("n", .int64), Field("digit", .int64)], appendOnly: true)
        let calls: [AggregateCall] = [.init(.count, argument: nil, type: .int64), .init(.sum, argument: .column(0, .int64), type: .numeric)]
        return JobPlan(id: ObjectID(id), name: "v\(id)", plan: builder.materialize(builder.aggregate(rows, keys: byDigit ? [1] : [], calls)))
    }

    private static func counts(_ tables: [TableSnapshot], _ columns: [Int]) -> ReferenceCounts {
        DeltaBatch.counts(tables.flatMap { $0.batches(columns: columns, weightOffset: MaterializeOperator.weightOffset) })
    }

    /// The counts in the first of `columns` of all rows, added up.
    private static func total(_ tables: [TableSnapshot], _ column: Int) -> Int64 {
        counts(tables, [column]).reduce(0) { sum, entry in
            guard case .integer(let count) = entry.key[0] else { return sum }
            return sum + count * entry.value
        }
    }

    private static func hasRead(_ connector: NumberConnector, _ total: Int64) -> @Sendable (EpochRecord) -> Bool {
        { record in record.catchingUp.isEmpty && (record.offsets[sourceID] ?? [:]).values.reduce(0) { $0 + $1.position } == total }
    }

    @Test(arguments: [1, 2, 4, 8]) func jobsJoinAndLeaveWhileDataFlows(workers: Int) async throws {
        let connector = NumberConnector(splits: 5)
        let conductor = try Self.conductor(workers, connector)
        try await conductor.attach(Self.sums(10, byDigit: true))
        for round in UInt32(0)..<12 {
            for split in 0..<5 { connector.fill(split, Int64(round) * 700 + Int64(split)) }
            try await conductor.attach(Self.sums(20 + round, byDigit: round % 2 == 0))
            // Those of early rounds are all there, or were dropped while they caught up.
            if round % 3 == 2 { await conductor.detach([ObjectID(20 + round), ObjectID(19 + round)]) }
            let (_, tables) = try await conductor.snapshots([ObjectID(10)])
            #expect(Self.total(tables[ObjectID(10)] ?? [], 1) <= connector.total)
        }
        let total = connector.total
        try await conductor.wait(until: Self.hasRead(connector, total))
        let kept = (UInt32(0)..<12).filter { $0 % 3 == 0 }.map { ObjectID(20 + $0) } + [ObjectID(10)]
        let (_, tables) = try await conductor.snapshots(kept)
        for id in kept {
            let byDigit = id == ObjectID(10) || id.number % 2 == 0
            #expect(Self.total(tables[id] ?? [], byDigit ? 1 : 0) == total, "view \(id) with \(workers) workers")
        }
        let all = Self.counts(tables[ObjectID(10)] ?? [], [0, 1, 2])
        for id in kept where id != ObjectID(10) && id.number % 2 == 0 { #expect(Self.counts(tables[id] ?? [], [0, 1, 2]) == all) }
        conductor.stop()
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8]) func viewsOfOneSourceAgreeInEverySnapshot(workers: Int) async throws {
        let connector = NumberConnector(splits: 3)
        let conductor = try Self.conductor(workers, connector, .init(recordsMin: 64, recordsMax: 256))
        try await conductor.attach(Self.sums(10, byDigit: true))
        try await conductor.attach(Self.sums(11, byDigit: false))
        for split in 0..<3 { connector.fill(split, 20_000) }
        var epochs: Set<Epoch> = []
        var last: Int64 = 0
        while last < connector.total {
            let (epoch, tables) = try await conductor.snapshots([ObjectID(10), ObjectID(11)])
            let grouped = Self.total(tables[ObjectID(10)] ?? [], 1)
            let whole = Self.total(tables[ObjectID(11)] ?? [], 0)
            #expect(grouped == whole)
            #expect(whole >= last)
            last = whole
            epochs.insert(epoch.epoch)
        }
        #expect(epochs.count > 1)
        conductor.stop()
    }

    /// Some look on their own threads, between two epochs, some are answered by the conductor: all see whole epochs, none an older one than before.
    @Test(arguments: [1, 3]) func whoeverLooksSeesWholeEpochs(workers: Int) async throws {
        let connector = NumberConnector(splits: 3)
        let conductor = try Self.conductor(workers, connector, .init(recordsMin: 64, recordsMax: 256))
        try await conductor.attach(Self.sums(10, byDigit: true))
        try await conductor.attach(Self.sums(11, byDigit: false))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var last: Int64 = 0
                    while last < 3 * 40 * 300 {
                        let (record, tables) = try await conductor.snapshots([ObjectID(10), ObjectID(11)])
                        let whole = Self.total(tables[ObjectID(11)] ?? [], 0)
                        #expect(Self.total(tables[ObjectID(10)] ?? [], 1) == whole)
                        #expect(whole == (record.offsets[Self.sourceID] ?? [:]).values.reduce(0) { $0 + $1.position })
                        #expect(whole >= last)
                        last = whole
                        await Task.yield()
                    }
                }
            }
            group.addTask {
                for round in Int64(1)...40 {
                    for split in 0..<3 { connector.fill(split, 300) }
                    try await conductor.wait(until: Self.hasRead(connector, round * 900))
                }
            }
            try await group.waitForAll()
        }
        conductor.stop()
    }

    /// Lets epochs be published, or holds them back as a journal that cannot be written does.
    private final class Gate: Sendable {
        private let isClosed = Mutex(false)
        private let (refusals, refused) = AsyncStream.makeStream(of: Void.self)

        func close() { isClosed.withLock { $0 = true } }
        func open() { isClosed.withLock { $0 = false } }

        /// Waits until an epoch was held back once more.
        func refusal() async { for await _ in refusals { return } }

        func mayPass() -> Bool {
            guard isClosed.withLock({ $0 }) else { return true }
            refused.yield()
            return false
        }
    }

    private static func heldBack() throws -> (Conductor, NumberConnector, Gate) {
        let connector = NumberConnector(splits: 1)
        let gate = Gate()
        return (try conductor(1, connector, .init(willPublish: { _ in gate.mayPass() })), connector, gate)
    }

    /// What comes while an epoch cannot be published is read once it is, without anybody asking again.
    @Test func dataThatComesWhileAnEpochIsHeldBackIsRead() async throws {
        let (conductor, connector, gate) = try Self.heldBack()
        try await conductor.attach(Self.sums(10, byDigit: false))
        connector.fill(0, 10)
        try await conductor.wait(until: Self.hasRead(connector, 10))
        gate.close()
        for _ in 0..<2 {
            connector.fill(0, 10)
            await gate.refusal()
        }
        gate.open()
        conductor.wake()
        try await conductor.wait(until: Self.hasRead(connector, 30))
        conductor.stop()
    }

    /// Whoever reads while an epoch cannot be published waits for it, and gets rows and record of one epoch.
    @Test func nothingOfAnEpochThatIsHeldBackIsSeen() async throws {
        let (conductor, connector, gate) = try Self.heldBack()
        try await conductor.attach(Self.sums(10, byDigit: false))
        connector.fill(0, 10)
        try await conductor.wait(until: Self.hasRead(connector, 10))
        gate.close()
        connector.fill(0, 10)
        await gate.refusal()
        async let reading = conductor.snapshots([ObjectID(10)])
        for _ in 0..<100 { await Task.yield() }
        let sealed = await conductor.seal(everything: false)
        #expect(sealed == nil)
        gate.open()
        conductor.wake()
        let (record, tables) = try await reading
        #expect(Self.total(tables[ObjectID(10)] ?? [], 0) == record.offsets[Self.sourceID]?.values.reduce(0) { $0 + $1.position })
        conductor.stop()
    }

    /// What waits for an epoch that is never published is answered when the conductor stops.
    @Test func stoppingAnswersWhoWaitsForAnEpochThatIsHeldBack() async throws {
        let (conductor, connector, gate) = try Self.heldBack()
        try await conductor.attach(Self.sums(10, byDigit: false))
        gate.close()
        connector.fill(0, 10)
        await gate.refusal()
        let reading = Task { try await conductor.snapshots([ObjectID(10)]) }
        for _ in 0..<100 { await Task.yield() }
        conductor.stop()
        await #expect(throws: SQLError.shuttingDown) { try await reading.value }
    }

    /// What a job begins with is given out in its first epoch: a checkpoint before that has nothing of it.
    @Test func aJobWithoutAnEpochIsNotSealed() throws {
        let circuit = WorkerCircuit(here: WorkerIndex(0), workerCount: 1, makeSource: { _ throws(SQLError) in throw SQLError(.ioError, "no source") }, send: { _, _ in })
        var job = Self.sums(10, byDigit: false, of: .table)
        job.storage = JobStorage(store: StateStore(directory: "/state", files: MemoryFileSystem()), recovered: nil)
        try circuit.attach(job)
        #expect(circuit.storedJobs.isEmpty)
        circuit.openEpoch(EpochBudget(records: 1, bytes: 1), serveInbox: { true })
        #expect(circuit.isEpochDone && circuit.storedJobs == [job.id])
    }

    @Test func splitsOfOneWorkerAdvanceTogether() async throws {
        let connector = NumberConnector(splits: 2)
        let conductor = try Self.conductor(1, connector, .init(recordsMin: 100, recordsMax: 100))
        for split in 0..<2 { connector.fill(split, 10_000) }
        let first = Mutex<[SourceSplit: SplitOffset]?>(nil)
        try await conductor.attach(Self.sums(10, byDigit: false))
        try await conductor.wait { record in
            let offsets = record.offsets[Self.sourceID] ?? [:]
            first.withLock { if $0 == nil, offsets.values.contains(where: { $0.position > 0 }) { $0 = offsets } }
            return offsets.values.reduce(0) { $0 + $1.position } == 20_000
        }
        let offsets = first.withLock { $0 } ?? [:]
        #expect(offsets.count == 2 && offsets.values.allSatisfy { $0.position > 0 })
        conductor.stop()
    }

    @Test func peersAreServedBetweenChunks() throws {
        let (circuit, connector) = try Self.circuitOfOneWorker(splits: 1)
        connector.fill(0, 100_000)
        func read(stopAfter chunks: Int = .max) -> (records: Int64, served: Int) {
            let before = circuit.report.offsets[Self.sourceID]?.values.first?.position ?? 0
            var served = 0
            circuit.openEpoch(EpochBudget(records: 3200, bytes: 1 << 20)) {
                served += 1
                return served < chunks
            }
            #expect(circuit.isEpochDone && circuit.report.hasMore)
            return ((circuit.report.offsets[Self.sourceID]?.values.first?.position ?? 0) - before, served)
        }
        #expect(read() == (3200, 4))
        #expect(read(stopAfter: 2) == (2000, 2), "peers are behind")
    }

    /// Otherwise workers whose splits are alike would get ahead of each other, whenever others of their splits have ended.
    @Test func theBudgetIsUsedUpWhicheverSplitsAndSourcesHaveEnded() throws {
        let second = ObjectID(2)
        let connectors = [Self.sourceID: NumberConnector(splits: 3), second: NumberConnector(splits: 1)]
        let circuit = WorkerCircuit(
            here: WorkerIndex(0), workerCount: 1,
            makeSource: { (id) throws(SQLError) in
                guard let connector = connectors[id] else { throw SQLError(.ioError, "no source") }
                return try Self.input(id, connector, connector.splits) {}
            }, send: { _, _ in })
        try circuit.attach(Self.sums(10, byDigit: true))
        try circuit.attach(Self.sums(11, byDigit: true, from: second))
        connectors[Self.sourceID]?.fill(1, 100_000)
        connectors[second]?.fill(0, 500)
        var read: [Int64] = []
        for _ in 0..<6 {
            circuit.openEpoch(EpochBudget(records: 2400, bytes: 1 << 20)) { true }
            read.append(circuit.report.offsets.values.reduce(0) { $1.values.reduce($0) { $0 + $1.position } })
        }
        #expect(read == (1...6).map { $0 * 2400 })
    }

    /// Splits of any length on any worker: those who have read decode what they are lent, whenever messages arrive, and while a second view
    /// catches up.
    @Test func whoHasReadDecodesWhatOthersRead() throws {
        var lentCount = 0
        for seed in UInt64(1)...100 {
            var random = SeededGenerator(seed: seed)
            let connector = NumberConnector(splits: random.number(1...4))
            let workers = random.number(2...4)
            let rejected = Mutex<[SourceSplit: [Int64]]>([:])
            let several = CircuitGroup(workers) { (id, worker) throws(SQLError) in
                try Self.input(
                    id, connector, connector.splits.filter { Int($0.partition) % workers == worker },
                    onRejects: { _, rejects in rejected.withLock { $0[rejects.split, default: []] += rejects.entries.map(\.position) } }) {}
            }
            for circuit in several.circuits { try circuit.attach(Self.sums(10, byDigit: true)) }
            func total(_ job: UInt32, column: Int = 1) -> Int64 {
                Self.total(several.circuits.compactMap { $0.materialized(ObjectID(job))?.table.snapshot() }, column)
            }
            for round in 0..<4 {
                for split in connector.splits.indices { connector.fill(split, Int64(random.pick([0, 500, 20_000, 40_000]))) }
                if round == 2 { for circuit in several.circuits { try circuit.attach(Self.sums(11, byDigit: false)) } }
                repeat {
                    several.runEpoch(EpochBudget(records: 50_000, bytes: 1 << 30), &random)
                    let read = several.circuits.flatMap { $0.report.offsets[Self.sourceID]?.values.map(\.position) ?? [] }.reduce(0, +)
                    #expect(total(10) == read, "MILLRACE_SEED=\(seed)")
                } while several.circuits.contains { $0.report.hasMore }
                #expect(total(10) == connector.total && (round < 2 || total(11, column: 0) == connector.total), "MILLRACE_SEED=\(seed)")
                for split in connector.splits {
                    let expected = Array(stride(from: 0, to: connector.filled(split), by: 777))
                    #expect(rejected.withLock { Set($0[split] ?? []) } == Set(expected), "MILLRACE_SEED=\(seed)")
                    if round < 2 { #expect(rejected.withLock { $0[split] ?? [] } == expected, "MILLRACE_SEED=\(seed): in the split's order") }
                }
            }
            lentCount += several.lentCount
        }
        #expect(lentCount > 1000)
    }

    /// Records that come in one by one do not keep an epoch open for those who catch up.
    @Test func whoCatchesUpGetsOneShareInAnEpoch() throws {
        let (circuit, connector) = try Self.circuitOfOneWorker(splits: 1)
        connector.fill(0, 1_000_000)
        while circuit.report.offsets[Self.sourceID]?.values.first?.position != 1_000_000 {
            circuit.openEpoch(EpochBudget(records: 100_000, bytes: 1 << 30)) { true }
        }
        try circuit.attach(Self.sums(11, byDigit: true))
        circuit.openEpoch(EpochBudget(records: 8192, bytes: 1 << 30)) {
            connector.fill(0, 1)
            return true
        }
        let place = circuit.places[ObjectID(11)]?[Self.sourceID]?.values.first?.offset.position ?? 0
        #expect((1...20_000).contains(place))
        #expect(circuit.report.hasMore)
    }

    @Test func aWatermarkCountsWhatOthersHaveDecoded() throws {
        let connector = NumberConnector(splits: 1)
        connector.fill(0, 3000)
        let watermark = SourceWatermark(column: 0, expression: .column(0, .timestamp))
        let inputs = try [connector.splits, []].map { splits in
            let input = try Self.input(Self.sourceID, connector, splits, watermark: watermark) {}
            let node = CircuitNode(name: "scan", job: ObjectID(10), operation: PassOperator(), errors: OperatorErrors(), inputCount: 1)
            try input.add(node, columns: [1], readsWatermark: true)
            return input
        }
        func greatest() -> Int64? { inputs[0].progress.values.first?.values.first?.greatest }
        var budget = EpochBudget(records: 3000, bytes: 1 << 30)
        var lent: [LentChunk] = []
        _ = inputs[0].poll(&budget, lend: { source, split, records in
            if records.positions[0] == 0 { return false }
            lent.append(LentChunk(source: source, split: split, records: records, reader: WorkerIndex(0)))
            return true
        }) { true }
        #expect(greatest() == 999)
        for chunk in lent.reversed() { inputs[0].note(inputs[1].decode(chunk)) }
        #expect(greatest() == 2999)
    }

    @Test func onlyRecordsWhoseOrderDoesNotMatterAreLent() throws {
        let connector = NumberConnector(splits: 1)
        connector.fill(0, 10_000)
        for keepsOrder in [false, true] {
            let input = try Self.input(Self.sourceID, connector, connector.splits) {}
            let node = CircuitNode(name: "scan", job: ObjectID(10), operation: PassOperator(), errors: OperatorErrors(), inputCount: 1)
            try input.add(node, columns: [0], keepsOrder: keepsOrder)
            var budget = EpochBudget(records: 10_000, bytes: 1 << 30)
            var lent = 0
            _ = input.poll(&budget, lend: { _, _, _ in
                lent += 1
                return true
            }) { true }
            #expect(lent == (keepsOrder ? 0 : 10))
        }
    }

    @Test func splitsAdvanceTogetherWhilePeersAreBehind() throws {
        let (circuit, connector) = try Self.circuitOfOneWorker(splits: 3)
        for split in 0..<3 { connector.fill(split, 1_000_000) }
        for _ in 0..<30 {
            var served = 0
            circuit.openEpoch(EpochBudget(records: 60_000, bytes: 1 << 30)) {
                served += 1
                return served < 5
            }
        }
        // In an epoch one split gives 5 chunks, and the others give 1.
        #expect(circuit.report.offsets[Self.sourceID]?.values.map(\.position) == [70_000, 70_000, 70_000])
    }

    @Test func thoseWhoCatchUpShareTheBudgetOverAllSplits() throws {
        let (circuit, connector) = try Self.circuitOfOneWorker(splits: 16)
        for split in 0..<16 { connector.fill(split, 30_000) }
        let much = EpochBudget(records: 1_000_000, bytes: 1 << 30)
        circuit.openEpoch(much) { true }
        for id in 0..<UInt32(8) { try circuit.attach(Self.sums(20 + id, byDigit: true)) }
        circuit.openEpoch(EpochBudget(records: 1000, bytes: 1 << 20)) { true }
        let places = circuit.places.filter { $0.key.number >= 20 }.flatMap { $0.value[Self.sourceID]?.values.map(\.offset.position) ?? [] }
        #expect(places == Array(repeating: 256, count: 16 * 8), "a few each")
        for _ in 0..<4 { circuit.openEpoch(much) { true } }
        #expect(circuit.report.catchingUp.isEmpty, "an eighth of a sixteenth each")
    }

    @Test func whatAShareUsesBeyondItselfIsNotAtTheCostOfOthers() {
        var budget = EpochBudget(records: 100, bytes: 1000)
        let share = budget.part(of: 4)
        var left = share
        left.spend(records: 10, bytes: 5000)
        budget.spend(share, left: left)
        #expect((budget.records, budget.bytes) == (90, 750))
    }

    /// A worker without splits ends its part of an epoch at once, and sends a barrier for each exchange of every job.
    @Test func barriersOfIdleWorkersStopNobodyFromReading() async throws {
        let connector = NumberConnector(splits: 2)
        let conductor = try Self.conductor(3, connector, .init(targetNanos: .max >> 20, recordsMin: 300_000, recordsMax: 300_000))
        for id in 0..<UInt32(100) { try await conductor.attach(Self.sums(20 + id, byDigit: true, of: .table)) }
        for split in 0..<2 { connector.fill(split, 400_000) }
        let before = try await conductor.attach(Self.sums(10, byDigit: true))
        let record = try await conductor.wait(until: Self.hasRead(connector, 800_000))
        // Four, and one or two that found nothing yet.
        #expect(record.epoch.number - before.number <= 6, "a share is 100,000 records")
        conductor.stop()
    }

    private static func circuitOfOneWorker(splits: Int) throws -> (WorkerCircuit, NumberConnector) {
        let connector = NumberConnector(splits: splits)
        let circuit = WorkerCircuit(
            here: WorkerIndex(0), workerCount: 1, makeSource: { (id) throws(SQLError) in try input(id, connector, connector.splits) {} },
            send: { _, _ in })
        try circuit.attach(sums(10, byDigit: true))
        return (circuit, connector)
    }

    @Test func theBudgetGrowsUnderLoad() async throws {
        let connector = NumberConnector(splits: 1)
        let conductor = try Self.conductor(1, connector, .init(targetNanos: 10_000_000_000, recordsMin: 10, recordsMax: 100_000))
        connector.fill(0, 100_000)
        try await conductor.attach(Self.sums(10, byDigit: false))
        let record = try await conductor.wait(until: Self.hasRead(connector, 100_000))
        // Without growth it would take 10,000 epochs.
        #expect(record.epoch.number < 500)
        conductor.stop()
    }

    @Test func aStormOfWakesLosesNothingAndStops() async throws {
        let connector = NumberConnector(splits: 4)
        let conductor = try Self.conductor(2, connector)
        try await conductor.attach(Self.sums(10, byDigit: false))
        await withTaskGroup(of: Void.self) { group in
            for split in 0..<4 {
                group.addTask {
                    for _ in 0..<2000 {
                        connector.fill(split, 1)
                        conductor.wake()
                    }
                }
            }
        }
        try await conductor.wait(until: Self.hasRead(connector, 8000))
        let (_, tables) = try await conductor.snapshots([ObjectID(10)])
        #expect(Self.total(tables[ObjectID(10)] ?? [], 0) == 8000)
        conductor.stop()
    }

    /// Without anything that comes after it: no epoch, no other job.
    @Test(arguments: [1, 3]) func aJobThatIsGoneLeavesNoStateBehind(workers: Int) async throws {
        struct Leftover: @unchecked Sendable { weak var state: MaterializeOperator? }  // Only whether it is there is looked at.
        let connector = NumberConnector(splits: 2)
        let conductor = try Self.conductor(workers, connector)
        try await conductor.attach(Self.sums(10, byDigit: true))
        connector.fill(0, 1000)
        conductor.wake()
        try await conductor.wait(until: Self.hasRead(connector, 1000))
        let leftovers = try await conductor.onWorkers { Leftover(state: $0.materialized(ObjectID(10))) }.results
        #expect(leftovers.allSatisfy { $0.state != nil })
        await conductor.detach([ObjectID(10)])
        #expect(leftovers.allSatisfy { $0.state == nil })
        conductor.stop()
    }

    @Test func stoppingReleasesThoseWhoWait() async throws {
        let connector = NumberConnector(splits: 1)
        let conductor = try Self.conductor(2, connector)
        let waits = Atomic(false)
        let waiting = Task { () throws(SQLError) in
            try await conductor.wait { _ in
                waits.store(true, ordering: .relaxed)
                return false
            }
        }
        try await conductor.attach(Self.sums(10, byDigit: false))
        while !waits.load(ordering: .relaxed) { await Task.yield() }
        conductor.stop()
        await #expect(throws: SQLError.shuttingDown) { try await waiting.value }
    }

    @Test(.timeLimit(.minutes(10))) func ordersAfterTheStopAreAnswered() async throws {
        let connector = NumberConnector(splits: 1)
        let conductor = try Self.conductor(2, connector)
        try await conductor.attach(Self.sums(10, byDigit: false))
        let last = try await conductor.wait { $0.epoch > .zero }
        conductor.stop()
        await #expect(throws: SQLError.self) { try await conductor.attach(Self.sums(11, byDigit: false)) }
        let stopped = SQLError.shuttingDown
        await #expect(throws: stopped) { try await conductor.snapshots([ObjectID(10)]) }
        await #expect(throws: stopped) { try await conductor.look { $0.here } }
        await #expect(throws: stopped) { try await conductor.onWorkers { $0.here } }
        conductor.inject([], upTo: DMLPosition(1))
        await #expect(throws: stopped) { try await conductor.wait { _ in false } }
        // What has come about is no less true for it.
        #expect(try await conductor.wait { $0.epoch >= last.epoch }.epoch >= last.epoch)
        await conductor.detach([ObjectID(10)])
        conductor.wake()
        conductor.stop()
    }

    @Test(.timeLimit(.minutes(10))) func ordersThatRaceWithTheStopAreAnswered() async throws {
        for _ in 0..<50 {
            let conductor = try Self.conductor(2, NumberConnector(splits: 1))
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        switch number % 4 {  // 57P01 is an answer.
                        case 0: _ = try? await conductor.wait { _ in false }
                        case 1: _ = try? await conductor.snapshots([ObjectID(10)])
                        case 2: _ = try? await conductor.attach(Self.sums(UInt32(20 + number), byDigit: true))
                        default:
                            conductor.inject([], upTo: DMLPosition(1))
                            _ = try? await conductor.wait { $0.dmlPosition >= DMLPosition(1) }
                        }
                    }
                }
                group.addTask { conductor.stop() }
            }
        }
    }

    @Test(arguments: [1, 4]) func injectedRowsAreThereOnceAnEpochNamesTheirPosition(workers: Int) async throws {
        let conductor = try Self.conductor(workers, NumberConnector(splits: 1))
        var builder = PlanBuilder()
        let schema = [Field("n", .int64)]
        let table = RelationReference(id: ObjectID(5), name: "t", kind: .table)
        let input = builder.tableInput(table, schema)
        try await conductor.attach(JobPlan(id: table.id, name: table.name, plan: builder.materialize(input)))
        for number in Int64(1)...20 {
            let change: [(row: [Scalar], weight: Int64)] = [([.int(number)], 1), ([.int(number / 2)], number % 2 == 0 ? -1 : 1)]
            let position = DMLPosition(UInt64(number))
            conductor.inject([(table: table.id, batches: [RandomRelation.batch(change[...], schema)])], upTo: position)
            try await conductor.wait { $0.dmlPosition >= position }
            let (_, tables) = try await conductor.snapshots([table.id])
            let rows = Self.counts(tables[table.id] ?? [], [0])
            #expect(rows[[.integer(number)]] != nil)
        }
        conductor.stop()
    }
}
