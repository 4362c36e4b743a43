import MillBase
import MillCatalog
import MillConnectorKit
import MillDataflow
import MillIO
import MillMeta
import MillPlan
import MillStore

/// Sinks from a start to their end: taking up what an earlier process left, beginning anew, PAUSE and RESUME, DROP.
extension Engine {
    // MARK: Starting

    /// Makes the sinks that are defined, with what the checkpoint has of their outboxes; before any job is attached.
    func restoreSinks() {
        guard let keeper else { return }
        let known = catalog.objects.filter { $0.kind == .sink }
        // Of sinks that were dropped right before the end of the process. What cannot be removed now is removed at the next start.
        for name in (try? environment.files.list(keeper.outboxDirectory)) ?? [] where !known.contains(where: { "\($0.id)" == name }) {
            try? environment.files.remove("\(keeper.outboxDirectory)/\(name)")
        }
        for object in known {
            guard let plan = plans[object.id] else { continue }
            do throws(SQLError) {
                let sink = try sink(object, plan, note: keeper.recovered?.note(OutboxNote.kind, of: object.id))
                sinks[object.id] = sink
                outboxes.put(sink.outbox)
                if !sink.outbox.hasHistory { creatingSinks.insert(object.id) }
                sink.delivery.set(paused: pausedSinks[object.id] != nil)
                sink.delivery.start()
            } catch {
                restoration.jobs.remove(object.id)
                restoration.reasons[object.id] = error
            }
        }
    }

    /// Gives a job that is a sink its outbox.
    ///
    /// A sink that does not go on from a checkpoint, and has been in one, begins anew: one with a key empties its target in the commit that
    /// brings the new rows; one that only adds would send rows twice, and stops (`docs/decisions/021-one-outbox-for-all-sinks.md`).
    /// - Returns: false when it is not to run.
    func prepare(_ job: inout JobPlan, isResumed: Bool) -> Bool {
        guard let object = catalog.object(job.id), object.kind == .sink else { return true }
        guard let sink = sinks[job.id] else { return false }
        job.outbox = sink.outbox
        job.skipsRows = !sink.takesRows
        guard sink.outbox.detachment == nil else { return false }
        guard !isResumed, sink.outbox.hasHistory else { return true }
        guard sink.isUpsert, sink.takesRows else {
            sink.outbox.detach(
                SQLError(
                    .objectNotInPrerequisiteState, "what it reads has begun anew, and its rows would be sent twice",
                    hint: "Drop the sink and create it again, with snapshot = 'false' or for an empty target."))
            return false
        }
        sink.outbox.beginAnew()
        return true
    }

    /// Notes which sinks a checkpoint has: they have taken over all rows.
    func noteSinks(held epoch: Epoch) async {
        for sink in sinks.values where creatingSinks.contains(sink.id) && sink.outbox.durable.epoch >= epoch {
            creatingSinks.remove(sink.id)
            await noteRunning(sink.id)
        }
    }

    // MARK: PAUSE and RESUME

    func pauseSink(_ object: CatalogObject, _ notices: inout [SQLError]) async throws(SQLError) {
        guard pausedSinks[object.id] == nil else {
            notices.append(SQLError(.successfulCompletion, "sink \"\(object.name)\" is already paused, skipping"))
            return
        }
        let pause = StoredPause(number: conductor.published.epoch.number, sinceMicros: environment.clock.nowMicros)
        try await store { (meta) throws(SQLError) in try meta.setPause(pause, of: object.id) }
        pausedSinks[object.id] = pause
        sinks[object.id]?.delivery.set(paused: true)
    }

    /// After a pause it goes on; after a failure it tries again; one that takes nothing more begins anew.
    func resumeSink(_ object: CatalogObject, _ notices: inout [SQLError]) async throws(SQLError) {
        guard let sink = sinks[object.id] else {
            throw restoration.reasons[object.id] ?? SQLError(.objectNotInPrerequisiteState, "sink \"\(object.name)\" does not run")
        }
        let isPaused = pausedSinks[object.id] != nil
        if let reason = sink.outbox.detachment {
            try await attachAnew(object, sink, reason)
        } else if !isPaused, sink.delivery.status.phase == .running {
            notices.append(SQLError(.successfulCompletion, "sink \"\(object.name)\" is not paused, skipping"))
            return
        }
        if isPaused {
            try await store { (meta) throws(SQLError) in try meta.setPause(nil, of: object.id) }
            pausedSinks[object.id] = nil
        }
        sink.delivery.set(paused: false)
        sink.delivery.resume()
    }

    private func attachAnew(_ object: CatalogObject, _ sink: Sink, _ reason: SQLError) async throws(SQLError) {
        guard sink.isUpsert, sink.takesRows, let plan = plans[object.id] else {
            throw SQLError(
                .objectNotInPrerequisiteState, "sink \"\(object.name)\" cannot go on: \(reason.message)",
                hint: "Drop the sink and create it again, with snapshot = 'false' or for an empty target.")
        }
        try requireReady(plan.inputs.map(\.id))
        try await requireRunning(plan.inputs.map(\.id))
        abandonments.removeValue(forKey: object.id)?.abandon()
        await conductor.detach([object.id])
        sink.outbox.beginAnew()
        var job = newJob(object, plan)
        (job.outbox, job.skipsRows) = (sink.outbox, false)
        abandonments[object.id] = job.abandonment
        do throws(SQLError) { try await conductor.attach(job) } catch {
            sink.outbox.detach(error)
            throw error
        }
    }

    // MARK: Ending

    /// It has left the catalog and the circuit.
    func forgetSink(_ id: ObjectID) {
        pausedSinks[id] = nil
        creatingSinks.remove(id)
        outboxes.remove(id)
        guard let sink = sinks.removeValue(forKey: id) else { return }
        sink.delivery.requestStop()
        let outbox = sink.outbox
        // Its thread may be in a call to the target, and reads a file until that returns.
        Task.detached {
            sink.delivery.awaitEnd(atMost: .seconds(60))
            outbox.remove()
        }
    }

    /// A target that does not answer keeps nobody from ending.
    func stopSinks() async {
        let ending = Array(sinks.values)
        for sink in ending { sink.delivery.requestStop() }
        guard !ending.isEmpty else { return }
        _ = try? await offActor { () throws(SQLError) in  // Without a thread to wait on they end by themselves.
            for sink in ending { sink.delivery.awaitEnd(atMost: .seconds(5)) }
        }
    }
}
