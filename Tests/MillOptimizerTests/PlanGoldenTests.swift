import Foundation
import Testing

@Suite struct PlanGoldenTests {
    private static var directory: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("plans")
    }

    static let files: [String] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        return names.filter { $0.hasSuffix(".plan") }.sorted()
    }()

    static func text(of name: String) throws -> String { try String(contentsOf: directory.appendingPathComponent(name), encoding: .utf8) }

    /// BLESS=1 writes the plans as they are now; the difference is for the reviewer.
    @Test(arguments: files) func plansAreThoseOfTheFile(name: String) throws {
        let url = Self.directory.appendingPathComponent(name)
        let text = try Self.text(of: name)
        let blessed = try PlanFile.blessed(text)
        if ProcessInfo.processInfo.environment["BLESS"] == "1" { try blessed.write(to: url, atomically: true, encoding: .utf8) }
        else { #expect(blessed == text, "\(name) differs: BLESS=1 rewrites it") }
    }

    @Test func thereAreGoldenFiles() {
        #expect(Self.files.count >= 4)
    }
}
