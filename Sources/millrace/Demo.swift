import ArgumentParser
import Logging
import MillBase
import MillBench
import MillColumnar
import MillEngine
import MillIO
import MillKafkaWire
import MillLakeCatalog
import MillLog
import ServiceLifecycle
import Synchronization
import UnixSignals

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The balloon game, everything embedded: a generator of pops, the topic, five views, an Iceberg table of each, a leaderboard in the terminal.
struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Plays the balloon game live, until Ctrl-C or for a duration.")

    @Option(help: "Seconds to play; until Ctrl-C when left out.") var duration: Double?
    @Option(help: "Where the topic is kept; a temporary directory when left out.") var dataDir: String?
    @Option(help: "Players.") var players = 8
    @Option(help: "Pops a second.") var rate = 500.0
    @Option(help: "Seed of the game.") var seed: UInt64 = 42
    @Option(help: "Kafka wire: HOST:PORT or off (default: \(KafkaListenAddress.standard.text)).", transform: { try KafkaListenAddress($0) })
    var kafka = KafkaListenAddress.standard
    @Option(help: "Postgres wire: HOST:PORT or off.") var pg = ListenAddress(argument: "localhost:4566")!
    @Option(help: "Iceberg REST catalog: HOST:PORT, or off for a game without tables.") var catalog = ListenAddress(argument: "localhost:8181")!
    @Option(help: "Threads that run views.") var workers = 1
    @Option(help: "The template with the source and its views.") var template = "examples/balloon/source.sql.j2"
    @Option(help: "The template with the sinks into tables.") var lakeTemplate = "examples/balloon/lake.sql.j2"

    static let topic = "balloon-game"

    func validate() throws {
        guard players > 0, players <= 10_000 else { throw ValidationError("--players takes 1 to 10000") }
        guard rate > 0, rate <= 1_000_000 else { throw ValidationError("--rate takes up to 1000000") }
    }

    func run() async throws {
        // Whatever is wrong with the template shows before anything is started.
        let scripts = Scripts(source: try Self.found(template), lake: catalog.isOff ? nil : try Self.found(lakeTemplate))
        _ = try scripts.sourceStatements(broker: kafka.text)
        _ = try scripts.lakeStatements(catalog: "")
        let directory = dataDir ?? TemporaryDirectory.path("demo")
        do {
            try await play(scripts, directory)
        } catch {
            if dataDir == nil { try? LocalFileSystem().remove(directory) }  // The failure before is the one to tell.
            throw error
        }
        if dataDir == nil { try LocalFileSystem().remove(directory) }
    }

    /// Templates, and what they are rendered with.
    private struct Scripts: Sendable {
        var source: String
        /// nil: no tables.
        var lake: String?

        func sourceStatements(broker: String) throws -> String {
            try Render.render(
                source, files: [],
                assignments: ["balloon_game_kafka_topic=\(Demo.topic)", "balloon_game_kafka_bootstrap_servers=\(broker)"])
        }

        func lakeStatements(catalog: String) throws -> String? {
            try lake.map { template in
                try Render.render(
                    template, files: [],
                    assignments: [
                        "balloon_game_db=\(Demo.namespace)", "plf_polaris_catalog_uri=http://\(catalog)/api/catalog", "plf_catalog_name=\(Demo.warehouse)",
                        "principal_client_id=\(BootstrapCredentials.standard.clientID)", "principal_client_secret=\(BootstrapCredentials.standard.secret)",
                    ])
            }
        }
    }

    private func play(_ scripts: Scripts, _ directory: String) async throws {
        let logger = Serve.logger(.warning)
        let server: Server
        do {
            server = try await Server.start(
                Server.Options(
                    dataDirectory: directory, pg: pg, kafka: [kafka],
                    catalog: CatalogService.Options(address: catalog, warehouse: Self.warehouse), workerCount: workers),
                logger: logger)
        } catch {
            StandardError.write("millrace: could not start: \(error)\n")
            throw ExitCode.failure
        }
        do {
            try await play(scripts, on: server, directory, logger)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private func play(_ scripts: Scripts, on server: Server, _ directory: String, _ logger: Logger) async throws {
        let broker = server.kafkaAddresses.first ?? "localhost:9092"
        StandardError.write("millrace: pg on \(server.pgAddress ?? "off")\nmillrace: kafka on \(server.kafkaAddresses.first ?? "off")\n")
        StandardError.write("millrace: topic \(Self.topic) in \(directory)\nmillrace: ready\n")
        let session = Session(engine: server.engine, userName: "root", databaseName: "dev")
        // The topic first, so that the source's origin is its present end.
        let topic = try server.log.topic(named: Self.topic, creatingWithPartitions: 1)
        try await session.run(try scripts.sourceStatements(broker: broker))
        if let address = server.catalogAddress, let statements = try scripts.lakeStatements(catalog: address) {
            StandardError.write("millrace: tables \(Self.warehouse).\(Self.namespace).* in the catalog on \(address)\n")
            try await session.run(statements)
        }
        let game = BalloonGame(partition: topic.partitions[0], seed: seed, players: players, rate: rate, clock: Environment.system.clock)
        let play = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [.init(service: LiveBoard(session: session, game: game, seconds: duration), successTerminationBehavior: .gracefullyShutdownGroup)],
                gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await play.run()
        try await server.engine.flush()
        StandardOutput.write("final leaderboard\n")
        for line in try await LiveBoard.leaderboard(session) { StandardOutput.write("\(line.player)\t\(line.score)\t\(line.bonusHits)\n") }
        if server.catalogAddress != nil { try await readBack(session) }
    }

    /// The tables as any reader of Iceberg finds them, once all changes are there.
    private func readBack(_ session: Session) async throws {
        let clock = ContinuousClock()
        let deadline = clock.now + Self.patience
        while clock.now < deadline {
            guard try await session.rows("SHOW SINKS").contains(where: { batch in (0..<batch.count).contains { batch.columns[9].scalar($0) != .int(0) } })
            else { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        StandardOutput.write("tables read back\n")
        for view in try await session.rows("SHOW SINKS").flatMap({ batch in (0..<batch.count).map { batch.columns[0].text($0) ?? "" } }) {
            let table = "\(Self.warehouse).\(Self.namespace).\(view)"
            let rows = try await session.rows("SELECT (SELECT count(*) FROM \(table)), (SELECT count(*) FROM \(table).snapshots)")
            StandardOutput.write("\(table)\t\(rows[0].columns[0].text(0) ?? "") rows\t\(rows[0].columns[1].text(0) ?? "") snapshots\n")
        }
    }

    /// For the last changes to be in the tables.
    private static let patience = Duration.seconds(30)
    private static let warehouse = "dev"
    private static let namespace = "balloon_pops"

    /// The template where it is said to be, or in the package that the program was built in.
    private static func found(_ path: String) throws -> String {
        let files = LocalFileSystem()
        guard !files.exists(path), !path.hasPrefix("/") else { return path }
        var folder = Environment.system.executablePath ?? ""
        while let slash = folder.lastIndex(of: "/") {
            folder = String(folder[..<slash])
            if files.exists("\(folder)/\(path)") { return "\(folder)/\(path)" }
        }
        throw IOFailure("find", path: path, errorNumber: ENOENT)
    }
}

/// Puts pops into the topic as their time comes, in batches as a producer would.
final class BalloonGame: Sendable {
    private let partition: PartitionLog
    private let clock: any Clock
    private let state: Mutex<State>
    private let rate: Double

    private struct State {
        var generator: BalloonGenerator
        var produced = 0
        var startMicros: Int64
    }

    init(partition: PartitionLog, seed: UInt64, players: Int, rate: Double, clock: any Clock) {
        self.partition = partition
        self.clock = clock
        self.rate = rate
        let now = clock.nowMicros
        state = Mutex(State(generator: BalloonGenerator(seed: seed, players: players, rate: rate, startMicros: now), startMicros: now))
    }

    var produced: Int { state.withLock { $0.produced } }

    /// Produces all pops that are due by now; returns when the log has them durably.
    func produceDue() async throws {
        let batch: WireBytes? = try state.withLock { state in
            let due = Int(Double(clock.nowMicros - state.startMicros) * rate / 1e6)
            guard due > state.produced else { return nil }
            var builder = RecordBatchBuilder()
            for _ in state.produced..<min(due, state.produced + 10_000) {
                let (micros, record) = state.generator.nextRecord()
                builder.append(value: Array(record), timestamp: micros / 1000)
                state.produced += 1
            }
            return try builder.finish()
        }
        if let batch { _ = try await partition.append(batch) }
    }
}

/// Plays the game and shows its leaderboard once a second.
private struct LiveBoard: Service {
    let session: Session
    let game: BalloonGame
    let seconds: Double?

    struct Line: Sendable {
        var player: String
        var score: Int64
        var bonusHits: Int64
    }

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            let clock = ContinuousClock()
            let start = clock.now
            var shownAt = start
            var shownCount = 0
            while !Task.isCancelled {
                if let seconds, clock.now - start >= .seconds(seconds) { return }
                try await game.produceDue()
                if clock.now - shownAt >= .seconds(1) {
                    let elapsed = clock.now - shownAt
                    let count = game.produced
                    try await show(rate: Double(count - shownCount) / (elapsed / .seconds(1)), total: count)
                    (shownAt, shownCount) = (clock.now, count)
                }
                do { try await Task.sleep(for: .milliseconds(10)) } catch { return }
            }
        }
    }

    private func show(rate: Double, total: Int) async throws {
        let lines = try await Self.leaderboard(session)
        var text = StandardOutput.isTerminal ? "\u{1B}[H\u{1B}[2J" : ""
        text += "balloon game: \(total) pops, \(Int(rate.rounded())) a second\n"
        for (place, line) in lines.prefix(10).enumerated() {
            let name = line.player + String(repeating: " ", count: max(1, 24 - line.player.count))
            text += "\(place + 1 < 10 ? " " : "")\(place + 1)  \(name)\(line.score) points, \(line.bonusHits) favourites\n"
        }
        StandardOutput.write(text + "\n")
    }

    static func leaderboard(_ session: Session) async throws -> [Line] {
        let batches = try await session.rows("SELECT player, total_score, bonus_hits FROM mv_leaderboard ORDER BY total_score DESC, player")
        return batches.flatMap { batch in
            (0..<batch.count).map { row in
                guard case .string(let player) = batch.columns[0].scalar(row), case .int(let score) = batch.columns[1].scalar(row),
                    case .int(let hits) = batch.columns[2].scalar(row)
                else { return Line(player: "", score: 0, bonusHits: 0) }
                return Line(player: player, score: score, bonusHits: hits)
            }
        }
    }
}
