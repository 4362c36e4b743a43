import Logging
import MillBase
import MillColumnar
import MillConnectors
import MillEngine
import MillHTTPClient
import MillHTTPServer
import MillIO
import MillKafkaServer
import MillLog
import MillMeta
import MillPgServer
import MillStore

/// Everything in one process: the log and its Kafka listener, the engine and its Postgres listener.
final class Server: Sendable {
    struct Options: Sendable {
        var dataDirectory: String
        var pg: ListenAddress
        /// Each with what it advertises; an address that is off listens nowhere.
        var kafka: [KafkaListenAddress]
        var http = ListenAddress(argument: "off")!
        var catalog = CatalogService.Options()
        var workerCount: Int
        /// Directories whose files statements may name; nil for all while the Postgres listener is on this machine only, else none.
        var fileRoots: [String]?
        /// From one checkpoint of state to the next.
        var checkpointInterval = Duration.seconds(1)
        /// Of one sink, on disk.
        var outboxBytesMax = 10 << 30
    }

    let log: Log
    private let dmlLog: DMLLog
    let engine: Engine
    private let meta: MetaStore
    private let directoryLock: DirectoryLock
    private let kafka: KafkaServer?
    private let pg: PgServer?
    private let http: HTTPServer?
    private let catalog: CatalogService?
    private let health: ServerHealth
    /// `host:port` of each listener that runs.
    let kafkaAddresses: [String]
    let pgAddress: String?
    let httpAddress: String?
    let catalogAddress: String?
    /// Lets time pass in the log.
    private let ticks: Task<Void, Never>
    /// Tells the log what does not get on.
    private let troubles: Task<Void, Never>
    /// Takes up the state of an earlier process.
    private let recovery: Task<Void, any Error>

    /// Opens the data directory and starts every listener that is not off: the log's as soon as that is open, Postgres' as soon as the
    /// definitions are known. State comes back meanwhile (`recovered`); what needs it waits.
    /// - Throws: a damaged or locked directory, an address that is taken.
    static func start(_ options: Options, environment: Environment = .system, logger: Logger) async throws -> Server {
        // A directory that another server has says more than the ports that it has too.
        let held = environment.files.exists(options.dataDirectory) ? try DirectoryLock(options.dataDirectory) : nil
        // Before anything is made: a taken address leaves nothing behind.
        try await ListenerProbe.check(options.pg, listener: "Postgres", option: "--pg")
        for kafka in options.kafka { try await ListenerProbe.check(kafka.address, listener: "Kafka", option: "--kafka") }
        try await ListenerProbe.check(options.http, listener: "HTTP", option: "--http")
        try await ListenerProbe.check(options.catalog.address, listener: "catalog", option: "--catalog")
        try environment.files.createDurableDirectory(options.dataDirectory)
        let directoryLock = try held ?? DirectoryLock(options.dataDirectory)
        let health = ServerHealth(environment.clock)
        let http = try await startHTTP(options.http, health, logger)
        let meta = try MetaStore(path: options.dataDirectory + "/meta.db")
        let catalog = try await CatalogService.start(options.catalog, dataDirectory: options.dataDirectory, environment: environment, logger: logger)
        if let catalog { health.set(catalog: catalog) }
        let log = try Log(environment: environment, directory: options.dataDirectory + "/log")
        health.set(log: log)
        let dmlLog = try DMLLog(environment: environment, directory: options.dataDirectory + "/dml")
        tell(log, dmlLog, logger)
        var kafka: KafkaServer?
        var bound: [KafkaServer.BoundAddress] = []
        var addresses: [String] = []
        let listening = options.kafka.filter { !$0.address.isOff }
        if !listening.isEmpty {
            var kafkaOptions = KafkaServerOptions()
            kafkaOptions.listeners = listening.map(\.listener)
            let server = KafkaServer(log: log, options: kafkaOptions, logger: logger)
            bound = try await server.start()
            kafka = server
            health.set(kafka: server)
            // The names by which statements know the listeners.
            addresses = zip(bound, kafkaOptions.listeners).flatMap { address, listener in
                let loopbacks = ["localhost", "127.0.0.1", "[::1]", "::1"]
                let names = (loopbacks.contains(address.host) ? loopbacks : [address.host]).map { "\($0):\(address.port)" }
                return names + (listener.advertisedHost.map { ["\($0):\(listener.advertisedPort ?? address.port)"] } ?? [])
            }
        }
        let keeper = try StateKeeper(
            environment: environment, directory: options.dataDirectory + "/state", options: StateKeeper.Options(interval: options.checkpointInterval))
        let broker = EmbeddedBroker(log: log, addresses: addresses)
        let assembly = Assembly(
            environment: environment, embedded: broker, access: fileAccess(options, environment), warehouses: catalog?.warehouses(environment))
        let engine = try Engine(
            environment: environment,
            options: Engine.Options(workerCount: options.workerCount, outboxBytesMax: options.outboxBytesMax), assembly: assembly, meta: meta,
            keeper: keeper,
            dmlLog: dmlLog, replayDirectory: options.dataDirectory + "/replay")
        try await engine.restoreDefinitions()
        health.set(engine: engine)
        var pg: PgServer?
        var pgAddress: String?
        if !options.pg.isOff {
            let server = PgServer(
                PgServerOptions(host: options.pg.host, port: options.pg.port), backend: EngineBackend(engine: engine), logger: logger)
            try await server.start()
            pg = server
            health.set(pg: server)
            pgAddress = server.port.map { "\(options.pg.host):\($0)" }
        }
        let clock = environment.clock
        let recovery = Task {
            try await recover(engine, clock, logger)
            health.serves()
        }
        return Server(
            directoryLock: directoryLock, meta: meta, log: log, dmlLog: dmlLog, engine: engine, kafka: kafka, pg: pg, http: http,
            catalog: catalog, health: health, kafkaAddresses: bound.map(\.description), pgAddress: pgAddress,
            httpAddress: http?.port.map { "\(options.http.host):\($0)" }, catalogAddress: catalog?.address, ticks: ticks(log, clock, logger),
            troubles: troubles(engine, clock, logger), recovery: recovery)
    }

    /// Who can reach the Postgres listener can name files.
    private static func fileAccess(_ options: Options, _ environment: Environment) -> FileAccess {
        var access = FileAccess(environment: environment, transport: CurlTransport())
        let isLocal = options.pg.isOff || options.pg.isLoopback
        access.local = options.fileRoots.map { .within($0.map(access.absolute)) } ?? (isLocal ? .anywhere : .nowhere)
        return access
    }

    private static func startHTTP(_ address: ListenAddress, _ health: ServerHealth, _ logger: Logger) async throws(SQLError) -> HTTPServer? {
        guard !address.isOff else { return nil }
        let server = HTTPServer(HTTPServerOptions(host: address.host, port: address.port), reporter: health, logger: logger)
        try await server.start()
        return server
    }

    /// What was found wrong with the logs.
    private static func tell(_ log: Log, _ dmlLog: DMLLog, _ logger: Logger) {
        for tail in log.truncatedTails + [dmlLog.truncatedTail].compactMap({ $0 }) {
            logger.warning("cut a torn tail off", metadata: ["path": "\(tail.path)", "kept_bytes": "\(tail.keptBytes)", "cut_bytes": "\(tail.cutBytes)"])
        }
        for damage in dmlLog.damage { logger.error("damaged transactions", metadata: ["error": "\(damage.sqlError.message)"]) }
        for topic in log.allTopics {
            for partition in topic.partitions {
                guard let failure = partition.failure else { continue }
                logger.error(
                    "a partition is stopped",
                    metadata: ["topic": "\(topic.name)", "partition": "\(partition.index)", "error": "\(failure.sqlError.message)"])
            }
        }
    }

    private static func recover(_ engine: Engine, _ clock: any Clock, _ logger: Logger) async throws(SQLError) {
        let start = clock.monotonicNanos
        let telling = Task {
            while (try? await clock.sleep(for: .seconds(1))) != nil {  // it fails when there is nothing more to tell
                let status = await engine.recoveryStatus
                logger.notice("recovering", metadata: ["phase": "\(status.text)"])
            }
        }
        defer { telling.cancel() }
        try await engine.restoreState()
        await engine.start()
        let status = await engine.recoveryStatus
        let state = status.state.total
        logger.notice(
            "recovered",
            metadata: [
                "milliseconds": "\((clock.monotonicNanos - start) / 1_000_000)", "tables": "\(state.tablesRead)", "rows": "\(state.rowsRead)",
                "bytes": "\(state.bytesRead)", "moved_jobs": "\(status.movedJobs)",
            ])
    }

    /// Returns when statements need not wait for state any more.
    /// - Throws: why they would wait for ever: the server is to be stopped.
    func recovered() async throws { try await recovery.value }

    private init(
        directoryLock: DirectoryLock, meta: MetaStore, log: Log, dmlLog: DMLLog, engine: Engine, kafka: KafkaServer?, pg: PgServer?,
        http: HTTPServer?, catalog: CatalogService?, health: ServerHealth, kafkaAddresses: [String], pgAddress: String?, httpAddress: String?,
        catalogAddress: String?, ticks: Task<Void, Never>, troubles: Task<Void, Never>, recovery: Task<Void, any Error>
    ) {
        self.directoryLock = directoryLock
        self.meta = meta
        self.log = log
        self.dmlLog = dmlLog
        self.engine = engine
        self.kafka = kafka
        self.pg = pg
        self.http = http
        self.catalog = catalog
        self.health = health
        self.kafkaAddresses = kafkaAddresses
        self.pgAddress = pgAddress
        self.httpAddress = httpAddress
        self.catalogAddress = catalogAddress
        self.ticks = ticks
        self.troubles = troubles
        self.recovery = recovery
    }

    private static func ticks(_ log: Log, _ clock: any Clock, _ logger: Logger) -> Task<Void, Never> {
        Task {
            while (try? await clock.sleep(for: .seconds(1))) != nil {  // it fails when the server stops
                log.tick()
                for failure in log.takeMaintenanceFailures() {
                    logger.error(
                        "could not delete or compact old records",
                        metadata: ["topic": "\(failure.topic)", "partition": "\(failure.partition)", "error": "\(failure.error.sqlError.message)"])
                }
            }
        }
    }

    private static func troubles(_ engine: Engine, _ clock: any Clock, _ logger: Logger) -> Task<Void, Never> {
        Task {
            var troubles = TroubleLog(logger)
            while (try? await clock.sleep(for: .seconds(1))) != nil {  // it fails when the server stops
                if let health = try? await engine.health() { troubles.note(health) }  // it fails when the engine stops
            }
        }
    }

    /// Clients first, then the engine, then the logs under both.
    func stop() async {
        health.stops()
        troubles.cancel()
        await pg?.shutdown()
        await engine.stop()
        await troubles.value  // It may have asked the workers, who answer between epochs: a view in creation can make one last for minutes.
        _ = await recovery.result  // What went wrong was told by `recovered`.
        await kafka?.stop()
        await catalog?.stop()
        await http?.stop()
        ticks.cancel()
        dmlLog.close()
        log.close()
        meta.close()
    }
}
