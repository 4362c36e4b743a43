import MillIO
import MillKafkaWire
import MillLog

extension KafkaBroker {
    private func code(_ error: TransactionError, fenced: KafkaErrorCode) -> Int16 {
        let code: KafkaErrorCode =
            switch error {
            case .unknownProducer: .invalidProducerIDMapping
            case .fenced: fenced
            case .invalidState: .invalidTransactionState
            case .busy: .concurrentTransactions
            case .invalidTimeout: .invalidTransactionTimeout
            case .log(let error): KafkaErrorCode(error)
            }
        return code.rawValue
    }

    private func code(_ result: Result<Void, TransactionError>, fenced: KafkaErrorCode) -> Int16 {
        if case .failure(let error) = result { code(error, fenced: fenced) } else { KafkaErrorCode.none.rawValue }
    }

    /// A producer's id; with a transactional id the one that it has, in a new epoch.
    func initProducerID(_ request: InitProducerIDRequest, _ version: Int16, _ reply: @escaping Reply) {
        let known = request.producerID >= 0 ? Transactions.Producer(id: request.producerID, epoch: request.producerEpoch) : nil
        func refuse(_ error: Int16) {
            reply(response(InitProducerIDResponse(errorCode: error, producerID: -1, producerEpoch: -1), version))
        }
        guard let id = request.transactionalID else {
            if let known, known.epoch >= 0, known.epoch < Int16.max - 1 {
                return reply(response(InitProducerIDResponse(producerID: known.id, producerEpoch: known.epoch + 1), version))
            }
            return reply(response(InitProducerIDResponse(producerID: log.transactions.newProducerID(), producerEpoch: 0), version))
        }
        guard !id.isEmpty else { return refuse(KafkaErrorCode.invalidRequest.rawValue) }
        log.transactions.initialize(id, timeoutMillis: request.transactionTimeoutMs, known: known) { [self] result in
            switch result {
            case .success(let producer):
                reply(response(InitProducerIDResponse(producerID: producer.id, producerEpoch: producer.epoch), version))
            case .failure(let error):
                let error = code(error, fenced: version >= 4 ? .producerFenced : .invalidProducerEpoch)
                reply(response(InitProducerIDResponse(errorCode: error, producerID: -1, producerEpoch: -1), version))
            }
        }
    }

    /// All partitions of a request are taken in, or none.
    func addPartitions(_ request: AddPartitionsToTxnRequest, _ version: Int16, _ reply: @escaping Reply) {
        let places = request.v3AndBelowTopics.flatMap { topic in topic.partitions.map { PartitionPlace(topic: topic.name, partition: $0) } }
        let unknown = Set(places.filter { log.topic(named: $0.topic)?.partition($0.partition) == nil })
        let answer: @Sendable (Int16) -> KafkaReply = { [self] error in
            response(
                AddPartitionsToTxnResponse(
                    resultsByTopicV3AndBelow: request.v3AndBelowTopics.map { topic in
                        .init(
                            name: topic.name,
                            resultsByPartition: topic.partitions.map { index in
                                let isUnknown = unknown.contains(PartitionPlace(topic: topic.name, partition: index))
                                return .init(
                                    partitionIndex: index,
                                    partitionErrorCode: isUnknown ? KafkaErrorCode.unknownTopicOrPartition.rawValue : error)
                            })
                    }), version)
        }
        guard unknown.isEmpty else { return reply(answer(KafkaErrorCode.operationNotAttempted.rawValue)) }
        let producer = Transactions.Producer(id: request.v3AndBelowProducerID, epoch: request.v3AndBelowProducerEpoch)
        log.transactions.add(places, to: request.v3AndBelowTransactionalID, producer) { [self] result in
            reply(answer(code(result, fenced: version >= 2 ? .producerFenced : .invalidProducerEpoch)))
        }
    }

    func addGroup(_ request: AddOffsetsToTxnRequest, _ version: Int16, _ reply: @escaping Reply) {
        let producer = Transactions.Producer(id: request.producerID, epoch: request.producerEpoch)
        log.transactions.add(group: request.groupID, to: request.transactionalID, producer) { [self] result in
            reply(
                response(
                    AddOffsetsToTxnResponse(errorCode: code(result, fenced: version >= 2 ? .producerFenced : .invalidProducerEpoch)),
                    version))
        }
    }

    func commitInTransaction(_ request: TxnOffsetCommitRequest, _ version: Int16, _ reply: @escaping Reply) {
        let isMember = request.generationID >= 0 || !request.memberID.isEmpty
        let fault =
            request.groupID.isEmpty
            ? KafkaErrorCode.invalidGroupID
            : !isMember
                ? nil
                : groups.commitFault(
                    group: request.groupID, memberID: request.memberID, instanceID: request.groupInstanceID,
                    generation: request.generationID)
        let nowMillis = log.environment.clock.nowMicros / 1000
        var offsets: [(PartitionPlace, GroupOffsets.Committed)] = []
        let topics = request.topics.map { topic in
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name: topic.name,
                partitions: topic.partitions.map { part in
                    let place = PartitionPlace(topic: topic.name, partition: part.partitionIndex)
                    let committed = GroupOffsets.Committed(
                        offset: part.committedOffset, leaderEpoch: part.committedLeaderEpoch, metadata: part.committedMetadata ?? "",
                        committedMillis: nowMillis)
                    let error = fault ?? commitFault(place, committed)
                    if error == .none { offsets.append((place, committed)) }
                    return .init(partitionIndex: part.partitionIndex, errorCode: error.rawValue)
                })
        }
        guard !offsets.isEmpty else { return reply(response(TxnOffsetCommitResponse(topics: topics), version)) }
        let producer = Transactions.Producer(id: request.producerID, epoch: request.producerEpoch)
        log.transactions.commit(group: request.groupID, offsets, in: request.transactionalID, producer) { [self] result in
            let error = code(result, fenced: .invalidProducerEpoch)
            var topics = topics
            for topic in topics.indices {
                for part in topics[topic].partitions.indices where topics[topic].partitions[part].errorCode == 0 {
                    topics[topic].partitions[part].errorCode = error
                }
            }
            reply(response(TxnOffsetCommitResponse(topics: topics), version))
        }
    }

    func endTransaction(_ request: EndTxnRequest, _ version: Int16, _ reply: @escaping Reply) {
        let producer = Transactions.Producer(id: request.producerID, epoch: request.producerEpoch)
        log.transactions.end(request.transactionalID, producer, isCommit: request.committed) { [self] result in
            reply(
                response(EndTxnResponse(errorCode: code(result, fenced: version >= 2 ? .producerFenced : .invalidProducerEpoch)), version))
        }
    }

    // MARK: Looking at transactions

    func describeTransactions(_ request: DescribeTransactionsRequest, _ version: Int16, _ reply: Reply) {
        let states = request.transactionalIDs.map { id -> DescribeTransactionsResponse.TransactionState in
            guard let found = log.transactions.transaction(id) else {
                return .init(errorCode: KafkaErrorCode.transactionalIDNotFound.rawValue, transactionalID: id)
            }
            let topics = Dictionary(grouping: found.partitions, by: \.topic).sorted { $0.key < $1.key }
            return .init(
                transactionalID: id, transactionState: found.phase.name, transactionTimeoutMs: found.timeoutMillis,
                transactionStartTimeMs: found.startMillis, producerID: found.producerID, producerEpoch: found.producerEpoch,
                topics: topics.map { .init(topic: $0.key, partitions: $0.value.map(\.partition).sorted()) })
        }
        reply(response(DescribeTransactionsResponse(transactionStates: states), version))
    }

    func listTransactions(_ request: ListTransactionsRequest, _ version: Int16, _ reply: Reply) {
        let nowMillis = log.environment.clock.nowMicros / 1000
        let names = Set(TransactionState.Phase.allCases.map(\.name))
        let wanted = log.transactions.all.filter { found in
            (request.stateFilters.isEmpty || request.stateFilters.contains(found.phase.name))
                && (request.producerIDFilters.isEmpty || request.producerIDFilters.contains(found.producerID))
                && (request.durationFilter < 0 || found.startMillis >= 0 && nowMillis - found.startMillis > request.durationFilter)
        }
        reply(
            response(
                ListTransactionsResponse(
                    unknownStateFilters: request.stateFilters.filter { !names.contains($0) },
                    transactionStates: wanted.map {
                        .init(transactionalID: $0.id, producerID: $0.producerID, transactionState: $0.phase.name)
                    }),
                version))
    }

    func describeProducers(_ request: DescribeProducersRequest, _ version: Int16, _ reply: Reply) {
        let topics = request.topics.map { topic in
            DescribeProducersResponse.TopicResponse(
                name: topic.name,
                partitions: topic.partitionIndexes.map { index in
                    guard let partition = log.topic(named: topic.name)?.partition(index) else {
                        return .init(partitionIndex: index, errorCode: KafkaErrorCode.unknownTopicOrPartition.rawValue, errorMessage: nil)
                    }
                    return .init(
                        partitionIndex: index, errorMessage: nil,
                        activeProducers: partition.activeProducers.map {
                            .init(
                                producerID: $0.id, producerEpoch: Int32($0.epoch), lastSequence: $0.lastSequence,
                                lastTimestamp: $0.lastAppendMillis,
                                currentTxnStartOffset: $0.transactionStart)
                        })
                })
        }
        reply(response(DescribeProducersResponse(topics: topics), version))
    }
}
