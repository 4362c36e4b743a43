import MillBase
import MillCatalog
import MillColumnar

/// What the session and the server are doing.
extension SystemRelations {
    static let pgSettings: [SystemRelation] = [
        SystemRelation(
            "pg_settings", id: 12_010,
            """
            name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, vartype text, source text
            min_val text, max_val text, enumvals text, boot_val text, reset_val text, sourcefile text, sourceline int4, pending_restart bool
            """
        ) { context in
            context.settings.all.map { setting in
                [
                    .string(setting.name), .string(setting.value), .null, .string("Millrace"), .string(""), .null,
                    .string("user"),
                    .string("string"), .string("session"), .null, .null, .null, .string(setting.value), .string(setting.value), .null,
                    .null,
                    .bool(false),
                ]
            }
        },
        SystemRelation(
            "pg_stat_activity", id: 12_011,
            """
            datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name, application_name text, client_addr text
            client_hostname text, client_port int4, backend_start timestamptz, xact_start timestamptz, query_start timestamptz
            state_change timestamptz, wait_event_type text, wait_event text, state text, backend_xid int4, backend_xmin int4, query_id int8
            query text, backend_type text
            """
        ) { context in
            // The session that asks: of the others the engine keeps no list.
            [
                [
                    .oid(SystemOID.database(context.databaseNames.firstIndex(of: context.databaseName) ?? 0)),
                    .string(context.databaseName),
                    .oid(context.backendID), .null, .oid(SystemOID.owner), .string(context.userName), .string(""), .null, .null, .null,
                    .null, .null,
                    .null, .null, .null, .null, .string("active"), .null, .null, .null, .string(""), .string("client backend"),
                ]
            ]
        },
        SystemRelation("pg_foreign_table", id: 3118, "ftrelid oid, ftserver oid, ftoptions text") { context in
            // Options may hold passwords: they are not shown here.
            context.userObjects.filter { $0.kind == .source }.map { [.oid(SystemOID.of($0)), .oid(SystemOID.foreignServer), .null] }
        },
        SystemRelation(
            "pg_foreign_server", id: 1417,
            "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl text, srvoptions text"
        ) { _ in
            [
                [
                    .oid(SystemOID.foreignServer), .string("connectors"), .oid(SystemOID.owner), .oid(SystemOID.foreignWrapper), .null,
                    .null, .null, .null,
                ]
            ]
        },
        SystemRelation(
            "pg_foreign_data_wrapper", id: 2328,
            "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl text, fdwoptions text"
        ) { _ in
            [[.oid(SystemOID.foreignWrapper), .string("millrace"), .oid(SystemOID.owner), .oid(0), .oid(0), .null, .null]]
        },
        SystemRelation(
            "pg_depend", id: 2608, "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4, deptype char"
        ) { context in
            context.userObjects.flatMap { object in
                object.dependencies.map { dependency in
                    [
                        .oid(SystemOID.pgClass), .oid(SystemOID.of(object)), .int(0), .oid(SystemOID.pgClass),
                        .oid(Int32(truncatingIfNeeded: dependency.number)), .int(0), .string("n"),
                    ]
                }
            }
        },
    ]
}
