/// A table's name within its catalog.
package struct TableIdentifier: Hashable, Sendable, CustomStringConvertible {
    package var namespace: [String]
    package var name: String

    package init(namespace: [String], name: String) { (self.namespace, self.name) = (namespace, name) }

    package var description: String { (namespace + [name]).joined(separator: ".") }
}

/// What must hold for a commit. JSON as the REST catalog's specification has it.
package enum TableRequirement: Hashable, Sendable {
    case assertCreate
    case assertTableUUID(String)
    /// Nil: the reference does not exist.
    case assertRefSnapshotID(ref: String, snapshotID: Int64?)

    /// - Throws: `commitConflict` saying what does not hold.
    package func check(against table: TableMetadata?) throws(IcebergError) {
        switch self {
        case .assertCreate: guard table == nil else { throw .commitConflict("the table exists already") }
        case .assertTableUUID(let uuid):
            guard table?.tableUUID == uuid else { throw .commitConflict("the table has another UUID than \(uuid)") }
        case .assertRefSnapshotID(let ref, let snapshotID):
            guard table?.references[ref]?.snapshotID == snapshotID else { throw .commitConflict("\"\(ref)\" is not at the snapshot expected") }
        }
    }
}

/// A change of a table's metadata.
package enum TableUpdate: Hashable, Sendable {
    case addSnapshot(Snapshot)
    case setSnapshotRef(name: String, SnapshotReference)
    case removeSnapshots([Int64])
}
