package import MillBase
import MillCatalog
import MillConnectorKit
import MillDataflow
import MillStore

/// How the engine is, for whoever watches the process.
package struct EngineHealth: Sendable {
    /// A materialized view; its words are those of SHOW JOBS.
    package struct Job: Sendable {
        package var id: ObjectID
        package var name: String
        package var state: String
        package var reason: String?
        /// Since when it does not get on, and when it is tried again; microseconds since 1970.
        package var sinceMicros: Int64?
        package var nextTryMicros: Int64?
        package var rowCount: Int
        package var stateByteCount: Int
        /// Rows whose expressions failed.
        package var errorCount: Int64
        /// Records that it has not had yet of its own sources; nil when it reads none, or it is not known.
        package var lag: Int64?
    }

    package struct Source: Sendable {
        package var name: String
        /// Since its readers were opened.
        package var recordCount: Int64
        package var byteCount: Int64
        /// Records and values that were refused, also those that are no longer kept.
        package var rejectCount: Int
    }

    /// Its words are those of SHOW SINKS.
    package struct Sink: Sendable {
        package var id: ObjectID
        package var name: String
        package var state: String
        package var reason: String?
        /// Since when it does not get on, and when it is tried again; microseconds since 1970.
        package var sinceMicros: Int64?
        package var nextTryMicros: Int64?
        /// Rows that the target was given, through restarts; an update is a row added and a row taken back.
        package var rowsAdded: Int64
        package var rowsTakenBack: Int64
        package var byteCount: Int64
        package var commitCount: Int64
        package var committedEpoch: UInt64
        /// Of the oldest change that the target does not have; nil while that is not known.
        package var lagMilliseconds: Int64?
        package var lagBytes: Int
        package var refusedCount: Int64
        package var retryCount: Int64
        package var errorCount: Int64
    }

    package struct Checkpoint: Sendable {
        package var number: UInt64
        /// Microseconds since 1970.
        package var doneAtMicros: Int64
        package var durationNanos: UInt64
        package var bytesWritten: Int
        package var bytesOnDisk: Int
    }

    package var epoch: Epoch
    package var epochDurationNanos: UInt64
    package var jobs: [Job]
    package var sources: [Source]
    package var sinks: [Sink]
    /// The last one of this process.
    package var checkpoint: Checkpoint?
    /// Why nothing can be written at present; nil when all is well.
    package var trouble: SQLError?
}

extension Engine {
    /// Answers between two epochs.
    /// - Throws: 57P01 after `stop`.
    package func health() async throws(SQLError) -> EngineHealth {
        let lines = try await jobLines()
        var (record, parts) = (conductor.published, [[ObjectID: SourceStatistics]]())
        // While state is being read the workers do not answer.
        if restoration.gate.phase == nil { (record, parts) = try await conductor.onWorkers(evenWhileHeld: true) { $0.sourceStatistics } }
        var read: [ObjectID: SourceStatistics] = [:]
        for part in parts { for (id, values) in part { read[id, default: SourceStatistics()].merge(values) } }
        let jobs = lines.map { line in
            EngineHealth.Job(
                id: line.id, name: qualifiedName(line.id), state: line.condition.state, reason: line.condition.message, sinceMicros: line.condition.sinceMicros,
                nextTryMicros: line.condition.nextTryMicros, rowCount: line.statistics.rowCount, stateByteCount: line.statistics.stateByteCount, errorCount: line.statistics.errorCount, lag: line.lag)
        }
        let sources = sources.all.map { source in
            let counts = rejects.counts(of: source.id)
            let values = read[source.id] ?? SourceStatistics()
            return EngineHealth.Source(
                name: qualifiedName(source.id), recordCount: values.recordCount, byteCount: values.byteCount, rejectCount: counts.kept + counts.dropped)
        }
        let sinks = catalog.objects.filter { $0.kind == .sink }.map { object in
            let line = line(object)
            return EngineHealth.Sink(
                id: object.id, name: qualifiedName(object.id), state: line.condition.state, reason: line.condition.message,
                sinceMicros: line.condition.sinceMicros, nextTryMicros: line.condition.nextTryMicros, rowsAdded: line.takenCount,
                rowsTakenBack: line.totals.rowsTakenBack, byteCount: line.totals.byteCount, commitCount: line.commitCount, committedEpoch: line.epoch.number,
                lagMilliseconds: line.lagMilliseconds, lagBytes: line.lagBytes, refusedCount: line.refusedCount, retryCount: line.retryCount,
                errorCount: line.errorCount)
        }
        var checkpoint: EngineHealth.Checkpoint?
        if let report = keeper?.lastReport, let done = keeper?.lastDone {
            checkpoint = EngineHealth.Checkpoint(
                number: report.number, doneAtMicros: done.atMicros, durationNanos: done.durationNanos, bytesWritten: report.bytesWritten,
                bytesOnDisk: report.bytesOnDisk)
        }
        return EngineHealth(
            epoch: record.epoch, epochDurationNanos: record.durationNanos, jobs: jobs, sources: sources, sinks: sinks, checkpoint: checkpoint, trouble: keeper?.trouble)
    }

    /// With its schema unless that is `public`: no two objects have the same.
    private func qualifiedName(_ id: ObjectID) -> String {
        guard let object = catalog.object(id) else { return "\(id)" }
        return object.schemaName == "public" ? object.name : "\(object.schemaName).\(object.name)"
    }
}
