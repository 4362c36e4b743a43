import MillBase
import MillCatalog
import MillColumnar
import MillExpr

/// `pg_class` and its columns, schemas and defaults.
extension SystemRelations {
    static let pgRelations: [SystemRelation] = [
        SystemRelation(
            "pg_class", id: 1259,
            """
            oid oid, relname name, relnamespace oid, reltype oid, reloftype oid, relowner oid, relam oid, relfilenode oid, reltablespace oid
            relpages int4, reltuples float4, relallvisible int4, reltoastrelid oid, relhasindex bool, relisshared bool, relpersistence char
            relkind char, relnatts int2, relchecks int2, relhasrules bool, relhastriggers bool, relhassubclass bool, relrowsecurity bool
            relforcerowsecurity bool, relispopulated bool, relreplident char, relispartition bool, relrewrite oid, relfrozenxid int4
            relminmxid int4, relacl text, reloptions text, relpartbound text
            """
        ) { context in
            context.relations.compactMap { relationRow($0, context) } + context.keyedTables.map { indexRow($0, context) }
        },
        SystemRelation("pg_namespace", id: 2615, "oid oid, nspname name, nspowner oid, nspacl text") { context in
            context.catalog.schemas.map { name in
                [.oid(SystemOID.schema(name, in: context.catalog)), .string(name), .oid(SystemOID.owner), .null]
            }
        },
        SystemRelation(
            "pg_attribute", id: 1249,
            """
            attrelid oid, attname name, atttypid oid, attstattarget int4, attlen int2, attnum int2, attndims int4, attcacheoff int4
            atttypmod int4, attbyval bool, attalign char, attstorage char, attcompression char, attnotnull bool, atthasdef bool
            atthasmissing bool, attidentity char, attgenerated char, attisdropped bool, attislocal bool, attinhcount int4
            attcollation oid, attacl text, attoptions text, attfdwoptions text, attmissingval text
            """
        ) { context in
            context.relations.flatMap { object -> [[Scalar]] in
                guard relationKind(object) != nil else { return [] }
                return object.shownColumns.enumerated().map { attributeRow(SystemOID.of(object), $1, at: $0) }
            }
                + context.keyedTables.flatMap { table in
                    table.primaryKey.enumerated().map { attributeRow(SystemOID.index(table), table.columns[$1], at: $0) }
                }
        },
        SystemRelation("pg_attrdef", id: 2604, "oid oid, adrelid oid, adnum int2, adbin text") { context in
            context.userObjects.flatMap { object in
                object.shownColumns.enumerated().compactMap { place, column -> [Scalar]? in
                    guard let text = column.defaultText else { return nil }
                    // Numbered within the relation's own range of bits, like its index.
                    let oid = Int32(truncatingIfNeeded: object.id.number | 1 << 26) &+ Int32(truncatingIfNeeded: place)
                    return [.oid(oid), .oid(SystemOID.of(object)), .int(Int64(place + 1)), .string(text)]
                }
            }
        },
    ]

    /// `relkind`; nil for what is not shown. A sink has no rows to read.
    static func relationKind(_ object: CatalogObject) -> String? {
        switch object.kind {
        case .table: "r"
        case .source: "f"
        case .materializedView: "m"
        case .view, .system: "v"
        case .sink: nil
        }
    }

    private static func relationRow(_ object: CatalogObject, _ context: SystemContext) -> [Scalar]? {
        guard let kind = relationKind(object) else { return nil }
        let isStored = kind == "r" || kind == "m"
        return classRow(
            oid: SystemOID.of(object), name: object.name, schema: object.schemaName, kind: kind, columnCount: object.shownColumns.count,
            accessMethod: isStored ? SystemOID.heapAccessMethod : 0, hasIndex: !object.primaryKey.isEmpty,
            hasRules: kind == "v" || kind == "m", context)
    }

    private static func indexRow(_ table: CatalogObject, _ context: SystemContext) -> [Scalar] {
        classRow(
            oid: SystemOID.index(table), name: table.primaryKeyName, schema: table.schemaName, kind: "i",
            columnCount: table.primaryKey.count,
            accessMethod: SystemOID.btreeAccessMethod, hasIndex: false, hasRules: false, context)
    }

    private static func classRow(
        oid: Int32, name: String, schema: String, kind: String, columnCount: Int, accessMethod: Int32, hasIndex: Bool, hasRules: Bool,
        _ context: SystemContext
    ) -> [Scalar] {
        [
            .oid(oid), .string(name), .oid(SystemOID.schema(schema, in: context.catalog)), .oid(0), .oid(0), .oid(SystemOID.owner),
            .oid(accessMethod), .oid(kind == "v" || kind == "f" ? 0 : oid), .oid(0),
            // Sizes are not kept: PostgreSQL's value for a relation that was never analysed.
            .int(0), .float(-1), .int(0), .oid(0), .bool(hasIndex), .bool(false), .string("p"), .string(kind), .int(Int64(columnCount)),
            .int(0),
            .bool(hasRules), .bool(false), .bool(false), .bool(false), .bool(false), .bool(true), .string(kind == "r" || kind == "m" ? "d" : "n"),
            .bool(false),
            .oid(0), .int(0), .int(0), .null, .null, .null,
        ]
    }

    private static func attributeRow(_ relation: Int32, _ column: CatalogColumn, at place: Int) -> [Scalar] {
        let oid = CatalogTypes.oid(of: column.type)
        let type = CatalogTypes.type(oid)
        return [
            .oid(relation), .string(column.name), .oid(oid), .int(-1), .int(Int64(type?.length ?? -1)), .int(Int64(place + 1)), .int(0),
            .int(-1),
            .int(column.lengthMax.map { Int64($0) + 4 } ?? Int64(CatalogTypes.modifier(of: column.type))), .bool(type?.isPassedByValue ?? false), .string("i"),
            .string(type?.length ?? -1 < 0 ? "x" : "p"), .string(""), .bool(!column.isNullable), .bool(column.defaultText != nil),
            .bool(false),
            .string(""), .string(""), .bool(false), .bool(true), .int(0), .oid(type?.category == "S" ? SystemOID.defaultCollation : 0),
            .null, .null,
            .null, .null,
        ]
    }
}

extension SystemContext {
    /// Tables with a primary key: each has an index and a constraint.
    var keyedTables: [CatalogObject] { userObjects.filter { !$0.primaryKey.isEmpty } }
}

extension CatalogObject {
    /// The columns that `*` shows.
    var shownColumns: [CatalogColumn] { columns.filter { !$0.isHidden } }

    /// Numbers of the primary key's columns as clients count them, from 1.
    var primaryKeyNumbers: [Int] {
        let shown = columns.indices.filter { !columns[$0].isHidden }
        return primaryKey.compactMap { key in shown.firstIndex(of: key).map { $0 + 1 } }
    }
}
