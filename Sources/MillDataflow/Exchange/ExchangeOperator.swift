package import MillBase
package import MillColumnar
package import MillPlan

/// Sends every row to the worker that owns its key, and gives on what belongs to this one.
///
/// A row's owner is `lower 32 bits of its hash * workers / 2^32`: the directory of a state table uses the upper bits, so a
/// shard's rows still spread over its whole directory. A batch's rows are sorted by owner, then gathered into full batches for each.
/// When the local input has ended, the rest goes out, then a barrier to each peer; the exchange itself is closed when all peers'
/// barriers are in.
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
    private let owners = UnsafeMutablePointer<UInt32>.allocate(capacity: Limits.batchRowsMax)
    /// A batch's rows, those of one owner together, and where each owner's end.
    private let sorted = UnsafeMutablePointer<UInt32>.allocate(capacity: Limits.batchRowsMax)
    private let ends: UnsafeMutablePointer<Int>

    /// So many rows for one worker go out at once: still in the cache, and written once. Fewer wait for more.
    private static let passedOnRowsMin = 512

    /// Rows for one worker that are not a full batch yet.
    private final class Outgoing {
        var builder: BatchBuilder
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
        ends = .allocate(capacity: workers)
    }

    deinit {
        hashes.deallocate()
        owners.deallocate()
        sorted.deallocate()
        ends.deallocate()
    }

    @inline(__always) package static func owner(of hash: UInt64, workers: Int) -> Int {
        Int(truncatingIfNeeded: ((hash & 0xFFFF_FFFF) &* UInt64(truncatingIfNeeded: workers)) >> 32)
    }

    package func push(_ batch: DeltaBatch, input: Int, errors: OperatorErrors) {
        switch distribution {
        case .any: output.append(batch)
        case .single: add(batch, whole: 0)
        case .hash(let keys):
            RowHash.hash(keys.map { batch.columns[$0] }, count: batch.count, into: hashes)
            sortByOwner(batch.count)
            var start = 0
            for worker in 0..<workers {
                let count = ends[worker] - start
                if count == batch.count {
                    add(batch, whole: worker)
                } else if count >= Self.passedOnRowsMin {
                    pass(outgoing[worker].builder.take() + [batch.gather(sorted + start, count: count)], to: worker)
                } else if count > 0 {
                    outgoing[worker].builder.append(batch, rows: sorted + start, count: count)
                    pass(outgoing[worker].builder.takeFull(), to: worker)
                }
                start = ends[worker]
            }
        }
    }

    /// Fills `sorted` and `ends` from the hashes.
    private func sortByOwner(_ count: Int) {
        let (owners, ends, workers) = (owners, ends, workers)
        ends.update(repeating: 0, count: workers)
        for row in 0..<count {
            let owner = Self.owner(of: hashes[row], workers: workers)
            owners[row] = UInt32(truncatingIfNeeded: owner)
            ends[owner] &+= 1
        }
        // Counts become starts, and starts become ends as the rows are placed.
        var start = 0
        for worker in 0..<workers { (ends[worker], start) = (start, start &+ ends[worker]) }
        for row in 0..<count {
            let owner = Int(owners[row])
            sorted[ends[owner]] = UInt32(truncatingIfNeeded: row)
            ends[owner] &+= 1
        }
    }

    private func add(_ batch: DeltaBatch, whole worker: Int) {
        outgoing[worker].builder.append(batch)
        pass(outgoing[worker].builder.takeFull(), to: worker)
    }

    private func pass(_ batches: [DeltaBatch], to worker: Int) {
        if worker == here.number {
            output += batches
        } else {
            for batch in batches { send(WorkerIndex(worker), .batch(id, batch)) }
        }
    }

    /// A peer's rows for this worker.
    package func receive(_ batch: DeltaBatch) { output.append(batch) }

    /// The local input has ended for this epoch.
    package func closeLocalInput() {
        for worker in 0..<workers {
            pass(outgoing[worker].builder.take(), to: worker)
            if worker != here.number { send(WorkerIndex(worker), .barrier(id)) }
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
