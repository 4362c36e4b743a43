import Foundation
import Testing

/// Templates with what Jinja2 renders for them; `Scripts/bless-templates` writes the file.
struct GoldenTemplates: Decodable {
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        var template: String
        var variables: String
        var expected: String
        var testDescription: String { template }
    }

    struct Refusal: Decodable, Sendable, CustomTestStringConvertible {
        var template: String
        var variables: String
        /// The line the message must name.
        var line: Int
        /// A word the message must hold.
        var word: String
        var testDescription: String { template }
    }

    var cases: [Case]
    var errors: [Refusal]

    static let all: GoldenTemplates = {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(
            path: "fixtures/templates.json")
        do {
            return try JSONDecoder().decode(GoldenTemplates.self, from: Data(contentsOf: file))
        } catch {
            preconditionFailure("Tests/fixtures/templates.json is unreadable: \(error)")
        }
    }()
}
