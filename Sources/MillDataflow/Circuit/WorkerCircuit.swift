package import MillBase
package import MillColumnar
package import MillConnectorKit
package import MillPlan
import MillState
package import MillStore

/// Everything that one worker runs: its shard of every job, its splits of every source, one epoch at a time.
///
/// A pure machine: it neither blocks nor owns a thread. Whoever drives it (`WorkerTurns`, or a test that delivers messages
/// in any order) calls `openEpoch`, hands over peers' messages, and is told by `isEpochDone` when this worker has done its part.
///
/// An epoch here:
/// 1. every node is opened; tables give out their DML, sources are polled within the budget, and rows run through the graph depth
///    first as they come; under load whoever has read its share decodes what others read, until all have;
/// 2. the inputs are closed; closing runs down the graph: a node whose last input ended gives out what waited for that
///    (aggregates, top-n, backfill slices), then closes its consumers' input;
/// 3. an exchange closes when the barriers of all peers are in; when every node is closed, so is the epoch.
///
/// Jobs join and leave between epochs only.
package final class WorkerCircuit: RenderInputs {
    package let here: WorkerIndex
    package let workerCount: Int
    private var jobs: [ObjectID: RunningJob] = [:]
    /// In the order they joined, which is an order of dependency.
    private var jobOrder: [ObjectID] = []
    private var sources: [ObjectID: SourceInput] = [:]
    private var exchanges: [ExchangeID: CircuitNode] = [:]
    private let sendMessage: (WorkerIndex, PeerMessage) -> Void
    /// Who reads no more in the running epoch, and decodes what others read: so splits need not be as many as workers, nor what follows from
    /// the rows of one as much work as for another's. What a worker has lent came before the message that it has read.
    private var haveRead: [WorkerIndex] = []
    /// Chunks of this worker that others have not decoded yet.
    private var lentCount = 0
    /// From smaller shares nothing is lent.
    private static let lentRecordsMin = 16_384
    private let makeSource: (ObjectID) throws(SQLError) -> SourceInput
    private let backfillRowsMax: Int
    private let openNodes = OpenNodes()

    private final class RunningJob {
        let rendered: RenderedJob
        var entries: [CircuitNode] = []
        var tableInput: TableInput?
        var relationScans: [RelationScanOperator] = []
        var failure: SQLError?
        /// Whether its state is that of an epoch: what operators begin with is given out in their first one, and nowhere stored.
        var isSealable: Bool
        let hasWatermarks: Bool
        /// Of its root's columns in the running epoch, for the jobs that read it.
        var passed: Watermarks = [:]
        var now: Watermarks = [:]

        init(_ rendered: RenderedJob) {
            self.rendered = rendered
            isSealable = rendered.job.isRestored
            hasWatermarks = rendered.job.plan.hasWatermarks
        }

        var materialize: MaterializeOperator? { rendered.root.operation as? MaterializeOperator }
    }

    /// - Parameters:
    ///   - backfillRowsMax: rows that a new job's scan of another view takes over in one epoch, about.
    ///   - makeSource: a source input for this worker, with the splits that are this worker's already added.
    ///   - send: delivers a message to a peer, in order.
    package init(
        here: WorkerIndex, workerCount: Int, backfillRowsMax: Int = 65_536, makeSource: @escaping (ObjectID) throws(SQLError) -> SourceInput,
        send: @escaping (WorkerIndex, PeerMessage) -> Void
    ) {
        self.here = here
        self.workerCount = workerCount
        self.backfillRowsMax = backfillRowsMax
        self.makeSource = makeSource
        sendMessage = send
    }

    package func send(_ message: PeerMessage, to worker: WorkerIndex) { sendMessage(worker, message) }

    // MARK: Jobs, between epochs

    /// What a job needs from around it while it is rendered.
    private var entriesOfNewJob: [CircuitNode] = []
    private var scansOfNewJob: [(RelationScanOperator, upstream: CircuitNode, node: CircuitNode)] = []
    private var sourcesOfNewJob: [(ObjectID, node: CircuitNode, columns: [Int], readsWatermark: Bool)] = []
    private var tableInputOfNewJob: TableInput?

    package func inputNode(for index: NodeIndex, of job: JobPlan, errors: OperatorErrors) throws(SQLError) -> CircuitNode? {
        let operation = job.plan[index].operation
        switch operation {
        case .source(let relation, let columns):
            let node = CircuitNode(name: operation.title, job: job.id, operation: PassOperator(), errors: errors, inputCount: 1)
            entriesOfNewJob.append(node)
            if relation.kind == .table {
                tableInputOfNewJob = try TableInput(node: node, columns: columns, watermark: job.watermark)
            } else {
                sourcesOfNewJob.append((relation.id, node, columns, !job.plan[index].properties.watermarks.isEmpty))
            }
            return node
        case .relation(let relation, let columns):
            guard let upstream = jobs[relation.id], let table = upstream.materialize else {
                throw SQLError(.objectNotInPrerequisiteState, "\(relation.kind.rawValue) \"\(relation.name)\" is not running")
            }
            let scan = RelationScanOperator(upstream: table, columns: columns, rowsPerEpochMax: backfillRowsMax)
            if job.skipsRows { scan.skipRows() }
            let node = CircuitNode(name: operation.title, job: job.id, operation: scan, errors: errors, inputCount: 1)
            scansOfNewJob.append((scan, upstream.rendered.root, node))
            return node
        case .values(let rows):
            let node = CircuitNode(
                name: operation.title, job: job.id,
                operation: ValuesOperator(rows, schema: job.plan[index].schema, isOwner: here.number == 0), errors: errors, inputCount: 1)
            entriesOfNewJob.append(node)
            return node
        default: return nil
        }
    }

    /// Renders a job and connects it. When it throws, nothing has changed.
    package func attach(_ job: JobPlan) throws(SQLError) {
        // Kept no longer: a job that is dropped is to leave no state behind.
        defer {
            entriesOfNewJob = []
            scansOfNewJob = []
            sourcesOfNewJob = []
            tableInputOfNewJob = nil
        }
        let running = RunningJob(try RenderedJob(job, inputs: self))
        running.entries = entriesOfNewJob
        running.tableInput = tableInputOfNewJob
        do throws(SQLError) {
            for (id, node, columns, readsWatermark) in sourcesOfNewJob {
                if sources[id] == nil { sources[id] = try makeSource(id) }
                try sources[id]?.add(
                    node, columns: columns, readsWatermark: readsWatermark, keepsOrder: job.plan.keepsOrder, isRestored: job.isRestored,
                    placement: job.placement)
            }
        } catch {
            try? removeFromSources(job.id)  // The first error is the one to report.
            throw error
        }
        for (scan, upstream, node) in scansOfNewJob {
            upstream.connect(to: node, input: 0)
            running.relationScans.append(scan)
        }
        for node in running.rendered.nodes {
            node.openNodes = openNodes
            node.isAbandoned = { [abandonment = job.abandonment] in abandonment.isAbandoned }
            if let exchange = node.operation as? ExchangeOperator { exchanges[exchange.id] = node }
        }
        jobs[job.id] = running
        jobOrder.append(job.id)
    }

    package func detach(_ id: ObjectID) {
        guard let job = jobs.removeValue(forKey: id) else { return }
        jobOrder.removeAll { $0 == id }
        for other in jobs.values { for node in other.rendered.nodes { node.disconnect(job: id) } }
        for node in job.rendered.nodes {
            if let exchange = node.operation as? ExchangeOperator { exchanges[exchange.id] = nil }
        }
        do throws(SQLError) { try removeFromSources(id) } catch { job.failure = error }
    }

    private func removeFromSources(_ job: ObjectID) throws(SQLError) {
        for (id, source) in sources {
            try source.remove(job: job)
            if !source.hasConsumers {
                source.close()
                sources[id] = nil
            }
        }
    }

    /// Splits found after the source was created; those that are this worker's.
    package func add(_ splits: [SourceSplit], to source: ObjectID) {
        for split in splits { sources[source]?.addFound(split) }
    }

    /// Reads no further than where each split stands; gives these places.
    package func pause(source: ObjectID) -> [SourceSplit: SplitOffset] {
        sources[source]?.pause()
        return sources[source]?.offsets ?? [:]
    }

    package func resume(source: ObjectID) { sources[source]?.resume() }

    /// - Parameter number: tells this pause from others.
    package func pause(job: ObjectID, number: UInt64) { for source in sources.values { source.pause(job: job, number: number) } }

    package func resume(job: ObjectID) { for source in sources.values { source.resume(job: job) } }

    /// The next epoch tries again what failed: readers that these sources' jobs share, and those of these jobs alone.
    package func retry(_ ids: Set<ObjectID>) {
        for (id, source) in sources {
            if ids.contains(id) { source.retry() }
            for job in ids where jobs[job] != nil { source.retry(job: job) }
        }
    }

    package func inject(_ batches: [DeltaBatch], into table: ObjectID) { jobs[table]?.tableInput?.inject(batches) }

    /// The stored rows of a view or table on this worker.
    package func materialized(_ id: ObjectID) -> MaterializeOperator? { jobs[id]?.materialize }

    /// What a job with a blackhole at its root has added up on this worker.
    package func blackhole(_ id: ObjectID) -> BlackholeOperator? { jobs[id]?.rendered.root.operation as? BlackholeOperator }

    package func errors(of id: ObjectID) -> OperatorErrors? { jobs[id]?.rendered.errors }

    package func lateRows(of id: ObjectID) -> LateRows? { jobs[id]?.rendered.late }

    // MARK: Epochs

    /// Reads within the budget, runs everything that follows, and closes the local inputs, at once or when all have read and nothing that
    /// was lent is open.
    ///
    /// - Parameters:
    ///   - takesMore: whether a peer that has read its own would not wait long with a chunk of records; nil on all workers: nobody lends.
    ///   - serveInbox: called between chunks of input, so that peers' rows are worked off while they are in the cache; false when the
    ///     peers are behind with this worker's rows, and it is to end reading for this epoch soon.
    package func openEpoch(
        _ budget: EpochBudget, watermarks: EpochWatermarks = EpochWatermarks(), takesMore: ((WorkerIndex) -> Bool)? = nil,
        serveInbox: () -> Bool
    ) {
        openNodes.count = 0
        haveRead = []
        lentCount = 0
        for id in jobOrder {
            jobs[id]!.isSealable = true
            for node in jobs[id]!.rendered.nodes { node.openEpoch() }
            openNodes.count += jobs[id]!.rendered.nodes.count
            (jobs[id]!.rendered.root.operation as? SinkOperator)?.openEpoch(watermarks.epoch, atMicros: watermarks.openedAtMicros)
        }
        for id in jobOrder where jobs[id]!.hasWatermarks { open(jobs[id]!, watermarks) }
        for (id, source) in sources { source.openEpoch(rereadingTo: watermarks.ends[id]) }
        for id in jobOrder { jobs[id]?.tableInput?.emit() }
        guard let takesMore, budget.records >= Self.lentRecordsMin, sources.values.contains(where: \.lends) else {
            hasMoreInput = read(budget, { _, _, _ in false }, serveInbox)
            return closeInputs()
        }
        func lend(_ source: ObjectID, _ split: SourceSplit, _ records: RawChunk) -> Bool {
            guard let peer = haveRead.first(where: takesMore) else { return false }
            lentCount += 1
            sendMessage(peer, .chunk(LentChunk(source: source, split: split, records: records, reader: here)))
            return true
        }
        hasMoreInput = read(budget, lend, serveInbox)
        haveRead.append(here)
        for peer in 0..<workerCount where peer != here.number { sendMessage(WorkerIndex(peer), .hasRead(here)) }
        closeInputsIfAllIsRead()
    }

    private func closeInputsIfAllIsRead() { if haveRead.count == workerCount, lentCount == 0 { closeInputs() } }

    private func closeInputs() {
        for id in jobOrder { for entry in jobs[id]!.entries { entry.localInputClosed() } }
    }

    /// Tells a job's operators what they close by. Jobs are opened in an order of dependency: what a job reads knows its own.
    private func open(_ job: RunningJob, _ watermarks: EpochWatermarks) {
        let (rendered, id) = (job.rendered, job.rendered.job.id)
        rendered.late.openEpoch(atMicros: watermarks.openedAtMicros)
        let isBehind = watermarks.behind.contains(id)
        func marks(_ value: (WatermarkStep) -> Int64?, _ upstream: (RunningJob) -> Watermarks) -> [Watermarks] {
            rendered.job.plan.watermarks { relation, columns in
                if let step = watermarks.steps[WatermarkKey(job: id, source: relation.id)] {
                    return value(step).map { mark in Watermarks(uniqueKeysWithValues: columns.map { ($0, mark) }) } ?? [:]
                }
                guard !isBehind, relation.id != id, let job = jobs[relation.id] else { return [:] }
                return upstream(job)
            }
        }
        let passed = marks({ $0.passed }, { $0.passed })
        let now = marks({ $0.now }, { $0.now })
        (job.passed, job.now) = (passed.last ?? [:], now.last ?? [:])
        for (number, node) in rendered.job.plan.nodes.enumerated() {
            guard let closing = node.closing else { continue }
            let steps = zip(node.inputs, closing.columns).map { WatermarkStep(passed: passed[$0.number][$1], now: now[$0.number][$1]) }
            rendered.nodes[number].operation.openEpoch(steps)
        }
    }

    /// The source that is read first: when peers are behind it gives more than the others do.
    private var firstSource = 0

    /// Polls the sources until the budget is spent, none has more, or peers are behind; returns whether more was waiting.
    ///
    /// Each gets an equal part; who has more then shares what the others did not need. So how much a worker reads does not hang on which
    /// source comes first, and workers whose splits are alike stay side by side in event time: a window that one counts an epoch before
    /// the other is corrected by a retraction in all that follows from it.
    private func read(_ budget: EpochBudget, _ lend: SourceInput.Lend, _ serveInbox: () -> Bool) -> Bool {
        var left = budget
        var arePeersBehind = false
        func serve() -> Bool {
            arePeersBehind = !serveInbox()
            return !arePeersBehind
        }
        let inOrder = sources.values.sorted { $0.definition.id < $1.definition.id }
        firstSource = firstSource + 1 < inOrder.count ? firstSource + 1 : 0
        let all = inOrder[firstSource...] + inOrder[..<firstSource]
        var hungry = Array(all)
        while !hungry.isEmpty {
            let before = left
            var waiting = hungry.count
            hungry.removeAll { source in
                let share = left.part(of: waiting)
                var unused = share
                waiting -= 1
                let hasMore = source.poll(&unused, lend: lend, serveInbox: serve)
                left.spend(share, left: unused)
                return !hasMore
            }
            if arePeersBehind || !left.hasRoom || left.records == before.records { break }
        }
        var hasMore = !hungry.isEmpty
        for source in all where source.pollCatchUps(left.part(of: all.count), serveInbox: serve) { hasMore = true }
        return hasMore
    }

    /// A peer's message for the running epoch.
    package func receive(_ message: PeerMessage) {
        switch message {
        case .batch(let id, let batch):
            guard let node = exchanges[id], let exchange = node.operation as? ExchangeOperator else { return }
            exchange.receive(batch)
            node.drain()
        case .barrier(let id): exchanges[id]?.inputClosed()
        case .hasRead(let worker):
            haveRead.append(worker)
            closeInputsIfAllIsRead()
        case .chunk(let chunk):
            guard let outcome = sources[chunk.source]?.decode(chunk) else { preconditionFailure("a source is on all workers") }
            sendMessage(chunk.reader, .decoded(outcome))
        case .decoded(let outcome):
            sources[outcome.source]?.note(outcome)
            lentCount -= 1
            closeInputsIfAllIsRead()
        }
    }

    package var isEpochDone: Bool { openNodes.count == 0 }

    /// More input was waiting when the budget was spent.
    package private(set) var hasMoreInput = false

    /// What this worker has done, for the conductor.
    package var report: EpochReport {
        var report = EpochReport()
        report.hasMore = hasMoreInput
        for (id, source) in sources {
            report.offsets[id] = source.offsets
            report.highWatermarks[id] = source.highWatermarks
            if let failure = source.failure { report.sourceFailures[id] = failure }
            report.jobFailures.merge(source.jobFailures) { first, _ in first }
            if !source.isFinished { report.unfinishedSources.insert(id) }
            report.catchingUp.formUnion(source.catchingUp)
            if source.isShortOfRerun { report.shortOfRerun.insert(id) }
            for (job, place) in source.apart {
                report.apart[job, default: JobPlacement()].merge(JobPlacement(offsets: [id: place.offsets], pause: place.pause))
            }
            report.progress.merge(source.progress) { $0.merging($1) { $0.further($1) } }
        }
        for (id, job) in jobs {
            if let input = job.tableInput { report.progress.merge(input.progress) { $0.merging($1) { $0.further($1) } } }
            if job.relationScans.contains(where: { !$0.isCaughtUp }) {
                report.catchingUp.insert(id)
                report.hasMore = true
            }
        }
        return report
    }

    /// The changes of all stored tables since the last seal, of the jobs that have caught up; between two epochs.
    /// - Parameters:
    ///   - jobs: the jobs that have caught up on all workers.
    ///   - everything: the last checkpoint did not come to its end, so this one is to hold all pages.
    package func seal(_ jobs: Set<ObjectID>, everything: Bool) -> [SealedTable] {
        var sealed: [SealedTable] = []
        // What follows from a job that begins anew does so as well.
        var whole: Set<ObjectID> = []
        for id in jobOrder where jobs.contains(id) {
            guard let job = self.jobs[id]?.rendered, let store = job.job.storage?.store, job.job.upstream.isSubset(of: whole) else { continue }
            whole.insert(id)
            for stored in job.tables {
                if everything { stored.table.forgetSeals() }
                let changes = stored.table.seal(table: stored.id.number, rewriting: store.rewriting(stored.id))
                sealed.append(SealedTable(place: stored.place, id: stored.id, changes: changes))
            }
        }
        return sealed
    }

    /// The outboxes of those of these jobs that are sinks.
    package func outboxes(_ jobs: Set<ObjectID>) -> [Outbox] {
        jobOrder.compactMap { id in jobs.contains(id) ? self.jobs[id]?.rendered.job.outbox : nil }
    }

    /// What checkpoints note of the plans of jobs.
    package func planNotes(_ jobs: Set<ObjectID>) -> [StateNote] {
        jobOrder.compactMap { id in jobs.contains(id) ? self.jobs[id]?.rendered.job.storage?.note(of: id) : nil }
    }

    /// The errors of jobs that have some, for checkpoints.
    package func keptErrors(_ jobs: Set<ObjectID>) -> [ObjectID: OperatorErrors.Kept] {
        self.jobs.filter { jobs.contains($0.key) && ($0.value.rendered.errors.entries.count > 0 || $0.value.rendered.errors.droppedCount != 0) }
            .mapValues { $0.rendered.errors.kept }
    }

    /// The late rows of jobs that have some, for checkpoints.
    package func keptLateRows(_ jobs: Set<ObjectID>) -> [ObjectID: LateRows.Kept] {
        self.jobs.filter { jobs.contains($0.key) && $0.value.rendered.late.count > 0 }.mapValues { $0.rendered.late.kept }
    }

    /// Jobs whose state is stored: none that has not had an epoch yet.
    package var storedJobs: Set<ObjectID> {
        Set(jobOrder.filter { id in jobs[id].map { $0.isSealable && $0.rendered.job.storage != nil } ?? false })
    }

    /// What is broken in the state of any operator, between two epochs; for tests and simulation.
    package func checkInvariants() -> [String] {
        jobOrder.flatMap { id in
            jobs[id]!.rendered.nodes.flatMap { node in node.operation.checkInvariants().map { "\(node.name) of job \(id): \($0)" } }
        }
    }

    /// Per source: what was read of it.
    package var sourceStatistics: [ObjectID: SourceStatistics] { sources.mapValues(\.statistics) }

    /// Per job: how far it is in this worker's splits of each source that it reads.
    package var places: [ObjectID: [ObjectID: [SourceSplit: SplitPlace]]] {
        var places: [ObjectID: [ObjectID: [SourceSplit: SplitPlace]]] = [:]
        for (id, source) in sources { for (job, splits) in source.places { places[job, default: [:]][id] = splits } }
        return places
    }

    /// Per job: bytes of state and the rows that its root has given out.
    package var jobStatistics: [ObjectID: JobStatistics] {
        jobs.mapValues { job in
            JobStatistics(
                stateByteCount: job.rendered.nodes.reduce(0) { $0 + $1.operation.stateByteCount },
                rowCount: job.materialize?.table.count ?? 0, rowsOut: job.rendered.root.rowsOut,
                errorCount: job.rendered.errors.entries.values.reduce(0, +) + job.rendered.errors.droppedCount, lateCount: job.rendered.late.count)
        }
    }
}

/// What a worker has done in an epoch.
package struct EpochReport: Sendable {
    package var hasMore = false
    package var offsets: [ObjectID: [SourceSplit: SplitOffset]] = [:]
    package var highWatermarks: [ObjectID: [SourceSplit: SplitOffset]] = [:]
    package var sourceFailures: [ObjectID: SQLError] = [:]
    package var jobFailures: [ObjectID: SQLError] = [:]
    /// Sources of which a split on this worker may give more records.
    package var unfinishedSources: Set<ObjectID> = []
    /// Jobs that have not yet taken over everything that was there before them.
    package var catchingUp: Set<ObjectID> = []
    /// Sources that have not been read to where an epoch ended that is run again.
    package var shortOfRerun: Set<ObjectID> = []
    /// Where jobs stand that were paused and have not joined their sources again.
    package var apart: [ObjectID: JobPlacement] = [:]
    /// How far jobs that close by a watermark are in their sources' splits.
    package var progress: [WatermarkKey: [SourceSplit: SplitProgress]] = [:]

    package init() {}

    package mutating func merge(_ other: EpochReport) {
        hasMore = hasMore || other.hasMore
        for (id, offsets) in other.offsets { self.offsets[id, default: [:]].merge(offsets) { max($0, $1) } }
        for (id, marks) in other.highWatermarks { highWatermarks[id, default: [:]].merge(marks) { max($0, $1) } }
        sourceFailures.merge(other.sourceFailures) { first, _ in first }
        jobFailures.merge(other.jobFailures) { first, _ in first }
        unfinishedSources.formUnion(other.unfinishedSources)
        catchingUp.formUnion(other.catchingUp)
        shortOfRerun.formUnion(other.shortOfRerun)
        apart.merge(other.apart) { first, second in
            var both = first
            both.merge(second)
            return both
        }
        progress.merge(other.progress) { $0.merging($1) { $0.further($1) } }
    }
}

package struct JobStatistics: Sendable {
    package var stateByteCount: Int
    package var rowCount: Int
    package var rowsOut: Int64
    package var errorCount: Int64
    /// Late rows, kept or not.
    package var lateCount: Int64

    package init(stateByteCount: Int = 0, rowCount: Int = 0, rowsOut: Int64 = 0, errorCount: Int64 = 0, lateCount: Int64 = 0) {
        self.stateByteCount = stateByteCount
        self.rowCount = rowCount
        self.rowsOut = rowsOut
        self.errorCount = errorCount
        self.lateCount = lateCount
    }

    package mutating func merge(_ other: JobStatistics) {
        stateByteCount += other.stateByteCount
        rowCount += other.rowCount
        rowsOut += other.rowsOut
        errorCount += other.errorCount
        lateCount += other.lateCount
    }
}
