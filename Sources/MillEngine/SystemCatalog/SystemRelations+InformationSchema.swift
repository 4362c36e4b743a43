import MillCatalog
import MillColumnar
import MillExpr

/// The information schema: what users created, by name.
extension SystemRelations {
    static let informationSchema: [SystemRelation] = [
        SystemRelation(
            "schemata", id: 13_001, schema: "information_schema",
            """
            catalog_name text, schema_name text, schema_owner text, default_character_set_catalog text, default_character_set_schema text
            default_character_set_name text, sql_path text
            """
        ) { context in
            context.catalog.schemas.map { name in
                [.string(context.databaseName), .string(name), .string(context.userName), .null, .null, .null, .null]
            }
        },
        SystemRelation(
            "tables", id: 13_002, schema: "information_schema",
            """
            table_catalog text, table_schema text, table_name text, table_type text, self_referencing_column_name text
            reference_generation text, user_defined_type_catalog text, user_defined_type_schema text, user_defined_type_name text
            is_insertable_into text, is_typed text, commit_action text
            """
        ) { context in
            context.relations.compactMap { object in
                guard let type = tableType(object) else { return nil }
                return [
                    .string(context.databaseName), .string(object.schemaName), .string(object.name), .string(type), .null, .null, .null,
                    .null, .null,
                    .yesOrNo(object.kind == .table), .yesOrNo(false), .null,
                ]
            }
        },
        SystemRelation(
            "columns", id: 13_003, schema: "information_schema",
            """
            table_catalog text, table_schema text, table_name text, column_name text, ordinal_position int4, column_default text
            is_nullable text, data_type text, character_maximum_length int4, character_octet_length int4, numeric_precision int4
            numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, interval_type text, interval_precision int4
            character_set_catalog text, character_set_schema text, character_set_name text, collation_catalog text, collation_schema text
            collation_name text, domain_catalog text, domain_schema text, domain_name text, udt_catalog text, udt_schema text, udt_name text
            scope_catalog text, scope_schema text, scope_name text, maximum_cardinality int4, dtd_identifier text, is_self_referencing text
            is_identity text, identity_generation text, identity_start text, identity_increment text, identity_maximum text
            identity_minimum text, identity_cycle text, is_generated text, generation_expression text, is_updatable text
            """
        ) { context in
            context.relations.flatMap { object -> [[Scalar]] in
                guard tableType(object) != nil else { return [] }
                return object.shownColumns.enumerated().map { columnRow(object, $1, at: $0, context) }
            }
        },
        SystemRelation(
            "views", id: 13_004, schema: "information_schema",
            """
            table_catalog text, table_schema text, table_name text, view_definition text, check_option text, is_updatable text
            is_insertable_into text, is_trigger_updatable text, is_trigger_deletable text, is_trigger_insertable_into text
            """
        ) { context in
            context.userObjects.filter { tableType($0) == "VIEW" }.map { view in
                [.string(context.databaseName), .string(view.schemaName), .string(view.name), .text(view.queryText), .string("NONE")]
                    + Array(repeating: .yesOrNo(false), count: 5)
            }
        },
        SystemRelation(
            "table_constraints", id: 13_005, schema: "information_schema",
            """
            constraint_catalog text, constraint_schema text, constraint_name text, table_catalog text, table_schema text, table_name text
            constraint_type text, is_deferrable text, initially_deferred text, enforced text, nulls_distinct text
            """
        ) { context in
            context.keyedTables.map { table in
                [
                    .string(context.databaseName), .string(table.schemaName), .string(table.primaryKeyName), .string(context.databaseName),
                    .string(table.schemaName), .string(table.name), .string("PRIMARY KEY"), .yesOrNo(false), .yesOrNo(false),
                    .yesOrNo(true), .null,
                ]
            }
        },
        SystemRelation(
            "key_column_usage", id: 13_006, schema: "information_schema",
            """
            constraint_catalog text, constraint_schema text, constraint_name text, table_catalog text, table_schema text, table_name text
            column_name text, ordinal_position int4, position_in_unique_constraint int4
            """
        ) { context in
            context.keyedTables.flatMap { table in
                table.primaryKey.enumerated().map { place, column in
                    [
                        .string(context.databaseName), .string(table.schemaName), .string(table.primaryKeyName),
                        .string(context.databaseName),
                        .string(table.schemaName), .string(table.name), .string(table.columns[column].name), .int(Int64(place + 1)), .null,
                    ]
                }
            }
        },
        SystemRelation(
            "referential_constraints", id: 13_007, schema: "information_schema",
            """
            constraint_catalog text, constraint_schema text, constraint_name text, unique_constraint_catalog text, unique_constraint_schema text
            unique_constraint_name text, match_option text, update_rule text, delete_rule text
            """),
    ]

    /// A materialized view is shown as a view, a source as a foreign table: the standard has no other words. Nil for sinks.
    private static func tableType(_ object: CatalogObject) -> String? {
        switch object.kind {
        case .table: "BASE TABLE"
        case .source: "FOREIGN"
        case .view, .materializedView, .system: "VIEW"
        case .sink: nil
        }
    }

    private static func columnRow(_ object: CatalogObject, _ column: CatalogColumn, at place: Int, _ context: SystemContext) -> [Scalar] {
        let database = Scalar.string(context.databaseName)
        let numbers = numberShape(column.type)
        let text: [Scalar] = [
            database, .string(object.schemaName), .string(object.name), .string(column.name), .int(Int64(place + 1)),
            .text(column.defaultText),
            .yesOrNo(column.isNullable), .string(column.type.base.name), .null, .null,
        ]
        let shape: [Scalar] = [
            numbers.precision, numbers.radix, numbers.scale, datetimePrecision(column.type), .null, .null,
        ]
        let udt = CatalogTypes.type(CatalogTypes.oid(of: column.type))?.name
        return text + shape + Array(repeating: .null, count: 9) + [database, .string("pg_catalog"), .text(udt)]
            + Array(repeating: .null, count: 4) + [.string("\(place + 1)"), .yesOrNo(false), .yesOrNo(false)]
            + Array(repeating: .null, count: 5)
            + [.yesOrNo(false), .string("NEVER"), .null, .yesOrNo(object.kind == .table)]
    }

    private static func numberShape(_ type: SQLType) -> (precision: Scalar, radix: Scalar, scale: Scalar) {
        switch type {
        case .int16: (.int(16), .int(2), .int(0))
        case .int32: (.int(32), .int(2), .int(0))
        case .int64: (.int(64), .int(2), .int(0))
        case .float32: (.int(24), .int(2), .null)
        case .float64: (.int(53), .int(2), .null)
        case .numeric(let precision?, let scale): (.int(Int64(precision)), .int(10), .int(Int64(scale ?? 0)))
        case .numeric: (.null, .int(10), .null)
        default: (.null, .null, .null)
        }
    }

    private static func datetimePrecision(_ type: SQLType) -> Scalar {
        switch type {
        case .date: .int(0)
        case .time, .timestamp, .timestamptz, .interval: .int(6)
        default: .null
        }
    }
}

extension Scalar {
    /// The information schema's boolean.
    static func yesOrNo(_ value: Bool) -> Scalar { .string(value ? "YES" : "NO") }
}
