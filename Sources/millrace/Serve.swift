import ArgumentParser
import Logging
import ServiceLifecycle
import UnixSignals

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Runs the server until SIGTERM or Ctrl-C.")

    @Option(help: "Where topics are kept; made when missing.") var dataDir = "millrace-data"
    @Option(help: "Postgres wire: HOST:PORT or off.") var pg = ListenAddress(argument: "localhost:4566")!
    @Option(
        help: ArgumentHelp(
            "Kafka wire: HOST:PORT[,advertised=HOST:PORT], or off; may be repeated.",
            discussion: "Clients that come to an address are told to connect to what it advertises, so that each can reach it: --kafka localhost:9092 "
                + "--kafka 0.0.0.0:29092,advertised=kafka:29092 serves this machine and its containers."))
    var kafka = [KafkaListenAddress(argument: "localhost:9092")!]
    @Option(help: "Health and metrics over HTTP: HOST:PORT or off.") var http = ListenAddress(argument: "localhost:8081")!
    @Option(help: "Threads that run views.") var workers = 1
    @Option(help: "Milliseconds from one checkpoint of state to the next.") var checkpointInterval = 1000
    @Option(help: "trace, debug, info, notice, warning or error.", transform: Self.level) var logLevel = Logger.Level.notice

    func validate() throws {
        guard (1...256).contains(workers) else { throw ValidationError("--workers takes 1 to 256") }
        guard (1...3_600_000).contains(checkpointInterval) else { throw ValidationError("--checkpoint-interval takes 1 to 3600000") }
        guard kafka.count == 1 || !kafka.contains(where: \.address.isOff) else { throw ValidationError("--kafka off does not go with another --kafka") }
        guard !pg.isOff || !kafka.allSatisfy(\.address.isOff) else { throw ValidationError("--pg off and --kafka off leave nothing to serve") }
    }

    func run() async throws {
        let logger = Self.logger(logLevel)
        let server: Server
        do {
            server = try await Server.start(
                Server.Options(
                    dataDirectory: dataDir, pg: pg, kafka: kafka, http: http, workerCount: workers, checkpointInterval: .milliseconds(checkpointInterval)),
                logger: logger)
        } catch {
            StandardError.write("millrace: could not start: \(error)\n")
            throw ExitCode.failure
        }
        if let address = server.pgAddress { StandardError.write("millrace: pg on \(address)\n") }
        for address in server.kafkaAddresses { StandardError.write("millrace: kafka on \(address)\n") }
        if let address = server.httpAddress { StandardError.write("millrace: http on \(address)\n") }
        StandardError.write("millrace: ready\n")
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: ServerService(server: server))], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run()
    }

    private static func level(_ name: String) throws -> Logger.Level {
        guard let level = Logger.Level(rawValue: name) else { throw ValidationError("there is no log level \(name)") }
        return level
    }

    static func logger(_ level: Logger.Level) -> Logger {
        LoggingSystem.bootstrap { StreamLogHandler.standardError(label: $0) }
        var logger = Logger(label: "millrace")
        logger.logLevel = level
        return logger
    }
}

private struct ServerService: Service {
    let server: Server

    func run() async throws {
        try await gracefulShutdown()
        await server.stop()
    }
}
