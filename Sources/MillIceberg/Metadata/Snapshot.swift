/// One state of a table.
package struct Snapshot: Hashable, Sendable {
    package var id: Int64
    package var parentID: Int64?
    package var sequenceNumber: Int64
    package var timestampMillis: Int64
    /// Where the list of its manifests is; nil in old tables of format 1.
    package var manifestList: String?
    /// What made it, `operation` first, and figures.
    package var summary: [SummaryEntry]
    package var schemaID: Int?
    /// v3: the first row identifier that it may have given, and how many it gave.
    package var firstRowID: Int64?
    package var addedRows: Int64?

    package struct SummaryEntry: Hashable, Sendable {
        package var key: String
        package var value: String
    }

    package init(
        id: Int64, parentID: Int64?, sequenceNumber: Int64, timestampMillis: Int64, manifestList: String?,
        summary: [(key: String, value: String)], schemaID: Int?, firstRowID: Int64? = nil, addedRows: Int64? = nil
    ) {
        self.id = id
        self.parentID = parentID
        self.sequenceNumber = sequenceNumber
        self.timestampMillis = timestampMillis
        self.manifestList = manifestList
        self.summary = summary.map { SummaryEntry(key: $0.key, value: $0.value) }
        self.schemaID = schemaID
        self.firstRowID = firstRowID
        self.addedRows = addedRows
    }

    package func summaryValue(_ key: String) -> String? { summary.last { $0.key == key }?.value }

    package init(_ json: JSONValue) throws(BadBytes) {
        let summary = json["summary"].texts
        self.init(
            id: try json.requiredInt64("snapshot-id"), parentID: json["parent-snapshot-id"].int64,
            sequenceNumber: try json.optionalCount("sequence-number") ?? 0, timestampMillis: try json.requiredCount("timestamp-ms"),
            manifestList: json["manifest-list"].string, summary: summary.sorted { $0.key < $1.key }.map { ($0.key, $0.value) },
            schemaID: json["schema-id"].int, firstRowID: try json.optionalCount("first-row-id"), addedRows: try json.optionalCount("added-rows"))
    }

    package var json: JSONValue {
        let result: JSONValue = [
            "snapshot-id": .int(id), "sequence-number": .int(sequenceNumber), "timestamp-ms": .int(timestampMillis),
            "summary": .object(Dictionary(summary.map { ($0.key, .string($0.value)) }) { $1 }),
        ]
        return result.with("parent-snapshot-id", parentID.map { .int($0) }).with("manifest-list", manifestList.map { .string($0) })
            .with("schema-id", schemaID.map { JSONValue($0) }).with("first-row-id", firstRowID.map { .int($0) })
            .with("added-rows", addedRows.map { .int($0) })
    }
}

/// A name for a snapshot: a branch, which moves, or a tag.
package struct SnapshotReference: Hashable, Sendable {
    package var snapshotID: Int64
    package var isBranch: Bool
    package var minSnapshotsToKeep: Int?
    package var maxSnapshotAgeMillis: Int64?
    package var maxRefAgeMillis: Int64?

    package init(branch snapshotID: Int64) { (self.snapshotID, isBranch) = (snapshotID, true) }
    package init(tag snapshotID: Int64) { (self.snapshotID, isBranch) = (snapshotID, false) }

    package init(_ json: JSONValue) throws(BadBytes) {
        snapshotID = try json.requiredInt64("snapshot-id")
        isBranch = json["type"].string != "tag"
        minSnapshotsToKeep = json["min-snapshots-to-keep"].int
        maxSnapshotAgeMillis = json.age("max-snapshot-age-ms")
        maxRefAgeMillis = json.age("max-ref-age-ms")
    }

    package var json: JSONValue {
        let result: JSONValue = ["snapshot-id": .int(snapshotID), "type": .string(isBranch ? "branch" : "tag")]
        return result.with("min-snapshots-to-keep", minSnapshotsToKeep.map { JSONValue($0) })
            .with("max-snapshot-age-ms", maxSnapshotAgeMillis.map { .int($0) }).with("max-ref-age-ms", maxRefAgeMillis.map { .int($0) })
    }
}
