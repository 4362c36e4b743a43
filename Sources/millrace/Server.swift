import Logging
import MillBase
import MillColumnar
import MillConnectors
import MillEngine
import MillIO
import MillKafkaServer
import MillLog
import MillMeta
import MillPgServer

/// Everything in one process: the log and its Kafka listener, the engine and its Postgres listener.
final class Server: Sendable {
    struct Options: Sendable {
        var dataDirectory: String
        var pg: ListenAddress
        var kafka: ListenAddress
        var workerCount: Int
    }

    let log: Log
    private let dmlLog: DMLLog
    let engine: Engine
    private let meta: MetaStore
    private let directoryLock: DirectoryLock
    private let kafka: KafkaServer?
    private let pg: PgServer?
    /// `host:port` of each listener that runs.
    let kafkaAddress: String?
    let pgAddress: String?

    /// Opens the data directory and starts every listener that is not off.
    /// - Throws: a damaged or locked directory, an address that is taken.
    static func start(_ options: Options, environment: Environment = .system, logger: Logger) async throws -> Server {
        // Before anything is made: a taken address leaves nothing behind.
        try await ListenerProbe.check(options.pg, listener: "Postgres", option: "--pg")
        try await ListenerProbe.check(options.kafka, listener: "Kafka", option: "--kafka")
        try environment.files.createDirectory(options.dataDirectory)
        let directoryLock = try DirectoryLock(options.dataDirectory)
        let meta = try MetaStore(path: options.dataDirectory + "/meta.db")
        let log = try Log(environment: environment, directory: options.dataDirectory + "/log")
        for tail in log.truncatedTails {
            logger.warning("cut a torn tail off", metadata: ["path": "\(tail.path)", "kept_bytes": "\(tail.keptBytes)", "cut_bytes": "\(tail.cutBytes)"])
        }
        let dmlLog = try DMLLog(environment: environment, directory: options.dataDirectory + "/dml")
        if let tail = dmlLog.truncatedTail {
            logger.warning("cut a torn tail off", metadata: ["path": "\(tail.path)", "kept_bytes": "\(tail.keptBytes)", "cut_bytes": "\(tail.cutBytes)"])
        }
        var kafka: KafkaServer?
        var kafkaAddress: String?
        var addresses: [String] = []
        if !options.kafka.isOff {
            var kafkaOptions = KafkaServerOptions()
            kafkaOptions.listeners = [KafkaListener(host: options.kafka.host, port: options.kafka.port)]
            let server = KafkaServer(log: log, options: kafkaOptions, logger: logger)
            let bound = try await server.start()
            kafka = server
            kafkaAddress = bound.first?.description
            // The names by which statements on this machine know the listener.
            addresses = bound.flatMap { address in
                let loopbacks = ["localhost", "127.0.0.1", "[::1]", "::1"]
                return (loopbacks.contains(address.host) ? loopbacks : [address.host]).map { "\($0):\(address.port)" }
            }
        }
        let assembly = Assembly(environment: environment, embedded: EmbeddedBroker(log: log, addresses: addresses))
        let engine = Engine(
            environment: environment, options: Engine.Options(workerCount: options.workerCount), assembly: assembly, meta: meta, dmlLog: dmlLog)
        try await engine.restore()
        // Tables hold nothing yet: all that was ever committed comes from the log.
        try await engine.replay(from: DMLPosition(1))
        await engine.start()
        var pg: PgServer?
        var pgAddress: String?
        if !options.pg.isOff {
            let server = PgServer(
                PgServerOptions(host: options.pg.host, port: options.pg.port), backend: EngineBackend(engine: engine), logger: logger)
            try await server.start()
            pg = server
            pgAddress = server.port.map { "\(options.pg.host):\($0)" }
        }
        return Server(
            directoryLock: directoryLock, meta: meta, log: log, dmlLog: dmlLog, engine: engine, kafka: kafka, pg: pg, kafkaAddress: kafkaAddress,
            pgAddress: pgAddress)
    }

    private init(
        directoryLock: DirectoryLock, meta: MetaStore, log: Log, dmlLog: DMLLog, engine: Engine, kafka: KafkaServer?, pg: PgServer?, kafkaAddress: String?,
        pgAddress: String?
    ) {
        self.directoryLock = directoryLock
        self.meta = meta
        self.log = log
        self.dmlLog = dmlLog
        self.engine = engine
        self.kafka = kafka
        self.pg = pg
        self.kafkaAddress = kafkaAddress
        self.pgAddress = pgAddress
    }

    /// Clients first, then the engine, then the logs under both.
    func stop() async {
        await pg?.shutdown()
        await engine.stop()
        await kafka?.stop()
        dmlLog.close()
        log.close()
        meta.close()
    }
}
