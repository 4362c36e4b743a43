import MillColumnar
import Testing

struct SortTests {
    @Test func sortsByColumnsInBothDirections() {
        let batch = DeltaBatch.drawn("a:int b:text; +1 2 x; -1 null y; +1 1 z; +1 2 a; +1 1 null")
        #expect(
            RowSort.sorted([batch], by: [ColumnOrder(0), ColumnOrder(1, descending: true)]).map(\.drawn)
                == ["a:int b:text; +1 1 null; +1 1 z; +1 2 x; +1 2 a; -1 null y"])
        #expect(
            RowSort.sorted([batch], by: [ColumnOrder(0, descending: true, nullsFirst: false)]).map(\.drawn)
                == ["a:int b:text; +1 2 x; +1 2 a; +1 1 z; +1 1 null; -1 null y"])
    }

    @Test func noColumnsKeepTheOrderOfArrival() {
        let batches = [DeltaBatch.drawn("a:int; +1 2; +1 1"), .drawn("a:int; +1 0")]
        #expect(RowSort.sorted(batches, by: []).map(\.drawn) == ["a:int; +1 2; +1 1; +1 0"])
        #expect(RowSort.sort([], by: [ColumnOrder(0)]).isEmpty)
    }

    @Test(arguments: [1, 2, 3, 4]) func randomRowsAreSortedAndStable(_ seed: UInt64) {
        var random = RandomRows(seed: seed)
        let types: [SQLType] = [.boolean, .varchar, .numeric]
        let batches = (0..<4).map { _ in random.batch(types, count: 200, few: true) }
        let order = types.indices.map { ColumnOrder($0, descending: .random(using: &random), nullsFirst: .random(using: &random)) }
        let sorted = RowSort.sort(batches, by: order)
        #expect(Set(sorted).count == 800)
        for (a, b) in zip(sorted, sorted.dropFirst()) {
            let compared = compare(batches, a, b, order)
            #expect(compared < 0 || compared == 0 && (a.batch, a.row) < (b.batch, b.row))
        }
    }

    @Test func sortingAcrossManyBatchesKeepsLongStringsNullsAndWeights() {
        let batches = (0..<100).map { DeltaBatch.drawn("a:int b:text; +2 \(99 - $0) a_string_that_is_long_\($0); -1 \(199 - $0) null") }
        let sorted = RowSort.sorted(batches, by: [ColumnOrder(0)])
        let lines = (0..<100).map { "+2 \($0) a_string_that_is_long_\(99 - $0)" } + (100..<200).map { "-1 \($0) null" }
        #expect(sorted.map(\.drawn) == [(["a:int b:text"] + lines).joined(separator: "; ")])
        #expect(sorted[0].columns[1].heaps.count == 1)
    }

    private func compare(_ batches: [DeltaBatch], _ a: RowReference, _ b: RowReference, _ order: [ColumnOrder]) -> Int {
        for key in order {
            let left = batches[Int(a.batch)].columns[key.column]
            let right = batches[Int(b.batch)].columns[key.column]
            switch (left.isNull(Int(a.row)), right.isNull(Int(b.row))) {
            case (true, true): continue
            case (true, false): return key.nullsFirst ? -1 : 1
            case (false, true): return key.nullsFirst ? 1 : -1
            case (false, false):
                let compared = left.compare(Int(a.row), to: right, Int(b.row))
                if compared != 0 { return key.descending ? -compared : compared }
            }
        }
        return 0
    }
}
