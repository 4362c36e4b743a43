import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillMeta
import MillSQL

/// Sources that views and sinks have of the tables of attached catalogs that they name: made with the first that reads a table, gone with
/// the last.
extension Engine {
    private static let followed = SinkOptions.ownPrefix + "followed"

    /// Runs a definition, again after each table that it names and that there is no source of yet; without the lock of definitions.
    /// - Parameter define: binds with the session that it is given.
    func following(_ session: SessionContext, _ define: (SessionContext) async throws(SQLError) -> Void) async throws(SQLError) {
        let tables = FollowedTables()
        var session = session
        session.catalogTables = tables
        while true {
            do throws(SQLError) { return try await define(session) } catch {
                do throws(SQLError) {
                    guard let wanted = tables.takeWanted() else { throw error }
                    try await follow(wanted, tables, session: session)
                } catch {
                    await dropUnfollowed(unless: session.cancellation)
                    throw error
                }
            }
        }
    }

    /// Makes a source of a table; without the lock of definitions.
    /// - Throws: 42P01 when the catalog has no such table, and what the connector throws.
    private func follow(_ wanted: FollowedTables.Wanted, _ tables: FollowedTables, session: SessionContext) async throws(SQLError) {
        let (table, attached, assembly) = (wanted.table, attached, assembly)
        if let level = table.namespace.first(where: { $0.contains(".") }) {
            throw SQLError(
                .featureNotSupported, "a view over a table in namespace \"\(level)\", which has a dot in its name, is not supported",
                hint: "Query it by its name in a SELECT.", at: wanted.span)
        }
        let options = [
            ("connector", "iceberg"), ("catalog.name", table.catalog), ("database.name", table.namespace.joined(separator: ".")),
            ("table.name", table.name),
        ].map { CatalogOption($0.0, $0.1) }
        do throws(SQLError) {
            let found = try await offActor(for: .seconds(60), unless: session.cancellation, what: "the catalog") {
                () throws(SQLError) -> (fields: [Field], made: AssembledSource, origin: [SourceSplit: SplitOffset])? in
                guard try attached.find(table.catalog) != nil else { return nil }
                guard let fields = try attached.describe(table, nil)?.columns else { throw try Self.missing(table, attached) }
                let made = try assembly.source(name: table.description, options: options, fields: fields, catalogs: attached.finder)
                return (fields, made, try made.connector.resolveOrigin())
            }
            guard let found else { return tables.note(noCatalog: table.catalog) }
            try await definitions.lock(unless: session.cancellation)
            defer { definitions.unlock() }
            // Another view may have been faster.
            if let there = catalog.object(schema: "public", name: table.description) {
                guard there.kind == .source else {
                    throw SQLError(
                        .duplicateTable, "\(there.kind.rawValue) \"\(there.name)\" has the name of the source that would follow the table of a catalog",
                        hint: "Drop it, or make a source of the table by another name: CREATE SOURCE.")
                }
                return
            }
            var changed = catalog
            let name = Self.quoted("\(table)", "\"")
            let text = "CREATE SOURCE \(name) WITH (\(options.map { "'\($0.name)' = \(Self.quoted($0.value, "'"))" }.joined(separator: ", ")))"
            let object = try changed.create(
                CatalogObject(
                    id: ObjectID(0), schemaName: "public", name: table.description, kind: .source,
                    columns: found.fields.map { CatalogColumn($0.name, $0.type) }, definition: text,
                    options: options + [CatalogOption("encode", "parquet"), CatalogOption(Self.followed, "true")]))
            let origin = found.origin
            try await store { (meta) throws(SQLError) in try meta.create(object, origin: origin) }
            catalog = changed
            register(object, found.made, origin: origin)
        } catch { throw wanted.span.map { error.located(at: $0) } ?? error }
    }

    private static func quoted(_ text: String, _ quote: Character) -> String {
        String(quote) + text.flatMap { $0 == quote ? [quote, quote] : [$0] } + String(quote)
    }

    private static func missing(_ table: CatalogTable, _ attached: AttachedCatalogs) throws(SQLError) -> SQLError {
        let part = attached.parts.first { table.name == $0 || table.name.hasSuffix("$\($0)") }
        guard let part else {
            return SQLError(
                .undefinedTable, "there is no table \"\((table.namespace + [table.name]).joined(separator: "."))\" in catalog \"\(table.catalog)\"",
                hint: "SHOW TABLES FROM \(([table.catalog] + table.namespace).joined(separator: ".")) lists those that are there.")
        }
        return SQLError(
            .featureNotSupported, "\"\(part)\" of a table in views is not supported", hint: "Views follow a table's rows. Query \"\(table)\" when it is wanted.")
    }

    /// Drops those that nothing reads any more; without the lock of definitions. Who is cancelled before it begins does not wait for it:
    /// it is done after him, unless the engine ends; then at the next definition that fails or drops something.
    private func dropUnfollowed(unless cancellation: CancellationHook) async {
        guard !unfollowed.isEmpty else { return }
        if cancellation.reason == nil, (try? await definitions.lock(unless: cancellation)) != nil {
            await dropUnfollowed()
            return definitions.unlock()
        }
        Task {
            guard (try? await definitions.lock(unless: ending)) != nil else { return }
            await dropUnfollowed()
            definitions.unlock()
        }
    }

    /// Drops those that nothing reads any more; under the lock of definitions.
    func dropUnfollowed() async {
        for object in unfollowed {
            var changed = catalog
            // Nothing depends on it, so it can be dropped; what the store does not take is dropped another time.
            guard let removed = try? changed.drop(.source, schema: object.schemaName, name: object.name, cascade: false),
                (try? await store({ (meta) throws(SQLError) in try meta.drop([object.id]) })) != nil
            else { continue }
            catalog = changed
            await retire(removed)
        }
    }

    /// Sources that were made for views and sinks, and that none reads.
    private var unfollowed: [CatalogObject] {
        catalog.objects.filter { object in
            object.kind == .source && object.options.contains { $0.name == Self.followed } && catalog.dependents(of: object.id).isEmpty
        }
    }

    /// Sources that read a table of a catalog by the name it is attached under.
    func sources(over catalogName: String) -> [CatalogObject] {
        catalog.objects.filter { object in
            func option(_ name: String) -> String? { object.options.first { $0.name == name }?.value }
            return object.kind == .source && object.connectorName == "iceberg" && option("catalog.uri") == nil && option("catalog.name") == catalogName
        }
    }
}
