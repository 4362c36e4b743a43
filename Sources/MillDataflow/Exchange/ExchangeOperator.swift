package import MillBase
package import MillColumnar
package import MillPlan

/// Sends every row to the worker that owns its key, and gives on what belongs to this one.
///
/// A row's owner is `lower 32 bits of its hash * workers / 2^32`: the directory of a state table uses the upper bits, so a
/// shard's rows still spread over its whole directory. Rows for a peer are gathered into full batches. When the local input
/// has ended, the rest goes out, then a barrier to each peer; the exchange itself is closed when all peers' barriers are in.
package final class ExchangeOperator: Operator {
    package let id: ExchangeID
    private let distribution: Distribution
    private let workers: Int
    private let here: WorkerIndex
    private let send: (WorkerIndex, PeerMessage) -> Void
    private var outgoing: [Outgoing]
    private var output: [DeltaBatch] = []
    private var outputIndex = 0
    private let hashes = UnsafeMutablePointer<UInt64>.allocate(capacity: Limits.batchRowsMax)

    private final class Outgoing {
        var builder: BatchBuilder
        var rows = Selection(capacity: Limits.batchRowsMax)
        init(_ types: [SQLType]) { builder = BatchBuilder(types) }
    }

    package init(
        _ id: ExchangeID, _ distribution: Distribution, types: [SQLType], workers: Int, here: WorkerIndex,
        send: @escaping (WorkerIndex, PeerMessage) -> Void
    ) {
        self.id = id
        self.distribution = distribution
        self.workers = workers
        self.here = here
        self.send = send
        outgoing = (0..<workers).map { _ in Outgoing(types) }
    }

    deinit { hashes.deallocate() }

    package static func owner(of hash: UInt64, workers: Int) -> Int {
        Int(truncatingIfNeeded: ((hash & 0xFFFF_FFFF) &* UInt64(truncatingIfNeeded: workers)) >> 32)
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        switch distribution {
        case .any: output.append(batch)
        case .single: add(batch, whole: 0)
        case .hash(let keys):
            RowHash.hash(keys.map { batch.columns[$0] }, count: batch.count, into: hashes)
            for target in outgoing { target.rows.count = 0 }
            for row in 0..<batch.count {
                let target = outgoing[Self.owner(of: hashes[row], workers: workers)]
                target.rows.rows[target.rows.count] = UInt32(truncatingIfNeeded: row)
                target.rows.count &+= 1
            }
            for (worker, target) in outgoing.enumerated() where target.rows.count > 0 {
                if target.rows.count == batch.count {
                    add(batch, whole: worker)
                } else if worker == here.number {
                    output.append(batch.gather(target.rows.rows, count: target.rows.count))
                } else {
                    target.builder.append(batch, target.rows)
                    for full in target.builder.takeFull() { send(WorkerIndex(worker), .batch(id, full)) }
                }
            }
        }
    }

    private func add(_ batch: DeltaBatch, whole worker: Int) {
        if worker == here.number {
            output.append(batch)
        } else {
            outgoing[worker].builder.append(batch)
            for full in outgoing[worker].builder.takeFull() { send(WorkerIndex(worker), .batch(id, full)) }
        }
    }

    /// A peer's rows for this worker.
    package func receive(_ batch: DeltaBatch) { output.append(batch) }

    /// The local input has ended for this epoch.
    package func closeLocalInput() {
        for worker in 0..<workers where worker != here.number {
            for rest in outgoing[worker].builder.take() { send(WorkerIndex(worker), .batch(id, rest)) }
            send(WorkerIndex(worker), .barrier(id))
        }
    }

    package func next(errors: OperatorErrors) -> DeltaBatch? {
        guard outputIndex < output.count else {
            output.removeAll(keepingCapacity: true)
            outputIndex = 0
            return nil
        }
        defer { outputIndex += 1 }
        return output[outputIndex]
    }
}
