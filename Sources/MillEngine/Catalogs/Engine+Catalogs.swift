import MillBase
import MillBinder
import MillCatalog
import MillConnectorKit
import MillMeta
import MillSQL

/// CREATE CATALOG and DROP CATALOG.
extension Engine {
    func attachCatalog(_ statement: CreateNamespace, session: SessionContext, _ notices: inout [SQLError]) async throws(SQLError) {
        let name = try Self.catalogName(statement.name)
        if try isMade(name, statement, &notices) { return }
        let options = statement.options.map { CatalogOption($0.key, Binder.text(of: $0)) }
        let assembly = assembly
        let catalog = try assembly.catalog(options: options)
        // What cannot be reached is told now; a catalog that is away later is an error of the query that names it.
        let span = statement.name.span.source
        try await offActor(for: Self.catalogPatience, unless: session.cancellation, what: "the catalog") { () throws(SQLError) in
            guard try assembly.embeddedCatalog(name) == nil else {
                throw SQLError(
                    .duplicateDatabase, "catalog \"\(name)\" is a warehouse of this server's own", hint: "It needs no CREATE CATALOG.", at: span)
            }
            _ = try catalog.namespaces()
        }
        try await definitions.lock(unless: session.cancellation)
        defer { definitions.unlock() }
        if try isMade(name, statement, &notices) { return }
        try await store { (meta) throws(SQLError) in try meta.attach(StoredAttachment(name: name, options: options)) }
        attached.attach(catalog, as: name)
    }

    /// How long CREATE CATALOG waits.
    private static let catalogPatience = Duration.seconds(60)

    /// - Throws: 42P04 when that is a mistake.
    private func isMade(_ name: String, _ statement: CreateNamespace, _ notices: inout [SQLError]) throws(SQLError) -> Bool {
        guard attached.isMade(name) else { return false }
        guard statement.ifNotExists else {
            throw SQLError(.duplicateDatabase, "catalog \"\(name)\" already exists", at: statement.name.span.source)
        }
        notices.append(SQLError(.successfulCompletion, "catalog \"\(name)\" already exists, skipping"))
        return true
    }

    /// Forgets a catalog; its tables stay as they are.
    func detachCatalogs(_ statement: Drop, _ notices: inout [SQLError]) async throws(SQLError) {
        for object in statement.names {
            let name = try Self.catalogName(object)
            guard attached.isMade(name) else {
                let assembly = assembly
                guard try await offActor({ () throws(SQLError) in try assembly.embeddedCatalog(name) == nil }) else {
                    throw SQLError(
                        .featureNotSupported, "catalog \"\(name)\" is a warehouse of this server's own, and not dropped by DROP CATALOG",
                        hint: "Drop its tables over Iceberg's REST protocol.", at: object.span.source)
                }
                guard statement.ifExists else {
                    throw SQLError(.invalidCatalogName, "catalog \"\(name)\" does not exist", at: object.span.source)
                }
                notices.append(SQLError(.successfulCompletion, "catalog \"\(name)\" does not exist, skipping"))
                continue
            }
            if let reader = sources(over: name).first {
                throw SQLError(
                    .dependentObjectsStillExist, "cannot drop catalog \"\(name)\" because source \"\(reader.name)\" reads a table of it",
                    hint: "Drop the source, or the views that read it, first.", at: object.span.source)
            }
            try await store { (meta) throws(SQLError) in try meta.detach(catalog: name) }
            attached.detach(name)
        }
    }

    /// - Throws: 0A000 for the name of a table in an attached catalog, where CREATE and DROP mean tables of our own.
    func refuseForeign(_ name: ObjectName) async throws(SQLError) {
        guard name.parts.count >= 3, let schema = name.schemaName, !catalog.schemaExists(schema) else { return }
        let (attached, first) = (attached, name.parts[0].name)
        if try await offActor({ () throws(SQLError) in try attached.isAttached(first) }) { throw Binder.onlyRead(name) }
    }

    /// Takes up the catalogs of an earlier process.
    func restore(_ catalogs: [StoredAttachment]) throws(SQLError) {
        for catalog in catalogs { attached.attach(try assembly.catalog(options: catalog.options), as: catalog.name) }
    }

    private static func catalogName(_ name: ObjectName) throws(SQLError) -> String {
        guard name.parts.count == 1 else {
            throw SQLError(.invalidName, "the name of a catalog has one part", at: name.span.source)
        }
        return name.last.name
    }
}
