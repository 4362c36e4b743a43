import GRDB
import MillBase

/// The tables of `meta.db` and their versions; docs/internals/meta.md explains each column.
///
/// A version is a migration. One that is released is never edited: the next one changes what it made. Opening runs those that are
/// missing in one transaction each; a file with versions that are not listed here was written by a newer program and is refused.
enum MetaSchema {
    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(sql: "PRAGMA application_id = \(MetaStore.applicationID)")
            try database.execute(sql: version1)
        }
        migrator.registerMigration("2") { database in try database.execute(sql: version2) }
        migrator.registerMigration("3") { database in try database.execute(sql: version3) }
        migrator.registerMigration("4") { database in try database.execute(sql: version4) }
        return migrator
    }

    private static let version1 = """
        CREATE TABLE counters (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL) STRICT;
        INSERT INTO counters VALUES ('next_object_id', 0);
        CREATE TABLE schemas (name TEXT PRIMARY KEY NOT NULL) STRICT;
        CREATE TABLE objects (
            id INTEGER PRIMARY KEY NOT NULL, schema_name TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, definition TEXT NOT NULL,
            query TEXT, query_version INTEGER, query_crc32c INTEGER,
            UNIQUE (schema_name, name)
        ) STRICT;
        CREATE TABLE columns (
            object_id INTEGER NOT NULL REFERENCES objects ON DELETE CASCADE, position INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
            nullable INTEGER NOT NULL, default_text TEXT, length_max INTEGER, hidden INTEGER NOT NULL, key_position INTEGER,
            PRIMARY KEY (object_id, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE options (
            object_id INTEGER NOT NULL REFERENCES objects ON DELETE CASCADE, position INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
            PRIMARY KEY (object_id, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE dependencies (
            object_id INTEGER NOT NULL REFERENCES objects ON DELETE CASCADE, position INTEGER NOT NULL, depends_on INTEGER NOT NULL,
            PRIMARY KEY (object_id, position)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE origins (
            object_id INTEGER NOT NULL REFERENCES objects ON DELETE CASCADE, split TEXT NOT NULL, topic TEXT NOT NULL,
            partition INTEGER NOT NULL, position INTEGER NOT NULL,
            PRIMARY KEY (object_id, split)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE jobs (
            object_id INTEGER PRIMARY KEY NOT NULL REFERENCES objects ON DELETE CASCADE,
            state TEXT NOT NULL CHECK (state IN ('creating', 'running')),
            plan TEXT NOT NULL, plan_version INTEGER NOT NULL, plan_crc32c INTEGER NOT NULL
        ) STRICT;
        """

    private static let version2 = """
        CREATE TABLE pauses (object_id INTEGER PRIMARY KEY NOT NULL REFERENCES objects ON DELETE CASCADE, number INTEGER NOT NULL) STRICT;
        CREATE TABLE watermarks (
            object_id INTEGER PRIMARY KEY NOT NULL REFERENCES objects ON DELETE CASCADE,
            rule TEXT NOT NULL, rule_version INTEGER NOT NULL, rule_crc32c INTEGER NOT NULL
        ) STRICT;
        """

    private static let version3 = "ALTER TABLE pauses ADD COLUMN since_micros INTEGER"

    private static let version4 = """
        CREATE TABLE catalogs (name TEXT PRIMARY KEY NOT NULL) STRICT;
        CREATE TABLE catalog_options (
            catalog TEXT NOT NULL REFERENCES catalogs ON DELETE CASCADE, position INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
            PRIMARY KEY (catalog, position)
        ) STRICT, WITHOUT ROWID;
        """

    /// Checks that the file is ours, whole and not newer than this program, and brings it up to date.
    static func prepare(_ database: DatabaseQueue, name: String) throws {
        try database.read { database in
            let applicationID = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
            let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
            guard isEmpty || applicationID == MetaStore.applicationID else {
                throw SQLError(
                    .objectNotInPrerequisiteState, "\"\(name)\" is not a catalog of Millrace",
                    hint: "Give the server a directory of its own with --data-dir.")
            }
            if !isEmpty, try migrator.hasBeenSuperseded(database) {
                throw SQLError(
                    .objectNotInPrerequisiteState,
                    "\"\(name)\" was written by a newer Millrace: it has schema version "
                        + "\(try version(database)), and this program knows up to \(migrator.migrations.last ?? "0")",
                    hint: "Start that version or a later one.")
            }
            let damage = try String.fetchOne(database, sql: "PRAGMA quick_check(1)") ?? "ok"
            guard damage == "ok" else {
                throw SQLError(
                    .dataCorrupted, "\"\(name)\" is damaged: \(damage)", hint: "Restore it from a copy, or move it away to begin anew.")
            }
        }
        try migrator.migrate(database)
    }

    private static func version(_ database: Database) throws -> String {
        let known = Set(migrator.migrations)
        return try String.fetchAll(database, sql: "SELECT identifier FROM grdb_migrations").filter { !known.contains($0) }.sorted().last
            ?? "0"
    }
}
