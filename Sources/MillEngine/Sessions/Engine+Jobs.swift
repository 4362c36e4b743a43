package import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillDataflow
import MillStore

/// One line of SHOW JOBS.
struct JobLine: Sendable {
    static let schema: Schema = [
        Field("Id", .int64), Field("Name", .varchar), Field("State", .varchar), Field("Epoch", .int64), Field("Rows", .int64),
        Field("Lag", .int64), Field("State Bytes", .int64), Field("Errors", .int64), Field("Rejects", .int64), Field("Message", .varchar),
        Field("Since", .timestamptz), Field("Next Try", .timestamptz), Field("Late", .int64),
    ]

    var id: ObjectID
    var name: String
    var condition: Condition
    var epoch: Epoch
    var statistics: JobStatistics
    /// Records that it has not had yet of its own sources; nil when it reads none, or it is not known.
    var lag: Int64?
    var rejects: Int

    var row: [Scalar] {
        [
            .int(Int64(id.number)), .string(name), .string(condition.state), .int(Int64(epoch.number)), .int(Int64(statistics.rowCount)),
            lag.map { .int($0) } ?? .null, .int(Int64(statistics.stateByteCount)), .int(statistics.errorCount), .int(Int64(rejects)),
            condition.message.map { .string($0) } ?? .null, condition.sinceMicros.map { .int($0) } ?? .null,
            condition.nextTryMicros.map { .int($0) } ?? .null, .int(statistics.lateCount),
        ]
    }
}

extension Engine {
    /// All materialized views, oldest first, with what they do now.
    /// - Throws: 57P01 after `stop`.
    func jobLines() async throws(SQLError) -> [JobLine] {
        if let phase = restoration.gate.phase { return recoveringLines(phase) }
        let (record, parts) = try await conductor.onWorkers(evenWhileHeld: true) { ($0.jobStatistics, $0.places) }
        noteTroubles()
        var statistics: [ObjectID: JobStatistics] = [:]
        var places: [ObjectID: [ObjectID: [SourceSplit: SplitPlace]]] = [:]
        for (counted, reached) in parts {
            for (id, values) in counted { statistics[id, default: JobStatistics()].merge(values) }
            // No two workers have the same split.
            for (id, sources) in reached { places[id, default: [:]].merge(sources) { $0.merging($1) { first, _ in first } } }
        }
        let conditions = jobConditions(record)
        return catalog.objects.compactMap { object in
            guard let condition = conditions[object.id] else { return nil }
            let sourceIDs = inputSources(of: object.id)
            return JobLine(
                id: object.id, name: object.name, condition: condition, epoch: record.epoch,
                statistics: statistics[object.id] ?? JobStatistics(), lag: lag(of: sourceIDs, places[object.id]),
                rejects: sourceIDs.reduce(0) { sum, id in
                    let counts = rejects.counts(of: id)
                    return sum + counts.kept + counts.dropped
                })
        }
    }

    /// The same while their state is being read, when the workers do not answer: rows and bytes are those that have been read.
    private func recoveringLines(_ phase: RecoveryStatus.Phase) -> [JobLine] {
        let state = recoveryStatus.state
        return catalog.objects.filter { $0.kind == .materializedView }.map { object in
            let failure = restoration.reasons[object.id]
            let part = state.jobs[object.id] ?? RecoveryProgress.Part()
            return JobLine(
                id: object.id, name: object.name,
                condition: Condition(failure != nil ? "failed" : "recovering", message: failure?.description ?? RecoveryStatus.text(phase, part)),
                epoch: conductor.published.epoch,
                statistics: JobStatistics(stateByteCount: part.bytesRead, rowCount: Int(part.rowsRead)), lag: nil, rejects: 0)
        }
    }

    /// Returns when everything that the running sources held at the call is visible.
    /// - Returns: a warning for each source that has stopped: nothing more will be visible of it.
    /// - Throws: 57014 when it is cancelled before, 57P01 when the engine stops before.
    @discardableResult
    package func flush(_ cancellation: CancellationHook = CancellationHook()) async throws(SQLError) -> [SQLError] {
        try await untilRestored(cancellation)
        let published = conductor.published
        var targets: [ObjectID: [SourceSplit: SplitOffset]] = [:]
        var unheard: [SQLError] = []
        let running = sources.all.filter { source in
            published.offsets[source.id] != nil && published.sourceFailures[source.id] == nil && paused[source.id] == nil
                // Nobody reads it while all its views are paused.
                && readers(of: source.id).contains { paused[$0] == nil }
        }
        for definition in running {
            let splits: [SourceSplit]
            let ends: [SourceSplit: SplitOffset]
            do throws(SQLError) {
                (splits, ends) = try await offActor(for: options.answerTimeout, unless: cancellation, what: "its connector") { () throws(SQLError) in
                    let splits = try definition.connector.currentSplits()
                    return (splits, try definition.connector.highWatermarks(splits))
                }
            } catch {
                if let reason = cancellation.reason { throw reason.error }
                // The others' records are waited for all the same.
                unheard.append(
                    SQLError(
                        SQLState("01000"), "source \"\(definition.name)\" does not answer: \(error.message)",
                        hint: "What it holds beyond the rows that are visible was not waited for."))
                continue
            }
            // A topic that was made a moment ago counts as well.
            await handOver(splits, of: definition)
            targets[definition.id] = ends
        }
        let wanted = targets
        // Those that were paused and catch up; one in creation is not yet there to be read.
        let readable = Set(plans.keys).subtracting(creating).subtracting(sinks.keys)
        let conductor = conductor
        cancellation.onCancel { _ in conductor.wake() }
        // Before the wake: the epoch that it opens may be published at once.
        let before = conductor.published.epoch
        conductor.wake()
        let reached = try await conductor.wait { record in
            let going = wanted.filter { record.sourceFailures[$0.key] == nil }
            return cancellation.reason != nil || record.epoch > before && record.hasReached(going)
                && record.catchingUp.isDisjoint(with: readable.subtracting(record.jobFailures.keys))
        }
        if let reason = cancellation.reason { throw reason.error }
        if reached.hasOpenWatermarks {
            // What was read lets windows close; the next epoch does that.
            try await conductor.wait { cancellation.reason != nil || $0.epoch > reached.epoch }
            if let reason = cancellation.reason { throw reason.error }
        }
        try await untilRecovered(restoration.recovering.keys, cancellation)
        return unheard + stopped(Set(sources.all.map(\.id)).union(paused.keys), reached)
    }

    /// A warning for each source that has stopped and that rows of these relations come from: they are as of then.
    func standstills(of relations: [ObjectID], _ record: EpochRecord) -> [SQLError] {
        guard !record.sourceFailures.isEmpty || !paused.isEmpty else { return [] }
        var found = Set(relations)
        var open = relations
        while let id = open.popLast() {
            for input in catalog.object(id)?.dependencies ?? [] where found.insert(input).inserted { open.append(input) }
        }
        return stopped(found, record)
    }

    private func stopped(_ ids: Set<ObjectID>, _ record: EpochRecord) -> [SQLError] {
        let stopped = sources.all.filter { ids.contains($0.id) }.compactMap { source in
            record.sourceFailures[source.id].map {
                SQLError(SQLState("01000"), "source \"\(source.name)\" has stopped: \($0.message)", hint: "SHOW JOBS names the views that stand still.")
            }
        }
        let resting = ids.filter { paused[$0] != nil }.sorted().compactMap(catalog.object).map { object in
            let name = "\(object.kind.rawValue) \"\(object.name)\""
            return SQLError(SQLState("01000"), "\(name) is paused: rows are as of then", hint: "RESUME \(object.kind.rawValue.uppercased()) \(object.name)")
        }
        return stopped + resting
    }
}
