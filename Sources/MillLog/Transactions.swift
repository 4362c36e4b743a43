import MillKafkaWire
import MillIO
import Synchronization

/// Why a transactional producer is refused.
package enum TransactionError: Error, Hashable, Sendable {
    /// The transactional id has another producer id.
    case unknownProducer
    /// A newer instance of the producer has begun, or its transaction was given up.
    case fenced
    /// Not possible in this phase, such as committing what was not begun.
    case invalidState
    /// The last transaction is still being ended; the client tries again.
    case busy
    case invalidTimeout
    case log(LogError)
}

/// The coordinator of all transactions: who may write what, and how each ends.
///
/// Place in the path: the Kafka server brings producers' requests here; `PartitionLog.append` asks whether a transactional batch belongs to
/// a transaction that is under way; ending one writes a marker into each of its partitions.
///
/// Invariants: a transaction's decision is durable before its first marker is written, and a producer hears of it when its markers are
/// durable, so that who reads next sees it. One instance of a producer at a time: each `initialize` raises the epoch, and lower ones are
/// refused everywhere. A transaction that is not ended within its timeout is aborted.
///
/// A crash leaves transactions under way as they were; `resume` ends those whose decision was made.
///
/// Threading: any thread; completions run on the thread that flushed and must not block. Source: KIP-98, KIP-360, KIP-447.
package final class Transactions: Sendable {
    package typealias Completion<T> = @Sendable (Result<T, TransactionError>) -> Void

    package struct Producer: Sendable, Hashable {
        package var id: Int64
        package var epoch: Int16

        package init(id: Int64, epoch: Int16) {
            self.id = id
            self.epoch = epoch
        }
    }

    /// Kafka's `transaction.max.timeout.ms`.
    private static let timeoutMillisMax: Int32 = 900_000
    /// Kafka's `transactional.id.expiration.ms`.
    static let idleMillisMax: Int64 = 7 * 24 * 3600 * 1000

    let coordinator: CoordinatorLog
    let topics: TopicTable
    private let environment: Environment
    /// Transactional ids whose end is being decided or written, by whom `claim` told so.
    let ending = Mutex<Set<String>>([])

    init(_ coordinator: CoordinatorLog, _ topics: TopicTable, _ environment: Environment) {
        self.coordinator = coordinator
        self.topics = topics
        self.environment = environment
    }

    var nowMillis: Int64 { environment.clock.nowMicros / 1000 }

    /// A producer id for who has none: random in 62 bits, which needs no record of what was given out.
    package func newProducerID() -> Int64 { Int64(environment.random.next() >> 2) }

    // MARK: Verbs of producers

    /// Makes the caller the one instance of a transactional producer. `known` is who the caller was before, if it says so.
    /// While the last instance's transaction is being ended it fails with `busy`; one that is under way is aborted.
    package func initialize(_ id: String, timeoutMillis: Int32, known: Producer?, completion: @escaping Completion<Producer>) {
        guard (1...Self.timeoutMillisMax).contains(timeoutMillis) else { return completion(.failure(.invalidTimeout)) }
        let now = nowMillis
        change(id, completion) { found throws(TransactionError) in
            guard var transaction = found else {
                let new = TransactionState(
                    id: id, producerID: newProducerID(), producerEpoch: 0, timeoutMillis: timeoutMillis, updateMillis: now)
                return (new, Producer(id: new.producerID, epoch: 0))
            }
            if let known {
                // The one before the last is a caller who did not hear the answer.
                let isCurrent =
                    known.id == transaction.producerID && [transaction.producerEpoch, transaction.previousEpoch].contains(known.epoch)
                guard isCurrent else { throw .fenced }
            }
            if transaction.phase.isPrepared { throw .busy }
            if transaction.phase == .ongoing {
                transaction.fence()
                transaction.phase = .prepareAbort
                transaction.updateMillis = now
                return (transaction, nil)
            }
            if let known, known.epoch != transaction.producerEpoch {
                return (nil, Producer(id: transaction.producerID, epoch: transaction.producerEpoch))
            }
            transaction.timeoutMillis = timeoutMillis
            transaction.updateMillis = now
            transaction.phase = .empty
            transaction.partitions = []
            transaction.previousEpoch = transaction.producerEpoch
            if transaction.producerEpoch >= Int16.max - 1 {
                (transaction.producerID, transaction.producerEpoch, transaction.previousEpoch) = (newProducerID(), 0, -1)
            } else {
                transaction.producerEpoch += 1
            }
            return (transaction, Producer(id: transaction.producerID, epoch: transaction.producerEpoch))
        }
    }

    /// Takes partitions into the producer's transaction, which begins with the first.
    package func add(_ partitions: [PartitionPlace], to id: String, _ producer: Producer, completion: @escaping Completion<Void>) {
        let now = nowMillis
        change(id, completion) { found throws(TransactionError) in
            var transaction = try Self.current(found, producer)
            if transaction.phase.isPrepared { throw .busy }
            if transaction.phase == .ongoing, transaction.partitions.isSuperset(of: partitions) { return (nil, ()) }
            transaction.begin(nowMillis: now)
            transaction.partitions.formUnion(partitions)
            return (transaction, ())
        }
    }

    /// Takes a group into the producer's transaction, so that its positions may be committed with it.
    package func add(group: String, to id: String, _ producer: Producer, completion: @escaping Completion<Void>) {
        let now = nowMillis
        change(id, completion) { found throws(TransactionError) in
            var transaction = try Self.current(found, producer)
            if transaction.phase.isPrepared { throw .busy }
            if transaction.phase == .ongoing, transaction.groups.contains(group) { return (nil, ()) }
            transaction.begin(nowMillis: now)
            transaction.groups.insert(group)
            return (transaction, ())
        }
    }

    /// Positions that become the group's if the transaction commits.
    package func commit(
        group: String, _ offsets: [(PartitionPlace, GroupOffsets.Committed)], in id: String, _ producer: Producer,
        completion: @escaping Completion<Void>
    ) {
        change(id, completion) { found throws(TransactionError) in
            var transaction = try Self.current(found, producer)
            guard transaction.phase == .ongoing, transaction.groups.contains(group) else { throw .invalidState }
            transaction.offsets[group, default: [:]].merge(offsets) { _, new in new }
            return (transaction, ())
        }
    }

    /// Ends the transaction; the completion runs when all its markers are durable.
    package func end(_ id: String, _ producer: Producer, isCommit: Bool, completion: @escaping Completion<Void>) {
        let now = nowMillis
        change(id, completion) { found throws(TransactionError) in
            var transaction = try Self.current(found, producer)
            switch transaction.phase {
            case .completeCommit where isCommit, .completeAbort where !isCommit: return (nil, ())
            case .prepareCommit where isCommit, .prepareAbort where !isCommit: throw .busy
            case .empty, .prepareCommit, .prepareAbort, .completeCommit, .completeAbort: throw .invalidState
            case .ongoing:
                transaction.phase = isCommit ? .prepareCommit : .prepareAbort
                transaction.updateMillis = now
                return (transaction, ())
            }
        }
    }

    // MARK: Looking

    /// Sorted by transactional id.
    package var all: [TransactionState] { coordinator.read { $0.transactions.values.sorted { $0.id < $1.id } } }
    package func transaction(_ id: String) -> TransactionState? { coordinator.read { $0.transactions[id] } }

    // MARK: Parts

    private static func current(_ found: TransactionState?, _ producer: Producer) throws(TransactionError) -> TransactionState {
        guard let found, found.producerID == producer.id else { throw .unknownProducer }
        guard found.producerEpoch == producer.epoch else { throw .fenced }
        return found
    }

    /// Replaces a transaction's state by what `body` makes of it (nil leaves it) and answers when that is durable, and if it is a decision,
    /// when its markers are, too. An answer of nil tells the caller to come again.
    private func change<T: Sendable>(
        _ id: String, _ completion: @escaping Completion<T>, _ body: (TransactionState?) throws(TransactionError) -> (TransactionState?, T?)
    ) {
        coordinator.update { state in
            do throws(TransactionError) {
                let (changed, answer) = try body(state.transactions[id])
                let conclude: @Sendable (LogError?) -> Void = { failure in
                    completion(failure.map { .failure(.log($0)) } ?? answer.map { .success($0) } ?? .failure(.busy))
                }
                guard let changed else { return ([], conclude) }
                guard changed.phase.isPrepared else { return ([.transaction(changed)], conclude) }
                guard claim(id) else { throw .busy }
                return ([.transaction(changed)], { [weak self] failure in self?.finish(id, failure, completion: conclude) })
            } catch {
                return ([], { _ in completion(.failure(error)) })
            }
        }
    }
}
