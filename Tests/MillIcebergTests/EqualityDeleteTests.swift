import MillColumnar
import MillObjectStore
import MillParquet
import MillTestKit
import Testing

@testable import MillIceberg

@Suite struct EqualityDeleteTests {
    private static let fields = [
        NestedField(1, "id", .long, isRequired: true), NestedField(2, "name", .string), NestedField(3, "small", .int),
    ]

    /// A delete file as another writer would have it: by `name` and `small`.
    private func deleteFile(_ sample: SampleTable, _ keys: [(Scalar, Scalar)]) throws -> DataFile {
        let path = "file:///lake/equality/data/deletes.parquet"
        let object = try sample.table.store.openForWriting(path)
        let writer = try ParquetWriter(object, [ParquetColumn("small", .int32, fieldID: 3), ParquetColumn("name", .varchar, fieldID: 2)])
        let (small, name) = (Column(.int32, capacity: keys.count), Column(.varchar, capacity: keys.count))
        for key in keys {
            name.append(key.0)
            small.append(key.1)
        }
        try writer.append([small, name], count: keys.count)
        try writer.finish()
        try object.finish()
        var file = DataFile(path: path, specID: 0, partition: [], recordCount: Int64(keys.count), fileByteCount: 0)
        file.content = .equalityDeletes
        file.equalityIDs = [2, 3]
        return file
    }

    @Test(arguments: [[1, 2, 3], [1], [3]]) func rowsWithDeletedValuesStayAway(wanted: [Int]) throws {
        var sample = try SampleTable("equality", seed: 31, fields: Self.fields)
        try sample.append(200)
        let keys: [(Scalar, Scalar)] = [(.string("north"), .int(0)), (.null, .int(1_000_003)), (.string("a"), .null), (.null, .null)]
        let file = try deleteFile(sample, keys)
        let plan = try ScanPlan(sample.table)
        var task = plan.tasks[0]
        task.deletes = [ManifestEntry(.added, snapshotID: 1, sequenceNumber: 9, fileSequenceNumber: 9, file)]
        let reader = try DataFileReader(task, plan, sample.table, fieldIDs: wanted)
        var found: [[Scalar]] = []
        while let batch = try reader.next() {
            #expect(batch.columns.count == wanted.count)
            for row in 0..<batch.count { found.append(batch.columns.map { $0.scalar(row) }) }
        }
        let left = sample.rows.values.filter { row in !keys.contains { $0.0 == row[1] && $0.1 == row[2] } }
        #expect(left.count < 200)
        #expect(SampleTable.sorted(found) == SampleTable.sorted(left.map { row in wanted.map { row[$0 - 1] } }))
    }

    @Test func theyHoldForOlderFilesOnly() throws {
        var index = DeleteIndex()
        var file = DataFile(path: "d", specID: 0, partition: [], recordCount: 1, fileByteCount: 1)
        file.content = .equalityDeletes
        index.add(ManifestEntry(.added, snapshotID: 1, sequenceNumber: 5, file), isPartitioned: false)
        func deletes(_ number: Int64, _ specID: Int) -> Int {
            let data = DataFile(path: "x", specID: specID, partition: specID == 0 ? [] : [.int(1)], recordCount: 1, fileByteCount: 1)
            return index.deletes(for: ManifestEntry(.added, snapshotID: 1, sequenceNumber: number, data)).count
        }
        #expect(deletes(4, 0) == 1)
        #expect(deletes(5, 0) == 0)
        // Those of an unpartitioned spec hold everywhere.
        #expect(deletes(4, 1) == 1)
    }
}

@Suite struct TableLayoutTests {
    private let schema = IcebergSchema(
        columns: [Field("id", .int64), Field("at", .timestamptz), Field("region", .varchar), Field("amount", .numeric)], required: ["id"])

    @Test func tablesAreMadeForColumns() {
        #expect(schema.fields.map(\.type) == [.long, .timestamptz, .string, .decimal(precision: 28, scale: 10)])
        #expect(schema.fields.map(\.id) == [1, 2, 3, 4])
        #expect(schema.fields.map(\.isRequired) == [true, false, false, false])
    }

    @Test func partitioningIsRead() throws {
        let spec = try PartitionSpec(parsing: " day(at), bucket( 16 , id ),truncate(region, 2),region", schema)
        #expect(spec.fields.map(\.name) == ["at_day", "id_bucket", "region_trunc", "region"])
        #expect(spec.fields.map(\.transform) == [.day, .bucket(16), .truncate(2), .identity])
        #expect(spec.fields.map(\.fieldID) == [1000, 1001, 1002, 1003])
        #expect(try PartitionSpec(parsing: "", schema).fields.isEmpty)
    }

    @Test(arguments: ["nothing", "day(id)", "bucket(0, id)", "week(at)", "bucket(id)", "region, region", "hour(", "bucket(1, 2)"])
    func whatMakesNoSenseIsRefused(text: String) {
        #expect(throws: IcebergError.self) { try PartitionSpec(parsing: text, schema) }
    }
}
