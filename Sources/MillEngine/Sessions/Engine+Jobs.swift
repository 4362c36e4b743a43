package import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillDataflow
import MillPlan

/// One line of SHOW JOBS.
struct JobLine: Sendable {
    static let schema: Schema = [
        Field("Id", .int64), Field("Name", .varchar), Field("State", .varchar), Field("Epoch", .int64), Field("Rows", .int64),
        Field("Lag", .int64), Field("State Bytes", .int64), Field("Errors", .int64), Field("Rejects", .int64), Field("Message", .varchar),
        Field("Late", .int64),
    ]

    var id: ObjectID
    var name: String
    var state: String
    var epoch: Epoch
    var statistics: JobStatistics
    /// Records between what its sources have read and their ends; nil when it reads no source.
    var lag: Int64?
    var rejects: Int
    var message: String?

    var row: [Scalar] {
        [
            .int(Int64(id.number)), .string(name), .string(state), .int(Int64(epoch.number)), .int(Int64(statistics.rowCount)),
            lag.map { .int($0) } ?? .null, .int(Int64(statistics.stateByteCount)), .int(statistics.errorCount), .int(Int64(rejects)),
            message.map { .string($0) } ?? .null, .int(statistics.lateCount),
        ]
    }
}

extension Engine {
    /// All materialized views, oldest first, with what they do now.
    func jobLines() async -> [JobLine] {
        let (record, parts) = await conductor.onWorkers { $0.jobStatistics }
        var statistics: [ObjectID: JobStatistics] = [:]
        for part in parts { for (id, values) in part { statistics[id, default: JobStatistics()].merge(values) } }
        return catalog.objects.filter { $0.kind == .materializedView }.map { object in
            let sourceIDs = inputSources(of: object.id)
            let failure = restoration.reasons[object.id] ?? record.jobFailures[object.id] ?? sourceIDs.lazy.compactMap { record.sourceFailures[$0] }.first
            return JobLine(
                id: object.id, name: object.name, state: failure != nil ? "failed" : stateWithoutFailure(of: object.id),
                epoch: record.epoch, statistics: statistics[object.id] ?? JobStatistics(), lag: lag(of: sourceIDs, record),
                rejects: sourceIDs.reduce(0) { sum, id in
                    let counts = rejects.counts(of: id)
                    return sum + counts.kept + counts.dropped
                },
                message: failure.map(\.description)
                    ?? sourceIDs.lazy.compactMap { self.sources.definition($0)?.connector.status ?? self.restoration.reasons[$0]?.description }.first)
        }
    }

    private func stateWithoutFailure(of id: ObjectID) -> String {
        guard creating.contains(id) else { return "running" }
        return restoration.recovering[id] != nil ? "recovering" : "creating"
    }

    /// The sources that a job's own plan reads.
    private func inputSources(of job: ObjectID) -> [ObjectID] {
        (plans[job]?.nodes ?? []).compactMap { node in
            if case .source(let relation, _) = node.operation { relation.id } else { nil }
        }
    }

    private func lag(of sourceIDs: [ObjectID], _ record: EpochRecord) -> Int64? {
        guard !sourceIDs.isEmpty else { return nil }
        var total: Int64 = 0
        for id in sourceIDs {
            for (split, mark) in record.highWatermarks[id] ?? [:] {
                let offset = record.offsets[id]?[split] ?? mark
                total += max(mark.position - offset.position, 0)
            }
        }
        return total
    }

    /// Returns when everything that the running sources held at the call is visible.
    /// - Returns: a warning for each source that has stopped: nothing more will be visible of it.
    /// - Throws: 57014 when it is cancelled before.
    @discardableResult
    package func flush(_ cancellation: CancellationHook = CancellationHook()) async throws(SQLError) -> [SQLError] {
        let published = conductor.published
        var targets: [ObjectID: [SourceSplit: SplitOffset]] = [:]
        for definition in sources.all where published.offsets[definition.id] != nil && published.sourceFailures[definition.id] == nil {
            let (splits, ends) = try await offActor { () throws(SQLError) in
                let splits = try definition.connector.currentSplits()
                return (splits, try definition.connector.highWatermarks(splits))
            }
            // A topic that was made a moment ago counts as well.
            await handOver(splits, of: definition)
            targets[definition.id] = ends
        }
        let wanted = targets
        let conductor = conductor
        cancellation.onCancel { _ in conductor.wake() }
        // Before the wake: the epoch that it opens may be published at once.
        let before = conductor.published.epoch
        conductor.wake()
        let reached = await conductor.wait { record in
            let going = wanted.filter { record.sourceFailures[$0.key] == nil }
            return cancellation.reason != nil || record.epoch > before && record.hasReached(going)
        }
        if let reason = cancellation.reason { throw reason.error }
        if reached.hasOpenWatermarks {
            // What was read lets windows close; the next epoch does that.
            _ = await conductor.wait { cancellation.reason != nil || $0.epoch > reached.epoch }
        }
        try await untilRecovered(restoration.recovering.keys, cancellation)
        return stopped(Set(sources.all.map(\.id)), reached)
    }

    /// A warning for each source that has stopped and that rows of these relations come from: they are as of then.
    func standstills(of relations: [ObjectID], _ record: EpochRecord) -> [SQLError] {
        guard !record.sourceFailures.isEmpty else { return [] }
        var found = Set(relations)
        var open = relations
        while let id = open.popLast() {
            for input in catalog.object(id)?.dependencies ?? [] where found.insert(input).inserted { open.append(input) }
        }
        return stopped(found, record)
    }

    private func stopped(_ ids: Set<ObjectID>, _ record: EpochRecord) -> [SQLError] {
        sources.all.filter { ids.contains($0.id) }.compactMap { source in
            record.sourceFailures[source.id].map {
                SQLError(SQLState("01000"), "source \"\(source.name)\" has stopped: \($0.message)", hint: "SHOW JOBS names the views that stand still.")
            }
        }
    }
}
