import ArgumentParser
import Foundation
import MillBase
import MillIO

/// `millrace inspect`: what a data directory holds, without changing it.
struct Inspect: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what a data directory holds; changes nothing in it.",
        discussion: "Exit status: 0 when nothing is wrong, 1 when the directory cannot be read, 2 when damage was found.")

    @Argument(help: "The data directory.") var directory: String
    @Flag(help: "One JSON object on standard output.") var json = false
    @Flag(help: "Read everything and compare all checksums.") var verify = false

    func run() throws {
        let inspection: Inspection
        do { inspection = try Inspection(directory, verifies: verify) } catch {
            StandardError.write("millrace: \(error)\n")
            throw ExitCode(1)
        }
        if json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            encoder.keyEncodingStrategy = .convertToSnakeCase
            StandardOutput.write(String(decoding: try encoder.encode(inspection), as: UTF8.self) + "\n")
        } else {
            StandardOutput.write(inspection.text)
        }
        if !inspection.damage.isEmpty { throw ExitCode(2) }
    }
}
