import MillIO
import MillIceberg
import MillObjectStore
import Testing

@testable import MillLakeCatalog

@Suite struct TableTests {
    private func world(_ change: (inout LakeCatalogOptions) -> Void = { _ in }) throws -> CatalogWorld {
        let world = try CatalogWorld(path: nil, change)
        try world.makeNamespace("shop")
        return world
    }

    @Test func newTablesNumberTheirColumnsThemselves() throws {
        let world = try world()
        let body: JSONValue = [
            "name": "orders", "schema": CatalogWorld.schema,
            "partition-spec": ["spec-id": 0, "fields": [["source-id": 1, "name": "day", "transform": "day"]]],
            "write-order": [
                "order-id": 0, "fields": [["source-id": 0, "transform": "identity", "direction": "asc", "null-order": "nulls-first"]],
            ],
            "location": .null, "properties": ["format-version": "2", "owner": "ann"],
        ]
        let answer = try world.call("POST", "namespaces/shop/tables", body)
        #expect(answer.status == 200)
        let metadata = answer.json["metadata"]
        #expect(metadata["schemas"].array?[0]["fields"].array?.map { $0["id"].int } == [1, 2, 3])
        #expect(metadata["schemas"].array?[0]["fields"].array?[2]["type"]["element-id"].int == 4)
        #expect(metadata["last-column-id"].int == 4)
        let field = metadata["partition-specs"].array?[0]["fields"].array?[0]
        #expect(field?["source-id"].int == 2)
        #expect(field?["field-id"].int == 1000)
        #expect(metadata["sort-orders"].array?[0]["fields"].array?[0]["source-id"].int == 1)
        #expect(metadata["default-sort-order-id"].int == 1)
        #expect(metadata["properties"] == ["owner": "ann"])
        #expect(metadata["location"].string == "file:///lake/dev/shop/orders")
        let location = try #require(answer.json["metadata-location"].string)
        #expect(location.hasPrefix("file:///lake/dev/shop/orders/metadata/00000-"))
        #expect(try TableMetadata(world.store.get(location), location: location).json == metadata)
        #expect(try world.call("POST", "namespaces/shop/tables", body).status == 409)
    }

    @Test func aCommitHappensOnlyWhileItsRequirementsHold() throws {
        let world = try world()
        try world.makeTable("orders")
        #expect(try world.append("orders", id: 11, after: nil, sequence: 1).status == 200)
        let late = try world.append("orders", id: 12, after: nil, sequence: 1)
        #expect(late.status == 409)
        #expect(late.errorType == "CommitFailedException")
        #expect(try world.append("orders", id: 12, after: 11, sequence: 2).status == 200)
        let loaded = try world.call("GET", "namespaces/shop/tables/orders").json["metadata"]
        #expect(loaded["current-snapshot-id"].int64 == 12)
        #expect(loaded["snapshot-log"].array?.count == 2)
        #expect(loaded["metadata-log"].array?.count == 2)
        #expect(try world.call("GET", "namespaces/shop/tables/orders?snapshots=refs").json["metadata"]["snapshots"].array?.count == 1)
    }

    @Test func metadataFilesThatFallOutOfTheLogAreRemoved() throws {
        let world = try world()
        try world.makeTable(
            "orders", properties: ["write.metadata.previous-versions-max": "3", "write.metadata.delete-after-commit.enabled": "true"])
        for number in 1...20 {
            let parent = number == 1 ? nil : Int64(number - 1)
            #expect(try world.append("orders", id: Int64(number), after: parent, sequence: Int64(number)).status == 200)
        }
        #expect(try world.store.list("file:///lake/dev/shop/orders/metadata/").count == 4)
    }

    @Test func aStagedTableComesIntoBeingWithItsCommit() throws {
        let world = try world()
        let staged = try world.call(
            "POST", "namespaces/shop/tables", ["name": "orders", "schema": CatalogWorld.schema, "stage-create": true])
        #expect(staged.status == 200)
        #expect(staged.json["metadata-location"].isNull)
        #expect(try world.call("HEAD", "namespaces/shop/tables/orders").status == 404)
        let metadata = staged.json["metadata"]
        let body: JSONValue = [
            "identifier": ["namespace": ["shop"], "name": "orders"], "requirements": [["type": "assert-create"]],
            "updates": [
                ["action": "assign-uuid", "uuid": metadata["table-uuid"]], ["action": "upgrade-format-version", "format-version": 2],
                ["action": "add-schema", "schema": metadata["schemas"].array?[0] ?? .null],
                ["action": "add-spec", "spec": ["spec-id": 0, "fields": []]], ["action": "set-default-spec", "spec-id": -1],
                ["action": "add-sort-order", "sort-order": ["order-id": 0, "fields": []]],
                ["action": "set-default-sort-order", "sort-order-id": -1], ["action": "set-location", "location": metadata["location"]],
                ["action": "set-properties", "updates": ["a": "b"]], ["action": "set-current-schema", "schema-id": -1],
            ],
        ]
        #expect(try world.call("POST", "namespaces/shop/tables/orders", body).status == 200)
        #expect(try world.call("HEAD", "namespaces/shop/tables/orders").status == 204)
        let again = try world.call("POST", "transactions/commit", ["table-changes": [body]])
        #expect(again.status == 409)
        #expect(try world.call("GET", "namespaces/shop/tables/orders").json["metadata"]["table-uuid"] == metadata["table-uuid"])
    }

    @Test func aTransactionChangesAllTablesOrNone() throws {
        let world = try world()
        try world.makeTable("a")
        try world.makeTable("b")
        func change(_ name: String, _ schemaID: Int64) -> JSONValue {
            [
                "identifier": ["namespace": ["shop"], "name": .string(name)],
                "requirements": [["type": "assert-current-schema-id", "current-schema-id": .int(schemaID)]],
                "updates": [["action": "set-properties", "updates": ["seen": "yes"]]],
            ]
        }
        #expect(try world.call("POST", "transactions/commit", ["table-changes": [change("a", 0), change("b", 7)]]).status == 409)
        #expect(try world.call("GET", "namespaces/shop/tables/a").json["metadata"]["properties"] == [:])
        #expect(try world.call("POST", "transactions/commit", ["table-changes": [change("a", 0), change("b", 0)]]).status == 204)
        for name in ["a", "b"] {
            #expect(try world.call("GET", "namespaces/shop/tables/\(name)").json["metadata"]["properties"]["seen"].string == "yes")
        }
        #expect(try world.call("POST", "transactions/commit", ["table-changes": [change("a", 0), change("a", 0)]]).status == 400)
        // One metadata file for each version that was committed, none of those refused.
        #expect(try world.store.list("file:///lake/dev/shop/").count == 4)
    }

    @Test func commitsOfManyThreadsLoseNothing() async throws {
        let world = try world { $0.commitTriesMax = 1000 }
        try world.makeTable("orders")
        await withTaskGroup(of: Int.self) { group in
            for writer in 0..<6 {
                group.addTask {
                    var done = 0
                    for number in 0..<10 {
                        let update: JSONValue = ["action": "set-properties", "updates": .object(["w\(writer)-\(number)": "x"])]
                        let answer = try? world.call("POST", "namespaces/shop/tables/orders", ["requirements": [], "updates": [update]])
                        if answer?.status == 200 { done += 1 }
                    }
                    return done
                }
            }
            for await done in group { #expect(done == 10) }
        }
        #expect(try world.call("GET", "namespaces/shop/tables/orders").json["metadata"]["properties"].object?.count == 60)
    }

    @Test func aStoreThatFailsLeavesTheOldTable() throws {
        let world = try world()
        try world.makeTable("orders")
        world.store.setFaults { operation, _ in operation == .put ? .refused(5) : nil }
        #expect(try world.append("orders", id: 1, after: nil, sequence: 1).status == 503)
        world.store.setFaults(nil)
        #expect(try world.call("GET", "namespaces/shop/tables/orders").json["metadata"]["current-snapshot-id"].isNull)
        #expect(try world.append("orders", id: 1, after: nil, sequence: 1).status == 200)
    }

    @Test func schemasEvolveAndKeepTheirHistory() throws {
        let world = try world()
        try world.makeTable("orders")
        let fields: [JSONValue] = [
            ["id": 1, "name": "id", "required": true, "type": "long"],
            ["id": 2, "name": "moment", "required": false, "type": "timestamptz"],
            ["id": 5, "name": "price", "required": false, "type": "decimal(10, 2)"],
        ]
        let body: JSONValue = [
            "requirements": [["type": "assert-last-assigned-field-id", "last-assigned-field-id": 4]],
            "updates": [
                ["action": "add-schema", "schema": ["type": "struct", "schema-id": 1, "fields": .array(fields)]],
                ["action": "set-current-schema", "schema-id": -1],
                ["action": "add-spec", "spec": ["spec-id": 1, "fields": [["source-id": 2, "name": "day", "transform": "day"]]]],
                ["action": "set-default-spec", "spec-id": -1],
            ],
        ]
        let answer = try world.call("POST", "namespaces/shop/tables/orders", body)
        #expect(answer.status == 200, "\(answer.json.text)")
        let metadata = answer.json["metadata"]
        #expect(metadata["current-schema-id"].int == 1)
        #expect(metadata["schemas"].array?.count == 2)
        #expect(metadata["last-column-id"].int == 5)
        #expect(metadata["default-spec-id"].int == 1)
        #expect(metadata["last-partition-id"].int == 1000)
        #expect(try world.call("POST", "namespaces/shop/tables/orders", body).errorType == "CommitFailedException")
    }

    @Test func droppedWithPurgeATableLeavesNoFiles() throws {
        let world = try world()
        try world.makeTable("orders")
        _ = try world.append("orders", id: 1, after: nil, sequence: 1)
        #expect(try world.call("DELETE", "namespaces/shop/tables/orders?purgeRequested=True").status == 204)
        #expect(try world.store.list("file:///lake/dev/shop/orders").isEmpty)
        #expect(try world.call("DELETE", "namespaces/shop/tables/orders").status == 404)
    }

    @Test func renamedTablesKeepTheirPlaceAndNewOnesGetAnother() throws {
        let world = try world()
        try world.makeTable("orders")
        let rename: JSONValue = [
            "source": ["namespace": ["shop"], "name": "orders"], "destination": ["namespace": ["shop"], "name": "sales"],
        ]
        #expect(try world.call("POST", "tables/rename", rename).status == 204)
        #expect(try world.call("POST", "tables/rename", rename).status == 404)
        #expect(try world.call("GET", "namespaces/shop/tables/sales").json["metadata"]["location"].string == "file:///lake/dev/shop/orders")
        let location = try world.makeTable("orders")["metadata"]["location"].string ?? ""
        #expect(location.hasPrefix("file:///lake/dev/shop/orders-"))
        #expect(try world.call("POST", "tables/rename", rename).errorType == "AlreadyExistsException")
    }

    @Test func aTableIsRegisteredByItsMetadataFile() throws {
        let world = try world()
        let location = try world.makeTable("orders")["metadata-location"]
        #expect(try world.call("DELETE", "namespaces/shop/tables/orders").status == 204)
        #expect(try world.call("POST", "namespaces/shop/register", ["name": "again", "metadata-location": location]).status == 200)
        #expect(try world.call("HEAD", "namespaces/shop/tables/again").status == 204)
        #expect(try world.call("POST", "namespaces/shop/register", ["name": "x", "metadata-location": "file:///etc/passwd"]).status == 403)
        #expect(
            try world.call("POST", "namespaces/shop/register", ["name": "x", "metadata-location": "file:///lake/dev/none"]).status == 400)
    }

    /// Whoever cleans up one of two tables that lie in each other finds files of the other.
    @Test func noTableLiesInAnother() throws {
        let world = try world()
        try world.makeTable("orders")
        try world.makeNamespace("shop", "orders")
        let inner = try world.makeTable("data", in: "shop%1Forders")["metadata"]["location"].string ?? ""
        #expect(!inner.hasPrefix("file:///lake/dev/shop/orders/") && inner.hasPrefix("file:///lake/dev/"))
        // The other way round.
        try world.makeNamespace("shop", "sales")
        try world.makeTable("data", in: "shop%1Fsales")
        let outer = try world.makeTable("sales")["metadata"]["location"].string ?? ""
        #expect(outer.hasPrefix("file:///lake/dev/shop/sales-"))
        for place in ["shop/orders/data/x", "shop/orders", "shop", "shop/sales/data/"] {
            let location: JSONValue = .string("file:///lake/dev/" + place)
            let made = try world.call(
                "POST", "namespaces/shop/tables", ["name": "t", "schema": CatalogWorld.schema, "location": location])
            #expect(made.status == 403, "\(place): \(made.json.text)")
            let moved = try world.call(
                "POST", "namespaces/shop/tables/sales", ["updates": [["action": "set-location", "location": location]]])
            #expect(moved.status == 403, "\(place): \(moved.json.text)")
        }
        let beside: JSONValue = "file:///lake/dev/shop/orders2"
        #expect(
            try world.call("POST", "namespaces/shop/tables/sales", ["updates": [["action": "set-location", "location": beside]]]).status == 200)
    }

    /// A metadata file that somebody wrote may name anything as the table's own.
    @Test func filesOfOthersStayWhateverMetadataSays() throws {
        let world = try world()
        let victim = try #require(try world.makeTable("victim")["metadata-location"].string)
        let location = try #require(try world.makeTable("orders")["metadata-location"].string)
        try world.store.put("file:///etc/hosts", [1], .always)
        func forged(_ log: [String]) throws -> String {
            var table = try TableMetadata(world.store.get(location), location: location)
            table.metadataLog = log.map { .init(timestampMillis: 1, metadataFile: $0) }
            table.location = "file:///lake/dev/shop/forged"
            table.properties = ["write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"]
            let place = "file:///lake/dev/shop/forged/metadata/00001-\(log.count).metadata.json"
            try world.store.put(place, Array(table.json.text.utf8), .always)
            return place
        }
        let commit: JSONValue = ["updates": [["action": "set-properties", "updates": ["a": "b"]]]]
        let log = try forged(["file:///etc/hosts", victim, location])
        #expect(try world.call("POST", "namespaces/shop/register", ["name": "f", "metadata-location": .string(log)]).status == 200)
        #expect(try world.call("POST", "namespaces/shop/tables/f", commit).status == 200)
        for file in ["file:///etc/hosts", victim, location] { #expect(try world.store.look(at: file) != nil, "\(file)") }
        let purge = try forged([victim, "file:///etc/hosts"])
        #expect(try world.call("POST", "namespaces/shop/register", ["name": "g", "metadata-location": .string(purge)]).status == 200)
        #expect(try world.call("DELETE", "namespaces/shop/tables/g?purgeRequested=true").status == 204)
        #expect(try world.call("GET", "namespaces/shop/tables/victim").status == 200)
        #expect(try world.store.look(at: victim) != nil && world.store.look(at: purge) == nil)
    }

    @Test func locationsOutsideOfTheWarehouseAreRefused() throws {
        let world = try world()
        for location in [
            "file:///etc", "file:///lake/dev/../other", "file:///lake/dev/../\u{301}other", "s3://bucket/x", "/lake/devil", "relative",
        ] {
            let answer = try world.call(
                "POST", "namespaces/shop/tables", ["name": "t", "schema": CatalogWorld.schema, "location": .string(location)])
            #expect(answer.status == 403, "\(location): \(answer.json.text)")
        }
        try world.makeTable("orders")
        for updates: JSONValue in [
            [["action": "set-location", "location": "file:///etc"]],
            [["action": "set-properties", "updates": ["write.metadata.path": "file:///etc"]]],
        ] {
            #expect(try world.call("POST", "namespaces/shop/tables/orders", ["requirements": [], "updates": updates]).status == 403)
        }
    }

    @Test func whatMakesNoSenseIsABadRequest() throws {
        let world = try world()
        try world.makeTable("orders")
        let bodies: [JSONValue] = [
            ["updates": [["action": "set-current-schema", "schema-id": 9]]], ["updates": [["action": "fly"]]],
            ["updates": [["schema-id": 9]]],
            ["updates": [["action": "upgrade-format-version", "format-version": 1]]],
            ["updates": [["action": "upgrade-format-version", "format-version": 4]]],
            ["updates": [["action": "set-default-spec", "spec-id": 3]]], ["updates": [["action": "set-default-spec", "spec-id": -1]]],
            ["updates": [["action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 3]]],
            ["updates": [["action": "assign-uuid", "uuid": "another"]]], ["requirements": [["type": "assert-nothing"]]],
            ["updates": [["action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 99999999999999999]]],
            [
                "updates": [
                    ["action": "add-schema", "schema": ["type": "struct", "schema-id": 9999999999, "fields": []]],
                    ["action": "set-current-schema", "schema-id": 99999999999],
                ]
            ],
        ]
        for body in bodies {
            let answer = try world.call("POST", "namespaces/shop/tables/orders", body)
            #expect(answer.status == 400, "\(body.text): \(answer.status)")
        }
        #expect(try world.call("POST", "namespaces/shop/tables", ["name": "a/b", "schema": CatalogWorld.schema]).status == 400)
        #expect(try world.call("POST", "namespaces/shop/tables", ["name": "t"]).status == 400)
        #expect(
            try world.call("POST", "namespaces/none/tables", ["name": "t", "schema": CatalogWorld.schema]).errorType
                == "NoSuchNamespaceException")
        #expect(try world.call("GET", "namespaces/shop%1Forders/tables/snapshots").status == 404)
    }
}
