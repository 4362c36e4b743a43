import MillBase
import MillColumnar
import Testing

struct ConcatenateTests {
    @Test(arguments: [1, 7, 64, 100, 4096]) func rowsComeOutInTheOrderOfAppending(_ rowsMax: Int) {
        var random = RandomRows(seed: UInt64(rowsMax))
        let types: [SQLType] = [.varchar, .int64, .boolean, .numeric, .int16, .date]
        var builder = BatchBuilder(types, rowsMax: rowsMax)
        var expected: [String] = []
        for step in 0..<40 {
            let batch = random.batch(types, count: Int.random(in: 0..<150, using: &random), nulls: step % 3 != 0, weights: step % 4 == 3)
            let rows = lines(batch)
            switch step % 4 {
            case 0:
                let picked = (0..<batch.count).filter { _ in Bool.random(using: &random) }
                builder.append(batch, rows: picked.map { UInt32($0) }, count: picked.count)
                expected += picked.map { rows[$0] }
            case 1:
                let start = Int.random(in: 0...batch.count, using: &random)
                builder.append(batch, range: start..<batch.count)
                expected += rows[start...]
            case 2:
                for row in 0..<batch.count { builder.append(batch, row: row) }
                expected += rows
            default:
                builder.append(batch)
                expected += rows
            }
        }
        let result = builder.take()
        #expect(result.flatMap(lines) == expected)
        #expect(result.dropLast().allSatisfy { $0.count == rowsMax })
        let isEmpty = builder.isEmpty
        #expect(isEmpty)
        for batch in result {
            let isPlain = (0..<batch.count).allSatisfy { batch.weight($0) == 1 }
            #expect((batch.weights == nil) == isPlain)
            #expect(batch.weights.map { $0.count == batch.count } ?? true)
            for column in batch.columns { #expect(column.hasNoNulls == (0..<batch.count).allSatisfy { !column.isNull($0) }) }
        }
    }

    @Test func aWeightMayReplaceTheRowsOwn() {
        let batch = DeltaBatch.drawn("a:int; +1 1; -2 2")
        var builder = BatchBuilder([.int32])
        builder.append(batch, row: 1, weight: 1)
        builder.append(batch, row: 0, weight: -1)
        builder.append(batch, row: 1)
        #expect(builder.take().map(\.drawn) == ["a:int; +1 2; -1 1; -2 2"])
    }

    @Test func aLargeBatchIsPassedOnWithoutCopying() {
        let large = DeltaBatch(columns: [.constant(.int(1), .int32, count: 2000)], count: 2000)
        #expect(DeltaBatch.concatenate([large, .drawn("a:int; +1 5")])[0] === large)
    }

    @Test func longStringsOutliveTheirSourcesWithoutHoldingAllOfThem() {
        var builder = BatchBuilder([.varchar])
        for index in 0..<200 { builder.append(.drawn("a:text; +1 a_string_that_is_long_\(index)"), row: 0) }
        let batch = builder.take()[0]
        #expect(batch.columns[0].heaps.count <= 65)
        for index in 0..<200 { #expect(batch.columns[0].scalar(index) == .string("a_string_that_is_long_\(index)")) }
    }

    private func lines(_ batch: DeltaBatch) -> [String] {
        (0..<batch.count).map { row in "\(batch.weight(row)) \(batch.columns.map { $0.scalar(row) })" }
    }
}
