package import MillBase
import MillPlan
import MillState
package import MillStore

/// Where a job's state is kept beyond the process.
package struct JobStorage: Sendable {
    package let store: StateStore
    /// The checkpoint to begin from; nil when the job begins anew.
    package let recovered: RecoveredState?
    /// Of the job's plan as it is stored: state fits the plan that made it and no other.
    package let planChecksum: UInt32?

    package init(store: StateStore, recovered: RecoveredState?, planChecksum: UInt32? = nil) {
        self.store = store
        self.recovered = recovered
        self.planChecksum = planChecksum
    }

    private static let noteKind = "plan"

    /// What a checkpoint notes of the plan that made a job's state; nil when that is not known.
    func note(of job: ObjectID) -> StateNote? {
        guard let planChecksum else { return nil }
        var bytes = RecordWriter()
        bytes.put(planChecksum)
        return StateNote(object: job, kind: Self.noteKind, bytes: bytes.bytes)
    }

    /// Whether a checkpoint's state of a job was made by this plan.
    package static func holds(_ recovered: RecoveredState, _ job: ObjectID, madeBy planChecksum: UInt32) -> Bool {
        guard recovered.jobs.contains(job) else { return false }
        guard let note = recovered.note(noteKind, of: job) else { return true }
        var bytes = RecordReader(note.bytes[...])
        return (try? bytes.get(UInt32.self)) == planChecksum  // a note of another form is of another plan
    }
}

/// A table of a running job, and what checkpoints know it by.
struct StoredTable {
    let id: TableID
    let place: TablePlace
    let table: any DurableTable
}

extension JobPlan {
    /// Whether it begins with state from before.
    var isRestored: Bool { storage?.recovered?.jobs.contains(id) ?? false }

    /// Fills an operator's tables, or lets it begin without state. From here on their changes are noted.
    /// - Returns: its tables for checkpoints; none when the job is only in memory.
    func prepare(_ operation: any Operator, _ node: Int, on worker: WorkerIndex) throws(SQLError) -> [StoredTable] {
        guard let storage else {
            operation.begin()
            return []
        }
        var stored: [StoredTable] = []
        for (ordinal, table) in operation.tables.enumerated() {
            let place = TablePlace(job: id, node: node, ordinal: ordinal, worker: worker.number)
            if isRestored, try storage.recovered?.restore(table, at: place) != true {
                throw SQLError(
                    .dataCorrupted, "the stored state of \"\(name)\" lacks table \(ordinal) of node \(node), worker \(worker)",
                    hint: "Drop and create the object again.")
            }
            table.track()
            stored.append(StoredTable(id: isRestored ? storage.store.id(of: place) : storage.store.renew(place), place: place, table: table))
        }
        if isRestored { operation.finishRestore() } else { operation.begin() }
        return stored
    }
}
