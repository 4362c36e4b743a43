/// The rules by which updates change a table, which catalogs keep.
///
/// Updates are applied in their order; an update may refer to what one before it added, by -1 or by the identifier it asked for. Between
/// them a table may be incomplete (a new one is put together piece by piece): the whole is checked at the end.
/// Source: Iceberg REST catalog specification, updates; Iceberg specification, table metadata.
extension TableMetadata {
    /// The highest format version that we write.
    package static let formatVersionMax = 3

    /// Nothing yet: what the updates of a new table are applied to.
    package static func blank(nowMillis: Int64) -> TableMetadata {
        var table = TableMetadata(tableUUID: "", location: "", schema: IcebergSchema([]), nowMillis: nowMillis)
        (table.schemas, table.partitionSpecs, table.sortOrders) = ([], [], [])
        return table
    }

    /// The table after updates, in their order.
    ///
    /// - Parameter nowMillis: becomes the time of the last change; nil leaves that to the snapshots.
    /// - Throws: `badRequest` for what makes no sense, `commitConflict` where others were faster.
    package func applying(_ updates: [TableUpdate], nowMillis: Int64? = nil) throws(IcebergError) -> TableMetadata {
        var change = TableChange(table: self)
        for update in updates { try change.apply(update) }
        try change.table.checkWhole()
        if let nowMillis { change.table.lastUpdatedMillis = max(nowMillis, change.table.lastUpdatedMillis) }
        return change.table
    }

    private func checkWhole() throws(IcebergError) {
        guard !tableUUID.isEmpty else { throw .badRequest("the table has no UUID") }
        guard !location.isEmpty else { throw .badRequest("the table has no location") }
        guard let schema = schema(id: currentSchemaID) else { throw .badRequest("there is no schema \(currentSchemaID)") }
        guard let spec = partitionSpec(id: defaultSpecID) else { throw .badRequest("there is no partition spec \(defaultSpecID)") }
        guard let order = sortOrders.first(where: { $0.orderID == defaultSortOrderID }) else {
            throw .badRequest("there is no sort order \(defaultSortOrderID)")
        }
        for field in spec.fields {
            guard let source = schema.field(id: field.sourceID) else {
                if field.transform == .void { continue }
                throw .badRequest("partition field \"\(field.name)\" is of field \(field.sourceID), which the current schema does not have")
            }
            if case .unknown = field.transform { continue }
            guard field.transform.resultType(of: source.type) != nil else {
                throw .badRequest("partition field \"\(field.name)\" is \(field.transform) of \(source.type), which cannot be")
            }
        }
        for field in order.fields where schema.field(id: field.sourceID) == nil {
            throw .badRequest("the sort order has field \(field.sourceID), which the current schema does not have")
        }
    }
}

/// A table while updates are applied to it.
private struct TableChange {
    var table: TableMetadata
    /// Identifiers as they were asked for, by those that were given; under -1 what was added last.
    private var schemaIDs: [Int: Int] = [:]
    private var specIDs: [Int: Int] = [:]
    private var orderIDs: [Int: Int] = [:]

    init(table: TableMetadata) { self.table = table }

    mutating func apply(_ update: TableUpdate) throws(IcebergError) {
        switch update {
        case .assignUUID(let uuid): try assign(uuid)
        case .upgradeFormatVersion(let version): try upgrade(to: version)
        case .addSchema(let schema): add(schema)
        case .setCurrentSchema(let id): table.currentSchemaID = try Self.given(id, schemaIDs, "schema")
        case .addPartitionSpec(let spec): add(spec)
        case .setDefaultSpec(let id): table.defaultSpecID = try Self.given(id, specIDs, "partition spec")
        case .addSortOrder(let order): add(order)
        case .setDefaultSortOrder(let id): table.defaultSortOrderID = try Self.given(id, orderIDs, "sort order")
        case .addSnapshot(let snapshot): try add(snapshot)
        case .setSnapshotRef(let name, let reference): try set(name, reference)
        case .removeSnapshots(let ids): remove(Set(ids))
        case .removeSnapshotRef(let name): table.references[name] = nil
        case .setLocation(let location): table.location = location
        case .setProperties(let properties): table.properties.merge(properties) { $1 }
        case .removeProperties(let names): for name in names { table.properties[name] = nil }
        default: try applyRarer(update)
        }
    }

    private mutating func applyRarer(_ update: TableUpdate) throws(IcebergError) {
        switch update {
        case .setStatistics(let id, let statistics): table.statistics = Self.without(id, table.statistics) + [statistics]
        case .removeStatistics(let id): table.statistics = Self.without(id, table.statistics)
        case .setPartitionStatistics(let id, let statistics):
            table.partitionStatistics = Self.without(id, table.partitionStatistics) + [statistics]
        case .removePartitionStatistics(let id): table.partitionStatistics = Self.without(id, table.partitionStatistics)
        case .removePartitionSpecs(let ids):
            guard !ids.contains(table.defaultSpecID) else { throw .badRequest("the default partition spec cannot be removed") }
            table.partitionSpecs.removeAll { ids.contains($0.specID) }
        case .removeSchemas(let ids):
            guard !ids.contains(table.currentSchemaID) else { throw .badRequest("the current schema cannot be removed") }
            table.schemas.removeAll { ids.contains($0.schemaID) }
        default: break
        }
    }

    private static func without(_ snapshotID: Int64, _ statistics: [JSONValue]) -> [JSONValue] {
        statistics.filter { $0["snapshot-id"].int64 != snapshotID }
    }

    private static func given(_ id: Int, _ given: [Int: Int], _ what: String) throws(IcebergError) -> Int {
        guard let known = given[id] else {
            guard id >= 0 else { throw .badRequest("no \(what) was added that \(id) could mean") }
            return id
        }
        return known
    }

    // MARK: What a table has one of

    private mutating func assign(_ uuid: String) throws(IcebergError) {
        guard table.tableUUID.isEmpty || table.tableUUID.lowercased() == uuid.lowercased() else {
            throw .badRequest("the table's UUID is \(table.tableUUID), it cannot become \(uuid)")
        }
        table.tableUUID = uuid
    }

    private mutating func upgrade(to version: Int) throws(IcebergError) {
        guard (1...TableMetadata.formatVersionMax).contains(version) else {
            throw .badRequest("format version \(version) is not one that we write, which are 1 to \(TableMetadata.formatVersionMax)")
        }
        let isNew = table.schemas.isEmpty
        guard version >= table.formatVersion || isNew else {
            throw .badRequest("format version \(table.formatVersion) cannot become \(version)")
        }
        table.formatVersion = version
    }

    // MARK: What it has several of

    private mutating func add(_ schema: IcebergSchema) {
        var added = schema
        let same = table.schemas.first { $0.fields == schema.fields && $0.identifierFieldIDs == schema.identifierFieldIDs }
        if let same {
            added.schemaID = same.schemaID
        } else {
            if schema.schemaID < 0 || table.schema(id: schema.schemaID) != nil {
                added.schemaID = (table.schemas.map(\.schemaID).max() ?? -1) + 1
            }
            table.schemas.append(added)
            table.lastColumnID = max(table.lastColumnID, schema.highestFieldID)
        }
        schemaIDs[schema.schemaID] = added.schemaID
        schemaIDs[-1] = added.schemaID
    }

    private mutating func add(_ spec: PartitionSpec) {
        var added = spec
        for place in added.fields.indices where added.fields[place].fieldID == PartitionField.unassignedID {
            added.fields[place].fieldID = fieldID(of: added.fields[place])
            table.lastPartitionID = max(table.lastPartitionID, added.fields[place].fieldID)
        }
        if let same = table.partitionSpecs.first(where: { $0.fields == added.fields }) {
            added.specID = same.specID
        } else {
            if spec.specID < 0 || table.partitionSpec(id: spec.specID) != nil {
                added.specID = (table.partitionSpecs.map(\.specID).max() ?? -1) + 1
            }
            table.partitionSpecs.append(added)
            table.lastPartitionID = max(table.lastPartitionID, added.fields.map(\.fieldID).max() ?? PartitionField.firstID - 1)
        }
        specIDs[spec.specID] = added.specID
        specIDs[-1] = added.specID
    }

    /// What was partitioned the same way before has its identifier again, so that old and new manifests agree.
    private func fieldID(of field: PartitionField) -> Int {
        let known = table.partitionSpecs.flatMap(\.fields).first {
            $0.sourceID == field.sourceID && $0.transform == field.transform && $0.name == field.name
        }
        return known?.fieldID ?? table.lastPartitionID + 1
    }

    private mutating func add(_ order: SortOrder) {
        var added = order
        if order.fields.isEmpty {
            added.orderID = 0
            if !table.sortOrders.contains(where: { $0.orderID == 0 }) { table.sortOrders.append(added) }
        } else if let same = table.sortOrders.first(where: { $0.fields == order.fields }) {
            added.orderID = same.orderID
        } else {
            // 0 means unsorted, whoever asks for it.
            if order.orderID <= 0 || table.sortOrders.contains(where: { $0.orderID == order.orderID }) {
                added.orderID = max(0, table.sortOrders.map(\.orderID).max() ?? 0) + 1
            }
            table.sortOrders.append(added)
        }
        orderIDs[order.orderID] = added.orderID
        orderIDs[-1] = added.orderID
    }

    // MARK: Snapshots

    private mutating func add(_ snapshot: Snapshot) throws(IcebergError) {
        guard table.snapshot(id: snapshot.id) == nil else { throw .badRequest("snapshot \(snapshot.id) is there already") }
        // Whoever is late here was late on another branch, too: another try with newer metadata helps.
        guard table.formatVersion == 1 || snapshot.sequenceNumber > table.lastSequenceNumber else {
            throw .commitConflict("sequence number \(snapshot.sequenceNumber) is not above \(table.lastSequenceNumber)")
        }
        if table.formatVersion >= 3 {
            guard let first = snapshot.firstRowID, let added = snapshot.addedRows, added >= 0 else {
                throw .badRequest("snapshot \(snapshot.id) has no first-row-id or added-rows, which format version 3 wants")
            }
            guard first >= table.nextRowID else { throw .commitConflict("first row id \(first) is not at least \(table.nextRowID)") }
            let (next, hasOverflow) = first.addingReportingOverflow(added)
            guard !hasOverflow, next <= JSONValue.countMax else { throw .badRequest("snapshot \(snapshot.id) has too many rows") }
            table.nextRowID = next
        }
        table.snapshots.append(snapshot)
        table.lastSequenceNumber = max(table.lastSequenceNumber, snapshot.sequenceNumber)
        table.lastUpdatedMillis = max(table.lastUpdatedMillis, snapshot.timestampMillis)
    }

    private mutating func set(_ name: String, _ reference: SnapshotReference) throws(IcebergError) {
        guard let target = table.snapshot(id: reference.snapshotID) else {
            throw .badRequest("there is no snapshot \(reference.snapshotID)")
        }
        guard name != "main" || reference.isBranch else { throw .badRequest("\"main\" is a branch, it cannot be a tag") }
        let before = table.references.updateValue(reference, forKey: name)
        guard name == "main", before?.snapshotID != reference.snapshotID else { return }
        let millis = max(target.timestampMillis, table.snapshotLog.last?.timestampMillis ?? 0)
        table.snapshotLog.append(.init(timestampMillis: millis, snapshotID: target.id))
    }

    private mutating func remove(_ gone: Set<Int64>) {
        table.snapshots.removeAll { gone.contains($0.id) }
        table.references = table.references.filter { !gone.contains($0.value.snapshotID) }
        table.statistics.removeAll { $0["snapshot-id"].int64.map { gone.contains($0) } ?? false }
        table.partitionStatistics.removeAll { $0["snapshot-id"].int64.map { gone.contains($0) } ?? false }
        // The log before a snapshot that is gone would have a hole in it.
        if let last = table.snapshotLog.lastIndex(where: { gone.contains($0.snapshotID) }) { table.snapshotLog.removeSubrange(...last) }
    }
}
