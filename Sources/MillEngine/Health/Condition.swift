import MillBase
import MillCatalog
import MillDataflow
import MillMeta
import MillPlan

/// What a view or a source does, and why it does no more than that: the words of SHOW JOBS and SHOW SOURCES.
struct Condition: Sendable {
    /// `failed` needs somebody's help, `retrying` does not; `waiting` is what the views below are in the way of.
    var state: String
    var message: String?
    /// Since when it does not get on, and when it is tried again; microseconds since 1970.
    var sinceMicros: Int64?
    var nextTryMicros: Int64?

    init(_ state: String, message: String? = nil, sinceMicros: Int64? = nil) {
        (self.state, self.message, self.sinceMicros) = (state, message, sinceMicros)
    }

    init(_ state: String, _ trouble: Trouble?) {
        self.init(state, message: trouble?.reason.description, sinceMicros: trouble?.sinceMicros)
        nextTryMicros = trouble?.nextTryMicros
    }

    /// Whether what reads it gets nothing more of it either.
    var standsStill: Bool { ["paused", "failed", "retrying", "waiting"].contains(state) }
}

extension Engine {
    /// What all materialized views do.
    func jobConditions(_ record: EpochRecord) -> [ObjectID: Condition] {
        var conditions: [ObjectID: Condition] = [:]
        // An object has a higher identifier than its inputs.
        for object in catalog.objects.filter({ $0.kind == .materializedView }).sorted(by: { $0.id < $1.id }) {
            conditions[object.id] = condition(of: object, over: conditions, record)
        }
        return conditions
    }

    private func condition(of job: CatalogObject, over others: [ObjectID: Condition], _ record: EpochRecord) -> Condition {
        let sourceIDs = inputSources(of: job.id)
        let trouble = trouble(of: job.id, reading: sourceIDs)
        if let trouble, !trouble.mayPass { return Condition("failed", trouble) }
        if restoration.reasons[job.id] != nil { return Condition("retrying", trouble) }
        if creating.contains(job.id) { return Condition(restoration.recovering[job.id] != nil ? "recovering" : "creating", trouble) }
        if let pause = pause(of: [job.id] + sourceIDs) { return pause }
        if let trouble { return Condition("retrying", trouble) }
        if let waiting = waiting(job.id, over: others) { return waiting }
        return Condition(record.catchingUp.contains(job.id) ? "catching up" : "running")
    }

    /// What a source does.
    func condition(of source: CatalogObject) -> Condition {
        let trouble = trouble(of: source.id, reading: [])
        if let trouble, !trouble.mayPass { return Condition("failed", trouble) }
        if let pause = pause(of: [source.id]) { return pause }
        if let trouble { return Condition("retrying", trouble) }
        if sources.definition(source.id) == nil { return Condition("recovering") }
        let readers = readers(of: source.id)
        if readers.contains(where: { paused[$0] == nil }) { return Condition("running") }
        return Condition("unread", message: readers.isEmpty ? "no materialized view reads it" : "the materialized views that read it are paused")
    }

    /// Of the first of these that is paused; nil when none is.
    private func pause(of ids: [ObjectID]) -> Condition? {
        guard let id = ids.first(where: { paused[$0] != nil }), let object = catalog.object(id) else { return nil }
        return Condition("paused", message: "\(object.kind.rawValue) \"\(object.name)\" is paused", sinceMicros: paused[id]?.sinceMicros)
    }

    /// Of a view that reads one which stands still: it names the lowest of them, where the reason is.
    private func waiting(_ job: ObjectID, over others: [ObjectID: Condition]) -> Condition? {
        for input in plans[job]?.inputs ?? [] {
            guard input.id != job, var condition = others[input.id], condition.standsStill else { continue }
            if condition.state != "waiting" {
                condition.message = "waits for \(input.kind.rawValue) \"\(input.name)\": \(condition.message ?? condition.state)"
                condition.state = "waiting"
            }
            return condition
        }
        return nil
    }

    /// The sources that a job's own plan reads.
    func inputSources(of job: ObjectID) -> [ObjectID] {
        (plans[job]?.nodes ?? []).compactMap { node in
            if case .source(let relation, _) = node.operation { relation.id } else { nil }
        }
    }
}
