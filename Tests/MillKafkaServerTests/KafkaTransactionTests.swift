import MillKafkaWire
import MillLog
import Testing

@testable import MillKafkaServer

private struct TransactionalClient {
    let client: Client
    let id: String
    var producerID: Int64 = -1
    var epoch: Int16 = -1
    private var sequence: Int32 = 0

    init(port: Int, id: String) throws {
        client = try Client(port: port)
        self.id = id
    }

    mutating func initialize(_ version: Int16 = 4) throws -> Int16 {
        let answer: InitProducerIDResponse = try client.ask(
            InitProducerIDRequest(transactionalID: id, transactionTimeoutMs: 60_000, producerID: -1, producerEpoch: -1), version)
        if answer.errorCode == 0 { (producerID, epoch, sequence) = (answer.producerID, answer.producerEpoch, 0) }
        return answer.errorCode
    }

    func add(_ topic: String, _ version: Int16 = 3) throws -> Int16 {
        let request = AddPartitionsToTxnRequest(
            v3AndBelowTransactionalID: id, v3AndBelowProducerID: producerID, v3AndBelowProducerEpoch: epoch,
            v3AndBelowTopics: [.init(name: topic, partitions: [0])])
        let answer: AddPartitionsToTxnResponse = try client.ask(request, version)
        return answer.resultsByTopicV3AndBelow[0].resultsByPartition[0].partitionErrorCode
    }

    mutating func write(_ topic: String, _ value: String) throws -> Int16 {
        var builder = RecordBatchBuilder()
        builder.append(value: Array(value.utf8), timestamp: 0)
        (builder.producerID, builder.producerEpoch, builder.baseSequence, builder.isTransactional) = (producerID, epoch, sequence, true)
        var request = produce(topic, try builder.finish())
        request.transactionalID = id
        let answer: ProduceResponse = try client.ask(request, 7)
        if answer.responses[0].partitionResponses[0].errorCode == 0 { sequence += 1 }
        return answer.responses[0].partitionResponses[0].errorCode
    }

    func end(commit: Bool, _ version: Int16 = 3) throws -> Int16 {
        let answer: EndTxnResponse = try client.ask(
            EndTxnRequest(transactionalID: id, producerID: producerID, producerEpoch: epoch, committed: commit), version)
        return answer.errorCode
    }
}

private func fetchCommitted(_ topic: String, from offset: Int64 = 0) -> FetchRequest {
    var request = fetch(topic, from: offset, wait: 0)
    request.isolationLevel = 1
    return request
}

@Suite struct KafkaTransactionTests {
    @Test func fetchTellsTheStableEndAndWhatWasAborted() async throws {
        try await serving { port, log in
            try log.createTopic(name: "t")
            var producer = try TransactionalClient(port: port, id: "x")
            #expect(try producer.initialize() == 0)
            #expect(try producer.add("t") == 0 && producer.write("t", "a") == 0)
            let open: FetchResponse = try producer.client.ask(fetchCommitted("t"), 11)
            #expect(open.responses[0].partitions[0].lastStableOffset == 0 && open.responses[0].partitions[0].highWatermark == 1)
            #expect(open.responses[0].partitions[0].records?.count == 0)
            let latest: ListOffsetsResponse = try producer.client.ask(
                ListOffsetsRequest(
                    replicaID: -1, isolationLevel: 1, topics: [.init(name: "t", partitions: [.init(partitionIndex: 0, timestamp: -1)])]), 7)
            #expect(latest.topics[0].partitions[0].offset == 0)
            #expect(try producer.end(commit: false) == 0)
            let ended: FetchResponse = try producer.client.ask(fetchCommitted("t"), 11)
            let part = ended.responses[0].partitions[0]
            #expect(part.lastStableOffset == 2 && part.abortedTransactions?.map(\.firstOffset) == [0])
            #expect(part.abortedTransactions?.map(\.producerID) == [producer.producerID])
            let uncommitted: FetchResponse = try producer.client.ask(fetch("t", from: 0, wait: 0), 11)
            #expect(
                uncommitted.responses[0].partitions[0].abortedTransactions == nil
                    && uncommitted.responses[0].partitions[0].records == part.records)
        }
    }

    @Test func everyRefusalHasItsCode() async throws {
        try await serving { port, log in
            try log.createTopic(name: "t")
            var old = try TransactionalClient(port: port, id: "x")
            #expect(try old.end(commit: true) == KafkaErrorCode.invalidProducerIDMapping.rawValue)
            #expect(try old.initialize() == 0)
            #expect(try old.write("t", "a") == KafkaErrorCode.invalidTransactionState.rawValue)
            #expect(try old.add("none") == KafkaErrorCode.unknownTopicOrPartition.rawValue)
            #expect(try old.end(commit: true) == KafkaErrorCode.invalidTransactionState.rawValue)
            #expect(try old.add("t") == 0 && old.write("t", "a") == 0)
            var new = try TransactionalClient(port: port, id: "x")
            #expect(try new.initialize() == KafkaErrorCode.concurrentTransactions.rawValue)
            while try new.initialize() == KafkaErrorCode.concurrentTransactions.rawValue {}
            #expect(try old.add("t", 1) == KafkaErrorCode.invalidProducerEpoch.rawValue)
            #expect(try old.add("t", 2) == KafkaErrorCode.producerFenced.rawValue)
            #expect(try old.end(commit: true, 1) == KafkaErrorCode.invalidProducerEpoch.rawValue)
            #expect(try old.write("t", "zombie") == KafkaErrorCode.invalidProducerEpoch.rawValue)
            let timeout: InitProducerIDResponse = try new.client.ask(
                InitProducerIDRequest(transactionalID: "y", transactionTimeoutMs: 0), 4)
            #expect(timeout.errorCode == KafkaErrorCode.invalidTransactionTimeout.rawValue)
        }
    }

    @Test func offsetsOfATransactionAreUnstableUntilItEnds() async throws {
        try await serving { port, log in
            try log.createTopic(name: "t")
            var producer = try TransactionalClient(port: port, id: "x")
            #expect(try producer.initialize() == 0)
            let client = producer.client
            let added: AddOffsetsToTxnResponse = try client.ask(
                AddOffsetsToTxnRequest(transactionalID: "x", producerID: producer.producerID, producerEpoch: producer.epoch, groupID: "g"),
                3)
            #expect(added.errorCode == 0)
            let stored: TxnOffsetCommitResponse = try client.ask(
                TxnOffsetCommitRequest(
                    transactionalID: "x", groupID: "g", producerID: producer.producerID, producerEpoch: producer.epoch,
                    topics: [
                        .init(
                            name: "t",
                            partitions: [.init(partitionIndex: 0, committedOffset: 9), .init(partitionIndex: 7, committedOffset: 9)])
                    ]), 3)
            #expect(stored.topics[0].partitions.map(\.errorCode) == [0, KafkaErrorCode.unknownTopicOrPartition.rawValue])
            func fetched() throws -> OffsetFetchResponse.OffsetFetchResponseTopic.OffsetFetchResponsePartition {
                let answer: OffsetFetchResponse = try client.ask(
                    OffsetFetchRequest(groupID: "g", topics: [.init(name: "t", partitionIndexes: [0])], requireStable: true), 7)
                return answer.topics[0].partitions[0]
            }
            #expect(try fetched().errorCode == KafkaErrorCode.unstableOffsetCommit.rawValue)
            #expect(try producer.end(commit: true) == 0)
            #expect(try fetched().errorCode == 0 && fetched().committedOffset == 9)
            let listed: ListTransactionsResponse = try client.ask(ListTransactionsRequest(stateFilters: ["CompleteCommit", "Nonsense"]), 1)
            #expect(listed.transactionStates.map(\.transactionalID) == ["x"] && listed.unknownStateFilters == ["Nonsense"])
            let described: DescribeTransactionsResponse = try client.ask(DescribeTransactionsRequest(transactionalIDs: ["x", "z"]), 0)
            #expect(described.transactionStates.map(\.errorCode) == [0, KafkaErrorCode.transactionalIDNotFound.rawValue])
        }
    }
}
