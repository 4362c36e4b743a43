import MillColumnar
import MillIO
import MillObjectStore
import MillTestKit
import Testing

@testable import MillIceberg

@Suite struct MaintenanceTests {
    private func compaction(_ filesMin: Int = 2) -> Compaction {
        var settings = Compaction.Settings()
        settings.filesMin = filesMin
        return Compaction(settings)
    }

    @Test(arguments: [2, 3], [false, true]) func compactionKeepsRowsAndLeavesFewFiles(version: Int, partitioned: Bool) throws {
        var sample = try SampleTable("compact", seed: 11, version: version, spec: partitioned ? SampleTable.spec : PartitionSpec())
        for _ in 0..<6 { try sample.append(40) }
        try sample.delete(oneIn: 5)
        let before = try ScanPlan(sample.table)
        let (table, outcome) = try compaction().run(sample.table, sample.settings, summary: [("why", "test")])
        sample.table = table
        let after = try ScanPlan(table)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        #expect(after.tasks.count < before.tasks.count)
        #expect(outcome.filesBefore - outcome.filesAfter == before.tasks.count - after.tasks.count)
        if !partitioned { #expect(after.tasks.count == 1) }
        let snapshot = try #require(table.metadata.snapshot(ofBranch: "main"))
        #expect(snapshot.summaryValue("operation") == "replace")
        #expect(snapshot.summaryValue("why") == "test")
        // What there is now is not worth another run.
        #expect(try compaction().run(table, sample.settings).outcome.filesBefore == 0)
    }

    @Test(arguments: [2, 3]) func compactionGivesWayToDeletes(version: Int) throws {
        var sample = try SampleTable("race", seed: 12, version: version)
        for _ in 0..<3 { try sample.append(40) }
        let stale = sample.table
        try sample.delete(oneIn: 4)
        // The compaction plans by what it knew; its commit finds the deletes of others.
        #expect {
            try compaction().run(stale, sample.settings)
        } throws: { ($0 as? IcebergError)?.isConflict == true }
        try sample.table.refresh()
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
    }

    @Test func compactionAndAppendsGoTogether() throws {
        var sample = try SampleTable("append", seed: 13)
        for _ in 0..<3 { try sample.append(40) }
        let stale = sample.table
        try sample.append(10)
        sample.table = try compaction().run(stale, sample.settings).table
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
    }

    private func expiry(keepMin: Int, age: Duration = .zero, keepMax: Int? = nil) -> SnapshotExpiry {
        var settings = SnapshotExpiry.Settings()
        (settings.keepMin, settings.age, settings.keepMax) = (keepMin, age, keepMax)
        return SnapshotExpiry(settings)
    }

    @Test(arguments: [2, 3]) func expiredSnapshotsTakeOnlyTheirOwnFiles(version: Int) throws {
        var sample = try SampleTable("expire", seed: 14, version: version, spec: SampleTable.spec)
        for _ in 0..<3 { try sample.append(30) }
        try sample.delete(oneIn: 5)
        sample.table = try compaction().run(sample.table, sample.settings).table
        try sample.append(5)
        (sample.table, _) = try expiry(keepMin: 2, age: .seconds(-1)).run(sample.table)
        #expect(sample.table.metadata.snapshots.count == 2)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
        for snapshot in sample.table.metadata.snapshots { _ = try sample.scanned(.snapshot(snapshot.id)) }
        // Nothing that is in no snapshot is left.
        let metadata = try sample.catalog.store.list("file:///lake/expire/metadata").map(\.location).filter { $0.hasSuffix(".json") }
        let orphans = try OrphanSearch.find(sample.table, prefix: "file:///lake/expire", olderThanMicros: .max, metadataFiles: metadata)
        #expect(orphans.isEmpty)
    }

    @Test func youngSnapshotsAndTagsStay() throws {
        var sample = try SampleTable("young", seed: 15)
        for _ in 0..<5 { try sample.append(3) }
        #expect(
            expiry(keepMin: 1, age: .seconds(3600)).expired(sample.table.metadata, nowMillis: sample.table.clock.nowMicros / 1000).isEmpty)
        #expect(
            expiry(keepMin: 1, age: .seconds(3600), keepMax: 2).expired(
                sample.table.metadata, nowMillis: sample.table.clock.nowMicros / 1000
            ).count == 3)
        let first = sample.table.metadata.snapshots[0].id
        try sample.catalog.change(&sample.table) { $0.references["start"] = SnapshotReference(tag: first) }
        (sample.table, _) = try expiry(keepMin: 1, age: .seconds(-1)).run(sample.table)
        #expect(sample.table.metadata.snapshots.count == 2)
        #expect(try sample.scanned(.reference("start")).count == 3)
    }

    /// However the references are looked at in turn.
    @Test func aTagOnTheWayEndsNoBranch() throws {
        for run in 0..<10 {
            var sample = try SampleTable("tagged", seed: 31)
            for _ in 0..<6 { try sample.append(1) }
            let ids = sample.table.metadata.snapshots.map(\.id)
            try sample.catalog.change(&sample.table) { $0.references["tag \(run)"] = SnapshotReference(tag: ids[4]) }
            #expect(expiry(keepMin: 5, age: .zero).expired(sample.table.metadata, nowMillis: 4_000_000_000_000) == [ids[0]])
        }
    }

    @Test func orphansAreFoundAndNothingElse() throws {
        var sample = try SampleTable("orphans", seed: 16)
        try sample.append(3)
        let lost = try sample.write(4).files.map(\.path)
        let metadata = try sample.catalog.store.list("file:///lake/orphans/metadata").map(\.location).filter { $0.hasSuffix(".json") }
        let found = try OrphanSearch.find(sample.table, prefix: "file:///lake/orphans", olderThanMicros: .max, metadataFiles: metadata)
        #expect(found.map(\.location) == lost)
        #expect(throws: IcebergError.self) {
            try OrphanSearch.find(sample.table, prefix: "file:///lake/other", olderThanMicros: .max, metadataFiles: [])
        }
    }

    /// What is staged to be published later, or was rolled back a moment ago.
    @Test func youngSnapshotsOnNoBranchStay() throws {
        var sample = try SampleTable("staged", seed: 19)
        for _ in 0..<4 { try sample.append(3) }
        let ids = sample.table.metadata.snapshots.map(\.id)
        try sample.catalog.change(&sample.table) { $0.references["main"]?.snapshotID = ids[2] }
        let now = try #require(sample.table.metadata.snapshots.map(\.timestampMillis).max())
        #expect(expiry(keepMin: 1, age: .seconds(3600), keepMax: 1).expired(sample.table.metadata, nowMillis: now) == [ids[0], ids[1]])
        #expect(
            expiry(keepMin: 1, age: .seconds(3600)).expired(sample.table.metadata, nowMillis: now + 3_600_001) == [ids[0], ids[1], ids[3]])
    }

    @Test func asManySnapshotsStayAsAreAskedFor() throws {
        var sample = try SampleTable("bounds", seed: 20)
        for _ in 0..<6 { try sample.append(1) }
        let far = Int64(4_000_000_000_000)
        #expect(expiry(keepMin: 5, age: .zero, keepMax: 2).expired(sample.table.metadata, nowMillis: far).count == 1)
        try sample.catalog.change(&sample.table) { $0.references["main"]?.minSnapshotsToKeep = 4 }
        #expect(expiry(keepMin: 1, age: .zero, keepMax: 2).expired(sample.table.metadata, nowMillis: far).count == 2)
    }

    // MARK: Orphans that are none

    private func orphans(_ table: IcebergTable, _ prefix: String) throws -> [String] {
        try OrphanSearch.find(table, prefix: prefix, olderThanMicros: .max, metadataFiles: []).map(\.location)
    }

    /// Hadoop writes `file:/x` where the table says `file:///x`, Spark may write `s3a://` where it says `s3://`.
    @Test func aFileIsNoOrphanHoweverItIsSpelt() throws {
        var sample = try SampleTable("spelt", seed: 21)
        try sample.append(3)
        var written = try sample.write(4).files
        for place in written.indices { written[place].path.replace("file:///", with: "file:/") }
        sample.table = try SnapshotCommit.run(.append(written), on: sample.table, sample.settings).table
        #expect(try orphans(sample.table, "file:///lake/spelt/data/").isEmpty)
    }

    /// One was renamed, and another made at the place that it keeps.
    @Test func aTableInTheSamePlaceKeepsItsFiles() throws {
        let store = MemoryObjectStore()
        var renamed = try SampleTable("shared", seed: 22, store: store)
        try renamed.append(3)
        let lost = try renamed.write(2).files.map(\.path)
        var made = try SampleTable("shared", seed: 23, store: store, catalogNumber: 1)
        try made.append(4)
        #expect(try orphans(made.table, "file:///lake/shared/data/") == lost)
        #expect(try orphans(made.table, "file:///lake/shared/metadata/").allSatisfy { $0.hasSuffix(".json") })
        // Of a table whose manifests are gone nothing is left to keep.
        try store.remove(renamed.table.metadata.snapshots.compactMap(\.manifestList))
        #expect(try orphans(made.table, "file:///lake/shared/data/") == (lost + renamed.files.keys).sorted())
    }

    /// The table `data` of a namespace that is called as the table.
    @Test func aTableFurtherBelowKeepsItsFiles() throws {
        let store = MemoryObjectStore()
        var outer = try SampleTable("outer", seed: 24, store: store)
        try outer.append(3)
        var inner = try SampleTable("data", seed: 25, store: store, root: "file:///lake/outer", catalogNumber: 1)
        try inner.append(4)
        #expect(try orphans(outer.table, "file:///lake/outer/data/").allSatisfy { $0.hasSuffix(".json") })
        #expect(try inner.scanned().count == 4)
    }

    /// Files that were there for long, and that another writer has just added.
    @Test func whatWasCommittedSinceTheTableWasLoadedIsNoOrphan() throws {
        var sample = try SampleTable("late", seed: 26)
        try sample.append(3)
        let stale = sample.table
        try sample.append(4)
        #expect(try orphans(stale, "file:///lake/late/data/").isEmpty)
    }

    @Test func filesOfATableThatIsSharedStay() throws {
        var sample = try SampleTable("kept", seed: 27)
        for _ in 0..<3 { try sample.append(2) }
        var settings = TableMaintenance.Settings()
        var expiry = SnapshotExpiry.Settings()
        (expiry.keepMin, expiry.age) = (1, .seconds(-1))
        (settings.expiry, settings.expiryCountMin, settings.grace, settings.findsOrphans) = (expiry, 1, .zero, true)
        var maintenance = TableMaintenance(settings, sample.settings, nowNanos: 0)
        try maintenance.run(&sample.table)
        #expect(maintenance.doomedFileCount > 0)
        try sample.catalog.change(&sample.table) { $0.properties["gc.enabled"] = "false" }
        let removals = Removals(sample.catalog.store)
        try maintenance.run(&sample.table)
        #expect(removals.locations.isEmpty && maintenance.doomedFileCount > 0)
    }

    /// Files that the store will not remove.
    @Test func whatCannotBeRemovedKeepsNothingElseFromBeingDone() throws {
        var sample = try SampleTable("stuck", seed: 28)
        let store = try #require(sample.catalog.store as? MemoryObjectStore)
        func commit() throws {
            var change = SnapshotChange(.append)
            change.isAlwaysMade = true
            sample.table = try SnapshotCommit.run(change, on: sample.table, sample.settings).table
        }
        var settings = TableMaintenance.Settings()
        var expiry = SnapshotExpiry.Settings()
        (expiry.keepMin, expiry.age) = (1, .seconds(-1))
        (settings.expiry, settings.expiryCountMin, settings.grace) = (expiry, 1, .zero)
        var maintenance = TableMaintenance(settings, sample.settings, nowNanos: 0)
        for _ in 0..<3 { try commit() }
        try maintenance.run(&sample.table)
        #expect(maintenance.doomedFileCount == 2)
        store.setFaults { operation, _ in operation == .remove ? .refused(13) : nil }
        try commit()
        #expect(throws: IcebergError.self) { try maintenance.run(&sample.table) }
        #expect(sample.table.metadata.snapshots.count == 1)
        #expect(maintenance.doomedFileCount == 3)
    }

    @Test func manifestsArePutTogetherOnTheirOwn() throws {
        var sample = try SampleTable("manifests", seed: 17, properties: ["commit.manifest-merge.enabled": "false"])
        for _ in 0..<40 { try sample.append(2) }
        #expect(try sample.table.manifests(of: sample.table.metadata.snapshot(ofBranch: "main")).count == 40)
        sample.table = try ManifestCompaction.run(sample.table, sample.settings)
        #expect(try sample.table.manifests(of: sample.table.metadata.snapshot(ofBranch: "main")).count == 1)
        #expect(SampleTable.sorted(try sample.scanned()) == sample.expected)
    }

    /// Commits by the thousand leave a table of bounded size.
    @Test func aLongRunStaysWithinItsBounds() throws {
        var sample = try SampleTable("long", seed: 18, version: 3, fields: [NestedField(1, "id", .long, isRequired: true)])
        for round in 1...120 {
            if round % 3 == 0 { try sample.delete(oneIn: 40, adding: 2) } else { try sample.append(2) }
            if round % 20 == 0 {
                sample.table = try compaction().run(sample.table, sample.settings).table
                // Where the rows are is not known any more, and only their number counts here.
                let plan = try ScanPlan(sample.table)
                sample.files = [:]
                var rows: [SampleTable.Place: [Scalar]] = [:]
                for task in plan.tasks {
                    sample.files[task.file.path] = task.file
                    let reader = try DataFileReader(task, plan, sample.table, fieldIDs: [1])
                    while let batch = try reader.next() {
                        for row in 0..<batch.count {
                            rows[SampleTable.Place(path: task.file.path, position: batch.positions[row])] = [batch.columns[0].scalar(row)]
                        }
                    }
                }
                #expect(SampleTable.sorted(Array(rows.values)) == sample.expected)
                sample.rows = rows
                sample.table = try expiry(keepMin: 3, age: .seconds(-1)).run(sample.table).table
            }
        }
        let plan = try ScanPlan(sample.table)
        #expect(plan.tasks.count <= 2)
        #expect(sample.table.metadata.snapshots.count == 3)
        let files = try sample.catalog.store.list("file:///lake/long").filter { !$0.location.hasSuffix(".json") }
        #expect(files.count < 120, "\(files.count) files")
    }
}
