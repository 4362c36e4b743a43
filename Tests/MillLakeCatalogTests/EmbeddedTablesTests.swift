import MillIceberg
import MillObjectStore
import Testing

@testable import MillLakeCatalog

@Suite struct EmbeddedTablesTests {
    private let orders = TableIdentifier(namespace: ["shop"], name: "orders")

    @Test func theEngineMakesTablesAndCommitsToThem() throws {
        let world = try CatalogWorld()
        let tables = EmbeddedTables(world.catalog, warehouse: "dev")
        let schema = IcebergSchema([NestedField(7, "id", .long, isRequired: true), NestedField(9, "name", .string)])
        #expect(throws: IcebergError.self) { try tables.create(orders, schema: schema) }
        try tables.create(namespace: ["shop"])
        #expect(throws: IcebergError.commitConflict("Namespace shop already exists")) { try tables.create(namespace: ["shop"]) }
        let made = try tables.create(orders, schema: schema, properties: ["format-version": "3"])
        #expect(made.metadata.currentSchema.fields.map(\.id) == [1, 2])
        #expect(made.metadata.formatVersion == 3)
        #expect(throws: IcebergError.self) { try tables.create(orders, schema: schema) }
        let changed = try tables.commit(
            orders, requirements: [.assertTableUUID(made.metadata.tableUUID)], updates: [.setProperties(["a": "b"])])
        #expect(try tables.load(orders).metadata == changed.metadata)
        #expect(throws: IcebergError.self) { try tables.commit(orders, requirements: [.assertTableUUID("x")], updates: []) }
        #expect(try world.call("GET", "namespaces/shop/tables/orders").json["metadata"]["properties"] == ["a": "b"])
    }

    @Test func whatIsMissingIsNamed() throws {
        let world = try CatalogWorld()
        for tables in [EmbeddedTables(world.catalog, warehouse: "none"), EmbeddedTables(world.catalog, warehouse: "dev")] {
            do throws(IcebergError) {
                _ = try tables.load(orders)
                Issue.record("there is no such table")
            } catch {
                guard case .missing = error else {
                    Issue.record("\(error)")
                    continue
                }
            }
        }
    }

    @Test func aStoreThatFailsIsNoConflict() throws {
        let world = try CatalogWorld()
        try world.makeNamespace("shop")
        try world.makeTable("orders")
        world.store.setFaults { operation, _ in operation == .put ? .refused(5) : nil }
        #expect {
            try EmbeddedTables(world.catalog, warehouse: "dev").commit(orders, requirements: [], updates: [.setProperties(["a": "b"])])
        } throws: { error in
            if case .io? = error as? IcebergError { true } else { false }
        }
    }
}
