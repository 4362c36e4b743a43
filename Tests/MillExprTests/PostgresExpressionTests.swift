import Foundation
import MillBase
import MillColumnar
import MillExpr
import Testing

/// Every case of `postgres-15-expressions.txt`, through registry, folding and evaluation, gives PostgreSQL's answer.
struct PostgresExpressionTests {
    @Test func expressionsGiveWhatPostgreSQLGives() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "postgres-15-expressions.txt")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
        var unread: [String] = []
        for line in lines {
            let parts = line.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let expected = parts.count > 1 ? parts[1] : ""
            do {
                let actual = try evaluate(ExpressionReader.read(parts[0]))
                #expect(actual == expected, "\(parts[0])")
            } catch is ExpressionReader.Unreadable {
                unread.append(parts[0])
            } catch let error as SQLError {
                #expect("!\(error.sqlState)" == expected, "\(parts[0]): \(error)")
            }
        }
        #expect(unread.isEmpty)
        #expect(lines.count > 400)
    }

    /// Once folded and once over a column, so that both paths are taken.
    private func evaluate(_ expression: BoundExpression) throws -> String {
        let folded = try CompiledExpression(expression)
        var errors = RowErrors()
        let column = folded.evaluate(DeltaBatch(columns: [], count: 3), errors: &errors)
        if let first = errors.entries.first {
            #expect(errors.entries.map(\.row) == [0, 1, 2])
            #expect(column.isNull(1))
            return "!\(first.error.sqlState)"
        }
        return column.text(2) ?? "NULL"
    }
}
