import MillColumnar
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
