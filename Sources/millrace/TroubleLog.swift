import Logging
import MillBase
import MillEngine

/// Says in the server's log when something stops getting on, why, and when it does again.
struct TroubleLog {
    private var jobs: [String: (state: String, reason: String?)] = [:]
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
        let trouble = health.trouble?.description
        if let trouble, trouble != writes { logger.warning("cannot write", metadata: ["reason": "\(trouble)"]) }
        if trouble == nil, writes != nil { logger.notice("writes again") }
        writes = trouble
    }
}
