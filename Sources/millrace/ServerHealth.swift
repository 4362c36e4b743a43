import MillBase
import MillEngine
import MillHTTPServer
import MillIO
import MillKafkaServer
import MillLog
import MillPgServer
import Synchronization

/// How the whole process is: `starting` from its first moment on, and what its parts say as they come.
final class ServerHealth: HealthReporter {
    private struct Parts {
        var engine: Engine?
        var log: Log?
        var pg: PgServer?
        var kafka: KafkaServer?
        var catalog: CatalogService?
        var state = HealthReport.State.starting
    }

    private let parts = Mutex(Parts())
    private let clock: any Clock
    private let startedMicros: Int64

    init(_ clock: any Clock) {
        self.clock = clock
        startedMicros = clock.nowMicros
    }

    func set(log: Log) { parts.withLock { $0.log = log } }
    func set(kafka: KafkaServer) { parts.withLock { $0.kafka = kafka } }
    func set(pg: PgServer) { parts.withLock { $0.pg = pg } }
    func set(catalog: CatalogService) { parts.withLock { $0.catalog = catalog } }
    func set(engine: Engine) { parts.withLock { $0.engine = engine } }
    /// What an earlier process left has been taken up.
    func serves() { parts.withLock { $0.state = .serving } }
    func stops() { parts.withLock { $0.state = .stopping } }

    func healthReport() async -> HealthReport {
        let (state, engine, catalog) = parts.withLock { ($0.state, $0.engine, $0.catalog) }
        var report = HealthReport(state: state, metrics: processMetrics())
        report.catalogAddress = catalog?.address
        guard let engine, state != .stopping else { return report }
        guard let health = try? await engine.health() else {
            // It stopped since.
            report.state = .stopping
            return report
        }
        report.jobs = health.jobs.map { job in
            HealthReport.Job(
                id: job.id, name: job.name, state: job.state, reason: job.reason, sinceMicros: job.sinceMicros, nextTryMicros: job.nextTryMicros)
        }
        report.sinks = health.sinks.map { sink in
            HealthReport.Job(
                id: sink.id, name: sink.name, state: sink.state, reason: sink.reason, sinceMicros: sink.sinceMicros, nextTryMicros: sink.nextTryMicros)
        }
        if state == .starting { report.reason = await engine.recoveryStatus.text }
        if let trouble = health.trouble {
            report.reason = trouble.description
            if state == .serving { report.state = .refusingWrites }
        }
        report.metrics += metrics(health)
        return report
    }

    /// What is known without the engine.
    private func processMetrics() -> [MetricFamily] {
        parts.withLock { parts in
            var families = [
                MetricFamily("millrace_start_time_seconds", .gauge, "When the process began, in seconds since 1970.", Double(startedMicros) / 1e6),
                MetricFamily("millrace_recovered", .gauge, "1 once what an earlier process left has been taken up.", parts.state == .starting ? 0 : 1),
                MetricFamily(
                    "millrace_connections", .gauge, "Open client connections.", by: "listener",
                    [
                        ("catalog", parts.catalog.map { Double($0.connectionCount) }), ("kafka", parts.kafka.map { Double($0.connectionCount) }),
                        ("pg", parts.pg.map { Double($0.connectionCount) }),
                    ].compactMap { name, count in count.map { (name, $0) } }),
            ]
            if let log = parts.log {
                let topics = log.allTopics.map { topic in (topic.name, Double(topic.partitions.reduce(0) { $0 + $1.byteCount })) }
                families.append(MetricFamily("millrace_log_bytes", .gauge, "Bytes of the embedded log's segments.", by: "topic", topics))
            }
            return families
        }
    }

    private func sinkMetrics(_ sinks: [EngineHealth.Sink]) -> [MetricFamily] {
        func family(_ name: String, _ kind: MetricFamily.Kind, _ help: String, _ value: (EngineHealth.Sink) -> Double?) -> MetricFamily {
            MetricFamily("millrace_sink_" + name, kind, help, by: "sink", sinks.compactMap { sink in value(sink).map { (sink.name, $0) } })
        }
        return [
            family("up", .gauge, "1 while the sink gets on.") { ["failed", "retrying"].contains($0.state) ? 0 : 1 },
            family("rows_total", .counter, "Rows added that the target has, through restarts.") { Double($0.rowsAdded) },
            family("retractions_total", .counter, "Rows taken back that the target has, through restarts.") { Double($0.rowsTakenBack) },
            family("bytes_total", .counter, "Bytes of changes that the target has, as the outbox holds them.") { Double($0.byteCount) },
            family("commits_total", .counter, "Commits that the target has confirmed.") { Double($0.commitCount) },
            family("committed_epoch", .gauge, "The epoch up to which nothing is left to send.") { Double($0.committedEpoch) },
            family("lag_seconds", .gauge, "Age of the oldest change that the target does not have.") { $0.lagMilliseconds.map { Double($0) / 1000 } },
            family("lag_bytes", .gauge, "Bytes of changes that the target does not have.") { Double($0.lagBytes) },
            family("refused_rows_total", .counter, "Rows that the target would not take.") { Double($0.refusedCount) },
            family("errors_total", .counter, "Errors of the target since the process began.") { Double($0.errorCount) },
            family("retries_total", .counter, "Tries after errors since the process began.") { Double($0.retryCount) },
        ]
    }

    private func metrics(_ health: EngineHealth) -> [MetricFamily] {
        let (jobs, sources) = (health.jobs, health.sources)
        let states = Dictionary(grouping: jobs, by: \.state).map { ($0.key, Double($0.value.count)) }.sorted { $0.0 < $1.0 }
        var families = [
            MetricFamily("millrace_epochs_total", .counter, "Epochs that were published, through restarts.", Double(health.epoch.number)),
            MetricFamily("millrace_epoch_duration_seconds", .gauge, "How long the last epoch took.", Double(health.epochDurationNanos) / 1e9),
            MetricFamily("millrace_write_trouble", .gauge, "1 while epochs or checkpoints cannot be written.", health.trouble == nil ? 0 : 1),
            MetricFamily(
                "millrace_source_records_total", .counter, "Records read.", by: "source", sources.map { ($0.name, Double($0.recordCount)) }),
            MetricFamily("millrace_source_bytes_total", .counter, "Bytes of records read.", by: "source", sources.map { ($0.name, Double($0.byteCount)) }),
            MetricFamily(
                "millrace_source_rejects_total", .counter, "Records and values refused.", by: "source", sources.map { ($0.name, Double($0.rejectCount)) }),
            MetricFamily("millrace_jobs", .gauge, "Materialized views by what SHOW JOBS says of them.", by: "state", states),
            MetricFamily("millrace_job_rows", .gauge, "Rows of a view.", by: "job", jobs.map { ($0.name, Double($0.rowCount)) }),
            MetricFamily("millrace_job_state_bytes", .gauge, "Bytes of a view's state.", by: "job", jobs.map { ($0.name, Double($0.stateByteCount)) }),
            MetricFamily("millrace_job_errors_total", .counter, "Rows whose expressions failed.", by: "job", jobs.map { ($0.name, Double($0.errorCount)) }),
            MetricFamily(
                "millrace_job_lag_records", .gauge, "Records that a view has not had yet of its own sources.", by: "job",
                jobs.compactMap { job in job.lag.map { (job.name, Double($0)) } }),
        ]
        families += sinkMetrics(health.sinks)
        if let checkpoint = health.checkpoint {
            families += [
                MetricFamily("millrace_checkpoints_total", .counter, "Checkpoints made, through restarts.", Double(checkpoint.number)),
                MetricFamily(
                    "millrace_checkpoint_age_seconds", .gauge, "Time since the last checkpoint.",
                    max(Double(clock.nowMicros - checkpoint.doneAtMicros) / 1e6, 0)),
                MetricFamily("millrace_checkpoint_duration_seconds", .gauge, "How long writing the last one took.", Double(checkpoint.durationNanos) / 1e9),
                MetricFamily("millrace_checkpoint_written_bytes", .gauge, "Bytes that the last one wrote.", Double(checkpoint.bytesWritten)),
                MetricFamily("millrace_checkpoint_bytes", .gauge, "Bytes of all page files after the last one.", Double(checkpoint.bytesOnDisk)),
            ]
        }
        return families
    }
}
