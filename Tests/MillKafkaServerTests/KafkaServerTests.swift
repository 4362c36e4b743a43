import Glibc
import Logging
import MillIO
import MillKafkaWire
import MillLog
import NIOCore
import Testing

@testable import MillKafkaServer

/// A socket that sends and receives whole frames, blocking, on a thread of its own choosing.
private final class Client {
    private let descriptor: Int32
    private var correlation: Int32 = 0

    init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        try #require(status == 0)
        var timeout = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Nil at the end of the stream.
    private func receive(_ count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var chunk = [UInt8](repeating: 0, count: count - bytes.count)
            let found = recv(descriptor, &chunk, chunk.count, 0)
            guard found > 0 else { return nil }
            bytes += chunk.prefix(found)
        }
        return bytes
    }

    func receiveFrame() -> [UInt8]? {
        guard let head = receive(4) else { return nil }
        return receive(head.reduce(0) { $0 << 8 | Int($1) })
    }

    @discardableResult
    func post(_ request: some WireRequest, _ version: Int16) -> Int32 {
        correlation += 1
        var writer = WireWriter()
        RequestHeader(apiKey: type(of: request).api.rawValue, apiVersion: version, correlationID: correlation, clientID: "test").write(to: &writer)
        request.write(to: &writer, version: version)
        let body = writer.finish().array
        send(withUnsafeBytes(of: Int32(body.count).bigEndian, Array.init) + body)
        return correlation
    }

    func take<R: WireStruct>(_ api: KafkaAPI, _ version: Int16, _ correlation: Int32, as _: R.Type = R.self) throws -> R {
        var reader = WireReader(WireBytes(try #require(receiveFrame())))
        #expect(try reader.int32() == correlation)
        if api.responseHeaderIsFlexible(version: version) { try reader.skipTaggedFields() }
        let response = try R(from: &reader, version: version)
        try reader.finish()
        return response
    }

    func ask<R: WireStruct>(_ request: some WireRequest, _ version: Int16, as _: R.Type = R.self) throws -> R {
        try take(type(of: request).api, version, post(request, version))
    }
}

private func batch(_ values: [String]) throws -> WireBytes {
    var builder = RecordBatchBuilder()
    for value in values { builder.append(value: Array(value.utf8), timestamp: 1_700_000_000_000) }
    return try builder.finish()
}

private func produce(_ topic: String, _ records: WireBytes, acks: Int16 = -1) -> ProduceRequest {
    ProduceRequest(transactionalID: nil, acks: acks, timeoutMs: 1000, topicData: [.init(name: topic, partitionData: [.init(index: 0, records: records)])])
}

private func fetch(_ topic: String, from offset: Int64, wait: Int32, minBytes: Int32 = 1) -> FetchRequest {
    FetchRequest(
        maxWaitMs: wait, minBytes: minBytes,
        topics: [.init(topic: topic, partitions: [.init(partition: 0, fetchOffset: offset, partitionMaxBytes: 1 << 20)])])
}

@Suite struct KafkaServerTests {
    /// Runs `body` on a thread that may block, against a server on a memory disk.
    private func serving(_ change: (inout KafkaServerOptions) -> Void = { _ in }, _ body: @escaping @Sendable (Int, Log) throws -> Void) async throws {
        let log = try Log(environment: Environment(files: MemoryFileSystem(), clock: SystemClock(), random: SystemRandomSource()), directory: "/log")
        var options = KafkaServerOptions()
        options.listeners = [KafkaListener(host: "127.0.0.1", port: 0)]
        change(&options)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let server = KafkaServer(log: log, options: options, logger: logger)
        let port = try #require(try await server.start().first).port
        let result: Result<Void, any Error> = await withCheckedContinuation { continuation in
            let thread = BlockingThread { continuation.resume(returning: Result { try body(port, log) }) }
            thread.start()
        }
        await server.stop()
        log.close()
        try result.get()
    }

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
            let refused: ProduceResponse = try client.ask(produce("t", WireBytes(old)), 2)
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
            var assembler = FrameAssembler(bytesMax: 1000)
            var found: [[UInt8]] = []
            for start in stride(from: 0, to: stream.count, by: size) {
                try assembler.feed(.init(bytes: stream[start..<min(start + size, stream.count)])) { found.append($0.array) }
            }
            #expect(found == frames)
        }
        var assembler = FrameAssembler(bytesMax: 1000)
        #expect(throws: FrameAssembler.Fault.impossibleLength(-1)) { try assembler.feed(.init(bytes: [255, 255, 255, 255])) { _ in } }
    }

    @Test func aFrameReservesMemoryAsItsBytesArrive() throws {
        let length = 100 << 20
        var assembler = FrameAssembler(bytesMax: length)
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

/// A thread that runs one closure.
private final class BlockingThread: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    func start() {
        var thread = pthread_t()
        pthread_create(&thread, nil, { argument in
            guard let argument else { return nil }
            Unmanaged<BlockingThread>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }
}
