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
    /// Where workers meet that share out what another number of them made.
    let shards = StoredShards()

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

    /// Gives an operator the state that it had, or lets it begin without. From here on its tables' changes are noted.
    /// - Parameters:
    ///   - share: what is this worker's of a state that another number of workers made.
    ///   - twin: makes an operator of the same node, for what one of them had.
    /// - Returns: its tables for checkpoints; none when the job is only in memory.
    func prepare(
        _ operation: any Operator, _ node: Int, _ share: StateShare, twin: () throws(SQLError) -> any Operator
    ) throws(SQLError) -> [StoredTable] {
        guard let storage else {
            operation.begin()
            return []
        }
        func place(_ ordinal: Int) -> TablePlace { TablePlace(job: id, node: node, ordinal: ordinal, worker: share.here.number) }
        let tables = operation.tables
        let made = isRestored ? storage.recovered : nil
        let isMoved = made.map { $0.workers(of: id) != share.workers } ?? false
        if let made, !isMoved { try restore(tables, node, worker: share.here.number, from: made) }
        for table in tables { table.track() }
        if let made, isMoved, !tables.isEmpty { try adopt(made, into: operation, node, share, twin) }
        if made != nil { operation.finishRestore() } else { operation.begin() }
        return tables.enumerated().map { ordinal, table in
            // A table that was not filled as it was is another one: nothing that is stored of the former counts for it.
            let id = made != nil && !isMoved ? storage.store.id(of: place(ordinal)) : storage.store.renew(place(ordinal))
            return StoredTable(id: id, place: place(ordinal), table: table)
        }
    }

    private func restore(_ tables: [any DurableTable], _ node: Int, worker: Int, from recovered: RecoveredState) throws(SQLError) {
        for (ordinal, table) in tables.enumerated() {
            guard try recovered.restore(table, at: TablePlace(job: id, node: node, ordinal: ordinal, worker: worker)) else {
                throw SQLError(
                    .dataCorrupted, "the stored state of \"\(name)\" lacks table \(ordinal) of node \(node), worker \(worker)",
                    hint: "Drop and create the object again.")
            }
        }
    }

    /// Takes a worker's share from each of those that made the state; every worker begins with another one.
    private func adopt(
        _ recovered: RecoveredState, into operation: any Operator, _ node: Int, _ share: StateShare,
        _ twin: () throws(SQLError) -> any Operator
    ) throws(SQLError) {
        let workers = recovered.workers(of: id)
        for step in 0..<workers {
            let worker = (share.here.number + step) % workers
            try storage?.shards.read(node: node, worker: worker, readers: share.workers) { () throws(SQLError) in
                let other = try twin()
                try restore(other.tables, node, worker: worker, from: recovered)
                return other
            } take: { (other) throws(SQLError) in
                do throws(StateCorruption) { try operation.adopt(fromTwin: other, share) } catch {
                    throw SQLError(
                        .dataCorrupted,
                        "the stored state of \"\(name)\" cannot be moved from \(workers) workers to \(share.workers): node \(node), \(error)",
                        hint: "Drop and create the object again, or restore the data directory from a copy.")
                }
            }
        }
    }
}
