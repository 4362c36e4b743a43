import Glibc
import Logging
import MillIO
import MillKafkaWire
import MillLog
import NIOCore
import Testing

@testable import MillKafkaServer

/// A socket that sends and receives whole frames, blocking, on a thread of its own choosing.
final class Client {
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
        RequestHeader(apiKey: type(of: request).api.rawValue, apiVersion: version, correlationID: correlation, clientID: "test").write(
            to: &writer)
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

func batch(_ values: [String]) throws -> WireBytes {
    var builder = RecordBatchBuilder()
    for value in values { builder.append(value: Array(value.utf8), timestamp: 1_700_000_000_000) }
    return try builder.finish()
}

func produce(_ topic: String, _ records: WireBytes, acks: Int16 = -1) -> ProduceRequest {
    ProduceRequest(
        transactionalID: nil, acks: acks, timeoutMs: 1000,
        topicData: [.init(name: topic, partitionData: [.init(index: 0, records: records)])])
}

func fetch(_ topic: String, from offset: Int64, wait: Int32, minBytes: Int32 = 1) -> FetchRequest {
    FetchRequest(
        maxWaitMs: wait, minBytes: minBytes,
        topics: [.init(topic: topic, partitions: [.init(partition: 0, fetchOffset: offset, partitionMaxBytes: 1 << 20)])])
}

/// Runs `body` on a thread that may block, against a server on a memory disk.
func serving(_ change: (inout KafkaServerOptions) -> Void = { _ in }, _ body: @escaping @Sendable (Int, Log) throws -> Void) async throws {
    try await serving(change) { (ports: [Int], log: Log) in try body(#require(ports.first), log) }
}

/// The same for several listeners; `body` gets their ports.
func serving(_ change: (inout KafkaServerOptions) -> Void = { _ in }, _ body: @escaping @Sendable ([Int], Log) throws -> Void) async throws
{
    let log = try Log(
        environment: Environment(files: MemoryFileSystem(), clock: SystemClock(), random: SystemRandomSource()), directory: "/log")
    var options = KafkaServerOptions()
    options.listeners = [KafkaListener(host: "127.0.0.1", port: 0)]
    change(&options)
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    let server = KafkaServer(log: log, options: options, logger: logger)
    let ports = try await server.start().map(\.port)
    let result: Result<Void, any Error> = await withCheckedContinuation { continuation in
        let thread = BlockingThread { continuation.resume(returning: Result { try body(ports, log) }) }
        thread.start()
    }
    await server.stop()
    log.close()
    try result.get()
}

/// A thread that runs one closure.
final class BlockingThread: Sendable {
    private let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    func start() {
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<BlockingThread>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        pthread_detach(thread)
    }
}
