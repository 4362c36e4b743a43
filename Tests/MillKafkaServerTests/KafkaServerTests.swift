import Glibc
import Logging
import MillIO
import MillKafkaWire
import MillLog
import NIOCore
import Testing

@testable import MillKafkaServer

@Suite struct KafkaServerTests {
    @Test func randomBytesCloseTheConnectionAndNothingElse() async throws {
        try await serving { port, _ in
            var random = SystemRandomNumberGenerator()
            let http = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            for round in 0..<60 {
                let client = try Client(port: port)
                if round == 0 {
                    client.send(http)
                } else {
                    // A plausible length, so that the request itself is read.
                    let body = (0..<Int.random(in: 8...300, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
                    let api = round % 3 == 0 ? body : [0, UInt8(round % 40), 0, UInt8(round % 9)] + body.dropFirst(4)
                    client.send(withUnsafeBytes(of: Int32(api.count).bigEndian, Array.init) + api + http)
                }
                while client.receiveFrame() != nil {}
            }
            let answer: ApiVersionsResponse = try Client(port: port).ask(ApiVersionsRequest(clientSoftwareName: "a", clientSoftwareVersion: "1"), 3)
            #expect(answer.errorCode == 0)
        }
    }

    @Test func anUnknownVersionOfApiVersionsIsAnsweredInVersionZero() async throws {
        try await serving { port, _ in
            let client = try Client(port: port)
            let body: [UInt8] = [0, 18, 0, 99, 0, 0, 0, 7, 0xFF, 0xFF]
            client.send(withUnsafeBytes(of: Int32(body.count).bigEndian, Array.init) + body)
            let answer: ApiVersionsResponse = try client.take(.apiVersions, 0, 7)
            #expect(answer.errorCode == 35)
            #expect(answer.apiKeys.first { $0.apiKey == 0 }.map { [$0.minVersion, $0.maxVersion] } == [0, 9])
        }
    }

    @Test func responsesKeepTheOrderOfTheirRequests() async throws {
        try await serving { port, log in
            try log.createTopic(name: "t")
            let client = try Client(port: port)
            let waiting = client.post(fetch("t", from: 0, wait: 10_000), 12)
            let versions = client.post(ApiVersionsRequest(), 0)
            let writer = try Client(port: port)
            let produced: ProduceResponse = try writer.ask(produce("t", batch(["a", "b"])), 9)
            #expect(produced.responses[0].partitionResponses[0].baseOffset == 0)
            let fetched: FetchResponse = try client.take(.fetch, 12, waiting)
            #expect(fetched.responses[0].partitions[0].highWatermark == 2)
            let _: ApiVersionsResponse = try client.take(.apiVersions, 0, versions)
        }
    }

    @Test func aFetchWaitsForItsLeastBytesOrItsTime() async throws {
        try await serving { port, log in
            let partition = try #require(log.createTopic(name: "t").partition(0))
            let client = try Client(port: port)
            let empty: FetchResponse = try client.ask(fetch("t", from: 0, wait: 50), 4)
            #expect(empty.responses[0].partitions[0].records?.count == 0 && empty.responses[0].partitions[0].errorCode == 0)
            let waiting = client.post(fetch("t", from: 0, wait: 15_000, minBytes: 5000), 11)
            for _ in 0..<3 { try partition.appendAndWait(batch([String(repeating: "x", count: 2000)])) }
            let full: FetchResponse = try client.take(.fetch, 11, waiting)
            #expect((full.responses[0].partitions[0].records?.count ?? 0) > 5000)
            let wrong: FetchResponse = try client.ask(fetch("t", from: 99, wait: 15_000), 11)
            #expect(wrong.responses[0].partitions[0].errorCode == KafkaErrorCode.offsetOutOfRange.rawValue)
            let missing: FetchResponse = try client.ask(fetch("none", from: 0, wait: 15_000), 11)
            #expect(missing.responses[0].partitions[0].errorCode == KafkaErrorCode.unknownTopicOrPartition.rawValue)
        }
    }

    @Test func everyProduceVersionIsAnswered() async throws {
        try await serving { port, _ in
            let client = try Client(port: port)
            for version in ProduceRequest.versions {
                let answer: ProduceResponse = try client.ask(produce("t", batch(["v\(version)"])), version)
                #expect(answer.responses[0].partitionResponses[0].errorCode == 0)
                #expect(answer.responses[0].partitionResponses[0].baseOffset == Int64(version))
            }
            var old = try batch(["x"]).array
            old[16] = 1
            let refused: ProduceResponse = try client.ask(produce("t", WireBytes(old)), 3)
            #expect(refused.responses[0].partitionResponses[0].errorCode == KafkaErrorCode.unsupportedForMessageFormat.rawValue)
            old[16] = 2
            old[30] ^= 1
            let corrupt: ProduceResponse = try client.ask(produce("t", WireBytes(old)), 9)
            #expect(corrupt.responses[0].partitionResponses[0].errorCode == KafkaErrorCode.corruptMessage.rawValue)
            client.post(produce("t", try batch(["silent"]), acks: 0), 9)
            let next: ProduceResponse = try client.ask(produce("t", batch(["last"])), 9)
            #expect(next.responses[0].partitionResponses[0].baseOffset == 11)
        }
    }

    @Test func metadataMakesTopicsOnlyWhenAllowed() async throws {
        try await serving({ $0.defaultPartitions = 3 }) { port, log in
            let client = try Client(port: port)
            let shy: MetadataResponse = try client.ask(MetadataRequest(topics: [.init(name: "t")], allowAutoTopicCreation: false), 9)
            #expect(shy.topics[0].errorCode == KafkaErrorCode.unknownTopicOrPartition.rawValue && log.topic(named: "t") == nil)
            let bad: MetadataResponse = try client.ask(MetadataRequest(topics: [.init(name: "a b")], allowAutoTopicCreation: true), 9)
            #expect(bad.topics[0].errorCode == KafkaErrorCode.invalidTopic.rawValue)
            for version in MetadataRequest.versions {
                let answer: MetadataResponse = try client.ask(MetadataRequest(topics: [.init(name: "t\(version)")], allowAutoTopicCreation: true), version)
                #expect(answer.topics[0].errorCode == 0 && answer.topics[0].partitions.count == 3 && answer.brokers.first?.port == Int32(port))
            }
            let all: MetadataResponse = try client.ask(MetadataRequest(topics: nil), 12)
            #expect(all.topics.count == 13)
            let byID: MetadataResponse = try client.ask(MetadataRequest(topics: [.init(topicID: all.topics[0].topicID, name: nil)]), 12)
            #expect(byID.topics.map(\.name) == [all.topics[0].name])
        }
    }

    @Test func committedOffsetsComeBackInEveryVersion() async throws {
        try await serving { port, log in
            try log.createTopic(name: "t")
            let client = try Client(port: port)
            for version in OffsetCommitRequest.versions {
                let commit = OffsetCommitRequest(
                    groupID: "g", generationIDOrMemberEpoch: -1, memberID: "", groupInstanceID: nil,
                    topics: [
                        .init(name: "t", partitions: [.init(partitionIndex: 0, committedOffset: Int64(version), committedMetadata: "m")]),
                        .init(name: "none", partitions: [.init(partitionIndex: 0, committedOffset: 1, committedMetadata: nil)]),
                    ])
                let answer: OffsetCommitResponse = try client.ask(commit, version)
                #expect(answer.topics.map { $0.partitions[0].errorCode } == [0, KafkaErrorCode.unknownTopicOrPartition.rawValue])
            }
            for version in OffsetFetchRequest.versions {
                let request = OffsetFetchRequest(
                    groupID: "g", topics: [.init(name: "t", partitionIndexes: [0, 7])],
                    groups: [.init(groupID: "g", topics: version % 2 == 0 ? nil : [.init(name: "t", partitionIndexes: [0])])])
                let answer: OffsetFetchResponse = try client.ask(request, version)
                let offset = version >= 8 ? answer.groups[0].topics[0].partitions[0].committedOffset : answer.topics[0].partitions[0].committedOffset
                #expect(offset == 8, "version \(version)")
            }
        }
    }

    @Test func framesAreCutWhereverTheyAreSplit() throws {
        let frames: [[UInt8]] = [[UInt8](1...8), [UInt8](repeating: 7, count: 300), [UInt8](10...30)]
        let stream = frames.flatMap { withUnsafeBytes(of: Int32($0.count).bigEndian, Array.init) + $0 }
        for size in 1...stream.count {
            var assembler = FrameAssembler(bytesMax: 1000, pool: WireBufferPool(bytesMax: 0))
            var found: [[UInt8]] = []
            for start in stride(from: 0, to: stream.count, by: size) {
                try assembler.feed(.init(bytes: stream[start..<min(start + size, stream.count)])) { found.append($0.array) }
            }
            #expect(found == frames)
        }
        var assembler = FrameAssembler(bytesMax: 1000, pool: WireBufferPool(bytesMax: 0))
        #expect(throws: FrameAssembler.Fault.impossibleLength(-1)) { try assembler.feed(.init(bytes: [255, 255, 255, 255])) { _ in } }
    }

    @Test func aFrameReservesMemoryAsItsBytesArrive() throws {
        let length = 100 << 20
        var assembler = FrameAssembler(bytesMax: length, pool: WireBufferPool(bytesMax: 0))
        let header = withUnsafeBytes(of: Int32(length).bigEndian, Array.init)
        try assembler.feed(.init(bytes: header)) { _ in Issue.record("nothing has arrived") }
        #expect(assembler.reservedBytes <= 64 << 10)
        let part = [UInt8](repeating: 5, count: 1 << 20)
        var arrived = 0
        var found = 0
        for _ in 0..<100 {
            try assembler.feed(.init(bytes: part)) { frame in
                #expect(frame.count == length)
                #expect(frame.withUnsafeBytes { $0.allSatisfy { $0 == 5 } })
                found += 1
            }
            arrived += part.count
            #expect(assembler.reservedBytes <= 2 * arrived)
        }
        #expect(found == 1)
        #expect(assembler.reservedBytes == 0)
    }
}
