import MillColumnar
import MillState
import Testing

struct OrderedMultisetTests {
    @Test func anElementGoesAtWeightZero() {
        let set = OrderedMultiset()
        let key: [UInt8] = [1, 2]
        key.withUnsafeBytes { key in
            #expect(set.add(key, weight: 2).newWeight == 2)
            #expect(set.add(key, weight: -1).oldWeight == 2)
            #expect(set.weight(key) == 1)
            #expect(set.add(key, weight: 0).newWeight == 1)
            #expect(set.add(key, weight: -1).value == nil)
            #expect(set.weight(key) == 0)
        }
        #expect(set.count == 0)
    }

    @Test func aRetractionBeforeItsInsertionHidesNothingElse() {
        let set = OrderedMultiset()
        let (low, high): ([UInt8], [UInt8]) = ([1, 1], [1, 5])
        low.withUnsafeBytes { _ = set.add($0, weight: -1) }
        high.withUnsafeBytes { _ = set.add($0, weight: 1) }
        let group: [UInt8] = [1]
        #expect(group.withUnsafeBytes { set.min(prefix: $0).map { Array($0.key) } } == high)
        low.withUnsafeBytes { _ = set.add($0, weight: 1) }
        #expect(set.count == 1)
    }

    /// MIN, MAX and top-3 per group over encoded keys, with values beside the weights, against sorting all rows anew.
    @Test(arguments: [1, 2, 3]) func extremesAreThoseOfTheRowsLeft(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let set = OrderedMultiset(valueBytes: 8, pageBytes: 1024)
        let encoder = KeyEncoder(order: [KeyOrder(.varchar), KeyOrder(.int64, descending: seed == 2)])
        let groups = Column(.varchar, capacity: 5)
        for name in ["", "a", "ab", "b", "a longer name of a group"] { groups.append(name) }
        var rows: [[Int64: Int64]] = Array(repeating: [:], count: groups.count)
        var key = KeyBuffer()
        for step in 0..<4000 {
            let group = Int.random(in: 0..<groups.count, using: &random)
            let isRetraction = Int.random(in: 0..<100, using: &random) < (step / 1000 % 2 == 0 ? 35 : 70)
            let value = isRetraction ? rows[group].keys.sorted().randomElement(using: &random) : Int64.random(in: -200...200, using: &random)
            guard let value else { continue }
            let column = Column(.int64, capacity: groups.count)
            for _ in 0..<groups.count { column.append(value) }
            key.removeAll()
            encoder.encode([groups, column], row: group, into: &key)
            let change = set.add(key.bytes, weight: isRetraction ? -1 : 1)
            change.value?.storeBytes(of: value, as: Int64.self)
            rows[group][value, default: 0] += isRetraction ? -1 : 1
            #expect(change.newWeight == rows[group][value])
            if rows[group][value] == 0 { rows[group][value] = nil }
            key.removeAll()
            encoder.encode([groups], row: group, into: &key)
            let sorted = seed == 2 ? rows[group].keys.sorted(by: >) : rows[group].keys.sorted()
            #expect(set.min(prefix: key.bytes)?.value.load(as: Int64.self) == sorted.first)
            #expect(set.max(prefix: key.bytes)?.value.load(as: Int64.self) == sorted.last)
            var top: [Int64] = []
            set.scan(prefix: key.bytes) { element in
                top.append(element.value.load(as: Int64.self))
                return top.count < 3
            }
            #expect(top == Array(sorted.prefix(3)))
        }
        set.table.checkInvariants()
        #expect(set.count == rows.reduce(0) { $0 + $1.count })
    }
}
