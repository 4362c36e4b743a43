package import MillBase
package import MillColumnar
package import MillDataflow
import MillState
package import MillStore

/// Runs the circuits of several workers in one thread, with the peers' messages delivered in an order drawn from a seed.
///
/// What the threads of a `Conductor` may do in any interleaving, a driver does in one that can be repeated: workers open an epoch
/// at different moments, and a message waits as long as chance wants, but those of one sender to one receiver keep their order.
package final class CircuitDriver {
    package let workerCount: Int
    private var circuits: [WorkerCircuit] = []
    private let mail: Mail
    private var random: SeededGenerator
    private var views: [ObjectID] = []

    private final class Mail {
        /// By sender * workers + receiver.
        var queues: [[PeerMessage]]
        init(_ workers: Int) { queues = Array(repeating: [], count: workers * workers) }
    }

    /// - Parameter backfillRowsMax: rows that a scan of another view takes over in one epoch.
    package init(workerCount: Int, seed: UInt64, backfillRowsMax: Int = 65_536) {
        self.workerCount = workerCount
        random = SeededGenerator(seed: seed)
        let mail = Mail(workerCount)
        self.mail = mail
        circuits = (0..<workerCount).map { sender in
            WorkerCircuit(
                here: WorkerIndex(sender), workerCount: workerCount, backfillRowsMax: backfillRowsMax,
                makeSource: { (id) throws(SQLError) in throw SQLError(.undefinedObject, "there is no source \(id) here") },
                send: { receiver, message in mail.queues[sender * workerCount + receiver.number].append(message) })
        }
    }

    package func attach(_ job: JobPlan) throws(SQLError) {
        for circuit in circuits { try circuit.attach(job) }
        views.append(job.id)
    }

    package func detach(_ id: ObjectID) {
        for circuit in circuits { circuit.detach(id) }
        views.removeAll { $0 == id }
    }

    /// Gives a table's rows to any worker, for the next epoch.
    package func inject(_ batch: DeltaBatch, into table: ObjectID) {
        circuits[random.number(0...workerCount - 1)].inject([batch], into: table)
    }

    /// Runs one epoch to its end; returns what is wrong with the circuits after it.
    package func runEpoch(_ watermarks: EpochWatermarks = EpochWatermarks()) -> [String] {
        var unopened = Array(0..<workerCount)
        while true {
            let waiting = mail.queues.indices.filter { !mail.queues[$0].isEmpty && !unopened.contains($0 % workerCount) }
            guard !waiting.isEmpty || !unopened.isEmpty else { break }
            let choice = random.number(0...waiting.count + unopened.count - 1)
            if choice < waiting.count {
                let message = mail.queues[waiting[choice]].removeFirst()
                circuits[waiting[choice] % workerCount].receive(message)
            } else {
                let worker = unopened.remove(at: choice - waiting.count)
                circuits[worker].openEpoch(EpochBudget(records: 1, bytes: 1), watermarks: watermarks) { true }
            }
        }
        return problems
    }

    private var problems: [String] {
        var problems: [String] = []
        for circuit in circuits {
            if !circuit.isEpochDone { problems.append("worker \(circuit.here) has not ended its epoch") }
            problems += circuit.checkInvariants().map { "worker \(circuit.here): \($0)" }
        }
        return problems
    }

    /// Jobs that have not yet taken over all rows of what they read.
    package var catchingUp: Set<ObjectID> { circuits.reduce(into: []) { $0.formUnion($1.report.catchingUp) } }

    /// The changes since the last seal; jobs that have not caught up are left out.
    package func seal(_ position: EpochPosition, everything: Bool) -> Checkpoint {
        let jobs = circuits[0].storedJobs.subtracting(catchingUp)
        return Checkpoint(
            position: position, workers: workerCount, tables: circuits.flatMap { $0.seal(jobs, everything: everything) },
            notes: jobs.compactMap { LateRows.note($0, [lateRows(of: $0)]) })
    }

    /// The stored rows of a view or table on all workers.
    package func rows(of id: ObjectID) -> [DeltaBatch] {
        circuits.flatMap { circuit -> [DeltaBatch] in
            guard let view = circuit.materialized(id) else { return [] }
            return view.table.snapshot().batches(
                columns: Array(view.table.layout.columns.indices), weightOffset: MaterializeOperator.weightOffset)
        }
    }

    /// What came too late for a view, on all workers.
    package func lateRows(of id: ObjectID) -> LateRows.Kept {
        circuits.reduce(into: LateRows.Kept()) { all, circuit in if let kept = circuit.lateRows(of: id)?.kept { all.merge(kept) } }
    }

    package func errors(of id: ObjectID) -> [OperatorErrors.Entry: Int64] {
        circuits.reduce(into: [:]) { all, circuit in all.merge(circuit.errors(of: id)?.entries ?? [:], uniquingKeysWith: +) }
    }
}
