import MillIceberg
import MillObjectStore
import Testing

@testable import MillLakeCatalog

/// Bodies that are nearly right: one value in them is another than clients send.
@Suite struct HostileBodyTests {
    private static let oddities: [JSONValue] = [
        .null, true, -1, 0, .int(.max), .int(.min), .int(Int64(Int32.max)), .int(Int64(Int32.min)), .double(1e300), "", "x",
        "file:///../..",
        "bucket[0]", "bucket[2147483647]", "decimal(99,1)", "fixed[-1]", [], [:], [[[]]], .string(String(repeating: "long", count: 1000)),
    ]

    /// The value with one place in it changed, by the dice.
    private static func bent(_ value: JSONValue, _ dice: inout SeededBytes) -> JSONValue {
        let byte = Int(dice.bytes(upTo: 2).first ?? dice.bytes(upTo: 256).first ?? 7)
        switch value {
        case .array(var values) where !values.isEmpty && byte % 8 != 0:
            let place = byte % values.count
            values[place] = bent(values[place], &dice)
            return .array(values)
        case .object(var members) where !members.isEmpty && byte % 8 != 0:
            let key = members.keys.sorted()[byte % members.count]
            members[key] = bent(members[key] ?? .null, &dice)
            return .object(members)
        default: return oddities[byte % oddities.count]
        }
    }

    @Test func nothingInABodyMakesTheCatalogStumble() throws {
        let seed = UInt64.random(in: .min ... .max)
        var dice = SeededBytes(seed)
        let world = try CatalogWorld()
        try world.makeNamespace("shop")
        try world.makeTable("orders")
        let new: JSONValue = [
            "name": "made", "schema": CatalogWorld.schema, "stage-create": false, "properties": ["format-version": "2"],
            "partition-spec": ["spec-id": 0, "fields": [["source-id": 1, "field-id": 1000, "name": "day", "transform": "day"]]],
            "write-order": [
                "order-id": 1, "fields": [["source-id": 0, "transform": "identity", "direction": "asc", "null-order": "nulls-first"]],
            ],
        ]
        let snapshot: JSONValue = [
            "snapshot-id": 5, "sequence-number": 1, "timestamp-ms": 1_700_000_000_000, "manifest-list": "file:///lake/l",
            "summary": ["operation": "append"],
            "schema-id": 0, "first-row-id": 0, "added-rows": 1,
        ]
        let change: JSONValue = [
            "requirements": [["type": "assert-current-schema-id", "current-schema-id": 0]],
            "updates": [
                ["action": "add-schema", "schema": CatalogWorld.schema], ["action": "set-current-schema", "schema-id": -1],
                ["action": "add-spec", "spec": ["spec-id": 3, "fields": [["source-id": 1, "name": "d", "transform": "day"]]]],
                ["action": "set-default-spec", "spec-id": -1], ["action": "add-sort-order", "sort-order": ["order-id": 2, "fields": []]],
                ["action": "upgrade-format-version", "format-version": 3], ["action": "add-snapshot", "snapshot": snapshot],
                ["action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 5, "max-ref-age-ms": 9],
                ["action": "set-properties", "updates": ["write.metadata.previous-versions-max": "9"]],
                ["action": "remove-snapshots", "snapshot-ids": [5]],
                ["action": "remove-schemas", "schema-ids": [7]], ["action": "set-location", "location": "file:///lake/dev/shop/orders"],
            ],
        ]
        for _ in 0..<200 {
            let made = try world.call("POST", "namespaces/shop/tables", Self.bent(new, &dice))
            #expect(made.status < 500, "seed \(seed): \(made.json.text.prefix(300))")
            let answer = try world.call("POST", "namespaces/shop/tables/orders", Self.bent(change, &dice))
            #expect(answer.status < 500, "seed \(seed): \(answer.json.text.prefix(300))")
            // Whatever was taken can be read again from its file.
            let loaded = try world.call("GET", "namespaces/shop/tables/orders").json
            let location = try #require(loaded["metadata-location"].string)
            #expect(throws: Never.self, "seed \(seed)") { try TableMetadata(world.store.get(location), location: location) }
            _ = try world.call("DELETE", "namespaces/shop/tables/made")
        }
    }
}
