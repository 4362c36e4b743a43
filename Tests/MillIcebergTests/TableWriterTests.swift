import MillColumnar
import MillObjectStore
import MillParquet
import MillTestKit
import Testing

@testable import MillIceberg

@Suite struct TableWriterTests {
    private static let fields = [
        NestedField(1, "id", .long, isRequired: true), NestedField(2, "name", .string), NestedField(3, "small", .int),
    ]
    private static let inputs = [DataFileWriter.Input(1, .int32), DataFileWriter.Input(2, .varchar), DataFileWriter.Input(3, .int16)]

    private func columns(_ rows: [(id: Int, name: String, small: Int)]) -> [Column] {
        let columns = [Column(.int32, capacity: rows.count), Column(.varchar, capacity: rows.count), Column(.int16, capacity: rows.count)]
        for row in rows {
            columns[0].append(Scalar.int(Int64(row.id)))
            columns[1].append(.string(row.name))
            columns[2].append(Scalar.int(Int64(row.small)))
        }
        return columns
    }

    private func table(_ sample: SampleTable) throws -> [Int64: String] {
        var result: [Int64: String] = [:]
        for row in try sample.scanned() {
            guard case .int(let id) = row[0], case .string(let name) = row[1] else { continue }
            #expect(result.updateValue("\(name) \(row[2])", forKey: id) == nil, "a key has one row")
        }
        return result
    }

    /// A model of the relation, its changes in random batches, commits, compactions, restarts: the table equals the model after each
    /// commit.
    @Test(arguments: [2, 3], 1...8) func theTableIsTheRelation(version: Int, seed: UInt64) throws {
        let spec = seed % 2 == 0 ? PartitionSpec() : PartitionSpec([PartitionField(sourceID: 1, fieldID: 1000, name: "b", .bucket(3))])
        var sample = try SampleTable("upsert", seed: seed, version: version, spec: spec, fields: Self.fields)
        var random = SeededGenerator(seed: seed)
        var model: [Int: (name: String, small: Int)] = [:]
        var settings = TableWriter.Settings(sample.settings)
        if seed > 4 {
            // Rows move when their file ends, some files while the epochs of a commit still come.
            settings.files.sortBytesMax = random.pick([2_000, 1 << 20])
            try sample.catalog.change(&sample.table) { metadata in
                metadata.sortOrders.append(SortOrder(orderID: 1, [SortField(sourceID: 2, isAscending: false), SortField(sourceID: 1)]))
                metadata.defaultSortOrderID = 1
            }
        }
        var writer = try TableWriter(sample.table, Self.inputs, key: [0], settings)
        for epoch in 1...12 as ClosedRange<Int64> {
            // One change of a key in an epoch, in any order and any batches.
            var changes: [(row: (id: Int, name: String, small: Int), weight: Int64)] = []
            for id in Set((0..<random.number(0...40)).map { _ in random.number(0...60) }).sorted() {
                if let old = model[id] { changes.append(((id, old.name, old.small), -1)) }
                if model[id] != nil, random.oneIn(3) {
                    model[id] = nil
                } else {
                    let new = (name: "name \(random.number(0...1000))", small: random.number(-9...9))
                    changes.append(((id, new.name, new.small), 1))
                    model[id] = new
                }
            }
            changes.shuffle(using: &random)
            var start = 0
            while start < changes.count {
                let part = changes[start..<min(changes.count, start + random.number(1...20))]
                try writer.write(columns(part.map(\.row)), count: part.count, weights: Weights(part.map(\.weight)), of: epoch)
                start += part.count
            }
            if random.oneIn(2) {
                try writer.commit(summary: [("epoch", "\(epoch)")])
                sample.table = writer.table
                #expect(
                    try table(sample)
                        == Dictionary(uniqueKeysWithValues: model.map { (Int64($0.key), "\($0.value.name) int(\($0.value.small))") }))
                #expect(sample.table.metadata.newestSummaryValue("epoch") == "\(epoch)")
                if random.oneIn(2) {
                    var settings = Compaction.Settings()
                    settings.filesMin = 2
                    try writer.resume(try Compaction(settings).run(writer.table, sample.settings).table)
                } else if random.oneIn(2) {
                    writer = try TableWriter(writer.table, Self.inputs, key: [0], settings)
                }
            }
        }
    }

    @Test func rowsOfOthersAreReplacedToo() throws {
        var sample = try SampleTable("others", seed: 41, fields: Self.fields)
        let writer = try TableWriter(sample.table, Self.inputs, key: [0], TableWriter.Settings(sample.settings))
        try writer.write(columns([(1, "one", 1)]), count: 1, weights: nil, of: 1)
        let other = try TableWriter(sample.table, Self.inputs, key: nil, TableWriter.Settings(sample.settings))
        try other.write(columns([(2, "two", 2)]), count: 1, weights: nil, of: 1)
        try other.commit(summary: [])
        try writer.commit(summary: [])
        try writer.write(columns([(2, "new", 3)]), count: 1, weights: nil, of: 2)
        try writer.commit(summary: [])
        sample.table = writer.table
        #expect(try table(sample) == [1: "one int(1)", 2: "new int(3)"])
    }

    /// Whoever commits first: the row that comes last is the key's.
    @Test(arguments: [2, 3]) func rowsThatOthersCommitMeanwhileAreReplacedToo(version: Int) throws {
        var sample = try SampleTable("meanwhile", seed: 43, version: version, fields: Self.fields)
        let writer = try TableWriter(sample.table, Self.inputs, key: [0], TableWriter.Settings(sample.settings))
        try writer.write(columns([(1, "one", 1), (2, "two", 2)]), count: 2, weights: nil, of: 1)
        try writer.commit(summary: [])
        let other = try TableWriter(writer.table, Self.inputs, key: nil, TableWriter.Settings(sample.settings))
        try other.write(columns([(7, "theirs", 7), (8, "theirs", 8), (1, "theirs", 1)]), count: 3, weights: nil, of: 1)
        try other.commit(summary: [])
        try writer.write(columns([(7, "ours", 0), (2, "new", 0), (1, "one", 1)]), count: 3, weights: Weights([1, 1, -1]), of: 2)
        try writer.commit(summary: [])
        sample.table = writer.table
        #expect(try table(sample) == [2: "new int(0)", 7: "ours int(0)", 8: "theirs int(8)"])
        try writer.write(columns([(7, "ours", 0), (8, "last", 0)]), count: 2, weights: Weights([-1, 1]), of: 3)
        try writer.commit(summary: [])
        sample.table = writer.table
        #expect(try table(sample) == [2: "new int(0)", 8: "last int(0)"])
    }

    /// Rows that others wrote go with all others: those of a key twice, which places know once, and those of the moment of the commit.
    @Test(arguments: [2, 3]) func aTableIsEmptiedOfTheRowsOfOthersToo(version: Int) throws {
        var sample = try SampleTable("emptied", seed: 44, version: version, fields: Self.fields)
        let other = try TableWriter(sample.table, Self.inputs, key: nil, TableWriter.Settings(sample.settings))
        try other.write(columns([(1, "twice", 1), (1, "twice", 2), (2, "once", 1)]), count: 3, weights: nil, of: 1)
        try other.commit(summary: [])
        let writer = try TableWriter(other.table, Self.inputs, key: [0], TableWriter.Settings(sample.settings))
        try writer.write(columns([(1, "gone", 1), (3, "gone", 3)]), count: 2, weights: nil, of: 1)
        try writer.clear()
        #expect(writer.pendingRowCount == 1)
        try other.write(columns([(4, "meanwhile", 4), (5, "meanwhile", 5)]), count: 2, weights: nil, of: 2)
        try other.commit(summary: [])
        try writer.write(columns([(1, "new", 0), (4, "new", 0), (6, "out of step", 0)]), count: 3, weights: nil, of: 2)
        try writer.write(columns([(6, "out of step", 0)]), count: 1, weights: Weights([-1]), of: 3)
        try writer.commit(summary: [])
        sample.table = writer.table
        #expect(try table(sample) == [1: "new int(0)", 4: "new int(0)"])
        try writer.write(columns([(1, "new", 0), (5, "last", 0)]), count: 2, weights: Weights([-1, 1]), of: 4)
        try writer.commit(summary: [])
        sample.table = writer.table
        #expect(try table(sample) == [4: "new int(0)", 5: "last int(0)"])
        #expect(writer.table.metadata.snapshot(ofBranch: "main")?.summaryValue("total-data-files") == "2")
    }

    /// However a text spells a UUID: read again it is spelt in one way.
    @Test func aKeyThatIsAUUIDIsFoundAgain() throws {
        let fields = [NestedField(1, "id", .uuid, isRequired: true), NestedField(2, "name", .string)]
        let inputs = [DataFileWriter.Input(1, .varchar), DataFileWriter.Input(2, .varchar)]
        func row(_ name: String) -> [Column] {
            let id = Scalar.string("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")
            return [.constant(id, .varchar, count: 1), .constant(.string(name), .varchar, count: 1)]
        }
        var sample = try SampleTable("uuid", seed: 45, fields: fields)
        for name in ["first", "second", "third"] {
            let writer = try TableWriter(sample.table, inputs, key: [0], TableWriter.Settings(sample.settings))
            try writer.write(row(name), count: 1, weights: nil, of: 1)
            try writer.commit(summary: [])
            sample.table = writer.table
        }
        #expect(try sample.scanned().map { $0[1] } == [.string("third")])
    }

    /// In the table they are texts: keys, partitions and orders of them are of texts as well.
    @Test(arguments: [Transform.identity, .bucket(4), .truncate(3)]) func intervalsAreTextsInAllRespects(transform: Transform) throws {
        let fields = [NestedField(1, "span", .string, isRequired: true), NestedField(2, "number", .int)]
        let inputs = [DataFileWriter.Input(1, .interval), DataFileWriter.Input(2, .int32)]
        let spec = PartitionSpec([PartitionField(sourceID: 1, fieldID: 1000, name: "part", transform)])
        var sample = try SampleTable("spans", seed: 46, spec: spec, fields: fields)
        try sample.catalog.change(&sample.table) { metadata in
            metadata.sortOrders.append(SortOrder(orderID: 1, [SortField(sourceID: 1)]))
            metadata.defaultSortOrderID = 1
        }
        func batch(_ numbers: Range<Int>) -> [Column] {
            let columns = [Column(.interval, capacity: numbers.count), Column(.int32, capacity: numbers.count)]
            for number in numbers {
                columns[0].append(Interval(months: Int32(number), days: -3, micros: Int64(number) * 1_000_001))
                columns[1].append(Int32(number))
            }
            return columns
        }
        for _ in 0..<2 {
            let writer = try TableWriter(sample.table, inputs, key: [0], TableWriter.Settings(sample.settings))
            try writer.write(batch(0..<40), count: 40, weights: nil, of: 1)
            try writer.commit(summary: [])
            sample.table = writer.table
        }
        let plan = try ScanPlan(sample.table)
        var numbers: [Scalar] = []
        for task in plan.tasks {
            let reader = try DataFileReader(task, plan, sample.table, fieldIDs: [1, 2])
            var texts: [String] = []
            while let read = try reader.next() {
                let parts = try #require(transform.applied(to: read.columns[0], of: .string, count: read.count))
                for row in 0..<read.count {
                    #expect([parts.scalar(row)] == task.file.partition)
                    numbers.append(read.columns[1].scalar(row))
                    if case .string(let text) = read.columns[0].scalar(row) { texts.append(text) }
                }
            }
            #expect(task.file.sortOrderID == 1 && texts == texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        }
        #expect(numbers.count == 40 && Set(numbers).count == 40)
        #expect(plan.tasks.count > 1)
    }

    /// What was refused leaves neither a file without rows nor a writer that maintenance stumbles over.
    @Test func afterARefusedBatchTheTableCanBeTakenUpAgain() throws {
        let fields = [NestedField(1, "id", .long, isRequired: true), NestedField(2, "at", .timestamp)]
        let inputs = [DataFileWriter.Input(1, .int64), DataFileWriter.Input(2, .timestamp)]
        let sample = try SampleTable("again", seed: 47, fields: fields)
        let writer = try TableWriter(sample.table, inputs, key: [0], TableWriter.Settings(sample.settings))
        let bad: [Column] = [.constant(.int(1), .int64, count: 1), .constant(.int(.max), .timestamp, count: 1)]
        for _ in 0..<2 {
            #expect(throws: IcebergError.parquet(.valueDoesNotFit(column: "at", row: 0, .infinite))) {
                try writer.write(bad, count: 1, weights: nil, of: 1)
            }
            #expect(writer.pendingRowCount == 0)
            try writer.resume(writer.table)
        }
        #expect(throws: IcebergError.self) { try writer.write(bad, count: 1, weights: nil, of: 2) }
        try writer.commit(summary: [])
        #expect(try ScanPlan(writer.table).tasks.isEmpty)
        #expect(try sample.table.store.list(sample.table.metadata.dataLocation).isEmpty)
    }

    /// Numbers of files that are gone are given to others: a sink of years does not remember each file that it ever wrote.
    @Test func filesThatAreGoneAreForgotten() throws {
        var sample = try SampleTable("forgotten", seed: 48, fields: Self.fields)
        var places = try KeyPlaces(sample.table.metadata.currentSchema, [1], keysMax: 1000)
        for _ in 0..<20 {
            try sample.append(10, operation: .overwrite)
            try places.refresh(sample.table, branch: "main")
            #expect(places.count == 10)
        }
        #expect(places.files.count == 2)
    }

    @Test func aRowThatComesVeryOftenIsWrittenInParts() throws {
        let sample = try SampleTable("often", seed: 49, fields: Self.fields)
        let writer = try TableWriter(sample.table, Self.inputs, key: nil, TableWriter.Settings(sample.settings))
        try writer.write(columns([(1, "a", 1), (2, "b", 2), (3, "c", 3)]), count: 3, weights: Weights([1, 50_000, 0]), of: 1)
        #expect(writer.pendingRowCount == 50_001)
        let bad = columns([(1, "a", 1), (2, "b", 2)])
        bad[0].setNull(1)
        #expect(throws: IcebergError.parquet(.valueDoesNotFit(column: "id", row: 1, .missingInRequiredColumn))) {
            try writer.write(bad, count: 2, weights: Weights([50_000, 1]), of: 2)
        }
        #expect(writer.pendingRowCount == 50_001)
        try writer.commit(summary: [])
        #expect(writer.table.metadata.snapshot(ofBranch: "main")?.summaryValue("total-records") == "50001")
    }

    @Test func aTableThatOnlyGrowsTakesNothingBack() throws {
        let sample = try SampleTable("grows", seed: 42, fields: Self.fields)
        let writer = try TableWriter(sample.table, Self.inputs, key: nil, TableWriter.Settings(sample.settings))
        try writer.write(columns([(1, "a", 1), (1, "b", 1)]), count: 2, weights: Weights([3, 1]), of: 1)
        #expect(throws: IcebergError.badRequest("rows are taken back from a table that is only added to")) {
            try writer.write(columns([(1, "a", 1)]), count: 1, weights: Weights([-1]), of: 1)
        }
        #expect(writer.pendingRowCount == 4)
        try writer.commit(summary: [("epoch", "1")])
        #expect(writer.table.metadata.snapshot(ofBranch: "main")?.summaryValue("total-records") == "4")
    }
}
