/// What must hold of a table for a commit. JSON as the REST catalog's specification has it.
package enum TableRequirement: Hashable, Sendable {
    case assertCreate
    case assertTableUUID(String)
    /// Nil: the reference does not exist.
    case assertRefSnapshotID(ref: String, snapshotID: Int64?)
    case assertLastAssignedFieldID(Int)
    case assertCurrentSchemaID(Int)
    case assertLastAssignedPartitionID(Int)
    case assertDefaultSpecID(Int)
    case assertDefaultSortOrderID(Int)

    /// - Parameter table: nil when there is none yet.
    /// - Throws: `commitConflict` saying what does not hold.
    package func check(against table: TableMetadata?) throws(IcebergError) {
        switch self {
        case .assertCreate: guard table == nil else { throw .commitConflict("the table exists already") }
        case .assertTableUUID(let uuid):
            guard table?.tableUUID.lowercased() == uuid.lowercased() else { throw Self.conflict("table UUID", table?.tableUUID, uuid) }
        case .assertRefSnapshotID(let ref, let snapshotID):
            let found = table?.references[ref]?.snapshotID
            guard found == snapshotID else { throw Self.conflict("snapshot of \"\(ref)\"", found, snapshotID) }
        case .assertLastAssignedFieldID(let id): try Self.check("last column id", table?.lastColumnID, id)
        case .assertCurrentSchemaID(let id): try Self.check("current schema id", table?.currentSchemaID, id)
        case .assertLastAssignedPartitionID(let id): try Self.check("last partition field id", table?.lastPartitionID, id)
        case .assertDefaultSpecID(let id): try Self.check("default partition spec id", table?.defaultSpecID, id)
        case .assertDefaultSortOrderID(let id): try Self.check("default sort order id", table?.defaultSortOrderID, id)
        }
    }

    private static func check(_ what: String, _ found: Int?, _ expected: Int) throws(IcebergError) {
        guard found == expected else { throw conflict(what, found, expected) }
    }

    private static func conflict<T>(_ what: String, _ found: T?, _ expected: T?) -> IcebergError {
        .commitConflict("the \(what) is \(found.map { "\($0)" } ?? "none"), not \(expected.map { "\($0)" } ?? "none")")
    }

    package init(_ json: JSONValue) throws(BadBytes) {
        switch try json.requiredString("type") {
        case "assert-create": self = .assertCreate
        case "assert-table-uuid": self = .assertTableUUID(try json.requiredString("uuid"))
        case "assert-ref-snapshot-id":
            self = .assertRefSnapshotID(ref: try json.requiredString("ref"), snapshotID: try json.optionalInt64("snapshot-id"))
        case "assert-last-assigned-field-id": self = .assertLastAssignedFieldID(try json.requiredInt("last-assigned-field-id"))
        case "assert-current-schema-id": self = .assertCurrentSchemaID(try json.requiredInt("current-schema-id"))
        case "assert-last-assigned-partition-id": self = .assertLastAssignedPartitionID(try json.requiredInt("last-assigned-partition-id"))
        case "assert-default-spec-id": self = .assertDefaultSpecID(try json.requiredInt("default-spec-id"))
        case "assert-default-sort-order-id": self = .assertDefaultSortOrderID(try json.requiredInt("default-sort-order-id"))
        case let type: throw BadBytes("there is no requirement \"\(type)\"")
        }
    }

    package var json: JSONValue {
        switch self {
        case .assertCreate: ["type": "assert-create"]
        case .assertTableUUID(let uuid): ["type": "assert-table-uuid", "uuid": .string(uuid)]
        case .assertRefSnapshotID(let ref, let id):
            ["type": "assert-ref-snapshot-id", "ref": .string(ref), "snapshot-id": id.map { .int($0) } ?? .null]
        case .assertLastAssignedFieldID(let id): ["type": "assert-last-assigned-field-id", "last-assigned-field-id": JSONValue(id)]
        case .assertCurrentSchemaID(let id): ["type": "assert-current-schema-id", "current-schema-id": JSONValue(id)]
        case .assertLastAssignedPartitionID(let id):
            ["type": "assert-last-assigned-partition-id", "last-assigned-partition-id": JSONValue(id)]
        case .assertDefaultSpecID(let id): ["type": "assert-default-spec-id", "default-spec-id": JSONValue(id)]
        case .assertDefaultSortOrderID(let id): ["type": "assert-default-sort-order-id", "default-sort-order-id": JSONValue(id)]
        }
    }
}
