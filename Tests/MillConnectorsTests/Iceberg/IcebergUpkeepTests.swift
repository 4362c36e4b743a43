import MillBase
import MillColumnar
import MillConnectorKit
import MillIceberg
import MillLakeCatalog
import MillObjectStore
import MillTestKit
import Testing

@testable import MillConnectors

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// A table that gets a commit every second for an hour.
@Suite struct IcebergUpkeepTests {
    /// `MILLRACE_COMMITS=3600` makes the hour whole, which takes some minutes.
    private static let seconds = getenv("MILLRACE_COMMITS").flatMap { Int(String(cString: $0)) } ?? 400
    /// Within the grace of files that nobody names.
    private static let readerSeconds = min(600, seconds / 2)

    @Test(arguments: [false, true]) func aCommitEachSecondLeavesATableThatReadersLike(isUpsert: Bool) throws {
        let seed = UInt64.random(in: 0 ... .max)
        let world = try SinkWorld(seed: seed)
        var random = SeededGenerator(seed: seed)
        let sink = try world.sink("id:bigint name:text", key: isUpsert ? [0] : nil, ["snapshots_max": "50"])
        let target = try sink.prepare()
        let writer = try sink.open(sink: SinkName("00112233445566778899aabbccddeeff"), incarnation: target.incarnation)
        var model: [Int: String] = [:]
        var readers: [(second: Int, table: IcebergTable)] = []
        for second in 1...Self.seconds {
            let id = isUpsert ? random.number(0...300) : second
            var text = "id:bigint name:text"
            if let old = model[id] { text += "; -1 \(id) \(old)" }
            model[id] = "n\(second)"
            _ = try writer.write(.drawn(text + "; +1 \(id) n\(second)"), epoch: Int64(second))
            try writer.commit(through: Int64(second))
            try writer.maintain()
            world.clock.advance(by: .seconds(1))
            guard second.isMultiple(of: 100) else { continue }
            let table = try world.open()
            try checkBounds(table, "second \(second), seed \(seed)")
            readers.append((second, table))
            if let first = readers.first, second - first.second >= Self.readerSeconds {
                readers.removeFirst()
                try checkReadable(first.table, "loaded at second \(first.second), seed \(seed)")
            }
        }
        #expect(try world.rows() == model.map { "\($0.key) \($0.value)" }.sorted(), "seed \(seed)")
        let table = try world.open()
        let files = try table.store.list(table.metadata.location)
        // What is named, and what waits for its grace: 900 seconds with at most a few files each.
        #expect(files.count < 6000, "\(files.count) files, seed \(seed)")
    }

    private func checkBounds(_ table: IcebergTable, _ when: String) throws {
        #expect(table.metadata.snapshots.count <= 60, "\(when)")
        #expect(table.metadata.metadataLog.count <= 100, "\(when)")
        let manifests = try table.manifests(of: table.metadata.snapshot(ofBranch: "main"))
        #expect(manifests.count <= 70, "\(manifests.count) manifests, \(when)")
        let tasks = try ScanPlan(table).tasks
        #expect(tasks.count <= 80, "\(tasks.count) data files, \(when)")
        let deletes = Set(tasks.flatMap(\.deletes).map(\.file.path))
        #expect(deletes.count <= 400, "\(deletes.count) delete files, \(when)")
        #expect(tasks.allSatisfy { $0.deletes.count <= 32 + 31 }, "\(when)")
        let metadata = try table.store.list(table.metadata.metadataDirectory).filter { $0.location.hasSuffix(".metadata.json") }
        #expect(metadata.count <= 102, "\(metadata.count) metadata files, \(when)")
    }

    private func checkReadable(_ table: IcebergTable, _ when: String) throws {
        let plan = try ScanPlan(table)
        for task in plan.tasks {
            let reader = try DataFileReader(task, plan, table, fieldIDs: plan.schema.fields.map(\.id))
            while try reader.next() != nil {}
        }
        #expect(!plan.tasks.isEmpty, "\(when)")
    }

    @Test func aTableOfOthersKeepsItsHistory() throws {
        let world = try SinkWorld()
        try world.tables.create(namespace: ["shop"])
        _ = try world.tables.create(
            TableIdentifier(namespace: ["shop"], name: "orders"), schema: IcebergSchema([NestedField(1, "id", .long)]))
        func fill(_ more: [String: String], from first: Int64) throws {
            let sink = try world.sink("id:bigint", more)
            let writer = try sink.open(sink: SinkName("00112233445566778899aabbccddeeff"), incarnation: nil)
            for epoch in first..<first + 100 {
                _ = try writer.write(.drawn("id:bigint; +1 \(epoch)"), epoch: epoch)
                try writer.commit(through: epoch)
                try writer.maintain()
                world.clock.advance(by: .seconds(60))
            }
        }
        try fill([:], from: 1)
        #expect(try world.open().metadata.snapshots.count == 100)
        try fill(["enable_snapshot_expiration": "true", "snapshots_max": "20", "enable_compaction": "true"], from: 101)
        let table = try world.open()
        #expect(table.metadata.snapshots.count <= 30)
        #expect(try ScanPlan(table).tasks.count < 50)
        #expect(try world.rows().count == 200)
    }
}
