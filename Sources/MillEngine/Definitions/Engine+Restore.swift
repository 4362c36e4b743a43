package import MillBase
import MillCatalog
import MillConnectorKit
import MillDataflow
import MillIO
import MillLog
import MillMeta
import MillPlan
import MillStore

/// From `meta.db` back to running jobs.
///
/// `restoreDefinitions` loads all definitions at once, before the first statement, so every name is taken and every object can be shown.
/// Clients may connect from then on. `restoreState` makes sources from their stored options and origins, attaches jobs with their stored
/// plans and state, and replays the log of DML; until it is done a statement that needs any of these, or changes definitions, waits. What fails says why
/// in SHOW JOBS and is tried again, after a second at first and a minute at last; nothing else waits for it but what reads it. A plan that
/// cannot be used stays so until REBUILD or DROP.
///
/// A crash between `creating` and `running` leaves a view that begins anew, as every restored view does now, and no table: rows that
/// CREATE TABLE AS was about to put in are gone, so the table is too.
extension Engine {
    /// Takes up what an earlier process left: both steps.
    package func restore() async throws(SQLError) {
        try await restoreDefinitions()
        try await restoreState()
    }

    /// The first step, soon done; called once, before the first statement. Nothing to do without a store.
    /// - Throws: XX001 or 58030 when the store cannot be read.
    package func restoreDefinitions() async throws(SQLError) {
        guard let meta else { return }
        try checkLogOfTransactions()
        restoration.gate = RecoveryGate(isOpen: false)
        let stored = try await offActor { () throws(SQLError) in try meta.load() }
        let unfinished = Set(stored.objects.filter { $0.object.kind == .table && $0.job?.state == .creating }.map(\.object.id))
        try await store { (meta) throws(SQLError) in try meta.drop(Array(unfinished)) }
        catalog.reserve(before: stored.nextID)
        // Definitions may have been put back from a copy or begun anew; what lies beside them may still be of objects they do not know.
        if let last = keeper?.recovered?.jobs.max() { catalog.reserve(before: ObjectID(last.number + 1)) }
        for schema in stored.schemas { try catalog.createSchema(schema) }
        try restore(stored.catalogs)
        for entry in stored.objects where !unfinished.contains(entry.object.id) { restore(entry) }
    }

    /// The second step, which takes as long as there is state to read; statements run beside it.
    /// - Throws: XX001 or 58030 when the state cannot be read, 57P01 when the engine was stopped meanwhile. One object's failure is not
    ///   an error of this.
    package func restoreState() async throws(SQLError) {
        do throws(SQLError) {
            try await restoreJobs()
            // What does not run now begins anew, or stays as it is until the next start.
            keeper?.recovered?.close()
            restoration.gate.open()
        } catch {
            restoration.gate.fail(error)
            throw error
        }
    }

    private func restoreJobs() async throws(SQLError) {
        guard meta != nil else { return }
        await definitions.lock()
        defer { definitions.unlock() }
        if let keeper {
            let rejects = rejects
            try await offActor { () throws(SQLError) in
                try keeper.findBlocks()
                try rejects.restore(keeper.recovered?.record.notes ?? [])
            }
            conductor.resume(after: keeper.journaled, holding: keeper.recovered?.record.position.dmlPosition ?? .zero)
            restoration.resumable = keeper.recovered.map { resumable($0) } ?? []
        }
        restoration.gate.enter(.reading)
        restoreSinks()
        try await restoreReplays()
        await restoreRound()
        if let failure = restoration.gate.failure { throw failure }
        let stored = try storedPositions()
        restoration.gate.enter(.replaying)
        try await replay(after: keeper?.recovered?.record.position.dmlPosition ?? .zero, tables: stored)
        if let failure = restoration.gate.failure { throw failure }
    }

    /// The last transaction that the stored rows of each table have, where that is not the checkpoint's: such a table did not run when the
    /// checkpoint was made. One that does not run now is left as it is until the next start: what happens meanwhile it would miss.
    private func storedPositions() throws(SQLError) -> [ObjectID: DMLPosition] {
        let recovered = keeper?.recovered
        var stored = try HeldTables.positions(in: recovered?.record.notes ?? [])
        for table in catalog.objects where table.kind == .table {
            guard restoration.reasons[table.id] != nil else { continue }
            var position = DMLPosition.zero
            if let recovered, recovered.jobs.contains(table.id) { position = stored[table.id] ?? recovered.record.position.dmlPosition }
            restoration.jobs.remove(table.id)
            restoration.held[table.id] = position
            stored[table.id] = position
        }
        return stored
    }

    /// What is acknowledged is in the log of transactions before anything else has it. Were numbers given out again, a later start would
    /// take the new transactions for those that the checkpoint has.
    /// - Throws: XX001 when the log ends before what is stored.
    private func checkLogOfTransactions() throws(SQLError) {
        guard let dmlLog, let keeper else { return }
        let stored = max(keeper.recovered?.record.position.dmlPosition ?? .zero, keeper.lastPublished.dmlPosition)
        guard dmlLog.durablePosition >= stored else {
            throw SQLError(
                .dataCorrupted, "the log of transactions ends with number \(dmlLog.durablePosition), and number \(stored) was published",
                hint: "Restore the data directory from a copy.")
        }
    }

    /// The jobs that can go on from a checkpoint: it was made by their plans, and holds what they read.
    ///
    /// A view that was rebuilt right before a crash is not among them: its plan is stored, and the checkpoint has the state of the one before.
    private func resumable(_ recovered: RecoveredState) -> Set<ObjectID> {
        var found: Set<ObjectID> = []
        // An object has a higher identifier than its inputs.
        for (id, plan) in plans.sorted(by: { $0.key < $1.key }) {
            let isFitting = planChecksums[id].map { JobStorage.holds(recovered, id, madeBy: $0) } ?? recovered.jobs.contains(id)
            if isFitting, plan.inputs.allSatisfy({ $0.id == id || plans[$0.id] == nil || found.contains($0.id) }) { found.insert(id) }
        }
        return found
    }

    private func resumedJob(_ object: CatalogObject, _ plan: StreamPlan) throws(SQLError) -> JobPlan {
        var job = JobPlan(
            id: object.id, name: object.name, plan: plan, watermark: object.watermark,
            storage: storage(of: object.id, recovered: keeper?.recovered))
        job.placement = try placement(of: object.id)
        return job
    }

    private func restore(_ stored: StoredObject) {
        let id = stored.object.id
        catalog.restore(stored.object)
        if stored.object.kind == .sink { pausedSinks[id] = stored.pause } else { paused[id] = stored.pause }
        if let failure = stored.failure {
            restoration.reasons[id] = failure
            // Without its watermark it would not be what it was.
            if stored.object.kind == .source || stored.object.kind == .table { return }
        }
        if stored.object.kind == .source { restoration.sources[id] = stored.origin }
        guard let job = stored.job else { return }
        if stored.object.kind == .materializedView {
            creating.insert(id)
            restoration.recovering[id] = Recovery()
        }
        if stored.object.kind != .table { planChecksums[id] = job.planChecksum }
        switch job.plan {
        case .success(let plan):
            plans[id] = plan
            restoration.jobs.insert(id)
        case .failure(let error): hold(id, error)
        }
    }

    /// Why a job does not get on; nil when nothing is in its way any more.
    private func hold(_ id: ObjectID, _ reason: SQLError?) {
        restoration.reasons[id] = reason
        restoration.recovering[id]?.settle(reason != nil)
        conductor.wake()  // Who waits for it looks again.
    }

    // MARK: Rounds

    /// Makes and attaches what can be; under the lock of definitions.
    func restoreRound() async {
        for (id, origin) in restoration.sources.sorted(by: { $0.key < $1.key }) {
            guard let object = catalog.object(id) else { continue }
            do throws(SQLError) {
                let made = try assembly.source(name: object.connectorName ?? "", options: object.options, fields: object.schema, catalogs: attached.finder)
                SourceIncarnations.restore(made.connector, of: id, from: keeper?.recovered)
                register(object, made, origin: origin)
                restoration.sources[id] = nil
                restoration.reasons[id] = nil
            } catch { restoration.reasons[id] = error }
        }
        var jobs: [JobPlan] = []
        // Falling behind what they read is impossible: an object has a higher identifier than its inputs.
        for id in restoration.jobs.sorted() {
            guard let object = catalog.object(id), let plan = plans[id] else { continue }
            hold(id, nil)
            if let input = plan.inputs.first(where: { $0.id != id && restoration.reasons[$0.id] != nil }),
                let reason = restoration.reasons[input.id]
            {
                let text = "\(input.kind.rawValue) \"\(input.name)\" does not run: \(reason.message)"
                hold(id, SQLError(.objectNotInPrerequisiteState, text, hint: reason.hint))
            } else {
                do throws(SQLError) {
                    var job = newJob(object, plan)
                    let isResumed = restoration.resumable.contains(id)
                    if isResumed { job = try resumedJob(object, plan) } else if paused[id] != nil { job.placement = try placement(of: id) }
                    if prepare(&job, isResumed: isResumed) { jobs.append(job) } else { restoration.jobs.remove(id) }
                } catch {
                    restoration.jobs.remove(id)
                    hold(id, error)
                }
            }
        }
        await attachRestored(jobs)
        // From here on what they read moves on without them: a view that joins later begins anew. A table has nothing but what is stored.
        restoration.resumable = restoration.resumable.filter { catalog.object($0)?.kind == .table }
        retryLater()
    }

    /// Attaches stored jobs, all between the same two epochs and each after what it reads, so that they read their sources together.
    ///
    /// Each goes on from the checkpoint if that holds it; else a table is empty and a view reads its sources from the origins again.
    func attachRestored(_ jobs: [JobPlan]) async {
        guard !jobs.isEmpty else { return }
        for job in jobs { abandonments[job.id] = job.abandonment }
        for (job, result) in zip(jobs, await conductor.attach(jobs)) {
            switch result {
            case .success(let before):
                restoration.jobs.remove(job.id)
                let isResumed = restoration.resumable.remove(job.id) != nil
                if creating.contains(job.id) { Task { await recover(job, after: before, isResumed: isResumed) } }
            case .failure(let error):
                abandonments[job.id] = nil
                // Damage is not passed over by beginning anew: the view stays as it is until it is rebuilt or dropped.
                if error.sqlState == .dataCorrupted, catalog.object(job.id)?.kind == .materializedView { restoration.jobs.remove(job.id) }
                hold(job.id, error)
            }
        }
    }

    private func retryLater() {
        guard restoration.isPending, restoration.retry == nil else { return }
        let (clock, random) = (environment.clock, environment.random)
        var backoff = Backoff(first: Trouble.firstRetry, last: Trouble.lastRetry)
        let first = backoff.next(random)
        restoration.retryMicros = clock.nowMicros + first.microseconds
        restoration.retry = Task { [weak self, backoff] in
            var (backoff, delay) = (backoff, first)
            repeat {
                // Only cancellation throws.
                guard (try? await clock.sleep(for: delay)) != nil else { return }
                delay = backoff.next(random)
            } while await self?.retry(next: delay) ?? false
        }
    }

    /// - Returns: whether something is still pending, and is to be tried again after `next`.
    private func retry(next: Duration) async -> Bool {
        await definitions.lock()
        defer { definitions.unlock() }
        if !Task.isCancelled { await restoreRound() }
        restoration.retryMicros = restoration.isPending ? environment.clock.nowMicros + next.microseconds : nil
        if !restoration.isPending { restoration.retry = nil }
        return restoration.isPending
    }

    // MARK: Until a view can be read

    /// Makes a view readable once it has what its sources held when it was attached: readers do not see it fill up.
    ///
    /// - Parameter isResumed: it goes on from a checkpoint, and is there again where the last published epoch had it.
    func recover(_ job: JobPlan, after before: Epoch, isResumed: Bool) async {
        // A paused view is there where it was paused, whoever else reads its sources.
        let feeding = job.placement?.ends == nil ? sourcesFeeding(job.id) : []
        var ends = keeper?.lastPublished.offsets.filter { feeding.contains($0.key) } ?? [:]
        for source in feeding where !isResumed {
            var known = sources.pausedAt(source)
            if known == nil { known = await restoredEnds(of: source) }
            guard let known else { return }
            ends[source, default: [:]].merge(known) { max($0, $1) }
        }
        let id = job.id
        let wanted = ends
        let inputs = Set(inputsFeeding(id))
        let isThere: @Sendable (EpochRecord) -> Bool = {
            $0.epoch > before && !$0.catchingUp.contains(id) && $0.hasReached(wanted) && $0.rerunning.isDisjoint(with: inputs)
        }
        let hasFailed: @Sendable (EpochRecord) -> Bool = { record in
            record.jobFailures[id] != nil || wanted.keys.contains { record.sourceFailures[$0] != nil }
        }
        while true {
            // Both waits end without an epoch when the engine stops.
            guard let record = try? await conductor.wait(until: { isThere($0) || hasFailed($0) || job.abandonment.isAbandoned }) else { return }
            guard !job.abandonment.isAbandoned, abandonments[id] === job.abandonment else { return }
            // With all that it had it can be read, whatever is wrong with a source from here on.
            if isThere(record) { break }
            guard let failure = record.jobFailures[id] ?? wanted.keys.lazy.compactMap({ record.sourceFailures[$0] }).first else { return }
            hold(id, failure)
            guard failure.mayPass else { return }
            guard (try? await conductor.wait(until: { !hasFailed($0) || job.abandonment.isAbandoned })) != nil else { return }
            guard !job.abandonment.isAbandoned else { return }
            hold(id, nil)
        }
        creating.remove(id)
        restoration.forget(id)
        conductor.wake()
        await noteRunning(id)
    }

    /// The sources that a job reads, itself or through other jobs.
    func sourcesFeeding(_ job: ObjectID) -> [ObjectID] { inputsFeeding(job).filter { sources.definition($0) != nil } }

    /// All that it reads, itself or through other jobs.
    private func inputsFeeding(_ job: ObjectID) -> [ObjectID] {
        var found: Set<ObjectID> = []
        var open = [job]
        while let id = open.popLast() {
            for input in plans[id]?.inputs ?? [] where input.id != id && found.insert(input.id).inserted { open.append(input.id) }
        }
        return found.sorted()
    }

    private func restoredEnds(of source: ObjectID) async -> [SourceSplit: SplitOffset]? {
        if let asking = restoration.ends[source] { return await asking.value }
        let asking = Task { await askForEnds(of: source) }
        restoration.ends[source] = asking
        return await asking.value
    }

    private func askForEnds(of source: ObjectID) async -> [SourceSplit: SplitOffset]? {
        var backoff = Backoff(first: Trouble.firstRetry, last: Trouble.lastRetry)
        while !Task.isCancelled, let definition = sources.definition(source) {
            do throws(SQLError) {
                let (splits, ends) = try await offActor { () throws(SQLError) in
                    let splits = try definition.connector.currentSplits()
                    return (splits, try definition.connector.highWatermarks(splits))
                }
                await handOver(splits, of: definition)
                restoration.reasons[source] = nil
                restoration.nextTryMicros[source] = nil
                settleRecoveries(fedBy: source, false)
                return ends
            } catch {
                restoration.reasons[source] = error
                settleRecoveries(fedBy: source, true)
            }
            let delay = backoff.next(environment.random)
            restoration.nextTryMicros[source] = environment.clock.nowMicros + delay.microseconds
            try? await environment.clock.sleep(for: delay)  // Cancellation ends the loop by its condition.
        }
        return nil
    }

    private func settleRecoveries(fedBy source: ObjectID, _ isSettled: Bool) {
        for (id, recovery) in restoration.recovering where restoration.reasons[id] == nil && sourcesFeeding(id).contains(source) {
            recovery.settle(isSettled)
        }
        conductor.wake()
    }

    // MARK: What others need of it

    /// Waits for restored views that will be readable without anybody's help.
    /// - Throws: 57014 when it is cancelled before, 57P01 when the engine stops before.
    func untilRecovered(_ ids: some Sequence<ObjectID>, _ cancellation: CancellationHook) async throws(SQLError) {
        let conductor = conductor
        // What is in the way of one may have passed by the time that is seen here.
        while case let waiting = recovering(ids), !waiting.isEmpty {
            cancellation.onCancel { _ in conductor.wake() }
            try await conductor.wait { _ in cancellation.reason != nil || waiting.allSatisfy(\.isSettled) }
            if let reason = cancellation.reason { throw reason.error }
        }
    }

    /// Those that will be readable without anybody's help, and are not yet.
    func recovering(_ ids: some Sequence<ObjectID>) -> [Recovery] { ids.compactMap { restoration.recovering[$0] }.filter { !$0.isSettled } }

    /// Writes to the store, if there is one; when it throws nothing is written and the statement has failed.
    func store(_ body: @escaping @Sendable (MetaStore) throws(SQLError) -> Void) async throws(SQLError) {
        try await storing { (meta) throws(SQLError) -> Void? in try body(meta) }
    }

    /// The same, with what the store answers; nil without one.
    @discardableResult
    func storing<T: Sendable>(_ body: @escaping @Sendable (MetaStore) throws(SQLError) -> T?) async throws(SQLError) -> T? {
        guard let meta else { return nil }
        return try await offActor { () throws(SQLError) in try body(meta) }
    }

    /// A view has taken over what was there before it. Should the note not reach the disk, the next start takes it for a view in creation.
    func noteRunning(_ id: ObjectID) async {
        try? await store { (meta) throws(SQLError) in try meta.setRunning(id) }  // As said above.
    }

    /// - Throws: 55000 for the first of these relations that cannot be read yet, or does not run.
    func requireReady(_ ids: some Sequence<ObjectID>) throws(SQLError) {
        for id in ids where creating.contains(id) || restoration.reasons[id] != nil && sources.definition(id) == nil {
            guard let object = catalog.object(id) else { continue }
            throw notReady(object)
        }
    }

    private func notReady(_ object: CatalogObject) -> SQLError {
        let name = "\(object.kind.rawValue) \"\(object.name)\""
        if let reason = restoration.reasons[object.id] ?? sourcesFeeding(object.id).lazy.compactMap({ self.restoration.reasons[$0] }).first
        {
            return SQLError(
                .objectNotInPrerequisiteState, "\(name) does not run: \(reason.message)", detail: reason.detail, hint: reason.hint)
        }
        let state = restoration.recovering[object.id] != nil ? "recovered" : "created"
        let hint = object.kind == .table ? "It can be used when CREATE TABLE AS has ended." : "SHOW JOBS tells how far it is."
        return SQLError(.objectNotInPrerequisiteState, "\(name) is still being \(state)", hint: hint)
    }
}

extension StreamPlan {
    /// The relations that it reads; a table's own plan names the table.
    var inputs: [RelationReference] {
        nodes.compactMap { node in
            switch node.operation {
            case .source(let relation, _), .relation(let relation, _): relation
            default: nil
            }
        }
    }
}
