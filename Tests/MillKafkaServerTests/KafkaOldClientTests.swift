import MillKafkaWire
import MillLog
import Testing

@testable import MillKafkaServer

/// One message of format 1: key "k", value "old", no compression.
private let oldMessage: [UInt8] = {
    var builder = RecordBatchBuilder()
    builder.append(key: Array("k".utf8), value: Array("old".utf8), timestamp: 1000)
    do {
        let batch = try RecordBatches(builder.finish())
        return try MessageSet.messages(of: batch, from: 0, magic: 1, maxBytes: 1000, RecordDecoder()).array
    } catch { preconditionFailure("a batch is made") }
}()

@Suite struct KafkaOldClientTests {
    @Test(arguments: [Int16(0), 1, 2]) func oldMessagesAreStoredAsBatches(_ version: Int16) async throws {
        try await serving { port, log in
            let answer: ProduceResponse = try Client(port: port).ask(produce("t", WireBytes(oldMessage)), version)
            #expect(answer.responses[0].partitionResponses[0].errorCode == 0)
            let slice = try #require(log.topic(named: "t")?.partition(0)).read(from: 0, maxBytes: 1000)
            var batches = slice.batches
            let batch = try #require(try batches.next())
            try RecordDecoder().validate(batch)
            #expect(batch.recordCount == 1 && batch.maxTimestamp == 1000)
            var damaged = oldMessage
            damaged[20] ^= 1
            let refused: ProduceResponse = try Client(port: port).ask(produce("t", WireBytes(damaged)), version)
            #expect(refused.responses[0].partitionResponses[0].errorCode == KafkaErrorCode.corruptMessage.rawValue)
        }
    }

    @Test func everyFetchVersionGetsItsFormat() async throws {
        try await serving { port, log in
            try log.createTopic(name: "t").partitions[0].appendAndWait(batch(["a", "b", "c"]))
            for version in FetchRequest.versions {
                let answer: FetchResponse = try Client(port: port).ask(fetch("t", from: 1, wait: 0), version)
                let records = try #require(answer.responses[0].partitions[0].records)
                #expect(answer.responses[0].partitions[0].highWatermark == 3)
                #expect(records.array[16] == (version < 2 ? 0 : version < 4 ? 1 : 2))
                // Old formats begin at the offset itself, batches where they begin.
                #expect(records.array[7] == (version < 4 ? 1 : 0))
            }
        }
    }

    @Test func versionZeroOfListOffsetsAnswersAList() async throws {
        try await serving { port, log in
            try log.createTopic(name: "t").partitions[0].appendAndWait(batch(["a", "b"]))
            for (time, offset) in [(Int64(-1), Int64(2)), (-2, 0)] {
                let request = ListOffsetsRequest(
                    replicaID: -1, topics: [.init(name: "t", partitions: [.init(partitionIndex: 0, timestamp: time)])])
                let answer: ListOffsetsResponse = try Client(port: port).ask(request, 0)
                #expect(answer.topics[0].partitions[0].oldStyleOffsets == [offset])
            }
        }
    }

    @Test func aPasswordIsTakenInBothVersionsOfTheHandshake() async throws {
        try await serving { port, _ in
            for version in Int16(0)...1 {
                let client = try Client(port: port)
                let answer: SaslHandshakeResponse = try client.ask(SaslHandshakeRequest(mechanism: "PLAIN"), version)
                #expect(answer.errorCode == 0 && answer.mechanisms == ["PLAIN"])
                if version == 0 {
                    client.send([0, 0, 0, 9] + Array("\0user\0pwd".utf8))
                    #expect(client.receiveFrame() == [])
                } else {
                    let accepted: SaslAuthenticateResponse = try client.ask(SaslAuthenticateRequest(authBytes: WireBytes([0, 1, 0, 2])), 2)
                    #expect(accepted.errorCode == 0)
                }
                let after: ApiVersionsResponse = try client.ask(ApiVersionsRequest(clientSoftwareName: "a", clientSoftwareVersion: "1"), 3)
                #expect(after.errorCode == 0)
            }
            let refused: SaslHandshakeResponse = try Client(port: port).ask(SaslHandshakeRequest(mechanism: "GSSAPI"), 1)
            #expect(refused.errorCode == KafkaErrorCode.unsupportedSASLMechanism.rawValue)
        }
    }

    @Test func topicsHaveSettings() async throws {
        try await serving { port, log in
            let client = try Client(port: port)
            let created: CreateTopicsResponse = try client.ask(
                CreateTopicsRequest(topics: [
                    .init(name: "t", numPartitions: 1, replicationFactor: 1, configs: [.init(name: "retention.ms", value: "5000")]),
                    .init(name: "u", numPartitions: 1, replicationFactor: 1, configs: [.init(name: "retention.ms", value: "soon")]),
                ]), 5)
            #expect(created.topics.map(\.errorCode) == [0, KafkaErrorCode.invalidConfig.rawValue])
            let changed: IncrementalAlterConfigsResponse = try client.ask(
                IncrementalAlterConfigsRequest(resources: [
                    .init(
                        resourceType: 2, resourceName: "t", configs: [.init(name: "cleanup.policy", configOperation: 2, value: "compact")]),
                    .init(resourceType: 2, resourceName: "u"), .init(resourceType: 4, resourceName: "1"),
                ]), 1)
            #expect(
                changed.responses.map(\.errorCode) == [
                    0, KafkaErrorCode.unknownTopicOrPartition.rawValue, KafkaErrorCode.invalidRequest.rawValue,
                ])
            #expect(log.topic(named: "t")?.config.values == ["retention.ms": "5000", "cleanup.policy": "delete,compact"])
            let replaced: AlterConfigsResponse = try client.ask(
                AlterConfigsRequest(resources: [.init(resourceType: 2, resourceName: "t", configs: [.init(name: "segment.ms", value: "9")])]
                ), 2)
            #expect(replaced.responses[0].errorCode == 0)
            for version in DescribeConfigsRequest.versions {
                let answer: DescribeConfigsResponse = try client.ask(
                    DescribeConfigsRequest(resources: [
                        .init(resourceType: 2, resourceName: "t", configurationKeys: ["segment.ms", "retention.ms"])
                    ]), version)
                #expect(answer.results[0].configs.map(\.value) == ["-1", "9"])
            }
        }
    }

    @Test func onlyWhatClientsCanConnectToIsAdvertised() {
        for text in ["kafka:29092", "10.0.0.1:9092", "my-broker_1.example.org:65535"] {
            let found = KafkaListener.advertised(text)
            #expect(found.map { "\($0.host):\($0.port)" } == text)
        }
        #expect(KafkaListener.advertised("[fe80::1]:9092").map { [$0.host, "\($0.port)"] } == ["fe80::1", "9092"])
        for text in ["bogus", "", ":9092", "kafka:", "kafka:0", "kafka:65536", "a b:1", "kafka://x:1", "[kafka]:1", "::1:9092", "kafka:1,kafka:2"] {
            #expect(KafkaListener.advertised(text) == nil, "\(text)")
        }
    }

    @Test func eachListenerTellsItsOwnName() async throws {
        try await serving({ $0.listeners.append(KafkaListener(host: "127.0.0.1", port: 0, advertisedHost: "kafka", advertisedPort: 29092)) }
        ) { ports, _ in
            for (port, expected) in zip(ports, [("127.0.0.1", Int32(ports[0])), ("kafka", 29092)]) {
                let metadata: MetadataResponse = try Client(port: port).ask(MetadataRequest(topics: []), 9)
                #expect(metadata.brokers.map(\.host) == [expected.0] && metadata.brokers.map(\.port) == [expected.1])
                let coordinator: FindCoordinatorResponse = try Client(port: port).ask(FindCoordinatorRequest(key: "x", keyType: 1), 3)
                #expect(coordinator.host == expected.0 && coordinator.port == expected.1 && coordinator.errorCode == 0)
            }
        }
    }
}
