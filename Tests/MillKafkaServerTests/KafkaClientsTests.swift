import Glibc
import Logging
import MillIO
import MillKafkaServer
import MillLog
import Testing

/// The command in MILLRACE_KAFKA_CLIENTS, which gets the broker's address as its last word: `Scripts/kafka-clients-test`.
private let command = getenv("MILLRACE_KAFKA_CLIENTS").map { String(cString: $0) }

@Suite struct KafkaClientsTests {
    @Test(.enabled(if: command != nil, "set MILLRACE_KAFKA_CLIENTS=Scripts/kafka-clients-test to run real clients"))
    func realClientsAreServed() async throws {
        var template = Array("/tmp/millrace-kafka-XXXXXX".utf8CString)
        let directory = String(cString: try #require(mkdtemp(&template)))
        defer { try? LocalFileSystem().remove(directory) }  // a leftover in the temporary directory does no harm
        var logOptions = LogOptions()
        if getenv("MILLRACE_LOG_FLUSH").map({ String(cString: $0) }) == "os" { logOptions.flush = .os }
        let log = try Log(environment: .system, directory: directory + "/log", options: logOptions)
        var options = KafkaServerOptions()
        options.listeners = [KafkaListener(port: getenv("MILLRACE_KAFKA_PORT").flatMap { Int(String(cString: $0)) } ?? 0)]
        let server = KafkaServer(log: log, options: options)
        let address = try #require(try await server.start().first)
        let status = await Task.detached { system("\(command ?? "false") \(address)") }.value
        await server.stop()
        log.close()
        #expect(status == 0)
    }
}
