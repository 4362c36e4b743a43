package import MillBase
package import MillPlan
package import MillStore
import Synchronization

/// A job as workers run it: a live view, table or query, its stream plan, and an id that its nodes carry.
package struct JobPlan: Sendable {
    package var id: ObjectID
    package var name: String
    package var plan: StreamPlan
    /// Of a table: the watermark of its rows.
    package var watermark: SourceWatermark?
    /// nil for what is only in memory.
    package var storage: JobStorage?
    /// Where it stands in its sources, if not where they do.
    package var placement: JobPlacement?
    /// Of a sink: where its root puts what changes.
    package var outbox: Outbox?
    /// The views and tables that it reads are taken from now on, without the rows that they have.
    package var skipsRows = false
    /// Set when the job is to be dropped: its operators then give nothing more, so an epoch that is in the middle of them ends.
    package let abandonment = JobAbandonment()

    /// Views and tables that it reads.
    var upstream: Set<ObjectID> {
        Set(plan.nodes.compactMap { node in if case .relation(let relation, _) = node.operation { relation.id } else { nil } })
    }

    package init(id: ObjectID, name: String, plan: StreamPlan, watermark: SourceWatermark? = nil, storage: JobStorage? = nil) {
        self.id = id
        self.name = name
        self.plan = plan
        self.watermark = watermark
        self.storage = storage
    }
}


/// Whether a job's results are still wanted; any thread may end that, once.
package final class JobAbandonment: Sendable {
    private let flag = Atomic<Bool>(false)

    package init() {}

    package var isAbandoned: Bool { flag.load(ordering: .relaxed) }
    package func abandon() { flag.store(true, ordering: .relaxed) }
}
