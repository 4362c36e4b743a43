import MillBase
import MillSQL
import Testing

@Test func everyTutorialStatementParses() throws {
    let counts = try TutorialStatements.all.map { try Parser.parseStatements($0).count }
    #expect(counts == [6, 1, 5, 6])
}
