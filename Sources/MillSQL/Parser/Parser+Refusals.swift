import MillBase

/// Statements of PostgreSQL and RisingWave that are not there: refused by name, with what to do instead.
///
/// Looked up only once a statement has failed to parse, by its first words; so no statement that parses pays for the list, and none of its
/// words has to be a keyword.
extension Parser {
    /// The refusal of the statement that begins at a token; nil when its first words are not in the list.
    func refusal(ofStatementAt first: Int) -> SQLError? {
        var words: [String] = []
        var last = first
        while words.count < Self.refusedWordsMax, tokens[last].kind == .word {
            words.append(text(of: tokens[last]).uppercased())
            // CREATE OR REPLACE FUNCTION is a CREATE FUNCTION.
            if words == ["CREATE", "OR", "REPLACE"] { words.removeLast(2) }
            last += 1
        }
        for count in stride(from: words.count, to: 0, by: -1) {
            let name = words.prefix(count).joined(separator: " ")
            guard let hint = Self.refused[name] else { continue }
            return SQLError(.featureNotSupported, "\(name) is not supported", hint: hint, at: tokens[first].span)
        }
        return nil
    }

    private static let refusedWordsMax = 3

    /// Hints by a statement's first words.
    private static let refused: [String: String] = {
        var hints: [String: String] = [:]
        for (statements, hint) in refusals { for statement in statements { hints[statement] = hint } }
        return hints
    }()

    private static let refusals: [(statements: [String], hint: String)] = [
        (
            ["REFRESH MATERIALIZED VIEW", "REFRESH"],
            "Materialized views are kept up to date by themselves; FLUSH waits until they have everything that is there."
        ),
        (["VACUUM", "ANALYZE", "ANALYSE", "REINDEX", "CLUSTER", "CHECKPOINT"], "Nothing of this is done by hand: leave it out."),
        (
            [
                "GRANT", "REVOKE", "CREATE USER", "CREATE ROLE", "CREATE GROUP", "ALTER USER", "ALTER ROLE", "ALTER GROUP", "DROP USER",
                "DROP ROLE", "DROP GROUP", "DROP OWNED", "REASSIGN OWNED", "ALTER DEFAULT PRIVILEGES",
            ], "Whoever can connect may do everything, under any name."
        ),
        (["LISTEN", "NOTIFY", "UNLISTEN"], "CREATE SINK sends the changes of a view to others."),
        (["CREATE TRIGGER", "DROP TRIGGER", "CREATE RULE", "DROP RULE"], "Materialized views and sinks follow what changes."),
        (["LOCK"], "A block that changes rows which others changed meanwhile ends with 40001 at COMMIT."),
        (["MERGE"], "Use INSERT ... ON CONFLICT, UPDATE or DELETE."),
        (["CALL", "DO", "CREATE PROCEDURE", "DROP PROCEDURE"], "Send the statements one by one."),
        (["CREATE FUNCTION", "CREATE AGGREGATE", "DROP AGGREGATE"], "Write the expression in the query, or in a view."),
        (["CREATE TYPE", "CREATE DOMAIN", "DROP TYPE", "DROP DOMAIN"], "Declare columns with the types that are there."),
        (["CREATE SEQUENCE", "DROP SEQUENCE", "ALTER SEQUENCE"], "Give the numbers in INSERT."),
        (["CREATE EXTENSION", "DROP EXTENSION"], "What is there needs no extension."),
        (["CREATE SECRET", "CREATE CONNECTION"], "Give the options in WITH of the source, sink or catalog; SHOW CREATE hides what is secret."),
        (
            ["CREATE SERVER", "CREATE FOREIGN TABLE", "IMPORT FOREIGN SCHEMA"],
            "CREATE SOURCE reads streams and files, CREATE CATALOG attaches a catalog of tables."
        ),
        (["USE"], "Name tables in full: schema.table, or catalog.namespace.table."),
        (["ALTER SYSTEM"], "SET changes a setting of the session; others are options of the server's command line."),
        (
            ["ALTER TABLE", "ALTER SOURCE", "ALTER SINK", "ALTER VIEW", "ALTER MATERIALIZED VIEW", "ALTER CATALOG", "ALTER SCHEMA"],
            "Drop it and create it again."
        ),
    ]
}
