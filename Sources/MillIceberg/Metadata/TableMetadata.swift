/// All that a table is, as its metadata file has it. Formats 1 to 3 are read and written.
package struct TableMetadata: Hashable, Sendable {
    package var formatVersion: Int
    package var tableUUID: String
    package var location: String
    package var lastSequenceNumber: Int64 = 0
    package var lastUpdatedMillis: Int64
    package var lastColumnID: Int
    package var schemas: [IcebergSchema]
    package var currentSchemaID: Int
    package var partitionSpecs: [PartitionSpec]
    package var defaultSpecID: Int
    package var lastPartitionID: Int
    package var sortOrders: [SortOrder] = [SortOrder()]
    package var defaultSortOrderID = 0
    package var properties: [String: String] = [:]
    package var snapshots: [Snapshot] = []
    package var references: [String: SnapshotReference] = [:]
    package var snapshotLog: [SnapshotLogEntry] = []
    package var metadataLog: [MetadataLogEntry] = []
    /// v3: what the next row is known by.
    package var nextRowID: Int64 = 0
    /// Kept as they are: we neither make nor use them.
    package var statistics: [JSONValue] = []
    package var partitionStatistics: [JSONValue] = []
    /// Members that this program does not know; written back as they were.
    package var otherMembers: [String: JSONValue] = [:]

    package struct SnapshotLogEntry: Hashable, Sendable {
        package var timestampMillis: Int64
        package var snapshotID: Int64
    }

    package struct MetadataLogEntry: Hashable, Sendable {
        package var timestampMillis: Int64
        package var metadataFile: String

        package init(timestampMillis: Int64, metadataFile: String) {
            (self.timestampMillis, self.metadataFile) = (timestampMillis, metadataFile)
        }
    }

    /// An empty table. Identifiers of the schema's fields and of the spec's are taken as they are.
    package init(
        formatVersion: Int = 2, tableUUID: String, location: String, schema: IcebergSchema, spec: PartitionSpec = PartitionSpec(),
        properties: [String: String] = [:], nowMillis: Int64
    ) {
        self.formatVersion = formatVersion
        self.tableUUID = tableUUID
        self.location = location
        lastUpdatedMillis = nowMillis
        lastColumnID = schema.highestFieldID
        schemas = [schema]
        currentSchemaID = schema.schemaID
        partitionSpecs = [spec]
        defaultSpecID = spec.specID
        lastPartitionID = spec.fields.map(\.fieldID).max() ?? 999
        self.properties = properties
    }

    // MARK: Look-ups

    package func schema(id: Int) -> IcebergSchema? { schemas.first { $0.schemaID == id } }
    /// Reading and applying updates see to it that there is one.
    package var currentSchema: IcebergSchema { schema(id: currentSchemaID) ?? IcebergSchema([]) }
    package func partitionSpec(id: Int) -> PartitionSpec? { partitionSpecs.first { $0.specID == id } }
    package var defaultPartitionSpec: PartitionSpec { partitionSpec(id: defaultSpecID) ?? PartitionSpec() }
    package var defaultSortOrder: SortOrder { sortOrders.first { $0.orderID == defaultSortOrderID } ?? SortOrder() }
    package func snapshot(id: Int64) -> Snapshot? { snapshots.first { $0.id == id } }
    package func snapshot(ofBranch name: String) -> Snapshot? { references[name].flatMap { snapshot(id: $0.snapshotID) } }

    /// A branch moved to another snapshot, with the rules for its history that it has.
    package func reference(toBranch name: String, snapshotID: Int64) -> SnapshotReference {
        var reference = references[name] ?? SnapshotReference(branch: snapshotID)
        reference.snapshotID = snapshotID
        return reference
    }

    /// The types of a spec's partition values. A column that is no longer in the schema is looked for in older ones.
    package func partitionTypes(of spec: PartitionSpec) throws(IcebergError) -> [IcebergType] {
        var result: [IcebergType] = []
        for field in spec.fields {
            let schema =
                currentSchema.field(id: field.sourceID) != nil ? currentSchema : schemas.last { $0.field(id: field.sourceID) != nil }
            let source = schema?.field(id: field.sourceID)?.type ?? .int
            if case .unknown = field.transform {
                // What we cannot make, others have made: it is carried as text.
                result.append(.string)
            } else if let type = field.transform.resultType(of: source) {
                result.append(type)
            } else {
                throw .malformed(location: location, what: "partition field \"\(field.name)\" is \(field.transform) of \(source)")
            }
        }
        return result
    }

    package var statisticsFiles: [String] { (statistics + partitionStatistics).compactMap { $0["statistics-path"].string } }
}

/// By what rows are sorted within a file.
package struct SortOrder: Hashable, Sendable {
    package var orderID: Int
    package var fields: [SortField]

    package init(orderID: Int = 0, _ fields: [SortField] = []) { (self.orderID, self.fields) = (orderID, fields) }

    package init(_ json: JSONValue) throws(BadBytes) {
        orderID = try json.requiredInt("order-id")
        fields = []
        for field in json["fields"].array ?? [] { fields.append(try SortField(field)) }
    }

    package var json: JSONValue { ["order-id": JSONValue(orderID), "fields": .array(fields.map(\.json))] }
}

package struct SortField: Hashable, Sendable {
    package var sourceID: Int
    package var transform: Transform
    package var isAscending: Bool
    package var nullsFirst: Bool

    package init(sourceID: Int, _ transform: Transform = .identity, isAscending: Bool = true, nullsFirst: Bool = true) {
        self.sourceID = sourceID
        self.transform = transform
        self.isAscending = isAscending
        self.nullsFirst = nullsFirst
    }

    init(_ json: JSONValue) throws(BadBytes) {
        guard let source = json["source-id"].int ?? json["source-ids"].array?.first?.int else {
            throw BadBytes("a sort field has no source")
        }
        self.init(
            sourceID: source, Transform(try json.requiredString("transform")), isAscending: json["direction"].string != "desc",
            nullsFirst: json["null-order"].string != "nulls-last")
    }

    var json: JSONValue {
        [
            "source-id": JSONValue(sourceID), "transform": .string("\(transform)"), "direction": .string(isAscending ? "asc" : "desc"),
            "null-order": .string(nullsFirst ? "nulls-first" : "nulls-last"),
        ]
    }
}
