package import MillBase
package import MillColumnar
package import MillIO
package import MillState
package import MillStore
import Synchronization

/// Opens epochs on all workers, carries out what happens between them, and publishes them.
///
/// A thread of its own, which also runs the first worker. One epoch runs at a time: when all workers are done, the epoch is published by storing its record, and
/// those who wait for it go on. Everything that changes the set of jobs, reads stored rows or injects DML is an order that runs
/// between two epochs, so each sees whole epochs only; while the conductor waits for orders and has none, others may look for themselves.
///
/// An epoch is as short as the input allows: with nothing waiting it opens the moment a reader reports data. While input is left
/// over, the budget doubles as long as epochs stay under a target, and halves when they go over twice that. The target is
/// `targetNanos`, and grows to `backlogNanos` while epoch after epoch leaves input over: what has waited for seconds may wait for one
/// long epoch, which costs far less than many short ones, because each group that changes is given out once an epoch.
package final class Conductor: Sendable {
    package let workerCount: Int
    private let workers: [Worker]
    /// The worker that the conductor's own thread runs: most programs have no other, and for an epoch of few records it takes longer to wake a
    /// thread than to run it.
    private var first: Worker { workers[0] }
    /// Those with threads of their own.
    private var others: ArraySlice<Worker> { workers.dropFirst() }
    private let mailbox = Mailbox<Order>()
    private let clock: any Clock
    private let wakePending = Atomic<Bool>(false)
    private let latest = Mutex<EpochRecord>(.none)
    /// An epoch that has run and could not be published yet.
    private let unpublished = Mutex<EpochRecord?>(nil)
    /// The last transaction that was handed to the tables' inputs.
    private let injected = Mutex<DMLPosition>(.zero)
    /// Used on the conductor's thread; another may ask whether time matters to it.
    private let book: Mutex<WatermarkBook>
    /// Jobs without state from before that no epoch has had yet.
    private let fresh = Mutex<Set<ObjectID>>([])
    /// Used on the conductor's thread; others may ask where it stands.
    private let rerun = Mutex(EpochRerun())
    /// What is put into tables in an epoch behind the one that is run again, in order. On the conductor's thread.
    private let waiting = Mutex<[Injection]>([])
    private let threads = Mutex<[PinnedThread]>([])
    /// Held by the conductor's thread but while it waits for orders, so that whoever has it finds all workers between two epochs; whether all
    /// is over. Who has it must not look again, nor wait for anybody.
    private let turn = Mutex(false)
    /// Orders `between` that are not carried out yet: whoever comes later sees what they did.
    private let ordersAhead = Atomic<Int>(0)
    private let options: Options

    package struct Options: Sendable {
        /// How long an epoch may take under load before its budget shrinks.
        package var targetNanos: UInt64
        /// How long when input has been left over for many epochs.
        package var backlogNanos: UInt64
        package var recordsMin: Int
        package var recordsMax: Int
        package var bytesMax: Int
        /// How long a split may give nothing before the watermark goes on without it.
        package var idleNanos: UInt64
        /// Asked before an epoch opens whether it can be noted; false: none opens until the conductor is woken and this says so.
        package var mayOpen: (@Sendable () -> Bool)?
        /// Called with an epoch before it is published; false: it cannot be now. It is asked again when the conductor is woken, and
        /// until then no other epoch opens.
        package var willPublish: (@Sendable (EpochRecord) -> Bool)?

        package init(
            targetNanos: UInt64 = 100_000_000, backlogNanos: UInt64 = 1_000_000_000, recordsMin: Int = 8192, recordsMax: Int = 4 << 20, bytesMax: Int = 256 << 20,
            idleNanos: UInt64 = 10_000_000_000, mayOpen: (@Sendable () -> Bool)? = nil,
            willPublish: (@Sendable (EpochRecord) -> Bool)? = nil
        ) {
            self.mayOpen = mayOpen
            self.targetNanos = targetNanos
            self.backlogNanos = backlogNanos
            self.recordsMin = recordsMin
            self.recordsMax = recordsMax
            self.bytesMax = bytesMax
            self.idleNanos = idleNanos
            self.willPublish = willPublish
        }
    }

    /// What becomes of an order while an epoch that has run cannot be published: the state is ahead of what may be seen.
    private enum WhileHeld: Sendable {
        case waits
        case isRefused
        /// It does not look at rows.
        case runs
    }

    private enum Order: Sendable {
        case wake
        case epochDone(EpochReport)
        /// Runs on the conductor's thread between epochs; `refused` is called in its place once the conductor has stopped, and, where
        /// `whileHeld` says so, while an epoch is held back.
        case between(@Sendable (Conductor) -> Void, whileHeld: WhileHeld = .waits, refused: @Sendable () -> Void)
        case await(Waiter)
        case stop
    }

    private struct Waiter: Sendable {
        var isMet: @Sendable (EpochRecord) -> Bool
        /// Given nil when the conductor has stopped first.
        var resume: @Sendable (EpochRecord?) -> Void
    }

    /// - Parameter makeSource: a source input for a worker with that worker's splits added; called on the worker's thread.
    /// - Throws: where one of the threads could not be started; those that were have ended.
    package init(
        workerCount: Int, clock: any Clock, options: Options = Options(),
        makeSource: @escaping @Sendable (ObjectID, WorkerIndex, _ onData: @escaping @Sendable () -> Void) throws(SQLError) -> SourceInput
    ) throws(ThreadFailure) {
        self.workerCount = workerCount
        self.clock = clock
        self.options = options
        book = Mutex(WatermarkBook(idleNanos: options.idleNanos))
        workers = (0..<workerCount).map { Worker(index: WorkerIndex($0)) }
        let workers = workers
        let makeSource: @Sendable (ObjectID, WorkerIndex) throws(SQLError) -> SourceInput = { [self] (id, worker) throws(SQLError) in
            try makeSource(id, worker, { [weak self] in self?.wake() })
        }
        var begun: [PinnedThread] = []
        do throws(ThreadFailure) {
            for worker in others {
                begun.append(
                    try PinnedThread { [self] in
                        worker.run(peers: workers, makeSource: makeSource) { [self] report in mailbox.send(.epochDone(report)) }
                    })
            }
            begun.append(
                try PinnedThread { [self] in
                    first.begin(peers: workers, makeSource: makeSource)
                    run()
                    first.end()
                })
        } catch {
            for worker in others { worker.mailbox.send(.stop) }
            for thread in begun { thread.join() }
            throw error
        }
        threads.withLock { [begun] in $0 = begun }
    }

    /// The last published epoch.
    package var published: EpochRecord { latest.withLock { $0 } }

    /// Something to read has come; any thread, returns at once.
    package func wake() {
        if !wakePending.exchange(true, ordering: .acquiringAndReleasing) { mailbox.send(.wake) }
    }

    /// Whether time alone may move a watermark; then the conductor is to be woken now and then.
    package var waitsForIdleness: Bool { book.withLock { $0.waitsForIdleness } || rerun.withLock { $0.isActive } }

    /// Ends all threads after the running epoch. Orders that come later are not carried out but answered: see each. Questions to the workers
    /// throw, for no answer is not an empty one, and so does waiting for an epoch that will not come.
    package func stop() {
        mailbox.send(.stop)
        let threads = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in threads { thread.join() }
    }

    // MARK: Orders

    /// Hands an order to the conductor's thread, or answers it when that is no more.
    private func order(_ order: Order) {
        if case .between = order { ordersAhead.add(1, ordering: .acquiringAndReleasing) }
        if !mailbox.send(order) { refuse(order) }
    }

    /// Answers an order that will not be carried out, so that nobody waits for ever.
    private func refuse(_ order: Order) {
        switch order {
        case .between(_, _, let refused): refused()
        case .await(let waiter):
            let last = published
            waiter.resume(waiter.isMet(last) ? last : nil)
        case .wake, .epochDone, .stop: break
        }
    }

    /// Runs `body` on every worker's thread between two epochs, and gives the results by worker with the epoch they belong to.
    /// - Parameter evenWhileHeld: it does not look at rows, and need not wait while an epoch that has run cannot be published.
    /// - Throws: 57P01 after `stop`.
    package func onWorkers<T: Sendable>(
        evenWhileHeld: Bool = false, _ body: @escaping @Sendable (WorkerCircuit) -> T
    ) async throws(SQLError) -> (record: EpochRecord, results: [T]) {
        try await results(whileHeld: evenWhileHeld ? .runs : .waits) { $0.gather(body) }
    }

    private func results<T: Sendable>(
        whileHeld: WhileHeld, _ read: @escaping @Sendable (Conductor) -> [T]
    ) async throws(SQLError) -> (record: EpochRecord, results: [T]) {
        let answer: Result<(record: EpochRecord, results: [T]), SQLError> = await withCheckedContinuation { continuation in
            order(
                .between(
                    { conductor in continuation.resume(returning: .success((conductor.published, read(conductor)))) }, whileHeld: whileHeld,
                    refused: { continuation.resume(returning: .failure(.shuttingDown)) }))
        }
        return try answer.get()
    }

    /// Adds a job on all workers, or on none.
    /// - Returns: the last epoch without it.
    /// - Throws: 57P01 after `stop`.
    @discardableResult
    package func attach(_ job: JobPlan) async throws(SQLError) -> Epoch { try await attach([job])[0].get() }

    /// Adds several jobs between the same two epochs, in this order, each on all workers or on none.
    package func attach(_ jobs: [JobPlan]) async -> [Result<Epoch, SQLError>] {
        await withCheckedContinuation { continuation in
            order(
                .between(
                    { conductor in continuation.resume(returning: jobs.map { conductor.attachToAll($0) }) },
                    refused: { continuation.resume(returning: jobs.map { _ in .failure(.shuttingDown) }) }))
        }
    }

    /// On the conductor's thread.
    private func attachToAll(_ job: JobPlan) -> Result<Epoch, SQLError> {
        do throws(SQLError) {
            let keys = try book.withLock { (book) throws(SQLError) in try book.begin(job.id, from: job.isRestored ? job.storage?.recovered : nil) }
            rerun.withLock { $0.join(keys) }
        } catch { return .failure(error) }
        if !job.isRestored { fresh.withLock { _ = $0.insert(job.id) } }
        let results = gather { circuit -> SQLError? in
            do throws(SQLError) {
                try circuit.attach(job)
                return nil
            } catch { return error }
        }
        if let error = results.compactMap({ $0 }).first {
            _ = gather { $0.detach(job.id) }
            return .failure(error)
        }
        wake()
        return .success(published.epoch)
    }

    package func detach(_ ids: [ObjectID]) async {
        _ = try? await onWorkers { circuit in for id in ids { circuit.detach(id) } }  // After `stop` none runs.
        wake()  // Who waits for one of them to catch up learns that it is gone.
    }

    /// What `body`, which must be brief, sees in every worker's circuit between two epochs, by worker, with the epoch it belongs to. No worker
    /// is woken for it: it runs on this thread while no epoch does and no order is ahead of it, else on the conductor's.
    /// - Throws: 57P01 after `stop`.
    package func look<T: Sendable>(
        _ body: @escaping @Sendable (WorkerCircuit) -> T
    ) async throws(SQLError) -> (record: EpochRecord, results: [T]) {
        let isFree = ordersAhead.load(ordering: .acquiring) == 0
        let now = !isFree ? nil : turn.withLockIfAvailable { isOver -> (record: EpochRecord, results: [T])? in
            guard !isOver, unpublished.withLock({ $0 == nil }) else { return nil }
            let results = workers.compactMap { $0.look(body) }
            return results.count == workerCount ? (published, results) : nil
        }
        if let answer = now ?? nil { return answer }
        return try await results(whileHeld: .waits) { conductor in
            let results = conductor.workers.compactMap { $0.look(body) }
            return results.count == conductor.workerCount ? results : conductor.gather(body)
        }
    }

    /// Images of stored rows, all of one epoch. A view that does not run is missing.
    /// - Throws: 57P01 after `stop`.
    package func snapshots(_ ids: [ObjectID]) async throws(SQLError) -> (record: EpochRecord, tables: [ObjectID: [TableSnapshot]]) {
        let (record, parts) = try await look { circuit in
            ids.compactMap { id in circuit.materialized(id).map { (id: id, image: $0.table.snapshot()) } }
        }
        var tables: [ObjectID: [TableSnapshot]] = [:]
        for part in parts { for (id, image) in part { tables[id, default: []].append(image) } }
        return (record, tables)
    }

    /// Puts what transactions up to `position` do to tables into the next epoch, whose record and all later ones name at least that
    /// position. Calls take effect in their order; after `stop` none does.
    package func inject(_ rows: [(table: ObjectID, batches: [DeltaBatch])], upTo position: DMLPosition) {
        let injection = Injection(rows: rows, position: position)
        order(
            .between(
                { conductor in
                    conductor.waiting.withLock { $0.append(injection) }
                    conductor.injectWhatIsDue()
                    conductor.wake()
                }, refused: {}))
    }

    /// What transactions do to tables.
    private struct Injection: Sendable {
        var rows: [(table: ObjectID, batches: [DeltaBatch])]
        var position: DMLPosition
    }

    /// - Returns: whether tables have been given something.
    @discardableResult private func injectWhatIsDue() -> Bool {
        let due = waiting.withLock { waiting in
            let count = rerun.withLock { rerun in waiting.firstIndex { rerun.isAhead($0.position) } } ?? waiting.count
            defer { waiting.removeFirst(count) }
            return Array(waiting[..<count])
        }
        guard let last = due.last else { return false }
        _ = gather { circuit in
            guard circuit.here.number == 0 else { return }
            for injection in due { for (table, batches) in injection.rows { circuit.inject(batches, into: table) } }
        }
        injected.withLock { $0 = max($0, last.position) }
        return true
    }

    /// The changes of all stored state since the last seal, as of the last published epoch; nil after `stop`, and while the state is
    /// ahead of it, or epochs are run again: what is left of them would be known nowhere.
    /// - Parameter everything: the last checkpoint did not come to its end.
    package func seal(everything: Bool) async -> Seal? {
        await withCheckedContinuation { continuation in
            order(
                .between(
                    { conductor in
                        guard !conductor.rerun.withLock({ $0.isActive }) else { return continuation.resume(returning: nil) }
                        // As it is now: a job may have come since the epoch was published.
                        let now = conductor.gather { $0.report }.reduce(into: EpochReport()) { $0.merge($1) }
                        var record = conductor.published
                        record.offsets = now.offsets
                        let missing = now.catchingUp.union(now.jobFailures.keys).subtracting(now.apart.keys)
                        let parts = conductor.gather { circuit in
                            let jobs = circuit.storedJobs.subtracting(missing)
                            let tables = circuit.seal(jobs, everything: everything)
                            return SealPart(
                                jobs: jobs, tables: tables, errors: circuit.keptErrors(jobs), late: circuit.keptLateRows(jobs),
                                plans: circuit.planNotes(jobs), outboxes: circuit.outboxes(Set(tables.map(\.place.job))))
                        }
                        var errors: [ObjectID: [OperatorErrors.Kept]] = [:]
                        var late: [ObjectID: [LateRows.Kept]] = [:]
                        for part in parts {
                            for (job, kept) in part.errors { errors[job, default: []].append(kept) }
                            for (job, kept) in part.late { late[job, default: []].append(kept) }
                        }
                        // The same on every worker.
                        var notes = parts[0].plans + conductor.book.withLock { $0.notes(of: parts[0].jobs) }
                        notes += errors.compactMap { OperatorErrors.note($0.key, $0.value) } + late.compactMap { LateRows.note($0.key, $0.value) }
                        notes += now.apart.map { $0.value.note($0.key) }
                        let outboxes = parts[0].outboxes.map { $0.seal(record.epoch, openedAtMicros: record.openedAtMicros) }
                        continuation.resume(returning: Seal(record: record, tables: parts.flatMap(\.tables), notes: notes, outboxes: outboxes))
                    }, whileHeld: .isRefused, refused: { continuation.resume(returning: nil) }))
        }
    }

    /// Epochs go on from one that was published before the process began; before the first.
    /// - Parameters:
    ///   - epochs: those from the checkpoint on (`EpochJournal.epochs`): jobs that go on from that and close by watermarks have them again.
    ///   - position: the last transaction that the state to begin from has.
    package func resume(after epochs: [EpochPosition], holding position: DMLPosition) {
        guard let last = epochs.last else { return }
        latest.withLock { $0.epoch = last.epoch }
        injected.withLock { $0 = max($0, position) }
        rerun.withLock { $0 = EpochRerun(epochs) }
    }

    /// Transactions of tables with which epochs ended that are run again.
    package var rerunPositions: [DMLPosition] { rerun.withLock { $0.isActive ? $0.positions : [] } }

    /// Waits for a published epoch that meets a condition; the last one counts.
    /// - Throws: 57P01 when the conductor stops before.
    @discardableResult
    package func wait(until isMet: @escaping @Sendable (EpochRecord) -> Bool) async throws(SQLError) -> EpochRecord {
        let reached: EpochRecord? = await withCheckedContinuation { continuation in
            order(.await(Waiter(isMet: isMet, resume: { continuation.resume(returning: $0) })))
        }
        guard let reached else { throw .shuttingDown }
        return reached
    }

    /// Runs on all workers now and waits; on the conductor's thread only.
    private func gather<T: Sendable>(_ body: @escaping @Sendable (WorkerCircuit) -> T) -> [T] {
        if others.isEmpty { return [first.perform(body)] }
        let results = Gathered<T>(count: workers.count)
        let done = Semaphore()
        for worker in others {
            worker.mailbox.send(
                .perform { circuit in
                    results.store(body(circuit), at: circuit.here.number)
                    done.signal()
                })
        }
        results.store(first.perform(body), at: 0)
        for _ in others { done.wait() }
        return results.all
    }

    // MARK: The loop

    /// What the conductor's thread remembers from one turn to the next.
    private struct Agenda {
        var budget: Int
        /// Epochs one after the other that left input over.
        var behind = 0
        var waiters: [Waiter] = []
        var hasMore = false
        var pending: [Order] = []
        /// What waits for the epoch that could not be published.
        var deferred: [Order] = []
    }

    private func run() {
        var agenda = Agenda(budget: options.recordsMin)
        var isOver = false
        while !isOver {
            var orders = agenda.pending
            agenda.pending = []
            if orders.isEmpty, !agenda.hasMore { orders = mailbox.receive() }
            turn.withLock {
                isOver = !carryOut(orders, &agenda)
                $0 = isOver
            }
        }
    }

    /// Orders, and then an epoch if there is something for one.
    /// - Returns: false when nothing more is to be done, ever.
    private func carryOut(_ orders: [Order], _ agenda: inout Agenda) -> Bool {
        for (index, order) in orders.enumerated() {
            switch order {
            case .wake: agenda.hasMore = true
            case .between(let work, let whileHeld, let refused):
                switch unpublished.withLock({ $0 == nil }) ? .runs : whileHeld {
                case .waits:
                    agenda.deferred.append(order)
                    continue
                case .runs: work(self)
                case .isRefused: refused()
                }
                ordersAhead.subtract(1, ordering: .acquiringAndReleasing)
            case .await(let waiter): settle(waiter, &agenda.waiters)
            case .epochDone: preconditionFailure("no worker ends an epoch that is not open")
            case .stop:
                for worker in others { worker.mailbox.send(.stop) }
                for waiter in agenda.waiters { refuse(.await(waiter)) }
                for late in agenda.deferred + orders[(index + 1)...] + mailbox.close() { refuse(late) }
                return false
            }
        }
        guard agenda.hasMore else { return true }
        wakePending.store(false, ordering: .releasing)
        let held = unpublished.withLock { $0 }
        guard held != nil || options.mayOpen?() ?? true else {
            agenda.hasMore = false
            return true
        }
        let record = held ?? runEpoch(records: agenda.budget, &agenda.pending)
        guard options.willPublish?(record) ?? true else {
            unpublished.withLock { $0 = record }
            agenda.hasMore = false
            return true
        }
        unpublished.withLock { $0 = nil }
        // Whoever woke it while an epoch was held back wants one that runs from now on.
        agenda.hasMore = record.hasMore || record.hasOpenWatermarks || held != nil
        agenda.behind = record.hasMore ? agenda.behind + 1 : 0
        adapt(&agenda.budget, to: record, behind: agenda.behind)
        latest.withLock { $0 = record }
        agenda.waiters.removeAll { waiter in
            guard waiter.isMet(record) else { return false }
            waiter.resume(record)
            return true
        }
        agenda.pending = agenda.deferred + agenda.pending
        agenda.deferred = []
        if agenda.pending.isEmpty { agenda.pending = mailbox.take() }
        return true
    }

    private func settle(_ waiter: Waiter, _ waiters: inout [Waiter]) {
        let record = published
        if waiter.isMet(record) { waiter.resume(record) } else { waiters.append(waiter) }
    }

    /// One epoch on all workers; other orders that come meanwhile are kept in `pending`.
    private func runEpoch(records: Int, _ pending: inout [Order]) -> EpochRecord {
        let epoch = published.epoch.next
        let start = clock.monotonicNanos
        let openedAt = clock.nowMicros
        let rerun = rerun.withLock { rerun in
            rerun.startOnce(nowNanos: start)
            return rerun
        }
        let position = rerun.publishedPosition ?? injected.withLock { $0 }
        let share = EpochBudget(records: max(records / workers.count, 1), bytes: options.bytesMax / workers.count)
        let fresh = fresh.withLock { fresh in
            defer { fresh = [] }
            return fresh
        }
        let watermarks = EpochWatermarks(
            epoch: epoch, openedAtMicros: rerun.openedAtMicros ?? openedAt, steps: book.withLock { $0.open(holding: rerun.held) },
            behind: published.catchingUp.union(fresh), ends: rerun.ends)
        // In an epoch of few records it takes longer to say who has read them than to read them.
        let lends = published.hasMore
        let opening = Worker.Opening(epoch: epoch, budget: share, watermarks: watermarks, lends: lends)
        for worker in others { worker.mailbox.send(.openEpoch(opening)) }
        var report = first.runEpoch(opening)
        var open = others.count
        while open > 0 {
            for order in mailbox.receive() {
                if case .epochDone(let part) = order {
                    report.merge(part)
                    open -= 1
                } else {
                    pending.append(order)
                }
            }
        }
        let steps = book.withLock { book in
            book.note(report.progress, nowNanos: start, holding: rerun.isActive ? rerun.keys : [])
            return noteRerun(report, &book, nowNanos: start)
        }
        let rerunning = self.rerun.withLock { $0.sources }
        if rerun.isActive {
            let goesOn = rerunning.isEmpty || self.rerun.withLock { $0.held != rerun.held }
            report.hasMore = injectWhatIsDue() || goesOn || report.hasMore
        }
        return EpochRecord(
            epoch: epoch, openedAtMicros: openedAt, offsets: report.offsets, highWatermarks: report.highWatermarks, dmlPosition: position,
            sourceFailures: report.sourceFailures, jobFailures: report.jobFailures, unfinishedSources: report.unfinishedSources,
            catchingUp: report.catchingUp, rerunning: rerunning, watermarks: steps, hasMore: report.hasMore, durationNanos: clock.monotonicNanos - start)
    }

    /// Steps of a rerun go by what the journal says.
    /// - Returns: the watermarks that go by themselves.
    private func noteRerun(_ report: EpochReport, _ book: inout WatermarkBook, nowNanos: UInt64) -> [WatermarkKey: WatermarkStep] {
        rerun.withLock { rerun in
            let next = rerun.note(report, injected: injected.withLock { $0 }, nowNanos: nowNanos, idleNanos: options.idleNanos)
            if let next { book.set(next) }
            return rerun.isActive ? book.steps.filter { !rerun.keys.contains($0.key) } : book.steps
        }
    }

    private func adapt(_ budget: inout Int, to record: EpochRecord, behind: Int) {
        let target = max(options.targetNanos, min(options.targetNanos << UInt64(min(behind / 4, 10)), options.backlogNanos))
        if record.durationNanos > 2 * target {
            budget = max(budget / 2, options.recordsMin)
        } else if record.hasMore, record.durationNanos < target {
            budget = min(budget * 2, options.recordsMax)
        }
    }
}

/// One result per worker, stored from their threads.
private final class Gathered<T: Sendable>: Sendable {
    private let values: Mutex<[T?]>

    init(count: Int) { values = Mutex(Array(repeating: nil, count: count)) }

    func store(_ value: T, at index: Int) { values.withLock { $0[index] = value } }

    /// After every worker has stored its own.
    var all: [T] { values.withLock { $0.map { $0! } } }
}
