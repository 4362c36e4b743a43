package import MillBase
package import MillCatalog
package import MillColumnar

/// A relation that the engine makes when it is read: its shape, and its rows as of now.
package struct SystemRelation: Sendable {
    package private(set) var object: CatalogObject
    package let rows: @Sendable (SystemContext) -> [[Scalar]]

    package init(
        _ schemaName: String, _ name: String, id: UInt32, _ columns: [(String, SQLType)],
        rows: @escaping @Sendable (SystemContext) -> [[Scalar]]
    ) {
        object = CatalogObject(
            id: ObjectID(id), schemaName: schemaName, name: name, kind: .system, columns: columns.map { CatalogColumn($0.0, $0.1) })
        self.rows = rows
    }

    /// A relation of `pg_catalog` from its columns as one text: `"oid oid, relname text, relhasindex bool"`. Without rows: for
    /// what the engine does not have, such as triggers.
    init(
        _ name: String, id: UInt32, schema: String = "pg_catalog", _ columns: String,
        rows: @escaping @Sendable (SystemContext) -> [[Scalar]] = { _ in [] }
    ) {
        let columns = columns.split(whereSeparator: { $0 == "," || $0 == "\n" }).map { column -> (String, SQLType) in
            let words = column.split(separator: " ")
            return (String(words[0]), SystemRelation.type(words[1]))
        }
        self.init(schema, name, id: id, columns) { context in rows(context).map { $0 + [.oid(Int32(truncatingIfNeeded: id))] } }
        object.columns.append(CatalogColumn("tableoid", .int32, isHidden: true))
    }

    private static func type(_ name: Substring) -> SQLType {
        switch name {
        case "bool": .boolean
        case "int2": .int16
        case "int4", "oid": .int32
        case "int8": .int64
        case "float4": .float32
        case "timestamptz": .timestamptz
        default: .varchar
        }
    }
}

/// The system relations: as much of PostgreSQL's catalog and of the information schema as its clients ask for.
///
/// Numbers are PostgreSQL's own where it fixes them. Arrays are text in the form `{a,b}`, there being no array type; types
/// that are one byte or a name in PostgreSQL are text. A source is a foreign table ('f'): its rows lie elsewhere.
package enum SystemRelations {
    package static let all: [SystemRelation] =
        pgRelations + pgTypes + pgIndexes + pgRoles + pgSettings + pgEmpty + pgViews + informationSchema

    package static func relation(_ id: ObjectID) -> SystemRelation? { byID[id] }

    private static let byID = Dictionary(uniqueKeysWithValues: all.map { ($0.object.id, $0) })
}

extension Scalar {
    static func oid(_ value: Int32) -> Scalar { .int(Int64(value)) }
    static func bool(_ value: Bool) -> Scalar { .boolean(value) }
}
