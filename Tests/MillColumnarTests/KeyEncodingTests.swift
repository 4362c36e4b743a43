import MillColumnar
import Testing

/// Random values with the awkward ones in front, and an order to check encodings against.
struct KeyEncodingTests {
    static let types: [SQLType] = [
        .boolean, .int16, .int32, .int64, .float32, .float64, .numeric, .varchar, .bytea, .date, .time, .timestamp, .timestamptz,
        .interval, .jsonb,
    ]

    @Test(arguments: types) func bytesOrderAsValues(_ type: SQLType) {
        var random = RandomRows(seed: 11)
        let column = random.column(type, count: 180, nulls: true)
        for (descending, nullsFirst) in [(false, false), (false, true), (true, false), (true, true)] {
            let keyOrder = KeyOrder(type, descending: descending, nullsFirst: nullsFirst)
            let keys = KeyEncoder(order: [keyOrder]).encode([column], count: column.count)
            for a in 0..<column.count {
                var alone = KeyBuffer()
                keyOrder.encode(column.value(a), into: &alone)
                #expect(KeyHead.compare(alone.bytes, keys[a]) == 0, "\(type) \(column.scalar(a)) alone")
                for b in 0..<column.count {
                    let order = KeyHead.compare(keys[a], keys[b]).signum()
                    let expected = Self.order(column, a, b, descending: descending, nullsFirst: nullsFirst)
                    #expect(order == expected, "\(type) \(column.scalar(a)) \(column.scalar(b)) descending \(descending)")
                }
            }
        }
    }

    @Test func columnsConcatenateInLexicographicOrder() {
        var random = RandomRows(seed: 12)
        for _ in 0..<20 {
            let types = (0..<3).map { _ in Self.types.randomElement(using: &random)! }
            let orders = types.map { KeyOrder($0, descending: .random(using: &random), nullsFirst: .random(using: &random)) }
            let columns = types.map { random.column($0, count: 60, nulls: true) }
            let keys = KeyEncoder(order: orders).encode(columns, count: 60)
            for a in 0..<60 {
                for b in 0..<60 {
                    var expected = 0
                    for (column, order) in zip(columns, orders) where expected == 0 {
                        expected = Self.order(column, a, b, descending: order.descending, nullsFirst: order.nullsFirst)
                    }
                    #expect(KeyHead.compare(keys[a], keys[b]).signum() == expected)
                }
            }
        }
    }

    @Test func fewerColumnsGiveAPrefixOfExactlyTheEqualRows() {
        var random = RandomRows(seed: 13)
        let columns = [random.column(.varchar, count: 80, nulls: true), random.column(.numeric, count: 80, nulls: true)]
        let encoder = KeyEncoder(order: [KeyOrder(.varchar), KeyOrder(.numeric, descending: true)])
        let keys = encoder.encode(columns, count: 80)
        var prefix = KeyBuffer()
        for a in 0..<80 {
            prefix.removeAll()
            encoder.encode([columns[0]], row: a, into: &prefix)
            for b in 0..<80 {
                let isPrefix = KeyHead.commonPrefix(prefix.bytes, keys[b], max: .max) == prefix.count
                #expect(isPrefix == columns[0].equals(a, columns[0], b))
            }
        }
    }

    @Test func layoutIsAsDocumented() {
        let batch = DeltaBatch.drawn("a:int b:numeric c:text; +1 1 -12.50 'a'; +1 -1 0 null")
        let encoder = KeyEncoder(order: [KeyOrder(.int32), KeyOrder(.numeric), KeyOrder(.varchar)])
        let keys = encoder.encode(batch.columns, count: 2)
        #expect(Array(keys[0]) == [1, 0x80, 0, 0, 1, 1, 2, ~66, ~13, ~51, 0xFF, 1, 0x61, 0])
        #expect(Array(keys[1]) == [1, 0x7F, 0xFF, 0xFF, 0xFF, 1, 3, 2])
    }

    private static func order(_ column: Column, _ a: Int, _ b: Int, descending: Bool, nullsFirst: Bool) -> Int {
        switch (column.isNull(a), column.isNull(b)) {
        case (true, true): 0
        case (true, false): nullsFirst ? -1 : 1
        case (false, true): nullsFirst ? 1 : -1
        case (false, false): column.compare(a, to: column, b).signum() * (descending ? -1 : 1)
        }
    }
}
