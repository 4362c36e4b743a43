package import MillBase
import MillCatalog
package import MillColumnar
package import MillConnectorKit
import MillExpr
import MillPlan
package import MillSQL

/// Tables of attached catalogs, as the binder looks for them. Blocks.
package protocol CatalogTables: Sendable {
    /// Whether a catalog is attached under a name.
    func isAttached(_ catalog: String) throws(SQLError) -> Bool
    /// - Returns: nil when the catalog has no such table.
    func describe(_ table: CatalogTable, _ state: TableState?) throws(SQLError) -> (table: CatalogTable, columns: [Field])?
    /// What may be read of a table in place of its rows.
    var parts: [String] { get }
    /// A view reads the table, and there is no source of it yet.
    /// - Throws: what ends the binding.
    func follow(_ table: CatalogTable, at span: SourceSpan?) throws(SQLError)
}

extension CatalogTables {
    package func follow(_ table: CatalogTable, at span: SourceSpan?) throws(SQLError) {
        throw SQLError(
            .featureNotSupported, "tables of attached catalogs are not supported here",
            hint: "Make a source of the table: CREATE SOURCE name WITH (connector = 'iceberg', 'catalog.name' = '\(table.catalog)', 'database.name' = '\(table.namespace.joined(separator: "."))', 'table.name' = '\(table.name)').",
            at: span)
    }
}

/// `catalog.namespace.table` in FROM.
extension Binder {
    /// nil when the name is not that of a table in an attached catalog: one of our own of the same name goes first.
    func bindCatalogTable(_ reference: NamedTable) throws(SQLError) -> FromItem? {
        let parts = reference.name.parts.map(\.name)
        guard parts.count >= 3, let tables = context.catalogTables else { return nil }
        let own = parts.count == 3 ? catalog.object(schema: parts[1], name: parts[2]) : nil
        guard own == nil else { return nil }
        isOfTheMoment = true
        let span = reference.name.span.source
        do throws(SQLError) {
            guard try tables.isAttached(parts[0]) else { return nil }
            guard case .statement = context.purpose else { return try bindFollowed(reference, tables) }
            let state = try reference.version.map { version throws(SQLError) in try tableState(version) }
            for candidate in Self.candidates(parts, tables.parts) {
                guard let (table, columns) = try tables.describe(candidate, state) else { continue }
                return try scan(table, columns, reference)
            }
        } catch { throw error.located(at: span) }
        throw SQLError(
            .undefinedTable, "there is no table \"\(parts.dropFirst().joined(separator: "."))\" in catalog \"\(parts[0])\"",
            hint: "SHOW TABLES FROM \(parts.dropLast().joined(separator: ".")) lists those that are there.", at: span)
    }

    /// - Throws: 0A000 for the name of a table in an attached catalog; one of our own of the same name goes first.
    func refuseWriting(_ name: ObjectName) throws(SQLError) {
        let parts = name.parts.map(\.name)
        guard parts.count >= 3, catalog.object(schema: parts[parts.count - 2], name: parts[parts.count - 1]) == nil, let tables = context.catalogTables,
            try tables.isAttached(parts[0])
        else { return }
        throw Self.onlyRead(name)
    }

    package static func onlyRead(_ name: ObjectName) -> SQLError {
        SQLError(
            .featureNotSupported, "\"\(name.parts.map(\.name).joined(separator: "."))\" is in an attached catalog, whose tables SQL only reads",
            hint: "Write to such a table by CREATE SINK, which also makes it: create_table_if_not_exists = 'true'.", at: name.span.source)
    }

    /// A view reads a table of a catalog by a source, which is named as the table is.
    private func bindFollowed(_ reference: NamedTable, _ tables: any CatalogTables) throws(SQLError) -> FromItem {
        let parts = reference.name.parts.map(\.name)
        let span = reference.name.span.source
        if let version = reference.version {
            throw unsupported("older states of a table in views", hint: "A view follows the table as it is.", at: version.span.source)
        }
        guard let source = catalog.object(schema: "public", name: parts.joined(separator: ".")), source.kind == .source else {
            try tables.follow(CatalogTable(catalog: parts[0], namespace: Array(parts[1..<parts.count - 1]), name: parts[parts.count - 1]), at: span)
            throw SQLError(.undefinedTable, "there is no source of table \"\(parts.joined(separator: "."))\"", at: span)
        }
        depend(on: source)
        try count(relations: 1, at: span)
        return try aliased(
            scan(source, .source), names: source.columns.map(\.name), reference.alias?.name, reference.alias?.columns ?? [],
            defaultName: .init(name: parts[parts.count - 1], schema: parts[parts.count - 2]))
    }

    /// What a name may mean: a table, `"table$part"` as in Trino, `table.part` as in Spark.
    private static func candidates(_ parts: [String], _ known: [String]) -> [CatalogTable] {
        let last = parts[parts.count - 1]
        var found = [CatalogTable(catalog: parts[0], namespace: Array(parts[1..<parts.count - 1]), name: last)]
        if let dollar = last.lastIndex(of: "$"), known.contains(String(last[last.index(after: dollar)...])) {
            var table = found[0]
            table.name = String(last[..<dollar])
            table.part = String(last[last.index(after: dollar)...])
            found.insert(table, at: 0)
        }
        if parts.count >= 4, known.contains(last) {
            found.append(CatalogTable(catalog: parts[0], namespace: Array(parts[1..<parts.count - 2]), name: parts[parts.count - 2], part: last))
        }
        return found
    }

    private func scan(_ table: CatalogTable, _ columns: [Field], _ reference: NamedTable) throws(SQLError) -> FromItem {
        try count(relations: 1, at: reference.name.span.source)
        let relation = RelationReference(id: nextForeignID(), name: table.description, kind: .catalogTable, table: table)
        let plan = LogicalPlan.scan(LogicalScan(relation: relation, columns: Array(columns.indices), schema: columns))
        return try aliased(
            plan, names: columns.map(\.name), reference.alias?.name, reference.alias?.columns ?? [],
            defaultName: .init(name: table.part ?? table.name, schema: table.part == nil ? table.namespace.last : table.name))
    }

    /// Of `FOR ... AS OF`: a constant.
    private func tableState(_ version: TableVersion) throws(SQLError) -> TableState {
        let expression: Expression
        switch version {
        case .time(let time):
            expression = time
            let bound = try bind(time, ExpressionContext(scope: Scope(), outer: nil, clause: .tableFunction))
            let moment = try coerce(bound, to: .timestamptz, .assignment, at: time.span.source)
            if case .int(let micros)? = try constant(moment) { return .time(micros: micros) }
        case .version(let version):
            expression = version
            let bound = try bind(version, ExpressionContext(scope: Scope(), outer: nil, clause: .tableFunction))
            switch try constant(bound) {
            case .int(let id)?: return .snapshot(id)
            case .string(let name)?: return .reference(name)
            default: break
            }
        }
        throw SQLError(
            .invalidParameterValue, "AS OF takes a constant",
            hint: "Such as FOR SYSTEM_TIME AS OF TIMESTAMPTZ '2026-01-01 12:00:00+00', FOR SYSTEM_VERSION AS OF 1234567890 or AS OF 'branch'.",
            at: expression.span.source)
    }
}
