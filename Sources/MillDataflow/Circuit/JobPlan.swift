package import MillBase
package import MillPlan
package import MillState
import Synchronization

/// A job as workers run it: a live view, table or query, its stream plan, and an id that its nodes carry.
package struct JobPlan: Sendable {
    package var id: ObjectID
    package var name: String
    package var plan: StreamPlan
    /// Where its state is kept beyond the process; nil for what is only in memory.
    package var state: (any JobState)?
    /// Set when the job is to be dropped: its operators then give nothing more, so an epoch that is in the middle of them ends.
    package let abandonment = JobAbandonment()

    package init(id: ObjectID, name: String, plan: StreamPlan, state: (any JobState)? = nil) {
        self.id = id
        self.name = name
        self.plan = plan
        self.state = state
    }
}

/// The state of one job as a checkpoint holds it. Called on every worker's thread.
package protocol JobState: Sendable {
    /// Fills an operator's tables with what they held at the checkpoint.
    /// - Returns: false when the job is not in it, and begins anew.
    /// - Throws: XX001 when what is stored is damaged or belongs to other tables.
    func restore(_ tables: [any DurableTable], of node: NodeIndex, on worker: WorkerIndex) throws(SQLError) -> Bool
}

/// Whether a job's results are still wanted; any thread may end that, once.
package final class JobAbandonment: Sendable {
    private let flag = Atomic<Bool>(false)

    package init() {}

    package var isAbandoned: Bool { flag.load(ordering: .relaxed) }
    package func abandon() { flag.store(true, ordering: .relaxed) }
}
