import MillBase
import MillSQL
import MillTestKit
import Testing

@Test(arguments: [false, true])
func generatedStatementsSurvivePrinting(isWild: Bool) throws {
    for seed in 0..<10_000 as Range<UInt64> {
        var generator = StatementGenerator(seed: seed, tables: StatementGenerator.sampleTables, isWild: isWild)
        let sql = generator.statement()
        do {
            let statement = try Parser.parseStatement(sql)
            let printed = statement.description
            let again = try Parser.parseStatement(printed)
            guard again == statement else {
                Issue.record("seed \(seed): \(sql)\nprinted as\n\(printed)")
                return
            }
        } catch {
            Issue.record("seed \(seed): \(error)\n\(sql)")
            return
        }
    }
}

@Test func damagedStatementsGiveATreeOrALocatedError() throws {
    for seed in 0..<4_000 as Range<UInt64> {
        var generator = StatementGenerator(seed: seed, tables: StatementGenerator.sampleTables, isWild: true)
        var random = SplitMix64(state: seed ^ 0xdead)
        let sql = seed % 3 == 0 ? ValidStatements.all[Int(seed) % ValidStatements.all.count] : generator.statement()
        let damaged = seed % 2 == 0 ? damageTokens(sql, &random) : damageBytes(sql, &random)
        do {
            for parsed in try Parser.parseStatements(utf8: damaged) {
                let printed = parsed.statement.description
                #expect(try Parser.parseStatement(printed) == parsed.statement, "seed \(seed)\n\(parsed.text)\nprinted as\n\(printed)")
            }
        } catch {
            let span = try #require(error.span, "seed \(seed): no position in \(error)")
            #expect(span.start <= span.end && span.end <= damaged.count, "seed \(seed)")
        }
    }
}

/// Deletes, doubles and swaps tokens, and puts in ones from elsewhere.
private func damageTokens(_ sql: String, _ random: inout SplitMix64) -> [UInt8] {
    let bytes = Array(sql.utf8)
    guard let lexer = try? Lexer(bytes) else { return bytes }
    var pieces = lexer.tokens.map { Array(bytes[Int($0.start)..<Int($0.end)]) }
    let strangers = ["(", ")", "[", "]", ",", ";", ".", "::", "NOT", "SELECT", "FROM", "AS", "=", "-", "*", "1", "'x'", "\"q\"", "IN", "WITH", "END"]
    for _ in 0...random.below(3) where !pieces.isEmpty {
        let index = random.below(pieces.count)
        switch random.below(4) {
        case 0: pieces.remove(at: index)
        case 1: pieces.insert(pieces[index], at: index)
        case 2: pieces.swapAt(index, random.below(pieces.count))
        default: pieces.insert(Array(strangers[random.below(strangers.count)].utf8), at: index)
        }
    }
    return Array(pieces.joined(separator: [UInt8(ascii: " ")]))
}

private func damageBytes(_ sql: String, _ random: inout SplitMix64) -> [UInt8] {
    var bytes = Array(sql.utf8)
    for _ in 0...random.below(4) where !bytes.isEmpty {
        let index = random.below(bytes.count)
        switch random.below(3) {
        case 0: bytes.remove(at: index)
        case 1: bytes[index] = UInt8(random.below(256))
        default: bytes.insert(Array("'\"$()[]-/*.:;\\eEuU&_0x".utf8)[random.below(22)], at: index)
        }
    }
    return bytes
}

/// Work that grew with the square of the text would take hours.
@Test func aLargeInsertParsesInLinearTime() throws {
    let sql = "INSERT INTO t VALUES " + (0..<300_000).map { "(\($0), 'name \($0)', \($0).5, TRUE)" }.joined(separator: ", ")
    #expect(try Parser.parseStatements(sql).count == 1)
}
