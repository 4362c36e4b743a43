import Foundation
import MillColumnar
@testable import MillExpr
import Testing

/// docs/sql/functions.md lists what the registry has, and nothing else.
@Suite struct FunctionListTests {
    private static let mark = "<!-- What follows is written by FunctionListTests: BLESS=1 make unit T=FunctionListTests -->\n"

    private static var file: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("docs/sql/functions.md")
    }

    /// `round(numeric, integer) → numeric`, or with an operator `numeric + numeric → numeric`.
    private static func text(_ overload: FunctionOverload, symbol: String? = nil) -> String {
        var arguments = overload.parameters.map { parameter in if case .type(let type) = parameter { shortName(type) } else { "any" } }
        let result = shortName(overload.result)
        if let symbol { return arguments.count == 1 ? "\(symbol) \(arguments[0]) → \(result)" : "\(arguments.joined(separator: " \(symbol) ")) → \(result)" }
        if overload.isVariadic, let last = arguments.popLast() { arguments.append(last + ", ...") }
        return "\(overload.name)(\(arguments.joined(separator: ", "))) → \(result)"
    }

    private static func shortName(_ type: SQLType) -> String {
        switch type {
        case .varchar: "text"
        case .timestamp: "timestamp"
        case .timestamptz: "timestamptz"
        case .time: "time"
        default: type.name
        }
    }

    private static func line(_ name: String, _ forms: [String]) -> String {
        "| <code>\(escaped(name))</code> | \(forms.map(escaped).joined(separator: "<br>")) |\n"
    }

    /// In a table's cell a bar ends it, and the others begin something.
    private static func escaped(_ text: String) -> String {
        [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;"), ("*", "&#42;"), ("~", "&#126;")].reduce(text) {
            $0.replacingOccurrences(of: $1.0, with: $1.1)
        }
    }

    private static func table(_ title: String, _ lines: [String]) -> String { "\n## \(title)\n\n| | |\n|---|---|\n" + lines.joined() }

    private static var list: String {
        let operators = [(FunctionRegistry.prefixOperators, 1), (FunctionRegistry.binaryOperators, 2)].flatMap { symbols, count in
            symbols.sorted { $0.key < $1.key }.map { symbol, name in
                let overloads = (FunctionRegistry.overloads[name] ?? []).filter { $0.parameters.count == count }
                return line(symbol, overloads.map { text($0, symbol: symbol) })
            }
        }
        // What an operator or a form of syntax stands for is listed by that.
        let words = Set(FunctionRegistry.binaryOperators.values).union(FunctionRegistry.prefixOperators.values)
            .subtracting(["abs", "sqrt", "cbrt", "power", "starts_with"])
            .union(["regexp_match_group", "array_of", "array_contains", "at_time_zone", "is_one_row"])
        let functions = FunctionRegistry.overloads.filter { !words.contains($0.key) }.sorted { $0.key < $1.key }
        let aggregates = AggregateFunction.allCases.map(\.rawValue).filter { $0 != AggregateFunction.singleValue.rawValue } + ["every"]
        return table("Functions", functions.map { line($0.key, $0.value.map { text($0) }) }) + table("Operators", operators)
            + "\n## Aggregates\n\n" + aggregates.sorted().map { "`\($0)`" }.joined(separator: ", ") + "\n"
    }

    /// BLESS=1 writes the list as it is now; the difference is for the reviewer.
    @Test func theListIsThatOfTheRegistry() throws {
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        let start = try #require(text.range(of: Self.mark)).upperBound
        let wanted = text[..<start] + Self.list
        if ProcessInfo.processInfo.environment["BLESS"] == "1" { try String(wanted).write(to: Self.file, atomically: true, encoding: .utf8) }
        else { #expect(text == wanted, "docs/sql/functions.md differs: BLESS=1 rewrites it") }
    }
}
