import MillColumnar
import Testing

struct ConsolidateTests {
    @Test func sumsEqualRowsAndDropsZeros() {
        let result = DeltaBatch.consolidate([
            .drawn("a:int b:numeric; +1 1 1.0; +1 2 null; +3 null 5"),
            .drawn("a:int b:numeric; +2 1 1.0; -1 2 null; +1 4 nan; +1 4 nan"),
        ])
        #expect(result.map(\.drawn) == ["a:int b:numeric; +3 1 1.0; +3 null 5; +2 4 nan"])
    }

    @Test func equalRowsThatLookDifferentAreTwoUnlessEqualityIsByValue() {
        let batches = [DeltaBatch.drawn("a:numeric b:double; +1 1.0 0; +1 1.00 0; -1 1.0 0; +1 2 -0"), .drawn("a:numeric b:double; -1 2 0")]
        #expect(DeltaBatch.consolidate(batches).map(\.drawn) == ["a:numeric b:double; +1 1.00 0.0; +1 2 -0.0; -1 2 0.0"])
        #expect(DeltaBatch.consolidate(batches, by: .values).map(\.drawn) == ["a:numeric b:double; +1 1.0 0.0"])
    }

    @Test func anInputWithNothingToDoIsReturnedAsItIs() {
        let batches = [DeltaBatch.drawn("a:int; +1 1; +1 2"), .drawn("a:int; -1 3")]
        #expect(zip(DeltaBatch.consolidate(batches), batches).allSatisfy { $0 === $1 })
        #expect(DeltaBatch.consolidate([]).isEmpty)
        #expect(DeltaBatch.consolidate([.drawn("a:int; +1 1; -1 1")]).isEmpty)
    }

    @Test func rowsWithoutColumnsAreOneRow() {
        let rows = DeltaBatch(columns: [], count: 5)
        let result = DeltaBatch.consolidate([rows, DeltaBatch(columns: [], count: 2, weights: Weights([-1, -1]))])
        #expect(result.map(\.count) == [1])
        #expect(result[0].weight(0) == 3)
    }

    @Test(arguments: [1, 2, 3], [RowEquality.values, .representation])
    func randomDeltasSumAsAModelDoes(_ seed: UInt64, _ equality: RowEquality) {
        var random = RandomRows(seed: seed)
        let types: [SQLType] = [.varchar, .numeric, .float64, .boolean]
        let batches = (0..<5).map { _ in random.batch(types, count: 300, few: true, weights: true) }
        var sums: [(batch: DeltaBatch, row: Int, weight: Int64)] = []
        for batch in batches {
            for row in 0..<batch.count {
                let found = sums.firstIndex { sum in
                    batch.columns.indices.allSatisfy { batch.columns[$0].equals(row, sum.batch.columns[$0], sum.row, by: equality) }
                }
                if let found { sums[found].weight += batch.weight(row) } else { sums.append((batch, row, batch.weight(row))) }
            }
        }
        let expected = sums.filter { $0.weight != 0 }
        let result = DeltaBatch.consolidate(batches, by: equality)
        let rows = result.flatMap { batch in (0..<batch.count).map { (batch, $0) } }
        #expect(rows.count == expected.count)
        for (row, model) in zip(rows, expected) {
            #expect(row.0.weight(row.1) == model.weight)
            for index in types.indices { #expect(row.0.columns[index].equals(row.1, model.batch.columns[index], model.row)) }
        }
    }
}
