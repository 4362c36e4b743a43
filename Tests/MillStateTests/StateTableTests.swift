import MillBase
import MillColumnar
import MillTestKit
import Testing

@testable import MillState

@Suite struct StateTableTests {
    /// A table with its rows as a dictionary beside it, driven by random batches.
    private final class Model {
        let types: [SQLType]
        let table: StateTable
        var numbers: [ReferenceRow: RowNumber] = [:]
        var scalars: [ReferenceRow: [Scalar]] = [:]
        /// From a row to its hash; a poor one makes collisions.
        let hash: (UInt64) -> UInt64
        let equality: RowEquality

        init(_ types: [SQLType], by equality: RowEquality = .values, hash: @escaping (UInt64) -> UInt64 = { $0 }) {
            self.types = types
            self.hash = hash
            self.equality = equality
            table = StateTable(columns: types, payloadBytes: 16, equality: equality)
        }

        func key(_ row: [Scalar]) -> ReferenceRow {
            let values = row.map { ReferenceValue($0) }
            return equality == .values ? values.key : values
        }

        func columns(_ rows: [[Scalar]]) -> [Column] {
            types.enumerated().map { index, type in
                let column = Column(type, capacity: rows.count)
                for row in rows { column.append(row[index]) }
                return column
            }
        }

        func hashes(_ columns: [Column], _ count: Int) -> [UInt64] {
            var hashes = [UInt64](repeating: 0, count: count)
            RowHash.hash(columns, count: count, into: &hashes)
            return hashes.map(hash)
        }

        /// The rows in the order of their numbers, the same in every run.
        var keys: [ReferenceRow] { numbers.sorted { $0.value < $1.value }.map(\.key) }

        /// Inserts a batch; returns what is wrong.
        func insert(_ rows: [[Scalar]]) -> String? {
            let columns = columns(rows)
            var found = [RowNumber](repeating: 0, count: rows.count)
            var inserted = Selection(capacity: rows.count)
            table.findOrInsert(columns, hashes: hashes(columns, rows.count), count: rows.count, rows: &found, inserted: &inserted)
            var isInserted = Set<Int>()
            for position in 0..<inserted.count {
                if position > 0, inserted.rows[position] <= inserted.rows[position - 1] { return "the inserted rows are not ascending" }
                isInserted.insert(Int(inserted.rows[position]))
            }
            var taken = Set(numbers.values)
            for (index, row) in rows.enumerated() {
                let key = key(row)
                if let number = numbers[key] {
                    if number != found[index] { return "row \(key) was found at \(found[index]), is at \(number)" }
                    if isInserted.contains(index) { return "row \(key) was inserted twice" }
                } else {
                    guard isInserted.contains(index) else { return "row \(key) is new but was not inserted" }
                    if !taken.insert(found[index]).inserted { return "two rows have the number \(found[index])" }
                    let payload = table.payload(found[index])
                    if (0..<16).contains(where: { payload.load(fromByteOffset: $0, as: UInt8.self) != 0 }) { return "a new payload is not zero" }
                    numbers[key] = found[index]
                    scalars[key] = row
                }
            }
            return problem
        }

        func remove(_ key: ReferenceRow) {
            guard let number = numbers.removeValue(forKey: key) else { return }
            // Operators write payloads; a freed row must come back zero.
            table.prepareToWrite(number)
            table.writablePayload(number).storeBytes(of: .max, toByteOffset: 8, as: UInt64.self)
            table.remove(number)
        }

        var problem: String? {
            if table.count != numbers.count { return "\(table.count) rows instead of \(numbers.count)" }
            if let broken = table.checkInvariants().first { return broken }
            let keys = Array(numbers.keys)
            for start in stride(from: 0, to: keys.count, by: Limits.batchRowsMax) {
                if let problem = problem(Array(keys[start..<min(start + Limits.batchRowsMax, keys.count)])) { return problem }
            }
            return nil
        }

        private func problem(_ keys: [ReferenceRow]) -> String? {
            let columns = columns(keys.map { scalars[$0]! })
            var found = [RowNumber](repeating: 0, count: keys.count)
            table.find(columns, hashes: hashes(columns, keys.count), count: keys.count, rows: &found)
            for (index, key) in keys.enumerated() where found[index] != numbers[key] { return "row \(key) is not found" }
            let gathered = table.gather(rows: found, count: found.count)
            for (index, key) in keys.enumerated() where self.key(gathered.map { $0.scalar(index) }) != key { return "row \(key) has changed" }
            return nil
        }
    }

    private func randomRow(_ types: [SQLType], _ random: inout MillTestKit.SeededGenerator) -> [Scalar] {
        types.map { random.oneIn(6) ? .null : random.pick(RandomValues.all($0)) }
    }

    @Test(arguments: [0, 1, 2, 3]) func findsInsertsAndRemovesUnderAnyHash(quality: Int) {
        let hashes: [(UInt64) -> UInt64] = [
            { $0 }, { $0 & 3 }, { _ in 0 },
            // Homes at the very end of the directory: probing wraps around.
            { $0 | 0xFFFF_FFFF_0000_0000 },
        ]
        for seed in LawSettings(runs: 60).seeds {
            var random = MillTestKit.SeededGenerator(seed: seed)
            let types = (0..<random.number(1...4)).map { _ in random.pick(RandomValues.types) }
            let model = Model(types, by: random.oneIn(2) ? .values : .representation, hash: hashes[quality])
            for _ in 0..<8 {
                let rows = (0..<random.number(1...60)).map { _ in randomRow(types, &random) }
                if let problem = model.insert(rows) {
                    Issue.record("MILLRACE_SEED=\(seed): \(problem)")
                    return
                }
                for key in model.keys where random.oneIn(2) { model.remove(key) }
                if let problem = model.problem {
                    Issue.record("MILLRACE_SEED=\(seed): after removing: \(problem)")
                    return
                }
            }
        }
    }

    @Test func growsOverManyPagesAndShrinksToNothing() {
        let model = Model([.int64, .varchar])
        for start in stride(from: 0, to: 200_000, by: 4000) {
            let rows = (start..<start + 4000).map { number -> [Scalar] in [.int(Int64(number)), .string("a string of the row \(number)")] }
            let columns = model.columns(rows)
            var found = [RowNumber](repeating: 0, count: rows.count)
            var inserted = Selection(capacity: rows.count)
            model.table.findOrInsert(columns, hashes: model.hashes(columns, 4000), count: 4000, rows: &found, inserted: &inserted)
            #expect(inserted.count == 4000)
        }
        #expect(model.table.count == 200_000)
        #expect(model.table.checkInvariants() == [])
        var all: [RowNumber] = []
        model.table.forEachRow { all.append($0) }
        for number in all { model.table.remove(number) }
        #expect(model.table.count == 0)
        #expect(model.table.checkInvariants() == [])
        #expect(model.table.rows(fromHash: 0, limit: 10).rows.isEmpty)
        #expect(model.insert([[.int(1), .null]]) == nil)
    }

    @Test func widePageCrossingAndEmptyRows() {
        var random = MillTestKit.SeededGenerator(seed: 7)
        let wide = Model((0..<300).map { RandomValues.types[$0 % RandomValues.types.count] })
        #expect(wide.insert((0..<50).map { _ in randomRow(wide.types, &random) }) == nil)
        // Wider than a page.
        let wider = Model([SQLType](repeating: .numeric, count: 900))
        #expect(wider.insert((0..<5).map { _ in randomRow(wider.types, &random) }) == nil)
        let empty = Model([])
        #expect(empty.insert([[], [], []]) == nil)
        #expect(empty.table.count == 1)
        empty.remove([])
        #expect(empty.problem == nil)
    }

    @Test func snapshotsStayWhileTheWriterGoesOn() {
        for seed in LawSettings(runs: 10).seeds {
            var random = MillTestKit.SeededGenerator(seed: seed)
            let model = Model([.int64, .varchar])
            var held: [(snapshot: TableSnapshot, rows: Set<ReferenceRow>)] = []
            for round in 0..<20 {
                let rows = (0..<random.number(1...400)).map { _ -> [Scalar] in
                    let number = random.number(0...2000)
                    return [.int(Int64(number)), .string(String(repeating: "text ", count: number % 30))]
                }
                let columns = model.columns(rows)
                var found = [RowNumber](repeating: 0, count: rows.count)
                var inserted = Selection(capacity: rows.count)
                model.table.findOrInsert(columns, hashes: model.hashes(columns, rows.count), count: rows.count, rows: &found, inserted: &inserted)
                for (index, row) in rows.enumerated() {
                    model.numbers[row.map { ReferenceValue($0) }] = found[index]
                    model.table.prepareToWrite(found[index])
                    model.table.writablePayload(found[index]).storeBytes(of: 1, as: Int64.self)
                }
                for key in model.keys where random.oneIn(3) { model.remove(key) }
                if round % 3 == 0 { held.append((model.table.snapshot(), Set(model.numbers.keys))) }
                if held.count > 3 { held.removeFirst() }
                for (snapshot, rows) in held {
                    let found = DeltaBatch.counts(snapshot.batches(columns: [0, 1], weightOffset: 0))
                    #expect(snapshot.count == rows.count && Set(found.keys) == rows && found.values.allSatisfy { $0 == 1 }, "MILLRACE_SEED=\(seed)")
                }
            }
            #expect(model.table.checkInvariants() == [])
        }
    }

    @Test func compactionKeepsLiveStringsAndFreesDeadOnes() {
        let model = Model([.int64, .varchar])
        let text = String(repeating: "0123456789", count: 100)
        for start in stride(from: 0, to: 6000, by: 2000) {
            #expect(model.insert((start..<start + 2000).map { [.int(Int64($0)), .string(text + "\($0)")] }) == nil)
        }
        let snapshot = model.table.snapshot()
        var number = 0
        for key in model.keys {
            if number % 10 != 0 { model.remove(key) }
            number += 1
        }
        let before = model.table.heap.byteCount
        model.table.compactHeapIfWorthwhile()
        #expect(model.table.heap.byteCount < before / 2)
        #expect(model.problem == nil)
        let batches = snapshot.batches(columns: [1], weightOffset: 8)
        // Every payload is zero there, so no row has a weight; the strings are what the copied pages must still hold.
        #expect(batches.isEmpty && snapshot.count == 6000)
    }

    @Test func slicesByHashCoverEveryRowOnceWhileTheTableChanges() {
        for seed in LawSettings(runs: 100).seeds {
            var random = MillTestKit.SeededGenerator(seed: seed)
            // Some hashes at the ends, and several rows of one hash.
            let model = Model(
                [.int64],
                hash: { hash in hash % 7 == 0 ? hash | 0xFFFF_FFF0_0000_0000 : hash % 7 == 1 ? hash & 0xFF : hash % 7 == 2 ? hash & ~0xFFFF : hash })
            func add(_ count: Int) {
                let rows = (0..<count).map { _ -> [Scalar] in [.int(Int64(random.number(0...100_000)))] }
                #expect(model.insert(rows) == nil)
            }
            add(random.number(0...300))
            // Rows that are there from the first slice to the last must be seen exactly once.
            var staying = Set(model.keys.filter { _ in random.oneIn(2) })
            var seen: [ReferenceRow: Int] = [:]
            var position: UInt64? = 0
            var rounds = 0
            while let lower = position {
                let slice = model.table.rows(fromHash: lower, limit: random.number(1...40))
                let values = model.table.gather(rows: slice.rows, count: slice.rows.count)[0]
                for (index, number) in slice.rows.enumerated() {
                    seen[[ReferenceValue(values.scalar(index))], default: 0] += 1
                    let hash = model.table.storedHash(number)
                    #expect(hash >= lower && (slice.next.map { hash < $0 } ?? true))
                }
                position = slice.next
                if let next = slice.next { #expect(next > lower) }
                if random.oneIn(4) { add(random.number(1...30)) }
                for key in model.keys where !staying.contains(key) && random.oneIn(4) {
                    model.remove(key)
                }
                rounds += 1
                if rounds > 10_000 {
                    Issue.record("MILLRACE_SEED=\(seed): the slices do not end")
                    return
                }
            }
            staying = staying.filter { seen[$0] != 1 }
            #expect(staying.isEmpty, "MILLRACE_SEED=\(seed)")
            #expect(seen.values.allSatisfy { $0 >= 1 })
        }
    }
}
