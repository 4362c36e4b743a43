import Foundation
import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillExpr
import MillIO
@testable import MillMeta
import MillPlan
import Testing

#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

@Suite struct MetaStoreTests {
    private static func source(_ id: UInt32, _ name: String) -> CatalogObject {
        CatalogObject(
            id: ObjectID(id), schemaName: "public", name: name, kind: .source,
            columns: [
                CatalogColumn("b", .numeric(precision: 10, scale: 2)), CatalogColumn("a", .varchar, isNullable: false, defaultText: "'x'"),
            ],
            primaryKey: [1, 0], dependencies: [], definition: "CREATE SOURCE \(name)",
            options: [CatalogOption("z", "1"), CatalogOption("a", "secret")])
    }

    private static func plan(_ text: String) throws -> StreamPlan {
        var plan = StreamPlan()
        let properties = StreamProperties(appendOnly: true, distribution: .single)
        let schema = [Field("n", .varchar)]
        let values = plan.add(StreamNode(.values([[.string(text)]]), inputs: [], schema: schema, properties: properties))
        let upper = try FunctionRegistry.resolve(name: "upper", arguments: [.varchar]).call([.column(0, .varchar)])
        let project = plan.add(StreamNode(.project([upper]), inputs: [values], schema: schema, properties: properties))
        _ = plan.add(StreamNode(.materialize(key: [0]), inputs: [project], schema: schema, properties: properties))
        return plan
    }

    private static func view(_ id: UInt32, _ name: String) -> CatalogObject {
        CatalogObject(
            id: ObjectID(id), schemaName: "public", name: name, kind: .materializedView, columns: [CatalogColumn("n", .varchar)],
            definition: "CREATE MATERIALIZED VIEW \(name)")
    }

    private func error(_ body: () throws(SQLError) -> Void) -> SQLError? {
        do throws(SQLError) { try body() } catch { return error }
        return nil
    }

    private func withDirectory(_ body: (String) throws -> Void) throws {
        let path = "/tmp/millrace-meta-\(getpid())-\(UInt64.random(in: .min ... .max))"
        try LocalFileSystem().createDirectory(path)
        defer { try? LocalFileSystem().remove(path) }  // Only a temporary directory is left behind.
        try body(path)
    }

    // MARK: What is stored

    @Test func attachedCatalogsComeBackWithTheirOptions() throws {
        let store = try MetaStore.inMemory()
        let lake = StoredAttachment(name: "lake", options: [CatalogOption("uri", "http://x"), CatalogOption("credential", "a:b")])
        try store.attach(lake)
        try store.attach(StoredAttachment(name: "aside", options: []))
        #expect(try store.copy().load().catalogs == [StoredAttachment(name: "aside", options: []), lake])
        #expect(error { () throws(SQLError) in try store.attach(lake) } != nil)
        try store.detach(catalog: "aside")
        try store.detach(catalog: "none")
        #expect(try store.load().catalogs == [lake])
    }

    @Test func objectsComeBackAsTheyWere() throws {
        let store = try MetaStore.inMemory()
        var source = Self.source(16384, "Größe \"of\" 事件 🐟")
        source.columns[0].lengthMax = 12
        source.columns[1].isHidden = true
        let origin = [
            SourceSplit(name: "t/0", topic: "t", partition: 0): SplitOffset(7),
            SourceSplit(name: "t/1", topic: "t", partition: 1): SplitOffset(.max),
        ]
        try store.createSchema("Ünïcode \"s\"")
        try store.create(source, origin: origin)
        let plan = try Self.plan("'; DROP TABLE objects; -- \u{1F41F}")
        var view = Self.view(16385, "v")
        view.dependencies = [ObjectID(16384), ObjectID(1259)]
        try store.create(view, job: (plan, .creating))
        var stored = try store.load()
        #expect(stored.schemas == ["Ünïcode \"s\""])
        #expect(stored.nextID == ObjectID(16386))
        #expect(stored.objects.map(\.object) == [source, view])
        #expect(stored.objects[0].origin == origin)
        #expect(stored.objects[0].job == nil)
        #expect(try stored.objects[1].job?.plan.get() == plan)
        #expect(stored.objects[1].job?.state == .creating)
        try store.setRunning(view.id)
        stored = try store.load()
        #expect(stored.objects[1].job?.state == .running)
    }

    @Test func whatAViewMeansIsStored() throws {
        let store = try MetaStore.inMemory()
        var view = Self.view(16384, "v")
        view.kind = .view
        let scan = LogicalScan(
            relation: RelationReference(id: ObjectID(1259), name: "pg_class", kind: .system), columns: [1], schema: [Field("n", .varchar)])
        view.query = BoundQuery(plan: .filter(LogicalFilter(input: .scan(scan), predicate: .not(.isNull(.column(0, .varchar))))), limit: 3)
        try store.create(view)
        #expect(try store.load().objects.map(\.object) == [view])
    }

    @Test func whatIsDroppedIsGoneAndItsIdentifierIsNeverGivenAgain() throws {
        let store = try MetaStore.inMemory()
        try store.create(Self.source(16390, "s"), origin: [SourceSplit(name: "t/0", topic: "t", partition: 0): SplitOffset(0)])
        try store.create(Self.view(16391, "v"), job: (try Self.plan("a"), .running))
        try store.drop([ObjectID(16391), ObjectID(16390), ObjectID(5)])
        let stored = try store.load()
        #expect(stored.objects.isEmpty)
        #expect(stored.nextID == ObjectID(16392))
    }

    @Test func aStatementThatFailsChangesNothing() throws {
        let store = try MetaStore.inMemory()
        try store.create(Self.source(16384, "s"))
        let error = error { () throws(SQLError) in try store.create(Self.source(16385, "s")) }
        #expect(error?.sqlState == .ioError)
        #expect(try store.load().nextID == ObjectID(16385))
        #expect(try store.load().objects.count == 1)
    }

    // MARK: Plans that cannot be used

    private func failure(of damage: String) throws -> SQLError? {
        let store = try MetaStore.inMemory()
        try store.create(Self.view(16384, "good"), job: (try Self.plan("a"), .running))
        try store.create(Self.view(16385, "bad"), job: (try Self.plan("b"), .running))
        try store.execute(damage)
        let objects = try store.load().objects
        #expect(try objects[0].job?.plan.get() == Self.plan("a"))
        guard case .failure(let error) = objects[1].job?.plan else { return nil }
        return error
    }

    @Test func aDamagedPlanIsItsJobsFailureAlone() throws {
        let error = try failure(of: "UPDATE jobs SET plan = replace(plan, 'upper', 'lower') WHERE object_id = 16385")
        #expect(error?.sqlState == .dataCorrupted)
        #expect(error?.message == "the stored plan of materialized view \"bad\" is damaged: its checksum is wrong")
        #expect(error?.hint == "REBUILD MATERIALIZED VIEW makes its plan anew.")
    }

    @Test func aPlanOfANewerVersionIsItsJobsFailureAlone() throws {
        let error = try failure(of: "UPDATE jobs SET plan_version = 99 WHERE object_id = 16385")
        #expect(error?.sqlState == .featureNotSupported)
        #expect(error?.message == "the stored plan of materialized view \"bad\" has version 99, and this program knows up to 2")
    }

    @Test func aPlanWithAFunctionThatIsNoMoreNamesIt() throws {
        let good = try PlanText(encoding: Self.plan("b"))
        let text = good.text.replacingOccurrences(of: "\"upper\"", with: "\"upside_down\"")
        #expect(text != good.text)
        let strange = PlanText(text: text, version: 1, checksum: PlanText.checksum(text))
        let error = error { () throws(SQLError) in _ = try strange.decoded(StreamPlan.self, of: Self.view(16384, "bad")) }
        #expect(error?.sqlState == .undefinedFunction)
        #expect(
            error?.message
                == "the stored plan of materialized view \"bad\" cannot be used: function upside_down(character varying) does not exist")
    }

    @Test func noTruncationOfAPlanIsAPlan() throws {
        let text = try PlanText(encoding: Self.plan("b")).text
        for count in 0..<text.utf8.count {
            let part = String(decoding: text.utf8.prefix(count), as: UTF8.self)
            let error = error { () throws(SQLError) in
                _ = try PlanText(text: part, version: 1, checksum: PlanText.checksum(part)).decoded(StreamPlan.self, of: Self.view(1, "v"))
            }
            #expect(error?.sqlState == .dataCorrupted, "\(part)")
        }
    }

    // MARK: The file

    @Test func theFileIsItsOwnersAndEachCommitIsSynced() throws {
        try withDirectory { directory in
            let path = directory + "/meta.db"
            let store = try MetaStore(path: path)
            try store.create(Self.source(16384, "s"))
            var status = stat()
            for suffix in ["", "-wal", "-shm"] {
                #expect(stat(path + suffix, &status) == 0 && status.st_mode & 0o777 == 0o600, "\(suffix)")
            }
            #expect(try store.pragma("journal_mode") == "wal")
            #expect(try store.pragma("synchronous") == "2")
            // Not closed: as after kill -9.
            #expect(try MetaStore(path: path).load().objects.count == 1)
            store.close()
        }
    }

    private func refusal(_ prepare: (String) throws -> Void) throws -> SQLError? {
        var refused: SQLError?
        try withDirectory { directory in
            let path = directory + "/meta.db"
            try prepare(path)
            refused = error { () throws(SQLError) in _ = try MetaStore(path: path).load() }
        }
        return refused
    }

    @Test func aPauseOfAnEarlierVersionHasNoTime() throws {
        try withDirectory { directory in
            let path = directory + "/meta.db"
            let store = try MetaStore(path: path)
            try store.create(Self.source(16384, "old"))
            try store.create(Self.source(16385, "new"))
            try store.setPause(StoredPause(number: 7, sinceMicros: nil), of: ObjectID(16384))
            try store.execute("ALTER TABLE pauses DROP COLUMN since_micros; DELETE FROM grdb_migrations WHERE identifier = '3'")
            store.close()
            let later = try MetaStore(path: path)
            try later.setPause(StoredPause(number: 8, sinceMicros: 1_764_000_000_000_000), of: ObjectID(16385))
            let pauses = try later.load().objects.map(\.pause)
            #expect(pauses == [StoredPause(number: 7, sinceMicros: nil), StoredPause(number: 8, sinceMicros: 1_764_000_000_000_000)])
            later.close()
        }
    }

    @Test func aNewerSchemaIsRefused() throws {
        let error = try refusal { path in
            let store = try MetaStore(path: path)
            try store.execute("INSERT INTO grdb_migrations VALUES ('7')")
            store.close()
        }
        #expect(error?.sqlState == .objectNotInPrerequisiteState)
        #expect(
            error?.message.hasSuffix("was written by a newer Millrace: it has schema version 7, and this program knows up to 4") == true)
    }

    @Test func anotherProgramsDatabaseIsRefused() throws {
        let error = try refusal { path in
            let store = try MetaStore(path: path)
            try store.execute("PRAGMA application_id = 5")
            store.close()
        }
        #expect(error?.message.hasSuffix("is not a catalog of Millrace") == true)
    }

    @Test func whatIsNoDatabaseIsRefused() throws {
        let error = try refusal { path in
            let file = try LocalFileSystem().open(path, .create)
            try Array(repeating: UInt8(65), count: 4096).withUnsafeBytes { try file.write($0, at: 0) }
        }
        #expect(error?.sqlState == .dataCorrupted)
    }

    @Test func aDirectoryThatIsNotThereIsNamed() throws {
        let error = error { () throws(SQLError) in _ = try MetaStore(path: "/nowhere/at/all/meta.db") }
        #expect(error?.message == "could not open \"/nowhere/at/all/meta.db\": No such file or directory")
    }
}
