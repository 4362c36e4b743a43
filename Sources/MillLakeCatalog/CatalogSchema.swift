import GRDB
import MillBase

/// The tables of `catalog.db` and their versions. A version is a migration; one that is released is never edited.
///
/// Objects that the catalog only keeps and gives back (properties, storage, grants) are JSON. A table or a view is a row that names its newest
/// metadata file: changing that row is the commit.
enum CatalogSchema {
    /// Marks the file as ours: "MilC".
    private static let applicationID: Int32 = 0x4D69_6C43

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: "PRAGMA application_id = \(applicationID)")
            try database.execute(sql: version1)
        }
        return migrator
    }

    private static let version1 = """
        CREATE TABLE warehouses (
            id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL, properties TEXT NOT NULL,
            storage TEXT NOT NULL, created_millis INTEGER NOT NULL, changed_millis INTEGER NOT NULL, version INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE namespaces (
            id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, warehouse_id INTEGER NOT NULL REFERENCES warehouses,
            path TEXT NOT NULL, parent TEXT NOT NULL, properties TEXT NOT NULL, UNIQUE (warehouse_id, path)
        ) STRICT;
        CREATE INDEX namespaces_by_parent ON namespaces (warehouse_id, parent, path);
        CREATE TABLE entries (
            namespace_id INTEGER NOT NULL REFERENCES namespaces, name TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('table', 'view')),
            location TEXT NOT NULL, metadata_location TEXT NOT NULL, PRIMARY KEY (namespace_id, name)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX entries_by_location ON entries (location);
        CREATE TABLE principals (
            name TEXT PRIMARY KEY NOT NULL, client_id TEXT NOT NULL UNIQUE, salt TEXT NOT NULL, digest TEXT NOT NULL, properties TEXT NOT NULL,
            created_millis INTEGER NOT NULL, changed_millis INTEGER NOT NULL, version INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE principal_roles (
            name TEXT PRIMARY KEY NOT NULL, properties TEXT NOT NULL, created_millis INTEGER NOT NULL, changed_millis INTEGER NOT NULL,
            version INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE principals_in_roles (
            principal TEXT NOT NULL REFERENCES principals ON DELETE CASCADE, role TEXT NOT NULL REFERENCES principal_roles ON DELETE CASCADE,
            PRIMARY KEY (principal, role)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE catalog_roles (
            id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, warehouse_id INTEGER NOT NULL REFERENCES warehouses ON DELETE CASCADE,
            name TEXT NOT NULL, properties TEXT NOT NULL, created_millis INTEGER NOT NULL, changed_millis INTEGER NOT NULL,
            version INTEGER NOT NULL, UNIQUE (warehouse_id, name)
        ) STRICT;
        CREATE TABLE roles_in_catalog_roles (
            role TEXT NOT NULL REFERENCES principal_roles ON DELETE CASCADE,
            catalog_role_id INTEGER NOT NULL REFERENCES catalog_roles ON DELETE CASCADE, PRIMARY KEY (role, catalog_role_id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE grants (
            catalog_role_id INTEGER NOT NULL REFERENCES catalog_roles ON DELETE CASCADE, what TEXT NOT NULL, PRIMARY KEY (catalog_role_id, what)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE tokens (
            digest TEXT PRIMARY KEY NOT NULL, principal TEXT NOT NULL REFERENCES principals ON DELETE CASCADE, scope TEXT NOT NULL,
            expires_millis INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// Checks that the file is ours and not newer than this program, and brings it up to date.
    static func prepare(_ database: DatabaseQueue, name: String) throws {
        try database.read { database in
            let found = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
            let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
            guard isEmpty || found == applicationID else {
                throw SQLError(
                    .objectNotInPrerequisiteState, "\"\(name)\" is not a table catalog of Millrace",
                    hint: "Give the server a directory of its own with --data-dir.")
            }
            if !isEmpty, try migrator.hasBeenSuperseded(database) {
                throw SQLError(
                    .objectNotInPrerequisiteState, "\"\(name)\" was written by a newer Millrace", hint: "Start that version or a later one."
                )
            }
            let damage = try String.fetchOne(database, sql: "PRAGMA quick_check(1)") ?? "ok"
            guard damage == "ok" else {
                throw SQLError(.dataCorrupted, "\"\(name)\" is damaged: \(damage)", hint: "Restore it from a copy.")
            }
        }
        try migrator.migrate(database)
    }
}
