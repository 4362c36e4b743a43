import Logging
import MillKafkaWire
import MillLog
import NIOCore
import NIOPosix

/// Answers requests: decodes the body, does what it says to the log and the groups, and encodes the answer.
///
/// One file of `Requests/` for each family of requests. Everything that may block for long (making topics, look-ups by
/// time) runs on `pool`; appends and reads of the page cache run on the connection's event loop.
///
/// Threading: any event loop.
final class KafkaBroker: Sendable {
    typealias Reply = @Sendable (KafkaReply) -> Void

    /// Who asks.
    struct Client: Sendable {
        var host: String
        /// What Metadata says about us, by the listener that was reached.
        var advertisedHost: String
        var advertisedPort: Int32
        var eventLoop: any EventLoop
    }

    let log: Log
    let options: KafkaServerOptions
    let logger: Logger
    let groups: GroupCoordinator
    /// For the message sets of old clients.
    let decoders = DecoderPool()
    /// Memory of requests.
    let frames: WireBufferPool
    let pool: NIOThreadPool

    init(log: Log, options: KafkaServerOptions, logger: Logger, pool: NIOThreadPool) {
        self.log = log
        self.options = options
        self.logger = logger
        self.pool = pool
        frames = WireBufferPool(bytesMax: options.keptRequestBytesMax)
        groups = GroupCoordinator(environment: log.environment, gatheringNanos: options.groupGatheringMillis * 1_000_000)
    }

    /// - Throws: `WireError` when the body is not what the header says; the connection is closed then.
    func handle(_ header: RequestHeader, _ reader: WireReader, from client: Client, reply: @escaping Reply) throws(WireError) {
        guard let api = KafkaAPI(rawValue: header.apiKey) else { throw .unsupportedVersion(api: header.apiKey, version: header.apiVersion) }
        guard api.versions.contains(header.apiVersion) else {
            // A client finds out what we speak by this one request, so it alone is answered in a version it did not ask for.
            guard api == .apiVersions else { throw .unsupportedVersion(api: header.apiKey, version: header.apiVersion) }
            return reply(apiVersions(error: .unsupportedVersion, version: 0))
        }
        let version = header.apiVersion
        switch api {
        case .produce: produce(try decode(reader, version), version, reply)
        case .fetch: fetch(try decode(reader, version), version, client, reply)
        case .listOffsets: listOffsets(try decode(reader, version), version, reply)
        case .metadata: metadata(try decode(reader, version), version, client, reply)
        case .offsetCommit: offsetCommit(try decode(reader, version), version, reply)
        case .offsetFetch: offsetFetch(try decode(reader, version), version, reply)
        case .findCoordinator: findCoordinator(try decode(reader, version), version, client, reply)
        case .joinGroup: joinGroup(try decode(reader, version), header, client, reply)
        case .heartbeat: heartbeat(try decode(reader, version), version, reply)
        case .leaveGroup: leaveGroup(try decode(reader, version), version, reply)
        case .syncGroup: syncGroup(try decode(reader, version), version, reply)
        case .describeGroups: describeGroups(try decode(reader, version), version, reply)
        case .listGroups: listGroups(try decode(reader, version), version, reply)
        case .apiVersions:
            let _: ApiVersionsRequest = try decode(reader, version)
            reply(apiVersions(error: .none, version: version))
        case .createTopics: createTopics(try decode(reader, version), version, reply)
        case .deleteTopics: deleteTopics(try decode(reader, version), version, reply)
        case .deleteRecords: deleteRecords(try decode(reader, version), version, reply)
        case .initProducerID: initProducerID(try decode(reader, version), version, reply)
        case .addPartitionsToTxn: addPartitions(try decode(reader, version), version, reply)
        case .addOffsetsToTxn: addGroup(try decode(reader, version), version, reply)
        case .txnOffsetCommit: commitInTransaction(try decode(reader, version), version, reply)
        case .endTxn: endTransaction(try decode(reader, version), version, reply)
        case .offsetForLeaderEpoch: offsetForLeaderEpoch(try decode(reader, version), version, reply)
        case .describeConfigs: describeConfigs(try decode(reader, version), version, reply)
        case .alterConfigs: alterConfigs(try decode(reader, version), version, reply)
        case .incrementalAlterConfigs: alterConfigsByStep(try decode(reader, version), version, reply)
        case .createPartitions: createPartitions(try decode(reader, version), version, reply)
        case .deleteGroups: deleteGroups(try decode(reader, version), version, reply)
        case .describeCluster: describeCluster(try decode(reader, version), version, client, reply)
        case .listPartitionReassignments: listReassignments(try decode(reader, version), version, reply)
        case .describeProducers: describeProducers(try decode(reader, version), version, reply)
        case .describeTransactions: describeTransactions(try decode(reader, version), version, reply)
        case .listTransactions: listTransactions(try decode(reader, version), version, reply)
        case .saslHandshake: saslHandshake(try decode(reader, version), version, reply)
        case .saslAuthenticate: saslAuthenticate(try decode(reader, version), version, reply)
        }
    }

    /// Bytes after the last field are no error: Kafka ignores them, and librdkafka ends some requests with a byte too many.
    private func decode<R: WireRequest>(_ reader: WireReader, _ version: Int16) throws(WireError) -> R {
        var reader = reader
        return try R(from: &reader, version: version)
    }

    func response(_ message: some WireStruct, _ version: Int16) -> KafkaReply {
        var writer = WireWriter()
        message.write(to: &writer, version: version)
        return .response(writer)
    }

    /// Runs `body` where it may block.
    func blocking(_ body: @escaping @Sendable () -> Void) {
        pool.submit { state in
            // After a stop nobody waits for the answer.
            if case .active = state { body() }
        }
    }
}

extension KafkaErrorCode {
    /// What a client is told of a log's error.
    init(_ error: LogError) {
        switch error {
        case .unknownTopic: self = .unknownTopicOrPartition
        case .topicExists: self = .topicAlreadyExists
        case .invalidTopicName: self = .invalidTopic
        case .invalidPartitionCount: self = .invalidPartitions
        case .offsetOutOfRange: self = .offsetOutOfRange
        case .batchTooLarge, .transactionTooLarge: self = .messageTooLarge
        case .outOfOrderSequence: self = .outOfOrderSequenceNumber
        case .staleProducerEpoch: self = .invalidProducerEpoch
        case .unknownProducer: self = .invalidProducerIDMapping
        case .noTransaction: self = .invalidTransactionState
        case .invalidConfig: self = .invalidConfig
        case .storage, .outOfMemory, .noThread, .corrupted, .closed: self = .kafkaStorageError
        case .invalidBatch(let error):
            switch error {
            case .checksumMismatch: self = .corruptMessage
            case .unsupportedMagic: self = .unsupportedForMessageFormat
            case .unknownCompression: self = .unsupportedCompressionType
            case .decompressedTooLarge: self = .messageTooLarge
            case .truncated, .invalidHeader, .invalidRecord, .missingKey, .decompressionFailed, .compressionFailed: self = .invalidRecord
            // Clients send it again.
            case .outOfMemory: self = .kafkaStorageError
            }
        }
    }
}
