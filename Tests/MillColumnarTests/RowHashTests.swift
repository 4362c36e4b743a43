import MillColumnar
import Testing

struct RowHashTests {
    @Test(arguments: KeyEncodingTests.types) func equalValuesHashEqually(_ type: SQLType) {
        var random = RandomRows(seed: 31)
        let column = random.column(type, count: 250, nulls: true)
        let hashes = hash([column])
        var collisions = 0
        for a in 0..<column.count {
            for b in 0..<column.count {
                if column.equals(a, column, b) {
                    #expect(hashes[a] == hashes[b], "\(type) \(column.scalar(a)) \(column.scalar(b))")
                } else if hashes[a] == hashes[b] {
                    collisions += 1
                }
            }
        }
        #expect(collisions == 0)
    }

    @Test func representationsOfOneValueHashEqually() {
        let batch = DeltaBatch.drawn(
            "n:numeric d:double r:real i:interval; +1 1 0.0 0.0 1/0/0; +1 1.000 -0.0 -0.0 0/30/0; +1 1.0 0.0 0.0 0/0/2592000000000")
        for column in batch.columns { #expect(Set(hash([column])).count == 1) }
        let nans = Column(.float64, capacity: 2)
        nans.append(Double.nan)
        nans.append(-Double.nan)
        #expect(Set(hash([nans])).count == 1)
    }

    @Test func stringsHashByTheirBytesWhereverTheyLie() {
        for length in 0...64 {
            let bytes = (0..<length).map { UInt8($0) }
            let column = Column(.bytea, capacity: 2)
            bytes.withUnsafeBufferPointer { column.append(bytes: $0) }
            ([9, 9, 9] + bytes).withUnsafeBufferPointer { column.append(bytes: UnsafeBufferPointer(rebasing: $0[3...])) }
            let hashes = hash([column])
            #expect(hashes[0] == hashes[1])
        }
    }

    @Test func columnsCountInOrderAndNullsDifferFromZero() {
        let batch = DeltaBatch.drawn("a:int b:int; +1 1 2; +1 2 1; +1 null 0; +1 0 null; +1 0 0")
        #expect(Set(hash(batch.columns)).count == 5)
        let none = hash([], count: 3)
        #expect(Set(none).count == 1)
    }

    @Test func hashesAreTheSameInEveryRun() {
        // State on disk is routed by these: a change is a change of format.
        let batch = DeltaBatch.drawn("a:bigint b:text c:numeric; +1 1 ada 1.50; +1 null 'a string over twelve bytes' null")
        let hashes = hash(batch.columns)
        #expect(hashes == [12_589_443_429_503_234_646, 11_797_250_101_053_233_365])
    }

    private func hash(_ columns: [Column], count: Int? = nil) -> [UInt64] {
        let count = count ?? columns[0].count
        return [UInt64](unsafeUninitializedCapacity: count) { buffer, filled in
            RowHash.hash(columns, count: count, into: buffer.baseAddress!)
            filled = count
        }
    }
}
