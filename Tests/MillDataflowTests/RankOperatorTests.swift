import MillColumnar
import MillDataflow
import MillExpr
import MillPlan
import MillTestKit
import Testing

/// What a ranking gives out when rows come and go, and what it keeps: no more than what changed, no more than what the cut needs.
@Suite struct RankOperatorTests {
    private static let byValue = Window(partition: [0], order: [SortKey(column: 1, descending: true, nullsFirst: false)])

    private static func rank(_ functions: [RankFunction], _ cut: Cut?, isAppendOnly: Bool = false, window: Window = byValue) -> RankOperator
    {
        RankOperator(columns: [.int32, .int32], window: window, functions: functions, cut: cut, isAppendOnly: isAppendOnly)
    }

    /// Gives rows in one epoch; the drawn changes, in order.
    static func epoch(_ operation: any Operator, _ rows: [(Int64, Int64, weight: Int64)]) -> [String] {
        let columns = [Column(.int32, capacity: rows.count), Column(.int32, capacity: rows.count)]
        for row in rows {
            columns[0].append(.int(row.0))
            columns[1].append(.int(row.1))
        }
        let errors = OperatorErrors()
        operation.push(DeltaBatch(columns: columns, count: rows.count, weights: Weights(rows.map(\.weight))), input: 0, errors: errors)
        #expect(operation.next(errors: errors) == nil)
        operation.closeEpoch(errors: errors)
        var changes: [String] = []
        while let batch = operation.next(errors: errors) {
            #expect(batch.count <= 4096)
            for row in 0..<batch.count {
                let values = batch.columns.map { column -> String in
                    if case .int(let value) = column.scalar(row) { "\(value)" } else { "NULL" }
                }
                changes.append("\(batch.weight(row) > 0 ? "+" : "")\(batch.weight(row)) \(values.joined(separator: " "))")
            }
        }
        #expect(operation.checkInvariants() == [])
        return changes
    }

    @Test func aRowInTheMiddleMovesOnlyThoseBehindIt() {
        let operation = Self.rank([.rowNumber], nil)
        _ = Self.epoch(operation, [(1, 50, 1), (1, 40, 1), (1, 20, 1), (2, 9, 1)])
        #expect(Self.epoch(operation, [(1, 30, 1)]) == ["+1 1 30 3", "-1 1 20 3", "+1 1 20 4"])
        #expect(Self.epoch(operation, [(1, 20, -1)]) == ["-1 1 20 4"])
    }

    @Test func whatComesAndGoesInOneEpochIsNotSeen() {
        let operation = Self.rank([.rowNumber, .rank], nil)
        _ = Self.epoch(operation, [(1, 50, 1), (1, 40, 1)])
        #expect(Self.epoch(operation, [(1, 45, 1), (1, 45, -1)]) == [])
        #expect(Self.epoch(operation, [(1, 50, -1), (1, 50, 1)]) == [])
    }

    @Test func tiesShareARankAndLeaveAGapBehindIt() {
        let operation = Self.rank([.rank, .denseRank], nil)
        #expect(Self.epoch(operation, [(1, 5, 2), (1, 4, 1)]) == ["+2 1 5 1 1", "+1 1 4 3 2"])
        #expect(Self.epoch(operation, [(1, 5, -1)]) == ["-1 1 5 1 1", "-1 1 4 3 2", "+1 1 4 2 2"])
    }

    @Test func equalRowsAreNumberedOneByOne() {
        let operation = Self.rank([.rowNumber], nil)
        #expect(Self.epoch(operation, [(1, 5, 3)]) == ["+1 1 5 1", "+1 1 5 2", "+1 1 5 3"])
        #expect(Self.epoch(operation, [(1, 6, 1)]) == ["+1 1 6 1", "-1 1 5 1", "+1 1 5 4"])
        #expect(Self.epoch(operation, [(1, 5, -2)]) == ["-1 1 5 3", "-1 1 5 4"])
    }

    @Test func aCutWithoutNumbersChangesOneRowForAnother() {
        let operation = Self.rank([], Cut(limit: 3))
        _ = Self.epoch(operation, [(1, 50, 1), (1, 40, 1), (1, 30, 1), (1, 20, 1)])
        #expect(Self.epoch(operation, [(1, 60, 1)]) == ["+1 1 60", "-1 1 30"])
        #expect(Self.epoch(operation, [(1, 10, 1)]) == [])
        #expect(Self.epoch(operation, [(1, 50, -1)]) == ["-1 1 50", "+1 1 30"])
    }

    @Test func aCutByRankKeepsAllOfATie() {
        let operation = Self.rank([], Cut(.rank, limit: 1))
        #expect(Self.epoch(operation, [(1, 50, 1), (1, 50, 1), (1, 40, 1)]) == ["+2 1 50"])
        #expect(Self.epoch(operation, [(1, 60, 1)]) == ["+1 1 60", "-2 1 50"])
    }

    @Test func appendOnlyInputLeavesTheBestRowsOnly() {
        let operation = Self.rank([], Cut(limit: 2), isAppendOnly: true)
        for value in 0..<200 { _ = Self.epoch(operation, [(1, Int64(value * 37 % 200), 1), (2, Int64(value), 1)]) }
        #expect(operation.rowCount == 4)
        #expect(Self.epoch(operation, [(1, 5, 1)]) == [])
        #expect(operation.rowCount == 4)
    }

    @Test func aRowOfGreatWeightComesInBatches() {
        let operation = Self.rank([.rowNumber], nil)
        #expect(Self.epoch(operation, [(1, 5, 10_000)]).count == 10_000)
        #expect(Self.epoch(operation, [(1, 5, -9_999)]).count == 9_999)
    }
}
