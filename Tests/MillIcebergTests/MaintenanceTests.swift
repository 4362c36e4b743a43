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
