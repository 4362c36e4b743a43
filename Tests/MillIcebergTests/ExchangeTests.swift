import MillBase
import MillColumnar
import MillIO
import MillObjectStore
import MillTestKit
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

@testable import MillIceberg

private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

private let exchangeDirectory = variable("MILLRACE_ICEBERG_EXCHANGE")

/// Our half of Scripts/test-iceberg, which sets the directory: tables for other programs to read, and what we read in theirs.
///
/// `ours/NAME.metadata` has the location of a table's metadata, `ours/NAME.jsonl` its rows (see `ExchangeFile`); for `theirs/NAME.metadata`
/// we write `theirs/NAME.read`.
@Suite(.enabled(if: exchangeDirectory != nil)) struct ExchangeTests {
    private let files = LocalFileSystem()
    private let seed = variable("MILLRACE_SEED").flatMap { UInt64($0) } ?? 1

    private func sample(_ name: String, version: Int, spec: PartitionSpec = PartitionSpec(), fields: [NestedField] = SampleTable.fields)
        throws -> SampleTable
    {
        let directory = try #require(exchangeDirectory) + "/ours"
        try files.createDirectory(directory)
        return try SampleTable(
            name, seed: seed &+ UInt64(version), store: LocalObjectStore(environment: .system), root: "file://" + directory,
            version: version, spec: spec,
            fields: fields,
            properties: ["commit.manifest.min-count-to-merge": "5"])
    }

    private func publish(_ sample: SampleTable, _ rows: [[Scalar]]? = nil, as name: String? = nil) throws {
        let name = try #require(exchangeDirectory) + "/ours/" + (name ?? sample.table.identifier.name)
        let columns = zip(sample.table.metadata.currentSchema.fields, sample.types).map { ($0.name, $1) }
        try ExchangeFile.write(columns, rows ?? Array(sample.rows.values), name + ".jsonl", files)
        try ExchangeFile.write(sample.catalog.metadataFile(sample.table.identifier) ?? "", name + ".metadata", files)
    }

    @Test(arguments: [2, 3]) func tablesForOthers(version: Int) throws {
        for (name, spec) in [("plain", PartitionSpec()), ("partitioned", SampleTable.spec)] {
            var table = try sample("\(name)-\(version)", version: version, spec: spec)
            for count in [1, 700, 5000] { try table.append(count, targetFileBytes: 200_000) }
            try publish(table)
            var deleted = try sample("\(name)-deletes-\(version)", version: version, spec: spec)
            try deleted.append(2000)
            for round in 0..<7 { try deleted.delete(oneIn: 9, adding: round * 5) }
            try publish(deleted)
            var compacted = try sample("\(name)-compacted-\(version)", version: version, spec: spec)
            for _ in 0..<12 { try compacted.append(60) }
            try compacted.delete(oneIn: 6)
            var settings = Compaction.Settings()
            settings.filesMin = 2
            compacted.table = try Compaction(settings).run(compacted.table, compacted.settings).table
            try publish(compacted)
            var replaced = try sample("\(name)-replaced-\(version)", version: version, spec: spec)
            try replaced.append(100)
            try replaced.append(30, operation: .overwrite)
            try publish(replaced)
        }
        for (index, order) in SortOrderTests.orders.enumerated() {
            let spec = index % 2 == 0 ? PartitionSpec() : SampleTable.spec
            var sorted = try sample("sorted-\(index)-\(version)", version: version, spec: spec)
            try sorted.catalog.change(&sorted.table) { metadata in
                metadata.sortOrders.append(SortOrder(orderID: 1, order))
                metadata.defaultSortOrderID = 1
            }
            for count in [1, 300, 5000] { try sorted.append(count) }
            try publish(sorted)
            let plain = sorted.table.identifier.name
            var settings = Compaction.Settings()
            settings.filesMin = 2
            sorted.table = try Compaction(settings).run(sorted.table, sorted.settings).table
            try publish(sorted, as: plain + "-compacted")
        }
        var nested = try sample("nested-\(version)", version: version, fields: SampleTable.nestedFields)
        for count in [1, 700] { try nested.append(count) }
        try nested.delete(oneIn: 9)
        try publish(nested)
        var evolved = try sample(
            "evolved-\(version)", version: version,
            fields: [NestedField(1, "id", .int, isRequired: true), NestedField(2, "a", .float), NestedField(3, "b", .string)])
        try evolved.append(50)
        try evolved.catalog.change(&evolved.table) { metadata in
            metadata.schemas.append(
                IcebergSchema(
                    schemaID: 1,
                    [
                        NestedField(2, "renamed", .double), NestedField(1, "id", .long, isRequired: true), NestedField(4, "b", .string),
                        NestedField(5, "c", .date),
                    ]))
            (metadata.currentSchemaID, metadata.lastColumnID) = (1, 5)
        }
        let old = evolved.rows.values.map { row in [row[1], row[0], .null, .null] }
        evolved.rows = [:]
        try evolved.append(60)
        try upserted(version)
        try publish(evolved, old + Array(evolved.rows.values))
        try publish(try sample("empty-\(version)", version: version))
    }

    /// Keys written again and again, some taken back.
    private func upserted(_ version: Int) throws {
        let fields = [NestedField(1, "id", .long, isRequired: true), NestedField(2, "name", .string)]
        let table = try sample("upserted-\(version)", version: version, fields: fields)
        var writer = try TableWriter(table.table, [.init(1, .int64), .init(2, .varchar)], key: [0], TableWriter.Settings(table.settings))
        var random = SeededGenerator(seed: seed)
        var model: [Int: String] = [:]
        for epoch in 1...9 as ClosedRange<Int64> {
            let ids = Array(Set((0..<300).map { _ in random.number(0...500) }).sorted().prefix(200))
            let (id, name) = (Column(.int64, capacity: ids.count), Column(.varchar, capacity: ids.count))
            var weights: [Int64] = []
            for key in ids {
                id.append(Int64(key))
                name.append("name \(key) of \(epoch)")
                weights.append(random.oneIn(4) ? -1 : 1)
                model[key] = weights.last == 1 ? "name \(key) of \(epoch)" : nil
            }
            try writer.write([id, name], count: ids.count, weights: Weights(weights), of: epoch)
            try writer.commit(summary: [("epoch", "\(epoch)")])
            if epoch == 5 {
                writer = try TableWriter(
                    writer.table, [.init(1, .int64), .init(2, .varchar)], key: [0], TableWriter.Settings(table.settings))
            }
        }
        try publish(table, model.map { [.int(Int64($0.key)), .string($0.value)] })
    }

    @Test func tablesOfOthers() throws {
        let directory = try #require(exchangeDirectory) + "/theirs"
        guard files.exists(directory) else { return }
        let store = LocalObjectStore(environment: .system)
        for name in try files.list(directory) where name.hasSuffix(".metadata") {
            let path = directory + "/" + name
            let location = String(decoding: try store.get("file://" + path), as: UTF8.self)
            do {
                let metadata = try TableMetadata(try store.get(location), location: location)
                let table = IcebergTable(
                    TableIdentifier(namespace: [], name: name), metadata: metadata, catalog: TestCatalog(store), store: store,
                    clock: VirtualClock(),
                    random: SeededSource(1))
                let plan = try ScanPlan(table)
                let fields = plan.schema.fields.filter { $0.type.sqlType != nil }
                var rows: [[Scalar]] = []
                for task in plan.tasks {
                    let reader = try DataFileReader(task, plan, table, fieldIDs: fields.map(\.id))
                    while let batch = try reader.next() {
                        for row in 0..<batch.count { rows.append(batch.columns.map { $0.scalar(row) }) }
                    }
                }
                try ExchangeFile.write(fields.map { ($0.name, $0.type.sqlType ?? .varchar) }, rows, path + ".read", files)
            } catch let error as IcebergError {
                try ExchangeFile.write(error.sqlError.description, path + ".error", files)
            }
        }
    }
}
