import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillSQL
import Synchronization

/// SHOW and DESCRIBE: answers made of the catalog and the running jobs.
extension Session {
    /// The columns of what a statement without a query returns; nil when it returns nothing.
    static func schema(of statement: Statement) -> Schema? {
        switch statement {
        case .show(.objects(.jobs, _, _)): JobLine.schema
        case .show(.objects(.sources, _, _)): SourceLine.schema
        case .show(.objects(.sinks, _, _)): SinkLine.schema
        case .show(.objects): [Field("Name", .varchar)]
        case .show(.columns), .describe:
            [Field("Name", .varchar), Field("Type", .varchar), Field("Is Hidden", .varchar), Field("Description", .varchar)]
        case .show(.create): [Field("Name", .varchar), Field("Create Sql", .varchar)]
        case .show(.parameter(let name)): [Field(name.name, .varchar)]
        case .show(.allParameters): [Field("Name", .varchar), Field("Setting", .varchar), Field("Description", .varchar)]
        case .explain: [Field("QUERY PLAN", .varchar)]
        default: nil
        }
    }

    func show(_ statement: Statement) async throws(SQLError) -> Outcome {
        let schema = Self.schema(of: statement) ?? []
        let rows: [[Scalar]]
        var verb = "SHOW"
        switch statement {
        case .show(.objects(.jobs, _, let like)):
            rows = try await engine.jobLines().filter { Self.matches($0.name, like) }.map(\.row)
        case .show(.objects(.sources, let schemaName, let like)):
            rows = await engine.sourceLines(in: schemaName?.last.name ?? "public").filter { Self.matches($0.name, like) }.map(\.row)
        case .show(.objects(.tables, let place?, let like)) where place.parts.count >= 2:
            rows = try await foreignTables(in: place).filter { Self.matches($0, like) }.map { [.string($0)] }
        case .show(.objects(.schemas, let place?, let like)):
            rows = try await foreignNamespaces(of: place).filter { Self.matches($0, like) }.map { [.string($0)] }
        case .show(.objects(.sinks, let schemaName, let like)):
            rows = await engine.sinkLines(in: schemaName?.last.name ?? "public").filter { Self.matches($0.name, like) }.map(\.row)
        case .show(.objects(let list, let schemaName, let like)):
            rows = try await names(list, in: schemaName?.last.name).filter { Self.matches($0, like) }.map { [.string($0)] }
        case .show(.columns(let name, let like)): rows = try await columns(of: name).filter { Self.matches($0.name, like) }.map(Self.line)
        case .describe(let name):
            rows = try await columns(of: name).map(Self.line)
            verb = "DESCRIBE"
        case .show(.create(let kind, let name)):
            guard let kind = kind.catalogKind else { throw SQLError(.featureNotSupported, "SHOW CREATE \(kind.rawValue) is not supported") }
            let object: CatalogObject
            do throws(SQLError) { object = try await engine.catalog.require(kind, schema: name.schemaName, name: name.last.name) } catch {
                throw error.located(at: name.span.source)
            }
            rows = [[.string("\(object.schemaName).\(object.name)"), .string(object.shownDefinition)]]
        case .show(.parameter(let name)):
            guard let value = state.withLock({ $0.settings[name.name] }) else {
                throw SQLError(.undefinedObject, "unrecognized configuration parameter \"\(name.name)\"", at: name.span.source)
            }
            rows = [[.string(value)]]
        case .show(.allParameters(let like)):
            rows = state.withLock { $0.settings.all }.filter { Self.matches($0.name, like) }.map { [.string($0.name), .string($0.value), .null] }
        default: preconditionFailure("only SHOW and DESCRIBE come here")
        }
        return .table(DeltaBatch.batches(rows, schema), verb: verb)
    }

    private func names(_ list: Show.ObjectList, in schemaName: String?) async throws(SQLError) -> [String] {
        let catalog = await engine.catalog
        let kind: CatalogObject.Kind
        switch list {
        case .tables: kind = .table
        case .materializedViews: kind = .materializedView
        case .views: kind = .view
        case .schemas: return catalog.schemas
        case .databases: return [databaseName]
        case .catalogs: return try await engine.offActor { [engine] () throws(SQLError) in try engine.attached.names() }
        case .internalTables, .indexes, .connections, .functions, .secrets, .cluster, .processList, .subscriptions, .cursors: return []
        case .jobs, .sources, .sinks: preconditionFailure("jobs, sources and sinks have lines of their own")
        }
        return catalog.objects.filter { $0.kind == kind && $0.schemaName == (schemaName ?? "public") }.map(\.name)
    }

    /// SHOW TABLES FROM catalog.namespace.
    private func foreignTables(in place: ObjectName) async throws(SQLError) -> [String] {
        let catalog = try await attachedCatalog(place)
        let namespace = place.parts.dropFirst().map(\.name)
        guard let found = try await engine.offActor({ () throws(SQLError) in try catalog.tables(in: namespace) }) else {
            throw SQLError(
                .invalidSchemaName, "there is no namespace \"\(namespace.joined(separator: "."))\" in catalog \"\(place.parts[0].name)\"",
                hint: "SHOW SCHEMAS FROM \(place.parts[0].name) lists those that are there.", at: place.span.source)
        }
        return found
    }

    /// SHOW SCHEMAS FROM catalog.
    private func foreignNamespaces(of place: ObjectName) async throws(SQLError) -> [String] {
        let catalog = try await attachedCatalog(place)
        return try await engine.offActor { () throws(SQLError) in try catalog.namespaces() }
    }

    private func attachedCatalog(_ place: ObjectName) async throws(SQLError) -> any AttachedCatalog {
        let name = place.parts[0].name
        guard let found = try await engine.offActor({ [engine] () throws(SQLError) in try engine.attached.find(name) }) else {
            throw SQLError(
                .invalidCatalogName, "catalog \"\(name)\" does not exist", hint: "SHOW CATALOGS lists those that are there.",
                at: place.span.source)
        }
        return found
    }

    private func columns(of name: ObjectName) async throws(SQLError) -> [CatalogColumn] {
        if let object = await engine.reader.object(schema: name.schemaName, name: name.last.name) { return object.columns }
        if name.parts.count >= 3, let columns = try await foreignColumns(of: name) { return columns }
        throw SQLError(.undefinedTable, "relation \"\(name.last.name)\" does not exist", at: name.span.source)
    }

    /// Of a table of an attached catalog; nil when there is no such table.
    private func foreignColumns(of name: ObjectName) async throws(SQLError) -> [CatalogColumn]? {
        let catalog = try await attachedCatalog(name)
        let parts = name.parts.map(\.name)
        let table = CatalogTable(catalog: parts[0], namespace: Array(parts[1..<parts.count - 1]), name: parts[parts.count - 1])
        return try await engine.offActor { () throws(SQLError) in
            try catalog.describe(table, nil)?.columns.map { CatalogColumn($0.name, $0.type) }
        }
    }

    private static func line(_ column: CatalogColumn) -> [Scalar] {
        [.string(column.name), .string(column.type.name), .string(column.isHidden ? "true" : "false"), .null]
    }

    /// SQL's LIKE for names; nil matches everything.
    private static func matches(_ name: String, _ pattern: String?) -> Bool {
        guard let pattern else { return true }
        let text = Array(name.unicodeScalars)
        // The positions of the text that the pattern so far can end at.
        var reachable: Set<Int> = [0]
        for symbol in pattern.unicodeScalars {
            switch symbol {
            case "%": reachable = reachable.min().map { Set($0...text.count) } ?? []
            case "_": reachable = Set(reachable.filter { $0 < text.count }.map { $0 + 1 })
            default: reachable = Set(reachable.filter { $0 < text.count && text[$0] == symbol }.map { $0 + 1 })
            }
        }
        return reachable.contains(text.count)
    }
}

extension ObjectName {
    /// The part before the last, if there is one.
    var schemaName: String? { parts.count >= 2 ? parts[parts.count - 2].name : nil }
}
