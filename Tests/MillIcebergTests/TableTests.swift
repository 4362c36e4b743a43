import MillColumnar
import MillIO
import MillObjectStore
import MillParquet
import MillTestKit
import Synchronization
import Testing

@testable import MillIceberg

@Suite struct TableTests {
    @Test(arguments: [2, 3], [false, true]) func rowsAreReadAsTheyWereWritten(version: Int, partitioned: Bool) throws {
        var sample = try SampleTable("rows", seed: 1, version: version, spec: partitioned ? SampleTable.spec : PartitionSpec())
        for count in [1, 300, 5000] { try sample.append(count) }
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        let snapshot = try #require(sample.table.metadata.snapshot(ofBranch: "main"))
        #expect(snapshot.summaryValue("total-records") == "5301")
        #expect(snapshot.summaryValue("test.rows") == "5000")
        #expect(sample.table.metadata.nextRowID == (version == 3 ? 5301 : 0))
    }

    @Test(arguments: [2, 3], 1...2) func deletedRowsStayAway(version: Int, seed: UInt64) throws {
        var sample = try SampleTable("deletes", seed: seed, version: version, spec: seed % 2 == 0 ? SampleTable.spec : PartitionSpec())
        try sample.append(2000)
        for round in 0..<4 {
            try sample.delete(oneIn: 7, adding: round % 2 == 0 ? 50 : 0)
            #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        }
        if version == 3 {
            let plan = try ScanPlan(sample.table)
            #expect(plan.tasks.allSatisfy { $0.deletes.count <= 1 })
        }
    }

    @Test(arguments: [2, 3], 1...3) func columnsOfColumnsAreWrittenDeletedAndCompacted(version: Int, seed: UInt64) throws {
        var sample = try SampleTable("nested", seed: seed, version: version, fields: SampleTable.nestedFields)
        for count in [1, 40, 900] { try sample.append(count) }
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        try sample.delete(oneIn: 3)
        var settings = Compaction.Settings()
        settings.filesMin = 2
        sample.table = try Compaction(settings).run(sample.table, sample.settings).table
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        #expect(try ScanPlan(sample.table).tasks.count == 1)
        let file = try #require(try ScanPlan(sample.table).tasks.first?.file)
        // Leaves of structs have bounds, those within lists and maps have none.
        #expect(file.lowerBounds[6] != nil && file.lowerBounds[3] == nil && file.lowerBounds[21] == nil && file.valueCounts[3] != nil)
    }

    @Test func whatANestedColumnHasNoPlaceForIsRefused() throws {
        let sample = try SampleTable("refused", seed: 1, fields: SampleTable.nestedFields)
        let inputs = SampleTable.nestedFields.map { DataFileWriter.Input($0.id, $0.type.sqlType ?? .varchar) }
        let writer = try DataFileWriter(sample.table.metadata, inputs, sample.table.store, random: SeededSource(1))
        func reason(_ point: String, tags: String = "[]", uid: String? = nil, code: [UInt8]? = nil, days: String? = "{}") -> UnfitValue? {
            let values: [Scalar] = [
                .int(1), .string(tags), .string(point), .null, .null, uid.map { .string($0) } ?? .null, code.map { .bytes($0) } ?? .null,
                days.map { .string($0) } ?? .null,
            ]
            let columns = zip(values, inputs).map { Column.constant($0, $1.type, count: 1) }
            do { try writer.append(columns, count: 1) } catch IcebergError.parquet(.valueDoesNotFit(_, 0, let reason)) { return reason } catch {}
            return nil
        }
        let whole = #"{"x": null, "y": 1, "label": "a", "path": null}"#
        #expect(reason(whole) == nil)
        #expect(reason(#"{"y": 1}"#) == nil, "what is missing is NULL")
        #expect(reason(#"{"x": 1}"#) == .missingMember("y"))
        #expect(reason(#"{"y": 1, "z": 2}"#) == .unknownMember("z"))
        #expect(reason(#"{"y": 1.5}"#) == .notOfType("y"))
        #expect(reason(#"{"y": 3000000000}"#) == .notOfType("y"))
        #expect(reason(#"{"y": 1, "path": [null]}"#) == .missingMember("element"))
        #expect(reason("[1]") == .notOfType("point"))
        #expect(reason(whole, tags: #"{"a": 1}"#) == .notOfType("tags"))
        #expect(reason(whole, tags: #"[["a"]]"#) == .notOfType("element"))
        #expect(reason(whole, uid: "no uuid") == .notOfType("uuid"))
        #expect(reason(whole, code: [1, 2, 3]) == .notOfType("fixed(4)"))
        #expect(reason(whole, days: nil) == .missingInRequiredColumn)
        #expect(reason(whole, days: #"{"a": {"day": "never", "hour": null}}"#) == .notOfType("day"))
    }

    /// NULL for all of them would be a lie that readers pass over files by.
    @Test func aPartitionByAPartOfAColumnIsNotWritten() throws {
        let spec = PartitionSpec([PartitionField(sourceID: 6, fieldID: 1000, name: "y", .identity)])
        let sample = try SampleTable("part", seed: 1, spec: spec, fields: SampleTable.nestedFields)
        let inputs = SampleTable.nestedFields.map { DataFileWriter.Input($0.id, $0.type.sqlType ?? .varchar) }
        #expect(throws: IcebergError.unsupported("partition field \"y\" of a part of column \"point\"")) {
            try DataFileWriter(sample.table.metadata, inputs, sample.table.store, random: SeededSource(1))
        }
        // Nothing is written to it: all of it is NULL.
        _ = try DataFileWriter(sample.table.metadata, inputs.filter { $0.fieldID != 4 }, sample.table.store, random: SeededSource(1))
    }

    /// What is in a table's files already is not refused when they are written anew, whatever became of it since.
    @Test(arguments: [false, true]) func compactionKeepsExtremeTimes(isSorted: Bool) throws {
        let fields = [NestedField(1, "at", .timestamp), NestedField(2, "day", .date), NestedField(3, "clock", .time)]
        var sample = try SampleTable("extremes", seed: 3, fields: fields)
        if isSorted {
            try sample.catalog.change(&sample.table) { metadata in
                metadata.sortOrders.append(SortOrder(orderID: 1, [SortField(sourceID: 1)]))
                metadata.defaultSortOrderID = 1
            }
        }
        let inputs = fields.map { DataFileWriter.Input($0.id, $0.type.sqlType ?? .varchar) }
        for extreme in [Int64.max, .min] {
            var settings = DataFileWriter.Settings()
            settings.rewrites = true
            let writer = try DataFileWriter(sample.table.metadata, inputs, sample.table.store, settings, random: sample.table.random)
            let row = [.int(extreme), .int(Int64(Int32(clamping: extreme))), .int(86_400_000_000)] as [Scalar]
            try writer.append(zip(row, inputs).map { Column.constant($0, $1.type, count: 1) }, count: 1)
            sample.table = try SnapshotCommit.run(.append(try writer.finish()), on: sample.table, sample.settings).table
        }
        let before = SampleTable.sorted(try sample.scanned())
        var settings = Compaction.Settings()
        settings.filesMin = 2
        sample.table = try Compaction(settings).run(sample.table, sample.settings).table
        #expect(try ScanPlan(sample.table).tasks.count == 1)
        #expect(SampleTable.sorted(try sample.scanned()) == before)
    }

    @Test func overwritingReplacesEverything() throws {
        var sample = try SampleTable("overwrite", seed: 3, spec: SampleTable.spec)
        try sample.append(100)
        try sample.delete(oneIn: 3)
        try sample.append(40, operation: .overwrite)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        #expect(sample.table.metadata.snapshot(ofBranch: "main")?.summaryValue("total-records") == "40")
        #expect(try sample.scanned(.snapshot(sample.table.metadata.snapshots[0].id)).count == 100)
    }

    @Test func propertiesOfTheTableAreObeyed() throws {
        var settings = DataFileWriter.Settings()
        settings.take([
            "write.target-file-size-bytes": "1000", "write.parquet.compression-codec": "GZIP", "write.parquet.compression-level": "99",
        ])
        #expect(settings.targetFileBytes == 1000)
        #expect(settings.parquet.compression == .gzip(level: 9))
        settings.take(["write.target-file-size-bytes": "-1", "write.parquet.compression-codec": "brotli"])
        #expect(settings.targetFileBytes == 1000)
        #expect(settings.parquet.compression == .gzip(level: 9), "what we cannot write leaves what was")
    }

    @Test func manySmallManifestsAreMerged() throws {
        var sample = try SampleTable("merge", seed: 4, properties: ["commit.manifest.min-count-to-merge": "5"])
        for _ in 0..<23 { try sample.append(3) }
        let manifests = try sample.table.manifests(of: sample.table.metadata.snapshot(ofBranch: "main"))
        #expect(manifests.count <= 5)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
    }

    @Test func aConflictIsTriedAgainOnTopOfTheOther() throws {
        var sample = try SampleTable("conflict", seed: 5)
        try sample.append(10)
        let other = Mutex(sample)
        let tries = Mutex(0)
        let removals = Removals(sample.catalog.store)
        sample.catalog.setHooks(before: { _ throws(IcebergError) in
            let number = tries.withLock { count in
                count += 1
                return count
            }
            // The first try finds that somebody else was faster; what he does comes through here as well.
            if number == 1 { other.withLock { sample in _ = try? sample.append(7) } }
        })
        let written = try sample.write(20)
        sample.table = try SnapshotCommit.run(.append(written.files), on: sample.table, sample.settings).table
        sample.keep(written)
        sample.rows.merge(other.withLock { $0.rows }) { $1 }
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        #expect(sample.rows.count == 37)
        let removed = removals.locations
        #expect(removed.count == 1 && removed.allSatisfy { $0.contains("/snap-") }, "only the list of the failed try goes")
    }

    @Test func deletesOfFilesThatAreGoneConflict() throws {
        var sample = try SampleTable("gone", seed: 6)
        try sample.append(100)
        let gone = sample.deletes(oneIn: 5)
        let base = sample.table.metadata.snapshot(ofBranch: "main")?.id
        try sample.append(10, operation: .overwrite)
        let objects = try sample.catalog.store.list("file:///lake").count
        #expect {
            try SnapshotCommit.run(.rowDelta([], gone, basedOn: base), on: sample.table, sample.settings)
        } throws: { ($0 as? IcebergError)?.isConflict == true }
        #expect(try sample.catalog.store.list("file:///lake").count == objects, "what the commit wrote is taken back")
    }

    @Test func anUnknownOutcomeIsLookedUp() throws {
        var sample = try SampleTable("unknown", seed: 7)
        sample.catalog.setHooks(after: { _ throws(IcebergError) in throw .commitUnknown("the answer was lost") })
        try sample.append(10)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        sample.catalog.setHooks(before: { _ throws(IcebergError) in throw .commitUnknown("the question was lost") })
        let written = try sample.write(5)
        let removals = Removals(sample.catalog.store)
        #expect(throws: IcebergError.commitUnknown("the question was lost")) {
            try SnapshotCommit.run(.append(written.files), on: sample.table, sample.settings)
        }
        #expect(removals.locations.isEmpty, "it may still arrive")
    }

    /// A request that came twice: the first was carried out, the answer is to the second.
    @Test(arguments: [1, 8]) func aConflictWithItselfIsACommit(tries: Int) throws {
        var sample = try SampleTable("twice", seed: 9)
        sample.catalog.setHooks(after: { _ throws(IcebergError) in throw .commitConflict("the branch is elsewhere") })
        let written = try sample.write(5)
        var settings = sample.settings
        settings.triesMax = tries
        sample.table = try SnapshotCommit.run(.append(written.files), on: sample.table, settings).table
        sample.keep(written)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
    }

    /// It commits, says that or something else, and then answers nothing.
    private struct LeavingCatalog: TableCatalog {
        let catalog: TestCatalog
        let answer: IcebergError

        func load(_ table: TableIdentifier) throws(IcebergError) -> LoadedTable { throw .io(IOFailure("load", path: "\(table)", errorNumber: 110)) }

        func commit(_ table: TableIdentifier, requirements: [TableRequirement], updates: [TableUpdate]) throws(IcebergError) -> LoadedTable {
            _ = try catalog.commit(table, requirements: requirements, updates: updates)
            throw answer
        }
    }

    /// A conflict may be one with the first of two requests, which was heard.
    @Test(arguments: [IcebergError.commitUnknown("the answer was lost"), .commitConflict("the branch is elsewhere")])
    func nothingGoesWhileNobodyCanBeAsked(answer: IcebergError) throws {
        let sample = try SampleTable("away", seed: 10)
        let table = IcebergTable(
            sample.table.identifier, metadata: sample.table.metadata, catalog: LeavingCatalog(catalog: sample.catalog, answer: answer), store: sample.table.store,
            clock: sample.table.clock, random: sample.table.random)
        let inputs = SampleTable.fields.map { DataFileWriter.Input($0.id, $0.type.sqlType ?? .varchar) }
        let writer = try TableWriter(table, inputs, key: nil, .init(sample.settings))
        let columns = inputs.map { Column.constant($0.fieldID == 1 ? .int(1) : .null, $0.type, count: 3) }
        try writer.write(columns, count: 3, weights: nil, of: 1)
        let objects = try sample.table.store.list(sample.table.metadata.location).count
        #expect { try writer.commit(summary: []) } throws: { ($0 as? IcebergError)?.isCommitUnknown == true }
        #expect(try sample.table.store.list(sample.table.metadata.location).count > objects)
        var found = sample
        try found.table.refresh()
        #expect(try found.scanned().count == 3)
    }

    @Test func valuesThatDoNotFitRefuseTheWholeBatch() throws {
        let sample = try SampleTable("unfit", seed: 8, spec: SampleTable.spec)
        let inputs = SampleTable.fields.map { DataFileWriter.Input($0.id, $0.type.sqlType ?? .varchar) }
        let writer = try DataFileWriter(sample.table.metadata, inputs, sample.table.store, random: SeededSource(1))
        let columns = inputs.map { Column.constant($0.fieldID == 1 ? .int(1) : .null, $0.type, count: 3) }
        let amount = Column(.numeric, capacity: 3)
        for unscaled in [100, 12_345, 1] as [Int128] { amount.append(Decimal(unscaled: unscaled, scale: 3)) }
        var bad = columns
        bad[3] = amount
        #expect(throws: IcebergError.parquet(.valueDoesNotFit(column: "amount", row: 1, .tooManyDigits(precision: 12, scale: 2)))) {
            try writer.append(bad, count: 3)
        }
        bad = columns
        bad[0] = .constant(.null, .int64, count: 3)
        #expect(throws: IcebergError.parquet(.valueDoesNotFit(column: "id", row: 0, .missingInRequiredColumn))) {
            try writer.append(bad, count: 3)
        }
        try writer.append(columns, count: 3)
        #expect(try writer.finish().map(\.recordCount).reduce(0, +) == 3)
    }
}

/// What a store in memory is told to remove from here on.
final class Removals: Sendable {
    private let log = Mutex<[String]>([])

    init(_ store: any ObjectStore) {
        (store as? MemoryObjectStore)?.setFaults { operation, location in
            if operation == .remove { self.log.withLock { $0.append(location) } }
            return nil
        }
    }

    var locations: [String] { log.withLock { $0 } }
}
