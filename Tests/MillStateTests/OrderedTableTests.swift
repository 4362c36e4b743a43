import MillState
import Testing

struct OrderedTableTests {
    @Test func findsWhatWasInserted() {
        let table = OrderedTable(payloadBytes: 8)
        #expect(find(table, [1]) == nil)
        set(table, [1], 10)
        set(table, [], 20)
        set(table, [1, 0], 30)
        #expect(find(table, [1]) == 10)
        #expect(find(table, []) == 20)
        #expect(find(table, [1, 0]) == 30)
        #expect(remove(table, [1]))
        #expect(!remove(table, [1]))
        #expect(table.count == 2)
        table.checkInvariants()
    }

    @Test func anEmptyTableAnswersNothing() {
        let table = OrderedTable(payloadBytes: 0)
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        #expect(table.first(prefix: nothing) == nil)
        #expect(table.last(prefix: nothing) == nil)
        #expect(table.removeAll(prefix: nothing) == 0)
        table.removeAll()
        table.checkInvariants()
    }

    /// Keys of every length around a head, a prefix, the inline limit (128 of 1024) and beyond, over a small alphabet.
    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8]) func behavesAsASortedArray(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let table = OrderedTable(payloadBytes: 8, pageBytes: [1024, 2048, 16384][Int(seed) % 3])
        var model = SortedModel()
        let lengths = [[1, 2, 3], [8, 9, 10, 16], [30, 31, 32, 33, 40, 41], [0, 4, 63, 64, 65, 127, 128, 129, 300]][Int(seed) % 4]
        let shared = [UInt8](repeating: 7, count: Int(seed) % 5 * 10)
        for step in 0..<4000 {
            // Long phases of growth and of shrinking, so that every level splits and merges.
            let removes = step / 1000 % 2 == 1
            let key = shared + random.key(lengths)
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<14 where !removes, 0..<2:
                set(table, key, Int64(step))
                model.set(key, Int64(step))
            case 0..<16:
                let picked = Bool.random(using: &random) ? model.keys.randomElement(using: &random) ?? key : key
                #expect(remove(table, picked) == model.remove(picked))
            case 16:
                #expect(find(table, key) == model.find(key))
            case 17:
                let prefix = Array(key.prefix(Int.random(in: 0...key.count, using: &random)))
                let descending = Bool.random(using: &random)
                #expect(collect(table, prefix: prefix, descending: descending, limit: 30) == model.collect(prefix, descending, 30))
            case 18:
                let (low, high) = (key, shared + random.key(lengths))
                let descending = Bool.random(using: &random)
                #expect(collect(table, from: low, to: high, descending: descending) == model.collect(from: low, to: high, descending))
            default:
                guard key.count > shared.count + 2 || removes else { continue }
                let prefix = Array(key.dropLast(removes ? 0 : 1))
                #expect(prefix.withUnsafeBytes { table.removeAll(prefix: $0) } == model.removeAll(prefix))
            }
            if step % 100 == 0 || step > 3950 { table.checkInvariants() }
        }
        #expect(table.count == model.keys.count)
        #expect(collect(table, prefix: [], descending: false, limit: .max) == model.collect([], false, .max))
        #expect(collect(table, prefix: [], descending: true, limit: .max) == model.collect([], true, .max))
        while let key = model.keys.randomElement(using: &random) {
            #expect(remove(table, key))
            _ = model.remove(key)
        }
        table.checkInvariants()
        #expect(table.pageCount == 1)
    }

    @Test(arguments: [1024, 16384]) func ascendingKeysFillTheirPages(_ pageBytes: Int) {
        let table = OrderedTable(payloadBytes: 8, pageBytes: pageBytes)
        for index in 0..<20000 { set(table, bigEndian(index), Int64(index)) }
        table.checkInvariants()
        // A slot, a payload and a key: 32 bytes an entry.
        #expect(table.pageCount * pageBytes < 20000 * 32 * 3 / 2)
        for index in stride(from: 0, to: 20000, by: 7) { #expect(find(table, bigEndian(index)) == Int64(index)) }
        #expect(bigEndian(5000).withUnsafeBytes { low in bigEndian(15000).withUnsafeBytes { table.removeAll(from: low, to: $0) } } == 10000)
        table.checkInvariants()
        #expect(find(table, bigEndian(4999)) == 4999)
        #expect(find(table, bigEndian(5000)) == nil)
        #expect(find(table, bigEndian(15000)) == 15000)
    }

    @Test func descendingKeysAndTruncationFromTheFront() {
        let table = OrderedTable(payloadBytes: 16, pageBytes: 1024)
        for index in (0..<5000).reversed() { set(table, bigEndian(index), Int64(index)) }
        table.checkInvariants()
        for cut in stride(from: 0, through: 5000, by: 250) {
            _ = bigEndian(cut).withUnsafeBytes { table.removeAll(from: nil, to: $0) }
            table.checkInvariants()
            #expect(table.count == 5000 - cut)
        }
        #expect(table.pageCount == 1)
    }

    @Test func longKeysAreFreed() {
        let table = OrderedTable(payloadBytes: 8, pageBytes: 1024)
        for index in 0..<300 { set(table, [UInt8](repeating: 5, count: 500) + bigEndian(index), Int64(index)) }
        table.checkInvariants()
        #expect(table.byteCount > 300 * 500)
        let prefix: [UInt8] = [5]
        #expect(prefix.withUnsafeBytes { table.removeAll(prefix: $0) } == 300)
        table.checkInvariants()
        #expect(table.byteCount < 300 * 500)
        #expect(table.pageCount == 1)
    }

    private func bigEndian(_ index: Int) -> [UInt8] { withUnsafeBytes(of: UInt64(index).bigEndian) { Array($0) } }
}

private func find(_ table: OrderedTable, _ key: [UInt8]) -> Int64? {
    key.withUnsafeBytes { table.find($0)?.load(as: Int64.self) }
}

private func set(_ table: OrderedTable, _ key: [UInt8], _ value: Int64) {
    key.withUnsafeBytes { table.findOrInsert($0).payload.storeBytes(of: value, as: Int64.self) }
}

private func remove(_ table: OrderedTable, _ key: [UInt8]) -> Bool { key.withUnsafeBytes { table.remove($0) } }

private struct Pair: Equatable {
    var key: [UInt8]
    var value: Int64
}

private func collect(_ table: OrderedTable, prefix: [UInt8], descending: Bool, limit: Int) -> [Pair] {
    var result: [Pair] = []
    prefix.withUnsafeBytes { prefix in
        table.scan(prefix: prefix, descending: descending) { key, payload in
            result.append(Pair(key: Array(key), value: payload.load(as: Int64.self)))
            return result.count < limit
        }
    }
    return result
}

private func collect(_ table: OrderedTable, from: [UInt8], to: [UInt8], descending: Bool) -> [Pair] {
    var result: [Pair] = []
    from.withUnsafeBytes { from in
        to.withUnsafeBytes { to in
            table.scan(from: from, to: to, descending: descending) { key, payload in
                result.append(Pair(key: Array(key), value: payload.load(as: Int64.self)))
                return true
            }
        }
    }
    return result
}

/// What the table must equal: an array kept sorted.
private struct SortedModel {
    var keys: [[UInt8]] = []
    var values: [[UInt8]: Int64] = [:]

    private func position(_ key: [UInt8]) -> Int {
        var low = 0
        var high = keys.count
        while low < high {
            let middle = (low + high) / 2
            if keys[middle].lexicographicallyPrecedes(key) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    mutating func set(_ key: [UInt8], _ value: Int64) {
        if values.updateValue(value, forKey: key) == nil { keys.insert(key, at: position(key)) }
    }

    mutating func remove(_ key: [UInt8]) -> Bool {
        guard values.removeValue(forKey: key) != nil else { return false }
        keys.remove(at: position(key))
        return true
    }

    func find(_ key: [UInt8]) -> Int64? { values[key] }

    mutating func removeAll(_ prefix: [UInt8]) -> Int {
        let gone = keys.filter { $0.starts(with: prefix) }
        for key in gone { values[key] = nil }
        keys.removeAll { $0.starts(with: prefix) }
        return gone.count
    }

    func collect(_ prefix: [UInt8], _ descending: Bool, _ limit: Int) -> [Pair] {
        let found = keys.filter { $0.starts(with: prefix) }
        return (descending ? found.reversed() : found).prefix(limit).map { Pair(key: $0, value: values[$0]!) }
    }

    func collect(from: [UInt8], to: [UInt8], _ descending: Bool) -> [Pair] {
        let found = keys.filter { !$0.lexicographicallyPrecedes(from) && $0.lexicographicallyPrecedes(to) }
        return (descending ? found.reversed() : found).map { Pair(key: $0, value: values[$0]!) }
    }
}
