package import MillBase
package import MillColumnar
package import MillConnectorKit
package import MillDataflow
import MillExpr
package import MillIO
package import MillPlan

/// An ad-hoc query: the same operators as a live view, run over what is there, on a thread that does nothing else meanwhile, or, when it is
/// brief, on the one that asks.
///
/// One epoch over one worker's worth of circuit. Rows of relations come as batches of one published epoch; a source is read from
/// its origin up to `end`. An append-only plan without an order streams its rows; every other result is consolidated first,
/// because a row may be given and taken back within the epoch.
package struct QueryRun: Sendable {
    package var plan: StreamPlan
    package var order: [SortKey]
    package var limit: Int?
    package var offset: Int
    package var visible: Int
    /// Rows of relations, of all the relation's columns, by the relation.
    package var relations: [ObjectID: [DeltaBatch]]
    package var sources: [ObjectID: SourceRange]
    /// Tables of attached catalogs.
    package var tables: [ObjectID: TableRange] = [:]
    /// Whether an expression's failure ends the query (the default) or gives NULL.
    package var raisesErrors: Bool
    /// What the reader should know of the rows.
    package var warnings: [SQLError] = []
    private let threads: ThreadPool

    /// A table of an attached catalog as a query sees it.
    package struct TableRange: Sendable {
        package var catalog: any AttachedCatalog
        package var table: CatalogTable
        /// What the query asks of its columns.
        package var bounds: [ScanBound]

        package init(catalog: any AttachedCatalog, table: CatalogTable, bounds: [ScanBound]) {
            self.catalog = catalog
            self.table = table
            self.bounds = bounds
        }
    }

    /// A source's records as a query sees them.
    package struct SourceRange: Sendable {
        package var definition: SourceDefinition
        package var end: [SourceSplit: SplitOffset]
        package var clock: any Clock
        /// How long the source may give nothing before the query ends with 08006; nil waits for ever.
        package var patience: Duration?
        package var onRejects: SourceInput.RejectHandler

        package init(
            definition: SourceDefinition, end: [SourceSplit: SplitOffset], clock: any Clock, patience: Duration?,
            onRejects: @escaping SourceInput.RejectHandler
        ) {
            self.definition = definition
            self.end = end
            self.clock = clock
            self.patience = patience
            self.onRejects = onRejects
        }
    }

    package init(
        plan: StreamPlan, order: [SortKey] = [], limit: Int? = nil, offset: Int = 0, visible: Int, relations: [ObjectID: [DeltaBatch]] = [:],
        sources: [ObjectID: SourceRange] = [:], raisesErrors: Bool = true, threads: ThreadPool
    ) {
        self.plan = plan
        self.order = order
        self.limit = limit
        self.offset = offset
        self.visible = visible
        self.relations = relations
        self.sources = sources
        self.raisesErrors = raisesErrors
        self.threads = threads
    }

    /// Starts the query; rows arrive in the channel.
    /// - Parameter mayRunHere: a query that is brief has run when this returns, without a way to cancel it: not for an actor or a socket's thread.
    package func start(mayRunHere: Bool = false) -> RowChannel {
        if mayRunHere, isBrief {
            let channel = RowChannel(capacity: .max)
            run(into: channel)
            return channel
        }
        let channel = RowChannel()
        do throws(ThreadFailure) {
            try threads.run { [self] in run(into: channel) }
        } catch { channel.finish(error.sqlError) }
        return channel
    }

    private func run(into channel: RowChannel) {
        do throws(SQLError) {
            try QueryCircuit(self, channel).run()
            channel.finish()
        } catch {
            channel.finish(error)
        }
    }

    /// All rows at once, for statements that use a query's result.
    package func collect(_ cancellation: CancellationHook) async throws(SQLError) -> [DeltaBatch] {
        let channel = start()
        cancellation.onCancel { channel.cancel($0) }
        var batches: [DeltaBatch] = []
        while let batch = try await channel.next() { batches.append(batch) }
        return batches
    }
}

/// The circuit of one ad-hoc query. Confined to the thread that runs it.
private final class QueryCircuit: RenderInputs {
    private let query: QueryRun
    private let result: ResultCollector
    private var feeds: [(node: CircuitNode, feed: Feed)] = []

    private enum Feed {
        case relation(ObjectID, columns: [Int])
        case source(ObjectID, columns: [Int])
        case values
    }

    let workerCount = 1
    let here = WorkerIndex(0)
    func send(_ message: PeerMessage, to worker: WorkerIndex) {}

    init(_ run: QueryRun, _ channel: RowChannel) {
        query = run
        result = ResultCollector(run, channel)
    }

    func inputNode(for index: NodeIndex, of job: JobPlan, errors: OperatorErrors) throws(SQLError) -> CircuitNode? {
        let operation = job.plan[index].operation
        func node(_ operation: any Operator, _ feed: Feed) -> CircuitNode {
            let node = CircuitNode(name: job.plan[index].operation.title, job: job.id, operation: operation, errors: errors, inputCount: 1)
            feeds.append((node, feed))
            return node
        }
        switch operation {
        case .relation(let relation, let columns): return node(PassOperator(), .relation(relation.id, columns: columns))
        case .source(let relation, let columns): return node(PassOperator(), .source(relation.id, columns: columns))
        case .values(let rows): return node(ValuesOperator(rows, schema: job.plan[index].schema, isOwner: true), .values)
        default: return nil
        }
    }

    func run() throws(SQLError) {
        let rendered = try RenderedJob(JobPlan(id: ObjectID(0), name: "query", plan: query.plan), inputs: self)
        for node in rendered.nodes {
            node.openEpoch()
            node.isAbandoned = { [query, result, errors = rendered.errors] in
                result.isDone || result.cancellation != nil || (query.raisesErrors && errors.hasFirst)
            }
        }
        let sink = CircuitNode(name: "rows", job: ObjectID(0), operation: result, errors: rendered.errors, inputCount: 1)
        rendered.root.connect(to: sink, input: 0)
        for (node, feed) in feeds where !result.isDone {
            switch feed {
            case .values: break
            case .relation(let id, let columns):
                for batch in query.relations[id] ?? [] where !result.isDone {
                    node.accept(batch.with(columns: columns.map { batch.columns[$0] }), input: 0)
                    try check(rendered.errors)
                }
            case .source(let id, let columns):
                if let table = query.tables[id] {
                    try read(table, columns, into: node, rendered.errors)
                    continue
                }
                guard let range = query.sources[id] else { continue }
                try read(range, columns, into: node, rendered.errors)
            }
        }
        if !result.isDone {
            for (node, _) in feeds { node.localInputClosed() }
            try check(rendered.errors)
        }
        try result.finish()
    }

    private func check(_ errors: OperatorErrors) throws(SQLError) {
        if query.raisesErrors, let error = errors.takeFirst() { throw error }
        if let reason = result.cancellation { throw reason.error }
    }

    private func read(_ range: QueryRun.TableRange, _ columns: [Int], into node: CircuitNode, _ errors: OperatorErrors) throws(SQLError) {
        let scan = try range.catalog.scan(range.table, columns: columns, where: range.bounds)
        while !result.isDone, let batch = try scan.next() {
            node.accept(batch, input: 0)
            try check(errors)
        }
    }

    private func read(_ range: QueryRun.SourceRange, _ columns: [Int], into node: CircuitNode, _ errors: OperatorErrors) throws(SQLError) {
        let decoder = try range.definition.makeDecoder(columns)
        let arrived = Semaphore()
        result.onCancel { arrived.signal() }
        for (split, end) in range.end.sorted(by: { $0.key < $1.key }) where !result.isDone {
            var offset = range.definition.origin[split] ?? SplitOffset(0)
            guard offset <= end else {
                throw SQLError(
                    .objectNotInPrerequisiteState,
                    "\"\(split.name)\" of source \"\(range.definition.name)\" ends at \(end.position), before \(offset.position), where the source begins",
                    hint: "It was made anew or set back. Drop the source and create it again.")
            }
            guard offset < end else { continue }
            let reader = try range.definition.connector.openReader(split, at: offset, onData: { arrived.signal() })
            defer { reader.close() }
            reader.aim(at: end)
            var patience = Patience(range)
            while offset < end, !reader.isFinished, !result.isDone {
                guard let chunk = try reader.poll(maxRecords: Limits.batchRowsMax * 4, maxBytes: 4 << 20) else {
                    if let mark = reader.highWatermark, mark <= offset { break }
                    guard patience.wait(for: arrived) else { throw stalled(range, split, at: offset, end) }
                    if let reason = result.cancellation { throw reason.error }
                    continue
                }
                let due = chunk.nextOffset > end ? chunk.prefix(before: end) : chunk
                let decoded = try decoder.decode(due)
                if let rejects = SplitRejects(decoded, of: due, in: split) { range.onRejects(range.definition.id, rejects) }
                for batch in decoded.batches where !result.isDone {
                    node.accept(batch, input: 0)
                    try check(errors)
                }
                offset = chunk.nextOffset
                // What the query does with the rows is not the source's time.
                patience.restart()
            }
        }
    }

    private func stalled(_ range: QueryRun.SourceRange, _ split: SourceSplit, at offset: SplitOffset, _ end: SplitOffset) -> SQLError {
        let reason = range.definition.connector.status.map { ": \($0)" } ?? ""
        return SQLError(
            .connectionFailure, "source \"\(range.definition.name)\" gave no record for \(range.patience ?? .zero)\(reason)",
            detail: "\"\(split.name)\" was read up to \(offset.position) of \(end.position).",
            hint: "Check that what it reads from is up, or wait longer: SET source_timeout = '5min'.")
    }
}

/// How long a query has waited for a source since that last gave something.
private struct Patience {
    private let limit: Duration?
    private let clock: any Clock
    private var since: UInt64

    init(_ range: QueryRun.SourceRange) {
        limit = range.patience
        clock = range.clock
        since = clock.monotonicNanos
    }

    mutating func restart() { since = clock.monotonicNanos }

    /// Sleeps until the semaphore is signalled; false when the time is up.
    func wait(for semaphore: Semaphore) -> Bool {
        guard let limit else {
            semaphore.wait()
            return true
        }
        let waited = Duration.nanoseconds(Int64(clamping: clock.monotonicNanos - since))
        return waited < limit && semaphore.wait(atMost: limit - waited)
    }
}

/// The end of a query's circuit: cuts, consolidates and orders its rows and hands them to the reader.
private final class ResultCollector: Operator {
    private let run: QueryRun
    private let channel: RowChannel
    private let streams: Bool
    private var collected: [DeltaBatch] = []
    private var toSkip: Int
    private var toGive: Int
    /// No more input can change the result.
    private(set) var isDone = false

    init(_ run: QueryRun, _ channel: RowChannel) {
        self.run = run
        self.channel = channel
        streams = run.order.isEmpty && run.plan[run.plan.root].properties.appendOnly
        toSkip = run.offset
        toGive = run.limit ?? .max
        isDone = toGive == 0
    }

    var cancellation: CancellationReason? { channel.cancellation }
    func onCancel(_ wake: @escaping @Sendable () -> Void) { channel.onCancel(wake) }

    func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        if streams { give(batch) } else { collected.append(batch) }
    }

    func next(errors: OperatorErrors) -> DeltaBatch? { nil }

    func finish() throws(SQLError) {
        guard !streams else { return }
        var batches = Consolidate.consolidate(collected)
        collected = []
        if !run.order.isEmpty {
            batches = RowSort.sorted(
                batches, by: run.order.map { ColumnOrder($0.column, descending: $0.descending, nullsFirst: $0.nullsFirst) })
        }
        let last = batches.popLast()
        for batch in batches where !isDone { give(batch) }
        // With it the end: a reader of a small result is woken once.
        channel.finish(last: isDone ? nil : last.flatMap(cut))
    }

    private func give(_ batch: DeltaBatch) {
        guard !isDone, let rows = cut(batch) else { return }
        if !channel.send(rows) { isDone = true }
    }

    /// Cuts by OFFSET and LIMIT, where a row of weight n counts n times, and drops hidden columns.
    private func cut(_ batch: DeltaBatch) -> DeltaBatch? {
        var rows = Selection(capacity: batch.count)
        var weights: [Int64] = []
        for row in 0..<batch.count where toGive > 0 {
            var weight = Int(clamping: batch.weight(row))
            guard weight > 0 else { continue }
            let skipped = min(toSkip, weight)
            toSkip -= skipped
            weight = min(weight - skipped, toGive)
            guard weight > 0 else { continue }
            if toGive != .max { toGive -= weight }
            rows.append(row)
            weights.append(Int64(weight))
        }
        if toGive == 0 { isDone = true }
        guard rows.count > 0 else { return nil }
        let columns = Array(batch.columns.prefix(run.visible))
        let whole = rows.count == batch.count
        let picked = whole ? columns : columns.map { $0.gather(rows.rows, count: rows.count) }
        let plain = weights.allSatisfy { $0 == 1 }
        return DeltaBatch(columns: picked, count: rows.count, weights: plain ? nil : Weights(weights))
    }
}
