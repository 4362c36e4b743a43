import MillColumnar
import MillObjectStore
import MillParquet
import MillTestKit
import Testing

@testable import MillIceberg

/// Rows of a table with a sort order are in that order in every file, and every file that says so is.
@Suite struct SortOrderTests {
    private static func sample(
        _ name: String, seed: UInt64, _ fields: [SortField], spec: PartitionSpec = PartitionSpec(), version: Int = 2
    ) throws -> SampleTable {
        var sample = try SampleTable(name, seed: seed, version: version, spec: spec)
        try sample.catalog.change(&sample.table) { metadata in
            metadata.sortOrders.append(SortOrder(orderID: 3, fields))
            metadata.defaultSortOrderID = 3
        }
        return sample
    }

    /// Orders over all types, both directions, NULLs on both sides, and transforms.
    static let orders: [[SortField]] = [
        [SortField(sourceID: 1)],
        [SortField(sourceID: 2, isAscending: false, nullsFirst: false), SortField(sourceID: 1)],
        [SortField(sourceID: 7, nullsFirst: false), SortField(sourceID: 8, isAscending: false)],
        [SortField(sourceID: 1, .bucket(4), isAscending: false), SortField(sourceID: 3, .day), SortField(sourceID: 4)],
        [
            SortField(sourceID: 5), SortField(sourceID: 6, .truncate(10)), SortField(sourceID: 2, .truncate(1)),
            SortField(sourceID: 13, isAscending: false),
        ],
        [
            SortField(sourceID: 9, .month, isAscending: false), SortField(sourceID: 11, .hour), SortField(sourceID: 12),
            SortField(sourceID: 10),
        ],
    ]

    /// Whether a file's rows are in an order, told by comparing scalars.
    private func isSorted(_ rows: [[Scalar]], _ order: [SortField], _ schema: IcebergSchema) -> Bool {
        func compare(_ a: [Scalar], _ b: [Scalar]) -> Int {
            for field in order {
                guard let place = schema.fields.firstIndex(where: { $0.id == field.sourceID }) else { continue }
                let type = schema.fields[place].type
                let (left, right) = (value(a[place], type, field.transform), value(b[place], type, field.transform))
                switch (left == .null, right == .null) {
                case (true, true): continue
                case (true, false): return field.nullsFirst ? -1 : 1
                case (false, true): return field.nullsFirst ? 1 : -1
                case (false, false): break
                }
                var result = Self.order(left, right)
                if !field.isAscending { result = -result }
                if result != 0 { return result }
            }
            return 0
        }
        return zip(rows, rows.dropFirst()).allSatisfy { compare($0, $1) <= 0 }
    }

    private static func order(_ a: Scalar, _ b: Scalar) -> Int {
        if case .float(let left) = a, case .float(let right) = b {
            if left.isNaN || right.isNaN { return (left.isNaN ? 1 : 0) - (right.isNaN ? 1 : 0) }
        }
        return ScalarOrder.compare(a, b)
    }

    private func value(_ scalar: Scalar, _ type: IcebergType, _ transform: Transform) -> Scalar {
        let column = Column.constant(scalar, type.sqlType ?? .varchar, count: 1)
        return transform.applied(to: column, of: type, count: 1)?.scalar(0) ?? .null
    }

    /// The rows of each file, in the file's order, deleted ones left out.
    private func files(_ sample: SampleTable) throws -> [(file: DataFile, rows: [[Scalar]])] {
        let plan = try ScanPlan(sample.table)
        return try plan.tasks.map { task in
            let reader = try DataFileReader(task, plan, sample.table, fieldIDs: plan.schema.fields.map(\.id))
            var rows: [[Scalar]] = []
            while let batch = try reader.next() {
                for row in 0..<batch.count { rows.append(batch.columns.map { $0.scalar(row) }) }
            }
            return (task.file, rows)
        }
    }

    @Test(arguments: orders.indices, [false, true]) func rowsOfAFileAreInTheTablesOrder(order: Int, partitioned: Bool) throws {
        let fields = Self.orders[order]
        var sample = try Self.sample("sorted", seed: UInt64(100 + order), fields, spec: partitioned ? SampleTable.spec : PartitionSpec())
        for count in [1, 300, 9000] { try sample.append(count) }
        try sample.append(3000, targetFileBytes: 100_000)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        for (file, rows) in try files(sample) {
            #expect(file.sortOrderID == 3)
            #expect(isSorted(rows, fields, sample.table.metadata.currentSchema), "\(file.path)")
        }
    }

    @Test(arguments: orders.indices, [2, 3]) func compactionKeepsTheOrder(order: Int, version: Int) throws {
        let fields = Self.orders[order]
        var sample = try Self.sample("merged", seed: UInt64(200 + order), fields, version: version)
        for count in [500, 1, 5000, 40] { try sample.append(count) }
        try sample.delete(oneIn: 7)
        var settings = Compaction.Settings()
        settings.filesMin = 2
        sample.table = try Compaction(settings).run(sample.table, sample.settings).table
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        let after = try files(sample)
        #expect(after.count == 1)
        for (file, rows) in after {
            #expect(file.sortOrderID == 3)
            #expect(isSorted(rows, fields, sample.table.metadata.currentSchema))
        }
    }

    /// Files from before the table had an order, and one that lies: their rows are sorted by compaction all the same.
    @Test func compactionSortsWhatIsNotSorted() throws {
        let fields = Self.orders[1]
        var sample = try SampleTable("unsorted", seed: 31)
        for _ in 0..<3 { try sample.append(200) }
        #expect(try files(sample).allSatisfy { $0.file.sortOrderID == 0 })
        try sample.catalog.change(&sample.table) { metadata in
            metadata.sortOrders.append(SortOrder(orderID: 3, fields))
            metadata.defaultSortOrderID = 3
        }
        try sample.append(200)
        var claimed = try unsortedFiles(&sample, 300)
        for index in claimed.files.indices { claimed.files[index].sortOrderID = 3 }
        sample.table = try SnapshotCommit.run(SnapshotChange.append(claimed.files), on: sample.table, sample.settings).table
        sample.keep(claimed)
        #expect(try !files(sample).allSatisfy { isSorted($0.rows, fields, sample.table.metadata.currentSchema) })
        var settings = Compaction.Settings()
        settings.filesMin = 2
        for _ in 0..<2 { sample.table = try Compaction(settings).run(sample.table, sample.settings).table }
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        let after = try files(sample)
        #expect(after.count == 1)
        #expect(after.allSatisfy { $0.file.sortOrderID == 3 && isSorted($0.rows, fields, sample.table.metadata.currentSchema) })
    }

    /// Files of a writer that knows no order.
    private func unsortedFiles(_ sample: inout SampleTable, _ count: Int) throws -> SampleTable.Written {
        let table = sample.table
        sample.table.metadata.defaultSortOrderID = 0
        defer { sample.table = table }
        return try sample.write(count)
    }

    @Test func whatWaitsToBeSortedIsBounded() throws {
        let spec = PartitionSpec([PartitionField(sourceID: 1, fieldID: 1000, name: "b", .bucket(8))])
        let sample = try Self.sample("bounded", seed: 32, Self.orders[0], spec: spec)
        var settings = DataFileWriter.Settings()
        settings.sortBytesMax = 200_000
        let writer = try DataFileWriter(
            sample.table.metadata, [.init(1, .int64), .init(2, .varchar)], sample.table.store, settings, random: sample.table.random)
        for batch in 0..<50 {
            let (id, name) = (Column(.int64, capacity: 400), Column(.varchar, capacity: 400))
            for row in 0..<400 {
                id.append(Int64((batch * 400 + row) * 7919 % 20_011))
                name.append("a text that is longer than twelve bytes \(row)")
            }
            try writer.append([id, name], count: 400)
            #expect(writer.openByteCount <= 200_000)
        }
        let files = try writer.finish()
        #expect(files.count > 8)
        #expect(files.reduce(0) { $0 + $1.recordCount } == 20_000)
    }

    /// Keys have long texts whole, beside the rows.
    @Test func longTextsCountWithTheirKeys() throws {
        func bytes(_ order: [SortField]) throws -> Int {
            let sample = try Self.sample("keys", seed: 39, order)
            let writer = try DataFileWriter(
                sample.table.metadata, [.init(1, .int64), .init(2, .varchar)], sample.table.store, random: sample.table.random)
            let text = String(repeating: "long ", count: 200)
            try writer.append([.constant(.int(1), .int64, count: 1), .constant(.string(text), .varchar, count: 1)], count: 1)
            return writer.openByteCount
        }
        #expect(try bytes([SortField(sourceID: 2)]) == bytes([SortField(sourceID: 1)]) + 1000)
    }

    /// -0 is below 0, and NaN above all: bits, and not what `==` says.
    @Test func floatsGoByAllTheirBits() throws {
        let table = try Self.sample("floats", seed: 33, [SortField(sourceID: 7)]).table
        let values: [Double] = [.nan, 0, -0.0, .infinity, -1, 0, -.infinity, 1, -0.0]
        let fields = [NestedField(7, "ratio", .double)]
        guard case .order(let order) = RowOrder.find(table.metadata, fields) else {
            Issue.record("the table has an order")
            return
        }
        let column = Column(.float64, capacity: values.count)
        for value in values { column.append(Scalar.float(value)) }
        var keys = EncodedKeys(capacity: values.count)
        try order.appendKeys([column], count: values.count, to: &keys)
        #expect(RowSort.sort(keys) == [6, 4, 2, 8, 1, 5, 7, 3, 0])
    }

    @Test func uuidsGoByTheirBytesHoweverTheyAreSpelled() throws {
        var table = try SampleTable("uuids", seed: 34, fields: [NestedField(1, "id", .uuid)]).table
        table.metadata.sortOrders.append(SortOrder(orderID: 1, [SortField(sourceID: 1)]))
        table.metadata.defaultSortOrderID = 1
        guard case .order(let order) = RowOrder.find(table.metadata, table.metadata.currentSchema.fields) else {
            Issue.record("the table has an order")
            return
        }
        let texts = ["b0000000-0000-0000-0000-000000000000", "A0000000000000000000000000000000", "a0000000-0000-0000-0000-000000000001"]
        let column = Column(.varchar, capacity: 3)
        for text in texts { column.append(text) }
        var keys = EncodedKeys(capacity: 3)
        try order.appendKeys([column], count: 3, to: &keys)
        #expect(RowSort.sort(keys) == [1, 2, 0])
    }

    @Test func anOrderThatCannotBeMadeIsNotClaimed() throws {
        var nested = try SampleTable("nested", seed: 35, fields: SampleTable.nestedFields)
        try nested.catalog.change(&nested.table) { metadata in
            metadata.sortOrders.append(SortOrder(orderID: 1, [SortField(sourceID: 5)]))
            metadata.defaultSortOrderID = 1
        }
        #expect(try nested.append(20).allSatisfy { $0.sortOrderID == 0 })
        var unknown = try Self.sample("unknown", seed: 36, [SortField(sourceID: 1, .unknown("zorder"))])
        #expect(try unknown.append(20).allSatisfy { $0.sortOrderID == 0 })
        // A column without values, or one value for all, is in any order.
        var void = try Self.sample("void", seed: 38, [SortField(sourceID: 1, .void)])
        #expect(try void.append(20).allSatisfy { $0.sortOrderID == 0 })
    }

    @Test func anOrderIsReadAsItIsWrittenInSQL() throws {
        let schema = IcebergSchema(SampleTable.fields)
        #expect(
            try SortOrder(parsing: "name desc NULLS  last, bucket(8, id) nulls first,day(at) DESC , amount asc", schema).fields == [
                SortField(sourceID: 2, isAscending: false, nullsFirst: false), SortField(sourceID: 1, .bucket(8), nullsFirst: true),
                SortField(sourceID: 3, .day, isAscending: false, nullsFirst: true), SortField(sourceID: 4, nullsFirst: false),
            ])
        #expect(try SortOrder(parsing: " ", schema) == SortOrder())
        for (text, message) in [
            ("nam", "order_key names column \"nam\", which there is not"),
            ("id, id desc", "order_key has \"id\" twice"),
            ("day(id)", "order_key has \"day(id)\", but column \"id\" is long"),
            ("id down", "order_key names column \"id down\", which there is not"),
        ] {
            #expect(throws: IcebergError.badRequest(message)) { try SortOrder(parsing: text, schema) }
        }
    }
}
