import MillIO

#if canImport(Glibc)
@preconcurrency import Glibc
#else
@preconcurrency import Darwin
#endif

/// `millrace serve` as a process of its own, on ports of 127.0.0.1 that the system chooses, so that what it costs is its own.
final class ServerProcess {
    /// `host:port` of the Postgres listener; empty when it is off.
    let pgAddress: String
    /// `host:port` of the Kafka listener.
    let kafkaAddress: String
    private let process: pid_t
    private var isRunning = true

    private static let startSecondsMax = 30.0

    /// Starts this very program and returns when it is ready. Its data and what it says, `server.log`, are in `directory`.
    /// - Throws: `BenchFailure` with the last it said when it does not get ready.
    init(directory: String, workerCount: Int = 1, hasPg: Bool = true, checkpointMillis: Int? = nil, environment: Environment) throws {
        guard let program = environment.executablePath else { throw BenchFailure("the system does not say which program this is") }
        try environment.files.createDirectory(directory)
        let said = directory + "/server.log"
        var arguments = [program, "serve", "--data-dir", directory, "--workers", "\(workerCount)"]
        arguments += ["--kafka", "127.0.0.1:0", "--pg", hasPg ? "127.0.0.1:0" : "off", "--http", "off", "--catalog", "off"]
        if let checkpointMillis { arguments += ["--checkpoint-interval", "\(checkpointMillis)"] }
        process = try Self.spawn(arguments, said)
        let deadline = environment.clock.monotonicNanos + UInt64(Self.startSecondsMax * 1e9)
        while true {
            let lines = try Self.text(said, environment).split(separator: "\n")
            if lines.contains("millrace: ready") {
                func address(_ wire: String) -> String {
                    lines.first { $0.hasPrefix("millrace: \(wire) on ") }.map { String($0.split(separator: " ")[3]) } ?? ""
                }
                (pgAddress, kafkaAddress) = (address("pg"), address("kafka"))
                return
            }
            var status: Int32 = 0
            if waitpid(process, &status, WNOHANG) == process || environment.clock.monotonicNanos > deadline {
                kill(process, SIGKILL)
                throw BenchFailure("the server did not get ready: \(lines.suffix(3).joined(separator: "; "))")
            }
            usleep(10_000)
        }
    }

    deinit { stop() }

    /// Asks the server to end and waits for it.
    func stop() {
        guard isRunning else { return }
        isRunning = false
        kill(process, SIGTERM)
        var status: Int32 = 0
        waitpid(process, &status, 0)
    }

    /// Processor time used so far, to 10 ms; 0 where the system does not tell it (anything but Linux).
    var cpuSeconds: Double {
        // The name before ") " may hold spaces; user and system time are the 14th and 15th field of all.
        let fields = ProcessUsage.firstLine(of: "/proc/\(process)/stat").split(separator: ")").last?.split(separator: " ") ?? []
        return ProcessUsage.ticks(fields.dropFirst(11).prefix(2))
    }

    private static func spawn(_ arguments: [String], _ said: String) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, said, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        var words = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        let status = posix_spawn(&process, arguments[0], &actions, nil, &words, environ)
        guard status == 0 else { throw BenchFailure("could not start \(arguments[0]): \(systemMessage(status))") }
        return process
    }

    private static func text(_ path: String, _ environment: Environment) throws(IOFailure) -> String {
        guard environment.files.exists(path) else { return "" }
        let file = try environment.files.open(path, .read)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: try file.size(), alignment: 8)
        defer { buffer.deallocate() }
        let count = try file.read(at: 0, into: buffer)
        return String(decoding: buffer[..<count], as: UTF8.self)
    }
}

/// Why a measurement could not be made, or cannot be believed.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
