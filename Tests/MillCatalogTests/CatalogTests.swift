import MillBase
import MillCatalog
import MillColumnar
import Testing

@Suite struct CatalogTests {
    private static func object(_ name: String, _ kind: CatalogObject.Kind, on dependencies: [ObjectID] = []) -> CatalogObject {
        CatalogObject(
            id: ObjectID(0), schemaName: "public", name: name, kind: kind, columns: [CatalogColumn("a", .int32)], dependencies: dependencies)
    }

    /// s <- m1 <- m2, and v on both.
    private static func chain() throws -> Catalog {
        var catalog = Catalog()
        let s = try catalog.create(object("s", .source))
        let m1 = try catalog.create(object("m1", .materializedView, on: [s.id]))
        _ = try catalog.create(object("m2", .materializedView, on: [m1.id]))
        _ = try catalog.create(object("v", .view, on: [s.id, m1.id]))
        return catalog
    }

    @Test func identifiersBeginWhereUsersDoAndAreNeverReused() throws {
        var catalog = Catalog()
        let first = try catalog.create(Self.object("x", .table))
        #expect(first.id == ObjectID(16384))
        _ = try catalog.drop(.table, schema: nil, name: "x", cascade: false)
        #expect(try catalog.create(Self.object("x", .table)).id == ObjectID(16385))
    }

    @Test func aNameIsTakenOnce() throws {
        var catalog = try Self.chain()
        #expect(throws: SQLError(.duplicateTable, "relation \"s\" already exists")) { try catalog.create(Self.object("s", .table)) }
    }

    @Test func dropIsRefusedWhileSomethingReads() throws {
        var catalog = try Self.chain()
        do {
            _ = try catalog.drop(.source, schema: nil, name: "s", cascade: false)
            Issue.record("the source was dropped")
        } catch {
            #expect(error.sqlState == .dependentObjectsStillExist)
            #expect(error.message == "cannot drop source s because other objects depend on it")
            #expect(error.detail == "materialized view m1 depends on source s\nmaterialized view m2 depends on materialized view m1\nview v depends on source s")
            #expect(error.hint == "Use DROP ... CASCADE to drop the dependent objects too.")
        }
        #expect(catalog.objects.count == 4)
    }

    @Test func cascadeRemovesDependentsFirst() throws {
        var catalog = try Self.chain()
        #expect(try catalog.drop(.source, schema: nil, name: "s", cascade: true).map(\.name) == ["v", "m2", "m1", "s"])
        #expect(catalog.objects.isEmpty)
        _ = try catalog.create(Self.object("s", .source))
        #expect(try catalog.drop(.source, schema: "public", name: "s", cascade: false).map(\.name) == ["s"])
    }

    @Test func theWrongKindSaysWhichDropIsMeant() throws {
        var catalog = try Self.chain()
        #expect(
            throws: SQLError(.wrongObjectType, "\"m1\" is not a source", hint: "Use DROP MATERIALIZED VIEW to remove a materialized view.")
        ) { try catalog.drop(.source, schema: nil, name: "m1", cascade: false) }
        #expect(throws: SQLError(.undefinedTable, "relation \"zz\" does not exist")) {
            try catalog.drop(.source, schema: nil, name: "zz", cascade: false)
        }
        #expect(throws: SQLError(.invalidSchemaName, "schema \"zz\" does not exist")) {
            try catalog.drop(.source, schema: "zz", name: "s", cascade: false)
        }
    }

    @Test func anUnqualifiedNameFollowsTheSearchPath() throws {
        var catalog = Catalog(systemObjects: [
            CatalogObject(id: ObjectID(1259), schemaName: "pg_catalog", name: "pg_class", kind: .system, columns: [])
        ])
        #expect(catalog.object(schema: nil, name: "pg_class")?.id == ObjectID(1259))
        let own = try catalog.create(Self.object("pg_class", .table))
        #expect(catalog.object(schema: nil, name: "pg_class")?.id == own.id)
        #expect(catalog.object(schema: "pg_catalog", name: "pg_class")?.id == ObjectID(1259))
    }

    @Test func aRestoredObjectKeepsItsIdentifier() throws {
        var catalog = Catalog()
        var stored = Self.object("x", .table)
        stored.id = ObjectID(20000)
        catalog.restore(stored)
        #expect(try catalog.create(Self.object("y", .table)).id == ObjectID(20001))
    }
}
