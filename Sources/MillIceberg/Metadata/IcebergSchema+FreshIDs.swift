/// New tables number their columns themselves: identifiers that a client sends with a new schema only tell its columns apart for the
/// partition spec and the sort order of the same request.
extension IcebergSchema {
    /// The schema with identifiers from 1 on: the fields of a structure one after the other, then what is in each of them.
    ///
    /// - Returns: also which identifier sent became which.
    /// - Throws: `badRequest` where two fields were sent with one identifier, or have one name in one structure.
    package func assigningFreshIDs() throws(IcebergError) -> (schema: IcebergSchema, ids: [Int: Int]) {
        var fresh = FreshIDs()
        var result = IcebergSchema(schemaID: 0, try fresh.assign(fields))
        for id in identifierFieldIDs {
            guard let assigned = fresh.ids[id] else { throw .badRequest("identifier field \(id) is no field of the schema") }
            result.identifierFieldIDs.append(assigned)
        }
        return (result, fresh.ids)
    }
}

private struct FreshIDs {
    var ids: [Int: Int] = [:]
    private var last = 0

    mutating func assign(_ fields: [NestedField]) throws(IcebergError) -> [NestedField] {
        var names: Set<String> = []
        var result: [NestedField] = []
        for field in fields {
            guard names.insert(field.name).inserted else { throw .badRequest("there are two fields \"\(field.name)\"") }
            result.append(try renumbered(field))
        }
        for place in result.indices { result[place].type = try assign(result[place].type) }
        return result
    }

    private mutating func renumbered(_ field: NestedField) throws(IcebergError) -> NestedField {
        var field = field
        last += 1
        guard ids.updateValue(last, forKey: field.id) == nil else { throw .badRequest("two fields have the id \(field.id)") }
        field.id = last
        return field
    }

    private mutating func assign(_ type: IcebergType) throws(IcebergError) -> IcebergType {
        switch type {
        case .structure(let fields): return .structure(try assign(fields))
        case .list(let element):
            var element = try renumbered(element)
            element.type = try assign(element.type)
            return .list(element)
        case .map(let key, let value):
            var (key, value) = (try renumbered(key), try renumbered(value))
            key.type = try assign(key.type)
            value.type = try assign(value.type)
            return .map(key: key, value: value)
        default: return type
        }
    }
}

extension PartitionField {
    /// Stands in a request for an identifier that the table is to give.
    package static let unassignedID = -1
    /// Where identifiers of partition fields begin.
    package static let firstID = 1000
}

extension PartitionSpec {
    /// As a client sends it, perhaps without identifiers of the fields.
    package init(unbound json: JSONValue) throws(BadBytes) {
        try self.init(json)
        for (place, field) in (json["fields"].array ?? []).enumerated() where field["field-id"].isNull {
            fields[place].fieldID = PartitionField.unassignedID
        }
    }

    /// The spec of a new table: sources by the schema's fresh identifiers, fields numbered from 1000 on.
    package func remapped(_ ids: [Int: Int]) throws(IcebergError) -> PartitionSpec {
        var result = PartitionSpec()
        for (place, field) in fields.enumerated() {
            guard let source = ids[field.sourceID] else {
                throw .badRequest("partition field \"\(field.name)\" is of field \(field.sourceID), which is not there")
            }
            result.fields.append(
                PartitionField(sourceID: source, fieldID: PartitionField.firstID + place, name: field.name, field.transform))
        }
        return result
    }
}

extension SortOrder {
    /// The order of a new table: sources by the schema's fresh identifiers. An order without fields is number 0, any other number 1.
    package func remapped(_ ids: [Int: Int]) throws(IcebergError) -> SortOrder {
        var result = SortOrder(orderID: fields.isEmpty ? 0 : 1, fields)
        for place in fields.indices {
            guard let source = ids[fields[place].sourceID] else {
                throw .badRequest("the sort order has field \(fields[place].sourceID), which is not there")
            }
            result.fields[place].sourceID = source
        }
        return result
    }
}
