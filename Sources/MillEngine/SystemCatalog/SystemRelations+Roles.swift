import MillColumnar

/// Databases, roles, tablespaces and access methods.
extension SystemRelations {
    static let pgRoles: [SystemRelation] = [
        SystemRelation(
            "pg_database", id: 1262,
            """
            oid oid, datname name, datdba oid, encoding int4, datcollate text, datctype text, datistemplate bool, datallowconn bool
            datconnlimit int4, datlastsysoid oid, datfrozenxid int4, datminmxid int4, dattablespace oid, datacl text
            """
        ) { context in
            context.databaseNames.enumerated().map { place, name in
                [
                    .oid(SystemOID.database(place)), .string(name), .oid(SystemOID.owner), .int(6), .string("C.UTF-8"), .string("C.UTF-8"),
                    .bool(false),
                    .bool(true), .int(-1), .oid(0), .int(0), .int(0), .oid(SystemOID.defaultTablespace), .null,
                ]
            }
        },
        SystemRelation(
            "pg_authid", id: 1260,
            """
            oid oid, rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool
            rolreplication bool, rolbypassrls bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz
            """
        ) { context in
            [
                [.oid(SystemOID.owner), .string(context.userName)] + Array(repeating: .bool(true), count: 7) + [.int(-1), .null, .null]
            ]
        },
        SystemRelation(
            "pg_roles", id: 12_000,
            """
            rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, rolreplication bool
            rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, rolconfig text, oid oid
            """
        ) { context in
            [
                [.string(context.userName)] + Array(repeating: .bool(true), count: 6)
                    + [.int(-1), .string("********"), .null, .bool(true), .null, .oid(SystemOID.owner)]
            ]
        },
        SystemRelation(
            "pg_user", id: 12_001,
            "usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool, passwd text, valuntil timestamptz, useconfig text"
        ) { context in
            [
                [.string(context.userName), .oid(SystemOID.owner)] + Array(repeating: .bool(true), count: 4) + [
                    .string("********"), .null, .null,
                ]
            ]
        },
        SystemRelation("pg_am", id: 2601, "oid oid, amname name, amhandler oid, amtype char") { _ in
            [
                [.oid(SystemOID.heapAccessMethod), .string("heap"), .oid(0), .string("t")],
                [.oid(SystemOID.btreeAccessMethod), .string("btree"), .oid(0), .string("i")],
            ]
        },
        SystemRelation("pg_tablespace", id: 1213, "oid oid, spcname name, spcowner oid, spcacl text, spcoptions text") { _ in
            [(SystemOID.defaultTablespace, "pg_default"), (SystemOID.globalTablespace, "pg_global")].map { oid, name in
                [.oid(oid), .string(name), .oid(SystemOID.owner), .null, .null]
            }
        },
        SystemRelation(
            "pg_collation", id: 3456,
            """
            oid oid, collname name, collnamespace oid, collowner oid, collprovider char, collisdeterministic bool, collencoding int4
            collcollate name, collctype name, collversion text
            """
        ) { context in
            [(SystemOID.defaultCollation, "default", "d"), (950, "C", "c")].map { oid, name, provider in
                [
                    .oid(oid), .string(name), .oid(SystemOID.schema("pg_catalog", in: context.catalog)), .oid(SystemOID.owner),
                    .string(provider),
                    .bool(true), .int(-1), .string("C.UTF-8"), .string("C.UTF-8"), .null,
                ]
            }
        },
    ]
}
