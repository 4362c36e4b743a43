extension TableMetadata {
    /// Reads a metadata file.
    package init(_ bytes: [UInt8], location: String) throws(IcebergError) {
        do throws(BadBytes) { try self.init(JSONValue(bytes)) } catch { throw .malformed(location: location, what: error.what) }
    }

    package init(_ json: JSONValue) throws(BadBytes) {
        let version = try json.requiredInt("format-version")
        guard (1...3).contains(version) else { throw BadBytes("format version \(version) is not one that we read") }
        formatVersion = version
        tableUUID = json["table-uuid"].string ?? ""
        location = try json.requiredString("location")
        lastSequenceNumber = try json.optionalCount("last-sequence-number") ?? 0
        lastUpdatedMillis = try json.requiredCount("last-updated-ms")
        lastColumnID = try json.requiredInt("last-column-id")
        schemas = []
        // Format 1 has one, under a name of its own.
        let schemaValues = json["schemas"].array ?? [json["schema"]]
        for value in schemaValues { schemas.append(try IcebergSchema(value)) }
        currentSchemaID = json["current-schema-id"].int ?? schemas.last?.schemaID ?? 0
        partitionSpecs = []
        for value in json["partition-specs"].array ?? [] { partitionSpecs.append(try PartitionSpec(value)) }
        if partitionSpecs.isEmpty { partitionSpecs = [PartitionSpec(try PartitionSpec.fields(json["partition-spec"]))] }
        defaultSpecID = json["default-spec-id"].int ?? partitionSpecs.last?.specID ?? 0
        lastPartitionID = json["last-partition-id"].int ?? partitionSpecs.flatMap(\.fields).map(\.fieldID).max() ?? 999
        sortOrders = []
        for value in json["sort-orders"].array ?? [] { sortOrders.append(try SortOrder(value)) }
        if sortOrders.isEmpty { sortOrders = [SortOrder()] }
        defaultSortOrderID = json["default-sort-order-id"].int ?? 0
        properties = json["properties"].texts
        for value in json["snapshots"].array ?? [] { snapshots.append(try Snapshot(value)) }
        for (name, value) in json["refs"].object ?? [:] { references[name] = try SnapshotReference(value) }
        // Some writers have -1 for no snapshot; and before there were references this was the branch.
        if references["main"] == nil, let id = json["current-snapshot-id"].int64, id != -1 {
            references["main"] = SnapshotReference(branch: id)
        }
        for value in json["snapshot-log"].array ?? [] {
            snapshotLog.append(
                .init(timestampMillis: try value.requiredCount("timestamp-ms"), snapshotID: try value.requiredInt64("snapshot-id")))
        }
        for value in json["metadata-log"].array ?? [] {
            metadataLog.append(
                .init(timestampMillis: try value.requiredCount("timestamp-ms"), metadataFile: try value.requiredString("metadata-file")))
        }
        nextRowID = try json.optionalCount("next-row-id") ?? 0
        statistics = json["statistics"].array ?? []
        partitionStatistics = json["partition-statistics"].array ?? []
        guard schema(id: currentSchemaID) != nil else { throw BadBytes("there is no schema \(currentSchemaID), which is the current one") }
        guard partitionSpec(id: defaultSpecID) != nil else {
            throw BadBytes("there is no partition spec \(defaultSpecID), which is the default")
        }
    }

    package var json: JSONValue {
        var result: JSONValue = [
            "format-version": JSONValue(formatVersion), "table-uuid": .string(tableUUID), "location": .string(location),
            "last-sequence-number": .int(lastSequenceNumber), "last-updated-ms": .int(lastUpdatedMillis),
            "last-column-id": JSONValue(lastColumnID), "schemas": .array(schemas.map(\.json)),
            "current-schema-id": JSONValue(currentSchemaID),
            "partition-specs": .array(partitionSpecs.map(\.json)), "default-spec-id": JSONValue(defaultSpecID),
            "last-partition-id": JSONValue(lastPartitionID), "sort-orders": .array(sortOrders.map(\.json)),
            "default-sort-order-id": JSONValue(defaultSortOrderID), "properties": JSONValue(properties),
            "snapshots": .array(snapshots.map(\.json)), "refs": .object(references.mapValues(\.json)),
            "snapshot-log": .array(snapshotLog.map { ["timestamp-ms": .int($0.timestampMillis), "snapshot-id": .int($0.snapshotID)] }),
            "metadata-log": .array(
                metadataLog.map { ["timestamp-ms": .int($0.timestampMillis), "metadata-file": .string($0.metadataFile)] }),
            "statistics": .array(statistics), "partition-statistics": .array(partitionStatistics),
        ]
        result = result.with("current-snapshot-id", references["main"].map { .int($0.snapshotID) })
        switch formatVersion {
        case 1:
            // Its readers look for these.
            return result.with("schema", currentSchema.json).with("partition-spec", .array(defaultPartitionSpec.fields.map(\.json)))
        case 2: return result
        default: return result.with("next-row-id", .int(nextRowID))
        }
    }
}
