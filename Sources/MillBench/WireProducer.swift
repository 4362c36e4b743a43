import MillBase
import MillIO
import MillKafkaWire

/// A producer to partition 0 of one topic that takes little of the machine: one thread, one blocking connection, and a request for each
/// batch it is given, without waiting for the answers to those before. librdkafka copies each record into memory of its own, hands it to
/// another thread, and frees it there. For a broker that makes a topic before it answers that there is one, as Millrace does.
final class WireProducer: BidProducer {
    private static let produceVersion: Int16 = 9
    private static let metadataVersion: Int16 = 9
    /// Not acknowledged yet: as many as librdkafka holds by default.
    private static let recordsInFlightMax = 100_000
    /// A batch of them stays below the megabyte that a broker takes.
    let recordsMax = 3000
    let tickMicros: UInt32 = 1000

    private let socket: BlockingSocket
    private let topic: String
    private let clock: any Clock
    private var lastCorrelation: Int32 = 0
    private var lastAnswered: Int32 = 0
    /// Records of the requests without an answer, the oldest first.
    private var inFlight: [Int] = []
    private var recordsInFlight = 0
    /// Of the last request's records, with a little to spare.
    private var byteCount = 0

    /// - Parameter address: of the broker: `host:port`, the host by its IPv4 number.
    init(_ address: String, topic: String, clock: any Clock) throws {
        socket = try BlockingSocket(address)
        self.topic = topic
        self.clock = clock
        // Makes the topic, if it is not there.
        try post(MetadataRequest(topics: [.init(name: topic)]), version: Self.metadataVersion)
        let answer = try take(KafkaAPI.metadata, version: Self.metadataVersion, as: MetadataResponse.self)
        let error = answer.topics.first?.errorCode ?? -1
        guard error == 0 else { throw BenchFailure("the broker has no topic \(topic): error \(error)") }
    }

    func produce(_ count: Int, record: (Int) -> UnsafeMutableRawBufferPointer) throws {
        while !inFlight.isEmpty, recordsInFlight + count > Self.recordsInFlightMax || socket.hasArrived { try takeAnswer() }
        var builder = RecordBatchBuilder()
        builder.reserve(byteCount)
        let timestamp = clock.nowMicros / 1000
        for index in 0..<count { builder.append(key: nil, value: UnsafeRawBufferPointer(record(index)), timestamp: timestamp) }
        byteCount = builder.byteCount + builder.byteCount / 8
        let partition = ProduceRequest.TopicProduceData.PartitionProduceData(index: 0, records: try builder.finish())
        let request = ProduceRequest(acks: -1, timeoutMs: 30_000, topicData: [.init(name: topic, partitionData: [partition])])
        try post(request, version: Self.produceVersion)
        inFlight.append(count)
        recordsInFlight += count
    }

    func flush() throws { while !inFlight.isEmpty { try takeAnswer() } }

    private func takeAnswer() throws {
        let answer = try take(KafkaAPI.produce, version: Self.produceVersion, as: ProduceResponse.self)
        recordsInFlight -= inFlight.removeFirst()
        let error = answer.responses.first?.partitionResponses.first?.errorCode ?? -1
        guard error == 0 else { throw BenchFailure("the broker refused records: error \(error)") }
    }

    private func post(_ request: some WireRequest, version: Int16) throws {
        lastCorrelation &+= 1
        var writer = WireWriter()
        let api = type(of: request).api.rawValue
        RequestHeader(apiKey: api, apiVersion: version, correlationID: lastCorrelation, clientID: "millrace-bench").write(to: &writer)
        request.write(to: &writer, version: version)
        try withUnsafeBytes(of: Int32(writer.count).bigEndian) { try socket.send($0, more: true) }
        var left = writer.count
        var failure: (any Error)?
        writer.forEachChunk { chunk in
            guard failure == nil else { return }
            left -= chunk.count
            do { try socket.send(chunk, more: left > 0) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    private func take<Response: WireStruct>(_ api: KafkaAPI, version: Int16, as _: Response.Type) throws -> Response {
        let length = try socket.receive(4).reduce(0) { $0 << 8 | Int($1) }
        var reader = WireReader(WireBytes(try socket.receive(length)))
        lastAnswered &+= 1
        let correlation = try reader.int32()
        guard correlation == lastAnswered else { throw BenchFailure("the broker answers request \(correlation) before \(lastAnswered)") }
        if api.responseHeaderIsFlexible(version: version) { try reader.skipTaggedFields() }
        return try Response(from: &reader, version: version)
    }
}
