/// A change of a table's metadata, in the REST catalog's words. Where an identifier is -1 it means what the same commit added last.
package enum TableUpdate: Hashable, Sendable {
    case assignUUID(String)
    case upgradeFormatVersion(Int)
    case addSchema(IcebergSchema)
    case setCurrentSchema(Int)
    /// Fields with `PartitionField.unassignedID` get their identifiers from the table.
    case addPartitionSpec(PartitionSpec)
    case setDefaultSpec(Int)
    case addSortOrder(SortOrder)
    case setDefaultSortOrder(Int)
    case addSnapshot(Snapshot)
    case setSnapshotRef(name: String, SnapshotReference)
    case removeSnapshots([Int64])
    case removeSnapshotRef(String)
    case setLocation(String)
    case setProperties([String: String])
    case removeProperties([String])
    case setStatistics(snapshotID: Int64, JSONValue)
    case removeStatistics(snapshotID: Int64)
    case setPartitionStatistics(snapshotID: Int64, JSONValue)
    case removePartitionStatistics(snapshotID: Int64)
    case removePartitionSpecs([Int])
    case removeSchemas([Int])

    package init(_ json: JSONValue) throws(BadBytes) {
        switch try json.requiredString("action") {
        case "assign-uuid": self = .assignUUID(try json.requiredString("uuid"))
        case "upgrade-format-version": self = .upgradeFormatVersion(try json.requiredInt("format-version"))
        case "add-schema": self = .addSchema(try IcebergSchema(try json.required("schema")))
        case "set-current-schema": self = .setCurrentSchema(try json.requiredInt("schema-id"))
        case "add-spec": self = .addPartitionSpec(try PartitionSpec(unbound: try json.required("spec")))
        case "set-default-spec": self = .setDefaultSpec(try json.requiredInt("spec-id"))
        case "add-sort-order": self = .addSortOrder(try SortOrder(try json.required("sort-order")))
        case "set-default-sort-order": self = .setDefaultSortOrder(try json.requiredInt("sort-order-id"))
        case "add-snapshot": self = .addSnapshot(try Snapshot(try json.required("snapshot")))
        case "set-snapshot-ref": self = .setSnapshotRef(name: try json.requiredString("ref-name"), try SnapshotReference(json))
        case "remove-snapshots": self = .removeSnapshots(try json.requiredInt64s("snapshot-ids"))
        case "remove-snapshot-ref": self = .removeSnapshotRef(try json.requiredString("ref-name"))
        case "set-location": self = .setLocation(try json.requiredString("location"))
        // Older clients say "updated" and "removed".
        case "set-properties":
            self = .setProperties(try (json["updates"].isNull ? json.required("updated") : json["updates"]).allTexts("updates"))
        case "remove-properties":
            self = .removeProperties(try (json["removals"].isNull ? json.required("removed") : json["removals"]).textList("removals"))
        case let action: self = try Self.rarer(action, json)
        }
    }

    private static func rarer(_ action: String, _ json: JSONValue) throws(BadBytes) -> TableUpdate {
        switch action {
        case "set-statistics":
            let statistics = try json.required("statistics")
            return .setStatistics(snapshotID: try statistics.requiredInt64("snapshot-id"), statistics)
        case "remove-statistics": return .removeStatistics(snapshotID: try json.requiredInt64("snapshot-id"))
        case "set-partition-statistics":
            let statistics = try json.required("partition-statistics")
            return .setPartitionStatistics(snapshotID: try statistics.requiredInt64("snapshot-id"), statistics)
        case "remove-partition-statistics": return .removePartitionStatistics(snapshotID: try json.requiredInt64("snapshot-id"))
        case "remove-partition-specs": return .removePartitionSpecs(try json.requiredInts("spec-ids"))
        case "remove-schemas": return .removeSchemas(try json.requiredInts("schema-ids"))
        default: throw BadBytes("there is no update \"\(action)\" of a table")
        }
    }

    package var json: JSONValue {
        switch self {
        case .assignUUID(let uuid): ["action": "assign-uuid", "uuid": .string(uuid)]
        case .upgradeFormatVersion(let version): ["action": "upgrade-format-version", "format-version": JSONValue(version)]
        case .addSchema(let schema): ["action": "add-schema", "schema": schema.json, "last-column-id": JSONValue(schema.highestFieldID)]
        case .setCurrentSchema(let id): ["action": "set-current-schema", "schema-id": JSONValue(id)]
        case .addPartitionSpec(let spec): ["action": "add-spec", "spec": spec.json]
        case .setDefaultSpec(let id): ["action": "set-default-spec", "spec-id": JSONValue(id)]
        case .addSortOrder(let order): ["action": "add-sort-order", "sort-order": order.json]
        case .setDefaultSortOrder(let id): ["action": "set-default-sort-order", "sort-order-id": JSONValue(id)]
        case .addSnapshot(let snapshot): ["action": "add-snapshot", "snapshot": snapshot.json]
        case .setSnapshotRef(let name, let reference):
            reference.json.with("action", "set-snapshot-ref").with("ref-name", .string(name))
        case .removeSnapshots(let ids): ["action": "remove-snapshots", "snapshot-ids": .array(ids.map { .int($0) })]
        case .removeSnapshotRef(let name): ["action": "remove-snapshot-ref", "ref-name": .string(name)]
        case .setLocation(let location): ["action": "set-location", "location": .string(location)]
        case .setProperties(let properties): ["action": "set-properties", "updates": JSONValue(properties)]
        case .removeProperties(let names): ["action": "remove-properties", "removals": .array(names.map { .string($0) })]
        case .setStatistics(let id, let statistics): ["action": "set-statistics", "snapshot-id": .int(id), "statistics": statistics]
        case .removeStatistics(let id): ["action": "remove-statistics", "snapshot-id": .int(id)]
        case .setPartitionStatistics(_, let statistics): ["action": "set-partition-statistics", "partition-statistics": statistics]
        case .removePartitionStatistics(let id): ["action": "remove-partition-statistics", "snapshot-id": .int(id)]
        case .removePartitionSpecs(let ids): ["action": "remove-partition-specs", "spec-ids": .array(ids.map { JSONValue($0) })]
        case .removeSchemas(let ids): ["action": "remove-schemas", "schema-ids": .array(ids.map { JSONValue($0) })]
        }
    }
}
