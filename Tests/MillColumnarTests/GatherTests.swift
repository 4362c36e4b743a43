import MillColumnar
import Testing

struct GatherTests {
    @Test(arguments: KeyEncodingTests.types) func gatherTakesTheRowsInTheirOrder(_ type: SQLType) {
        var random = RandomRows(seed: 41)
        for count in [0, 1, 63, 64, 65, 200] {
            let column = random.column(type, count: 150, nulls: true)
            let rows = (0..<count).map { _ in UInt32.random(in: 0..<150, using: &random) }
            let gathered = column.gather(rows, count: count)
            #expect(gathered.count == count)
            for (index, row) in rows.enumerated() {
                #expect(gathered.isNull(index) == column.isNull(Int(row)))
                #expect(gathered.equals(index, column, Int(row)))
            }
            #expect(gathered.hasNoNulls == rows.allSatisfy { !column.isNull(Int($0)) })
        }
    }

    @Test func gatherOfABatchKeepsWeights() {
        let batch = DeltaBatch.drawn("a:int; +2 1; -1 2; +1 3")
        #expect(batch.gather([2, 0], count: 2).drawn == "a:int; +1 3; +2 1")
    }

    @Test func selectionTakesTrueRowsOnly() {
        var random = RandomRows(seed: 42)
        for count in [0, 1, 64, 500] {
            let column = random.column(.boolean, count: count, nulls: true)
            let selection = Selection(whereTrue: column)
            let rows = (0..<selection.count).map { Int(selection.rows[$0]) }
            #expect(rows == (0..<count).filter { column.scalar($0) == .boolean(true) })
        }
    }
}

struct CompareTests {
    @Test(arguments: KeyEncodingTests.types) func compareIsATotalOrder(_ type: SQLType) {
        var random = RandomRows(seed: 43)
        let column = random.column(type, count: 60)
        for a in 0..<60 {
            #expect(column.compare(a, to: column, a) == 0)
            for b in 0..<60 {
                let order = column.compare(a, to: column, b).signum()
                #expect(order == -column.compare(b, to: column, a).signum())
                #expect((order == 0) == column.equals(a, column, b))
                for c in 0..<60 where order <= 0 && column.compare(b, to: column, c) <= 0 {
                    if column.compare(a, to: column, c) > 0 { Issue.record("\(type): order is not transitive at \(a) \(b) \(c)") }
                }
            }
        }
    }

    @Test func ordersAsPostgreSQL() {
        expectAscending("d:double; +1 -inf; +1 -1.0; +1 0.0; +1 1.0; +1 inf; +1 nan")
        expectAscending("n:numeric; +1 -inf; +1 -10; +1 -1.5; +1 0; +1 0.01; +1 0.1; +1 1.0; +1 1.01; +1 100; +1 inf; +1 nan")
        expectAscending("t:text; +1 ''; +1 a; +1 aa; +1 ab; +1 abcdefghijklm; +1 b; +1 é")
        expectAscending("b:bool; +1 false; +1 true")
        expectAscending("i:interval; +1 -1/0/0; +1 0/-29/0; +1 0/0/1; +1 0/29/0; +1 1/0/1")
        expectAscending("b:bytea; +1 \\x; +1 \\x00; +1 \\x0000; +1 \\x01; +1 \\xff")
    }

    private func expectAscending(_ text: String) {
        let column = DeltaBatch.drawn(text).columns[0]
        for row in 1..<column.count { #expect(column.compare(row - 1, to: column, row) < 0, "\(text) at \(row)") }
    }
}
