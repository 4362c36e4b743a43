import Foundation
import MillBase
import MillCatalog
import MillColumnar
import Testing
@testable import MillEngine

/// psql's own queries over the system relations, as recorded from psql 15 (`psql-15-catalog-queries.sql`).
struct SystemCatalogTests {
    /// A statement of the recording, and the command that sends it.
    struct Recorded: Sendable {
        var command: String
        var text: String
    }

    static let recorded: [Recorded] = {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("MillPgServerTests/psql-15-catalog-queries.sql")
        let file = (try? String(contentsOf: path, encoding: .utf8)) ?? ""
        var statements: [Recorded] = []
        var command = ""
        var text = ""
        for line in file.split(separator: "\n") {
            if line.hasPrefix("-- ") {
                if !line.hasPrefix("-- (") { command = String(line.dropFirst(3)) }
                continue
            }
            text += line + "\n"
            if line.hasSuffix(";") {
                statements.append(Recorded(command: command, text: text))
                text = ""
            }
        }
        return statements
    }()

    @Test func everyRecordedQueryRuns() async throws {
        let world = try await CatalogWorld()
        #expect(Self.recorded.count > 50)
        let oids = ["orders": try await world.oid("orders"), "mv": try await world.oid("mv"), "vv": try await world.oid("vv")]
        for statement in Self.recorded {
            let parameters: [Scalar] = statement.text.contains("$1") ? [.string("int4")] : []
            for oid in statement.text.contains("$oid") ? oids.values.sorted() : [""] {
                do { _ = try await world.run(statement.text.replacingOccurrences(of: "$oid", with: oid), parameters) } catch {
                    Issue.record("\(statement.command): \(error)\n\(statement.text)")
                }
            }
        }
    }

    /// The `index`th statement of a command.
    private func rows(_ world: CatalogWorld, _ command: String, _ index: Int = 0, oid: String = "") async throws -> [String] {
        let statement = try #require(Self.recorded.filter { $0.command == command }.dropFirst(index).first)
        return try await world.run(statement.text.replacingOccurrences(of: "$oid", with: oid))
    }

    @Test func relationsAreListedByKind() async throws {
        let world = try await CatalogWorld()
        #expect(
            try await rows(world, "\\d") == [
                "public|clicks|foreign table|root", "public|clicks_rejects|view|root", "public|mv|materialized view|root",
                "public|mv_errors|view|root", "public|mv_late|view|root", "public|orders|table|root", "public|vv|view|root",
            ])
        #expect(try await rows(world, "\\dt") == ["public|orders|table|root"])
        #expect(try await rows(world, "\\dm") == ["public|mv|materialized view|root"])
        #expect(try await rows(world, "\\dv") == ["public|clicks_rejects|view|root", "public|mv_errors|view|root", "public|mv_late|view|root", "public|vv|view|root"])
        #expect(try await rows(world, "\\di") == ["public|orders_pkey|index|root|orders"])
        #expect(try await rows(world, "\\dt pub*.*") == ["public|orders|table|root"])
        #expect(try await rows(world, "\\d nothere") == [])
    }

    @Test func aTableIsDescribed() async throws {
        let world = try await CatalogWorld()
        let oid = try await world.oid("orders")
        let command = "\\d orders"
        #expect(try await rows(world, command) == ["\(oid)|public|orders"])
        #expect(try await rows(world, command, 1, oid: oid) == ["0|r|t|f|f|f|f|f|f||0||p|d|heap"])
        #expect(
            try await rows(world, command, 2, oid: oid) == [
                "id|integer||t|||", "name|character varying|'none'|f|||", "amount|numeric(10,2)||f|||",
            ])
        #expect(
            try await rows(world, command, 3, oid: oid) == [
                "orders_pkey|t|t|f|t|CREATE UNIQUE INDEX orders_pkey ON public.orders USING btree (id)|PRIMARY KEY (id)|p|f|f|f|0"
            ])
        for index in 4..<9 { #expect(try await rows(world, command, index, oid: oid) == []) }
    }

    @Test func aViewShowsItsQuery() async throws {
        let world = try await CatalogWorld()
        let oid = try await world.oid("vv")
        #expect(try await world.run("SELECT pg_get_viewdef('vv'::regclass)") == [" SELECT id, name FROM orders WHERE id > 1;"])
        #expect(try await world.run("SELECT pg_get_viewdef(\(oid), true)") == [" SELECT id, name FROM orders WHERE id > 1;"])
        #expect(
            try await rows(world, "\\sv vv", 1, oid: oid) == ["public|vv|v| SELECT id, name FROM orders WHERE id > 1;||"])
        #expect(
            try await world.run("SELECT matviewname, definition FROM pg_matviews") == [
                "mv| SELECT name, sum(amount) AS total FROM orders GROUP BY name;"
            ])
    }

    @Test func databasesSchemasAndRolesAreListed() async throws {
        let world = try await CatalogWorld()
        #expect(try await rows(world, "\\l") == ["dev|root|UTF8|C.UTF-8|C.UTF-8||libc|"])
        #expect(try await rows(world, "\\dn") == ["public|root"])
        #expect(try await rows(world, "\\du") == ["root|t|t|t|t|t|-1||{}|t|t"])
        #expect(try await rows(world, "\\df") == [])
        #expect(try await rows(world, "\\dp").count == 7)
    }

    @Test func namesAreCompleted() async throws {
        let world = try await CatalogWorld()
        #expect(try await rows(world, "tab completion: SELECT * FROM o<TAB>") == ["orders|"])
        #expect(try await rows(world, "tab completion: SELECT * FROM public.o<TAB>") == ["orders|public"])
        #expect(try await rows(world, "tab completion: SELECT * FROM orders WHERE a<TAB>") == ["amount|"])
        #expect(try await rows(world, "tab completion: SHOW time<TAB>") == ["timezone"])
        #expect(try await rows(world, "tab completion: DROP MATERIALIZED VIEW m<TAB>") == ["mv|"])
        #expect(try await rows(world, "tab completion: DROP SCHEMA p<TAB>").sorted() == ["pg_catalog", "public"])
    }

    @Test func driversFindTypes() async throws {
        let world = try await CatalogWorld()
        let query = try #require(Self.recorded.first { $0.text.contains("to_regtype") })
        #expect(try await world.run(query.text, [.string("int4")]) == ["int4|23|1007|integer|,"])
        #expect(try await world.run(query.text, [.string("nothing")]) == [])
        #expect(
            try await world.run("SELECT 'int'::regtype::oid, 'numeric(10,2)'::regtype::oid, to_regtype('text[]'), 1043::regtype") == [
                "23|1700|1009|character varying"
            ])
        #expect(
            try await world.run("SELECT format_type(1700, 655366), format_type(1700, NULL), format_type(0, -1)") == [
                "numeric(10,2)|numeric|-"
            ])
    }

    @Test func registeredNamesGoBothWays() async throws {
        let world = try await CatalogWorld()
        let oid = try await world.oid("orders")
        #expect(
            try await world.run("SELECT 'public.orders'::regclass, '\"orders\"'::regclass::text, \(oid)::regclass") == [
                "\(oid)|orders|orders"
            ])
        #expect(try await world.run("SELECT oid::regclass FROM pg_class WHERE relname = 'orders'") == ["orders"])
        #expect(
            try await world.run("SELECT attname FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attnum > 0 ORDER BY attnum") == [
                "id", "name", "amount",
            ])
        #expect(
            try await world.run(
                "SELECT relnamespace::regnamespace, 'public'::regnamespace, to_regclass('missing') FROM pg_class WHERE relname = 'vv'") == [
                    "public|2200|"
                ])
        do throws(SQLError) {
            _ = try await world.run("SELECT 'missing'::regclass")
            Issue.record("a name of nothing was accepted")
        } catch {
            #expect(error.sqlState == .undefinedTable)
            #expect(error.message == "relation \"missing\" does not exist")
        }
    }

    @Test func arraysOfTheCatalogAreReadAsArrays() async throws {
        let world = try await CatalogWorld()
        #expect(
            try await world.run(
                "SELECT a.attname FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid WHERE a.attnum = ANY (c.conkey) AND c.contype = 'p'"
            )
                == ["id"])
        #expect(try await world.run("SELECT array_to_string(conkey, ','), cardinality(conkey) FROM pg_constraint") == ["1|1"])
        #expect(
            try await world.run("SELECT array_to_string(ARRAY(SELECT nspname FROM pg_namespace WHERE nspname LIKE 'pub%'), ', ')") == [
                "public"
            ])
        #expect(
            try await world.run("SELECT nspname FROM pg_namespace WHERE nspname = ANY (current_schemas(true)) ORDER BY 1") == [
                "pg_catalog", "public",
            ])
    }

    @Test func theSessionAnswersForItself() async throws {
        let world = try await CatalogWorld()
        #expect(try await world.run("SELECT current_setting('server_version_num'), current_setting('no.such', true)") == ["140000|"])
        #expect(try await world.run("SELECT set_config('application_name', 'probe', false)") == ["probe"])
        #expect(try await world.run("SELECT current_setting('application_name')") == ["probe"])
        #expect(
            try await world.run("SELECT pg_is_in_recovery(), pg_encoding_to_char(6), pg_size_pretty(12345678::bigint)") == ["f|UTF8|12 MB"])
        #expect(
            try await world.run("SELECT has_table_privilege('orders', 'SELECT'), pg_get_userbyid(10), pg_get_userbyid(11)") == [
                "t|root|unknown (OID=11)"
            ])
    }

    @Test func theInformationSchemaListsWhatUsersMade() async throws {
        let world = try await CatalogWorld()
        #expect(
            try await world.run("SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1")
                == ["clicks|FOREIGN", "clicks_rejects|VIEW", "mv|VIEW", "mv_errors|VIEW", "mv_late|VIEW", "orders|BASE TABLE", "vv|VIEW"])
        #expect(
            try await world.run(
                "SELECT column_name, data_type, is_nullable, numeric_precision, udt_name FROM information_schema.columns WHERE table_name = 'orders' ORDER BY ordinal_position"
            )
                == ["id|integer|NO|32|int4", "name|character varying|YES||varchar", "amount|numeric|YES|10|numeric"])
        #expect(
            try await world.run(
                """
                SELECT k.column_name FROM information_schema.table_constraints t
                JOIN information_schema.key_column_usage k USING (constraint_name, table_name)
                WHERE t.constraint_type = 'PRIMARY KEY' AND table_name = 'orders'
                """) == ["id"])
    }

    @Test func subqueriesMayBeCorrelatedByAnyCondition() async throws {
        let world = try await CatalogWorld()
        try await world.run("INSERT INTO orders VALUES (1, 'a', 1.00), (2, NULL, 2.00), (3, 'c', 3.00)")
        #expect(
            try await world.run("SELECT id, EXISTS (SELECT 1 FROM orders b WHERE b.id < a.id AND b.name <> a.name) FROM orders a ORDER BY 1")
                == ["1|f", "2|f", "3|t"])
        #expect(
            try await world.run("SELECT id, (SELECT b.id FROM orders b WHERE b.id = a.id + 1 AND a.name IS NULL) FROM orders a ORDER BY 1")
                == ["1|", "2|3", "3|"])
        #expect(
            try await world.run(
                "SELECT id, (SELECT b.id FROM orders b WHERE b.id > a.id AND b.amount < a.amount + 2 AND b.id >= 3) FROM orders a ORDER BY 1")
                == ["1|", "2|3", "3|"])
    }

    @Test func whatComesWithAnObjectIsDescribedToo() async throws {
        let world = try await CatalogWorld()
        #expect(
            try await world.run(
                """
                SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                WHERE c.relname = 'clicks_rejects' AND pg_table_is_visible(c.oid) AND a.attnum > 4 ORDER BY a.attnum
                """) == ["raw|bytea", "reason|character varying", "rejected_at|timestamp with time zone"])
        #expect(try await world.run("SELECT 'mv_errors'::regclass::text") == ["mv_errors"])
    }

    @Test func viewsDoNotKeepTodaysCatalog() async throws {
        let world = try await CatalogWorld()
        do throws(SQLError) {
            try await world.run("CREATE VIEW frozen AS SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)")
            Issue.record("a view took the catalog's answer of today")
        } catch { #expect(error.sqlState == .featureNotSupported) }
    }

    @Test func systemRelationsHaveRowsOfTheirShape() {
        let context = SystemContext(catalog: Catalog(systemObjects: SystemRelations.all.map(\.object)), databaseName: "d", userName: "u")
        #expect(Set(SystemRelations.all.map(\.object.id)).count == SystemRelations.all.count)
        for relation in SystemRelations.all {
            #expect(relation.object.id < Catalog.firstUserID)
            for row in relation.rows(context) { #expect(row.count == relation.object.columns.count, "\(relation.object.name)") }
        }
    }
}
