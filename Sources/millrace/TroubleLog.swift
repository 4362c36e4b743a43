import Logging
import MillBase
import MillEngine

/// Says in the server's log when something stops getting on, why, and when it does again.
struct TroubleLog {
    private var jobs: [String: (state: String, reason: String?)] = [:]
    private var sinks: [String: (state: String, reason: String?)]?
    private var writes: String?
    private let logger: Logger

    init(_ logger: Logger) { self.logger = logger }

    /// Compares with the last call's.
    mutating func note(_ health: EngineHealth) {
        let stopped = health.jobs.filter { $0.state == "failed" || $0.state == "retrying" }
        for job in stopped {
            if let known = jobs[job.name], known == (job.state, job.reason) { continue }
            logger.warning("view \(job.state)", metadata: ["view": "\(job.name)", "reason": "\(job.reason ?? "")"])
        }
        for name in jobs.keys.sorted() where !stopped.contains(where: { $0.name == name }) {
            logger.notice("view goes on", metadata: ["view": "\(name)"])
        }
        jobs = Dictionary(stopped.map { ($0.name, ($0.state, $0.reason)) }) { _, last in last }
        note(health.sinks)
        let trouble = health.trouble?.description
        if let trouble, trouble != writes { logger.warning("cannot write", metadata: ["reason": "\(trouble)"]) }
        if trouble == nil, writes != nil { logger.notice("writes again") }
        writes = trouble
    }

    private mutating func note(_ now: [EngineHealth.Sink]) {
        let known = sinks ?? [:]
        for sink in now {
            let last = known[sink.name]
            let isStopped = ["failed", "retrying"].contains(sink.state)
            var details: Logger.Metadata = ["sink": "\(sink.name)", "state": "\(sink.state)", "epoch": "\(sink.committedEpoch)"]
            if let reason = sink.reason { details["reason"] = "\(reason)" }
            if last == nil {
                logger.notice(sinks == nil ? "sink resumed" : "sink created", metadata: details)
            }
            if isStopped, last?.state != sink.state || last?.reason != sink.reason {
                logger.warning("sink failing", metadata: details)
            } else if !isStopped, let last, ["failed", "retrying"].contains(last.state) {
                logger.notice("sink recovered", metadata: details)
            }
        }
        for name in known.keys.sorted() where !now.contains(where: { $0.name == name }) { logger.notice("sink dropped", metadata: ["sink": "\(name)"]) }
        sinks = Dictionary(now.map { ($0.name, ($0.state, $0.reason)) }) { _, last in last }
    }
}
