import MillKafkaWire
import Synchronization

extension Transactions {
    /// Aborts what has been under way for too long and forgets producers that have been silent for a week; called now and then.
    package func expire() {
        // A decision that may not be durable is not acted upon.
        guard coordinator.isWell else { return coordinator.mend() }
        let now = nowMillis
        for transaction in all {
            switch transaction.phase {
            case .ongoing where now - transaction.startMillis > Int64(transaction.timeoutMillis): abort(transaction)
            case .prepareCommit, .prepareAbort: if claim(transaction.id) { writeMarkers(transaction.id) { _ in } }
            case .empty, .completeCommit, .completeAbort:
                if now - transaction.updateMillis > Self.idleMillisMax { forget(transaction) }
            case .ongoing: break
            }
        }
    }

    /// Ends the transactions whose decision was made before a crash.
    func resume() {
        for transaction in all where transaction.phase.isPrepared && claim(transaction.id) { writeMarkers(transaction.id) { _ in } }
    }

    /// Aborts a transaction whose producer has gone, unless it has changed meanwhile.
    private func abort(_ transaction: TransactionState) {
        let now = nowMillis
        coordinator.update { state in
            guard state.transactions[transaction.id] == transaction, claim(transaction.id) else { return ([], { _ in }) }
            var changed = transaction
            changed.fence()
            changed.phase = .prepareAbort
            changed.updateMillis = now
            return (
                [.transaction(changed)],
                { [weak self] failure in
                    self?.finish(transaction.id, failure) { _ in }
                }
            )
        }
    }

    private func forget(_ transaction: TransactionState) {
        coordinator.update { state in
            state.transactions[transaction.id] == transaction ? ([.transactionForgotten(transaction.id)], { _ in }) : ([], { _ in })
        }
    }

    /// Takes on the ending of a transaction: whoever decides it, or finds it decided after a crash. False when somebody has.
    func claim(_ id: String) -> Bool { ending.withLock { $0.insert(id).inserted } }

    /// Goes on when a claimed transaction's decision is durable, or is not.
    func finish(_ id: String, _ failure: LogError?, completion: @escaping @Sendable (LogError?) -> Void) {
        if failure == nil { return writeMarkers(id, completion: completion) }
        ending.withLock { _ = $0.remove(id) }
        completion(failure)
    }

    /// Writes a claimed transaction's markers, and when they are durable that it is complete. A partition that has failed keeps its
    /// transaction prepared until the next start.
    private func writeMarkers(_ id: String, completion: @escaping @Sendable (LogError?) -> Void) {
        guard let transaction = transaction(id), transaction.phase.isPrepared else {
            ending.withLock { _ = $0.remove(id) }
            return completion(nil)
        }
        let partitions = transaction.partitions.sorted().compactMap { topics.topic(named: $0.topic)?.partition($0.partition) }
        let gather = MarkerGather(count: partitions.count) { [weak self] failure in
            guard let self else { return }
            if failure == nil { complete(transaction) }
            ending.withLock { _ = $0.remove(id) }
            completion(failure)
        }
        for partition in partitions {
            partition.endTransaction(of: transaction.producer, isCommit: transaction.phase == .prepareCommit) { gather.done($0) }
        }
    }

    private func complete(_ transaction: TransactionState) {
        coordinator.update { state in
            guard var changed = state.transactions[transaction.id], changed.phase == transaction.phase,
                changed.producer == transaction.producer
            else {
                return ([], { _ in })
            }
            changed.phase = changed.phase == .prepareCommit ? .completeCommit : .completeAbort
            changed.partitions = []
            changed.groups = []
            changed.startMillis = -1
            // Nobody waits: a start that does not find this entry writes the markers that are missing, which are none.
            return ([.transaction(changed)], { _ in })
        }
    }
}

extension TransactionState {
    var producer: Transactions.Producer { Transactions.Producer(id: producerID, epoch: producerEpoch) }
}

/// Waits for the markers of one transaction.
private final class MarkerGather: Sendable {
    private let state: Mutex<(left: Int, failure: LogError?)>
    private let completion: @Sendable (LogError?) -> Void

    /// Calls `completion` at once when there is nothing to wait for.
    init(count: Int, completion: @escaping @Sendable (LogError?) -> Void) {
        state = Mutex((count, nil))
        self.completion = completion
        if count == 0 { completion(nil) }
    }

    func done(_ failure: LogError?) {
        let result: LogError?? = state.withLock { state in
            state.left -= 1
            // A topic that was deleted has no readers left to tell.
            if let failure, state.failure == nil, !failure.isUnknownTopic { state.failure = failure }
            return state.left == 0 ? .some(state.failure) : nil
        }
        if let result { completion(result) }
    }
}

extension LogError {
    fileprivate var isUnknownTopic: Bool {
        if case .unknownTopic = self { true } else { false }
    }
}
