import MillBase
import Synchronization

/// A job's stored state on its way from the workers that made it to another number of workers.
///
/// For each node and each worker of then there is one operator, filled from the checkpoint once, by whoever comes to it first. Each worker
/// of now takes from it what is its own, and with the last of them it goes: so beside the new state there is at most the old one, once.
///
/// Threading: an operator is used by one worker at a time, under its lock. Workers begin with different ones, so they fill them at once.
final class StoredShards: Sendable {
    private let shards = Mutex<[Place: Shard]>([:])

    private struct Place: Hashable {
        var node: Int
        var worker: Int
    }

    /// Safe to share: used under its own lock.
    private final class Shard: @unchecked Sendable {
        let lock = Mutex(())
        var operation: (any Operator)?
        var readersLeft: Int

        init(readers: Int) { readersLeft = readers }
    }

    /// Gives a worker of now the operator of a node as a worker of then had it.
    /// - Parameters:
    ///   - readers: how many workers there are now; each reads once.
    ///   - fill: makes the operator with its stored state.
    ///   - take: what the reader does with it.
    func read(
        node: Int, worker: Int, readers: Int, fill: () throws(SQLError) -> any Operator, take: (any Operator) throws(SQLError) -> Void
    ) throws(SQLError) {
        let place = Place(node: node, worker: worker)
        let shard = shards.withLock { shards in
            let shard = shards[place] ?? Shard(readers: readers)
            shards[place] = shard
            return shard
        }
        try shard.lock.withLock { (_) throws(SQLError) in
            let operation = if let filled = shard.operation { filled } else { try fill() }
            shard.operation = operation
            try take(operation)
            shard.readersLeft -= 1
            if shard.readersLeft == 0 { shard.operation = nil }
        }
    }
}
