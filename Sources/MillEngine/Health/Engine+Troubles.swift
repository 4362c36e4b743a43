import MillBase
import MillConnectorKit
import MillDataflow
import MillIO
import MillPlan

/// What keeps sources and views from getting on, and trying again.
///
/// A broker that is away is its client's to reach again: it only shows here. A reader that gave up for a reason that may pass is opened
/// anew from the record where it stopped, after waits that grow. Each source and view is tried by itself; nothing waits for another.
extension Engine {
    /// Looks how sources and catching-up views are, and tries again what is due. Called about once a second.
    func supervise() async {
        noteTroubles()
        let now = environment.clock.nowMicros
        var due: Set<ObjectID> = []
        for (id, trouble) in troubles {
            // The wall clock may have gone back.
            guard let next = trouble.nextTryMicros, next <= now || next - now > Trouble.lastRetry.microseconds else { continue }
            due.insert(id)
            troubles[id]?.plan(after: now, environment.random)
        }
        guard !due.isEmpty else { return }
        let tried = due
        _ = try? await conductor.onWorkers { $0.retry(tried) }  // After `stop` nothing is tried.
        conductor.wake()
    }

    /// What is wrong as of the last published epoch.
    func noteTroubles() {
        let record = conductor.published
        // A connection that is down is its client's to make again.
        var present: [ObjectID: (reason: SQLError, isRead: Bool)] = [:]
        for source in sources.all {
            if let failure = record.sourceFailures[source.id] {
                present[source.id] = (failure, false)
            } else if let status = source.connector.status {
                present[source.id] = (SQLError(.connectionFailure, status), true)
            }
        }
        for (job, failure) in record.jobFailures { present[job] = (failure, false) }
        troubles = troubles.filter { present[$0.key] != nil }
        let now = environment.clock.nowMicros
        for (id, (reason, isRead)) in present {
            var trouble = troubles[id] ?? Trouble(reason, since: now)
            trouble.reason = reason
            trouble.mayPass = isRead || reason.mayPass
            if isRead || !reason.mayPass {
                trouble.nextTryMicros = nil
            } else if trouble.nextTryMicros == nil {
                trouble.plan(after: now, environment.random)
            }
            troubles[id] = trouble
        }
    }

    /// Why an object does not get on, itself or by a source that it reads; nil when it does.
    func trouble(of id: ObjectID, reading sourceIDs: [ObjectID]) -> Trouble? {
        let present = ([id] + sourceIDs).lazy.compactMap { self.troubles[$0] }.first
        if let reason = restoration.reasons[id], present == nil || !reason.mayPass { return restored(id, reason) }
        if let present { return present }
        for id in sourceIDs {
            if let reason = restoration.reasons[id] { return restored(id, reason) }
        }
        return nil
    }

    /// What a restart found in an object's way.
    private func restored(_ id: ObjectID, _ reason: SQLError) -> Trouble {
        var trouble = Trouble(reason, since: restoration.startedMicros)
        trouble.mayPass = isTriedAgain(id)
        trouble.nextTryMicros = restoration.nextTryMicros[id] ?? (trouble.mayPass ? restoration.retryMicros : nil)
        return trouble
    }

    /// Whether what did not come back after a restart may by itself.
    private func isTriedAgain(_ id: ObjectID) -> Bool {
        if restoration.sources[id] != nil || restoration.ends[id] != nil { return true }
        guard restoration.jobs.contains(id) else { return false }
        return (plans[id]?.inputs ?? []).allSatisfy { $0.id == id || restoration.reasons[$0.id] == nil || isTriedAgain($0.id) }
    }
}

extension Duration {
    var microseconds: Int64 { components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000 }
}
