import MillBase
import MillSQL
import Testing

/// Parses `sql`, prints every statement, parses that again, and expects an equal tree and a stable text.
@discardableResult
func verified(_ sql: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> [Statement] {
    let statements = try Parser.parseStatements(sql).map(\.statement)
    for statement in statements {
        let printed = statement.description
        do {
            let again = try Parser.parseStatement(printed)
            #expect(again == statement, "\(sql)\nprinted as\n\(printed)\nreads as another statement", sourceLocation: sourceLocation)
            #expect(again.description == printed, "printing is not stable", sourceLocation: sourceLocation)
        } catch {
            Issue.record("\(sql)\nprinted as\n\(printed)\nfails: \(error)", sourceLocation: sourceLocation)
        }
    }
    return statements
}

/// `sql` as the printer writes it, after the round trip was checked.
func printed(_ sql: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> String {
    try verified(sql, sourceLocation: sourceLocation).map(\.description).joined(separator: "; ")
}

/// The error that parsing gives; nil if there is none.
func failure(_ sql: String) -> SQLError? {
    do {
        _ = try Parser.parseStatements(sql)
        return nil
    } catch {
        return error
    }
}
