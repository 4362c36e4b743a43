import Foundation
import Testing

@testable import MillPgServer

/// The real psql against the server and its fake backend: framing, startup and errors as libpq understands them.
struct PsqlTests {
    private static let psql = ["/usr/bin/psql", "/usr/local/bin/psql", "/opt/homebrew/bin/psql"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    private func run(_ arguments: [String], port: Int) async throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(Self.psql))
        process.arguments = ["-X", "-h", "127.0.0.1", "-p", "\(port)", "-U", "root"] + arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        return try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { process in
                let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                continuation.resume(returning: (process.terminationStatus, output))
            }
            do {
                try process.run()
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    @Test(.enabled(if: PsqlTests.psql != nil, "psql is not installed"))
    func psqlShowsRowsNoticesAndErrors() async throws {
        let server = PgServer(PgServerOptions(host: "127.0.0.1", port: 0), backend: FakeBackend())
        try await server.start()
        let port = try #require(server.port)
        let cases: [(arguments: [String], status: Int32, output: String)] = [
            (["-At", "-c", "one"], 0, "1\n"),
            (["-At", "-c", "weights; notice; one"], 0, "0\n0\n2\n2\n2\nNOTICE:  take care\nNOTICE\n1\n"),
            (
                ["-At", "-v", "ON_ERROR_STOP=1", "-c", "one", "-c", "fail"], 1,
                "ERROR:  relation \"x\" does not exist\nLINE 1: fail\n        ^\n"
            ),
            (["-At", "-c", "set application_name other", "-c", "\\echo :SERVER_VERSION_NUM"], 0, "SET\n140000\n"),
        ]
        for (arguments, status, output) in cases {
            let result = try await run(arguments, port: port)
            #expect(result.status == status, "\(arguments)")
            #expect(output.split(separator: "\n").allSatisfy { result.output.contains($0) }, "\(arguments): \(result.output)")
        }
        let wrongUser = try await run(["-U", "nobody", "-c", "one"], port: port)
        #expect(wrongUser.status == 2)
        #expect(wrongUser.output.contains("FATAL:  role \"nobody\" does not exist"))
        await server.shutdown()
    }
}
