package import MillBase
package import MillCatalog
package import MillColumnar

/// A relation that the engine makes when it is read: its shape, and its rows as of now.
package struct SystemRelation: Sendable {
    package let object: CatalogObject
    package let rows: @Sendable (SystemContext) -> [[Scalar]]

    package init(_ schemaName: String, _ name: String, id: UInt32, _ columns: [(String, SQLType)], rows: @escaping @Sendable (SystemContext) -> [[Scalar]]) {
        object = CatalogObject(
            id: ObjectID(id), schemaName: schemaName, name: name, kind: .system, columns: columns.map { CatalogColumn($0.0, $0.1) })
        self.rows = rows
    }
}

/// What system relations are made from.
package struct SystemContext: Sendable {
    package var catalog: Catalog
    package var databaseName: String
    package var userName: String
}

package enum SystemRelations {
    package static let all: [SystemRelation] = []

    package static func relation(_ id: ObjectID) -> SystemRelation? { byID[id] }

    private static let byID = Dictionary(uniqueKeysWithValues: all.map { ($0.object.id, $0) })
}
