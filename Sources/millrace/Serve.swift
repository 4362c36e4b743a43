import ArgumentParser
import Logging
import ServiceLifecycle
import UnixSignals

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Runs the server until SIGTERM or Ctrl-C.")

    @Option(help: "Where everything is kept: topics, definitions, state and tables. Made when missing.") var dataDir = "millrace-data"
    @Option(help: "Postgres wire: HOST:PORT or off.") var pg = ListenAddress(argument: "localhost:4566")!
    @Option(
        help: ArgumentHelp(
            "Kafka wire: HOST:PORT[,advertised=HOST:PORT], or off; may be repeated (default: \(KafkaListenAddress.standard.text)).",
            discussion: "Clients that come to an address are told to connect to what it advertises, so that each can reach it: --kafka localhost:9092 "
                + "--kafka 0.0.0.0:29092,advertised=kafka:29092 serves this machine and its containers."),
        transform: { try KafkaListenAddress($0) })
    var kafka = [KafkaListenAddress.standard]
    @Option(help: "Health and metrics over HTTP: HOST:PORT or off.") var http = ListenAddress(argument: "localhost:8081")!
    @Option(help: "Iceberg REST catalog at /api/catalog: HOST:PORT or off.") var catalog = ListenAddress(argument: "localhost:8181")!
    @Option(help: "The catalog's warehouse for requests that name none; made at the first start.") var catalogWarehouse = "dev"
    @Option(
        help: ArgumentHelp(
            "What becomes of a warehouse that is not there: make or refuse.",
            discussion: "make: it comes into being, on the local disk, when a client with the role service_admin first asks for its configuration."))
    var catalogUnknownWarehouse = UnknownWarehouse.make
    @Option(
        help: ArgumentHelp(
            "Directories whose files statements may name: DIR[,DIR].",
            discussion: "Without it they may name any file while --pg is on localhost, and none once it is not."))
    var fileRoots: String?
    @Option(help: "Threads that run views.") var workers = 1
    @Option(help: "Milliseconds from one checkpoint of state to the next.") var checkpointInterval = 1000
    @Option(help: "MiB that one sink may keep on disk for a target that does not take it.") var outboxMax = 10 << 10
    @Option(help: "trace, debug, info, notice, warning or error.", transform: Self.level) var logLevel = Logger.Level.notice

    func validate() throws {
        guard (1...256).contains(workers) else { throw ValidationError("--workers takes 1 to 256") }
        guard (1...3_600_000).contains(checkpointInterval) else { throw ValidationError("--checkpoint-interval takes 1 to 3600000") }
        guard (1...(1 << 30)).contains(outboxMax) else { throw ValidationError("--outbox-max takes 1 to \(1 << 30)") }
        guard kafka.count == 1 || !kafka.contains(where: \.address.isOff) else {
            throw ValidationError("--kafka off does not go with another --kafka")
        }
        guard !pg.isOff || !kafka.allSatisfy(\.address.isOff) else {
            throw ValidationError("--pg off and --kafka off leave nothing to serve")
        }
    }

    func run() async throws {
        let logger = Self.logger(logLevel)
        let service = ServerService(
            options: Server.Options(
                dataDirectory: dataDir, pg: pg, kafka: kafka, http: http,
                catalog: CatalogService.Options(
                    address: catalog, warehouse: catalogWarehouse, makesWarehouses: catalogUnknownWarehouse == .make),
                workerCount: workers, fileRoots: fileRoots?.split(separator: ",").map(String.init),
                checkpointInterval: .milliseconds(checkpointInterval), outboxBytesMax: outboxMax << 20),
            logger: logger)
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: service)], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        do { try await group.run() } catch let failure as ServeFailure {
            StandardError.write("millrace: \(failure.text)\n")
            throw ExitCode.failure
        }
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

/// What becomes of a warehouse that a client asks for and that is not there.
enum UnknownWarehouse: String, ExpressibleByArgument, CaseIterable {
    case make
    case refuse
}

/// Why the server does not run, or not any more.
private struct ServeFailure: Error {
    var text: String
}

/// The server from its start on: a signal that comes while it starts ends it once it has.
private struct ServerService: Service {
    let options: Server.Options
    let logger: Logger

    func run() async throws {
        let server: Server
        do { server = try await Server.start(options, logger: logger) } catch { throw ServeFailure(text: "could not start: \(error)") }
        if let address = server.pgAddress { StandardError.write("millrace: pg on \(address)\n") }
        for address in server.kafkaAddresses { StandardError.write("millrace: kafka on \(address)\n") }
        if let address = server.httpAddress { StandardError.write("millrace: http on \(address)\n") }
        if let address = server.catalogAddress { StandardError.write("millrace: catalog on \(address)\n") }
        StandardError.write("millrace: ready\n")
        if let failure = await untilEnded(server) { throw ServeFailure(text: "could not take up the state: \(failure)") }
    }

    /// Until a signal comes, or it turns out that the state cannot be taken up; then stops.
    private func untilEnded(_ server: Server) async -> (any Error)? {
        await withTaskGroup(of: (any Error)?.self) { group in
            group.addTask {
                try? await gracefulShutdown()  // Cancelled, it is to end as well.
                return nil
            }
            group.addTask {
                do { try await server.recovered() } catch { return error }
                try? await gracefulShutdown()
                return nil
            }
            let first = await group.next() ?? nil
            // Who waits for the state would otherwise be waited for.
            await server.stop()
            group.cancelAll()
            return first
        }
    }
}
