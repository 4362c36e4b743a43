import MillIceberg

/// A table that somebody wants to be made.
struct NewTable: Sendable {
    var name: TableIdentifier
    var schema: IcebergSchema
    var spec = PartitionSpec()
    var order = SortOrder()
    /// Nil leaves it to the catalog.
    var location: String?
    /// `format-version` among them says which format it has; it is no property of the table.
    var properties: [String: String] = [:]

    init(_ name: TableIdentifier, _ schema: IcebergSchema) { (self.name, self.schema) = (name, schema) }

    init(_ body: JSONValue, in namespace: [String]) throws {
        name = TableIdentifier(namespace: namespace, name: try body.requiredString("name"))
        schema = try IcebergSchema(body.required("schema"))
        if !body["partition-spec"].isNull { spec = try PartitionSpec(unbound: body["partition-spec"]) }
        if !body["write-order"].isNull { order = try SortOrder(body["write-order"]) }
        location = body["location"].string
        if !body["properties"].isNull { properties = try body["properties"].allTexts("properties") }
    }

    /// With identifiers of the table's own for its columns.
    func metadata(tableUUID: String, location: String, nowMillis: Int64) throws -> TableMetadata {
        var properties = properties
        let version = properties.removeValue(forKey: "format-version").map { Int($0) ?? 0 } ?? 2
        guard (1...TableMetadata.formatVersionMax).contains(version) else {
            throw CatalogFailure.badRequest("format-version is not one of 1 to \(TableMetadata.formatVersionMax)")
        }
        let (schema, ids) = try schema.assigningFreshIDs()
        let order = try order.remapped(ids)
        var table = TableMetadata(
            formatVersion: version, tableUUID: tableUUID, location: location, schema: schema, spec: try spec.remapped(ids),
            properties: properties,
            nowMillis: nowMillis)
        table.sortOrders = [order]
        table.defaultSortOrderID = order.orderID
        return try table.applying([])
    }
}
