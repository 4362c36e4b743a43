import MillBase
import MillCatalog
import MillColumnar
import MillSQL

/// The relations that are views in PostgreSQL too: objects by name, with their definitions.
extension SystemRelations {
    static let pgViews: [SystemRelation] = [
        SystemRelation(
            "pg_tables", id: 12_020,
            """
            schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules bool, hastriggers bool
            rowsecurity bool
            """
        ) { context in
            context.objects(.table).map { table in
                [
                    .string(table.schemaName), .string(table.name), .string(context.userName), .null, .bool(!table.primaryKey.isEmpty),
                    .bool(false),
                    .bool(false), .bool(false),
                ]
            }
        },
        SystemRelation("pg_views", id: 12_021, "schemaname name, viewname name, viewowner name, definition text") { context in
            context.objects(.view).map { view in
                [.string(view.schemaName), .string(view.name), .string(context.userName), .text(view.queryText)]
            }
        },
        SystemRelation(
            "pg_matviews", id: 12_022,
            "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, ispopulated bool, definition text"
        ) { context in
            context.objects(.materializedView).map { view in
                [
                    .string(view.schemaName), .string(view.name), .string(context.userName), .null, .bool(false), .bool(true),
                    .text(view.queryText),
                ]
            }
        },
        SystemRelation("pg_indexes", id: 12_023, "schemaname name, tablename name, indexname name, tablespace name, indexdef text") {
            context in
            context.keyedTables.map { table in
                [.string(table.schemaName), .string(table.name), .string(table.primaryKeyName), .null, .string(table.indexText)]
            }
        },
        // A view's query is its rule named _RETURN.
        SystemRelation(
            "pg_rewrite", id: 2618,
            "oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, is_instead bool, ev_qual text, ev_action text"
        ) { context in
            context.userObjects.filter { $0.kind == .view || $0.kind == .materializedView }.map { view in
                let oid = Int32(truncatingIfNeeded: view.id.number | SystemOID.constraintBit)
                return [
                    .oid(oid), .string("_RETURN"), .oid(SystemOID.of(view)), .string("1"), .string("O"), .bool(true), .null,
                    .text(view.queryText),
                ]
            }
        },
    ]
}

extension SystemContext {
    /// What users created of one kind, oldest first.
    func objects(_ kind: CatalogObject.Kind) -> [CatalogObject] { userObjects.filter { $0.kind == kind } }
}

extension CatalogObject {
    /// A view's SELECT, one line with a semicolon, as `pg_get_viewdef` gives it; nil for what is no view.
    var queryText: String? {
        guard kind == .view || kind == .materializedView else { return nil }
        // A stored definition was parsed when it was made, and it is parsed again as the same dialect.
        guard case .createView(let statement)? = try? Parser.parseStatement(definition) else { return nil }
        return " \(statement.query);"
    }

    /// `CREATE UNIQUE INDEX` of the primary key.
    var indexText: String {
        let table = "\(SQLPrinter.quoted(schemaName)).\(SQLPrinter.quoted(name))"
        return "CREATE UNIQUE INDEX \(SQLPrinter.quoted(primaryKeyName)) ON \(table) USING btree (\(keyColumnsText))"
    }

    var constraintText: String { "PRIMARY KEY (\(keyColumnsText))" }

    private var keyColumnsText: String { primaryKey.map { SQLPrinter.quoted(columns[$0].name) }.joined(separator: ", ") }
}

extension Scalar {
    static func text(_ value: String?) -> Scalar { value.map { .string($0) } ?? .null }
}
