package import MillBase

/// The catalog in memory: objects by id and by name, with what depends on what.
///
/// A value: the engine changes its own copy inside a DDL statement and publishes it when the statement is durable, so every
/// reader keeps one consistent state. Identifiers are never given out twice, also across `drop`. Objects of one schema
/// share one name space, as PostgreSQL's relations do.
package struct Catalog: CatalogReader {
    /// The first identifier of a user's object, as in PostgreSQL; smaller ones belong to the system.
    package static let firstUserID = ObjectID(16384)
    /// Where unqualified names are looked for, in this order; new objects go into the first.
    package static let searchPath = ["public", "pg_catalog"]

    private struct Name: Hashable {
        var schema: String
        var name: String
    }

    private var objectsByID: [ObjectID: CatalogObject] = [:]
    private var idsByName: [Name: ObjectID] = [:]
    private var dependents: [ObjectID: Set<ObjectID>] = [:]
    private var schemaNames: Set<String> = ["public", "pg_catalog", "information_schema"]
    private var nextID = Catalog.firstUserID.number

    /// An empty catalog with the relations that the engine itself serves; their identifiers are below `firstUserID`.
    package init(systemObjects: [CatalogObject] = []) {
        for object in systemObjects { insert(object) }
    }

    // MARK: Reading

    package func object(schema: String?, name: String) -> CatalogObject? {
        for schema in schema.map({ [$0] }) ?? Catalog.searchPath {
            if let id = idsByName[Name(schema: schema, name: name)] { return objectsByID[id] }
        }
        return nil
    }

    package func object(_ id: ObjectID) -> CatalogObject? { objectsByID[id] }

    package func schemaExists(_ name: String) -> Bool { schemaNames.contains(name) }

    /// Every object, oldest first.
    package var objects: [CatalogObject] { objectsByID.values.sorted { $0.id < $1.id } }

    /// Every schema in the order of its name.
    package var schemas: [String] { schemaNames.sorted() }

    /// What reads `id` directly, oldest first.
    package func dependents(of id: ObjectID) -> [CatalogObject] {
        (dependents[id] ?? []).sorted().compactMap { objectsByID[$0] }
    }

    // MARK: Changing

    /// Adds an object under a new identifier; the one it comes with is not looked at.
    /// - Throws: 42P07 when the name is taken, 3F000 when there is no such schema.
    package mutating func create(_ draft: CatalogObject) throws(SQLError) -> CatalogObject {
        guard schemaNames.contains(draft.schemaName) else { throw Catalog.missingSchema(draft.schemaName) }
        guard idsByName[Name(schema: draft.schemaName, name: draft.name)] == nil else {
            throw SQLError(.duplicateTable, "relation \"\(draft.name)\" already exists")
        }
        var object = draft
        object.id = ObjectID(nextID)
        nextID += 1
        insert(object)
        return object
    }

    /// Adds an object under the identifier it had when it was stored.
    package mutating func restore(_ object: CatalogObject) {
        insert(object)
        reserve(before: ObjectID(object.id.number + 1))
    }

    /// New objects get `id` or a higher identifier: lower ones have been given out before.
    package mutating func reserve(before id: ObjectID) { nextID = max(nextID, id.number) }

    /// Puts a changed definition in an existing object's place; name and identifier stay.
    package mutating func replace(_ object: CatalogObject) {
        guard let old = objectsByID[object.id] else { return }
        remove(old)
        insert(object)
    }

    /// - Throws: 42P07 when it exists.
    package mutating func createSchema(_ name: String) throws(SQLError) {
        guard schemaNames.insert(name).inserted else { throw SQLError(.duplicateTable, "schema \"\(name)\" already exists") }
    }

    /// Finds what DROP, ALTER and SHOW CREATE name.
    /// - Throws: 3F000, 42P01, or 42809 when it is of another kind.
    package func require(_ kind: CatalogObject.Kind, schema: String?, name: String) throws(SQLError) -> CatalogObject {
        if let schema, !schemaNames.contains(schema) { throw Catalog.missingSchema(schema) }
        guard let object = object(schema: schema, name: name) else {
            throw SQLError(.undefinedTable, "relation \"\(schema.map { $0 + "." } ?? "")\(name)\" does not exist")
        }
        guard object.kind == kind else {
            throw SQLError(.wrongObjectType, "\"\(name)\" is not a \(kind.rawValue)", hint: "It is a \(object.kind.rawValue).")
        }
        return object
    }

    /// Removes an object and, with `cascade`, everything that stands on it.
    ///
    /// - Returns: what was removed, in an order in which nothing is removed before its dependents.
    /// - Throws: as `require`, and 2BP01 naming the dependents without `cascade`.
    package mutating func drop(_ kind: CatalogObject.Kind, schema: String?, name: String, cascade: Bool) throws(SQLError) -> [CatalogObject] {
        let object: CatalogObject
        do throws(SQLError) { object = try require(kind, schema: schema, name: name) } catch {
            guard error.sqlState == .wrongObjectType, let hint = self.object(schema: schema, name: name)?.kind.dropHint else { throw error }
            throw SQLError(error.sqlState, error.message, hint: hint)
        }
        guard kind != .system else {
            throw SQLError(.wrongObjectType, "\"\(name)\" is a system relation", hint: "System relations cannot be dropped.")
        }
        let removed = removalOrder(object)
        if !cascade, removed.count > 1 {
            let lines = removed.dropLast().reversed().map { dependent in
                let base = dependent.dependencies.compactMap { objectsByID[$0] }.first { candidate in removed.contains { $0.id == candidate.id } } ?? object
                return "\(dependent.kind.rawValue) \(dependent.name) depends on \(base.kind.rawValue) \(base.name)"
            }
            throw SQLError(
                .dependentObjectsStillExist, "cannot drop \(kind.rawValue) \(object.name) because other objects depend on it",
                detail: lines.joined(separator: "\n"), hint: "Use DROP ... CASCADE to drop the dependent objects too.")
        }
        for object in removed { remove(object) }
        return removed
    }

    /// `object` last, every dependent before what it reads. Iterative, because chains of views have no bound.
    private func removalOrder(_ object: CatalogObject) -> [CatalogObject] {
        var reached: Set<ObjectID> = [object.id]
        var open = [object.id]
        while let id = open.popLast() {
            for dependent in dependents[id] ?? [] where reached.insert(dependent).inserted { open.append(dependent) }
        }
        // An object is created after everything it reads, so falling identifiers are a topological order.
        return reached.sorted(by: >).compactMap { objectsByID[$0] }
    }

    private mutating func insert(_ object: CatalogObject) {
        objectsByID[object.id] = object
        idsByName[Name(schema: object.schemaName, name: object.name)] = object.id
        for dependency in object.dependencies { dependents[dependency, default: []].insert(object.id) }
    }

    private mutating func remove(_ object: CatalogObject) {
        objectsByID[object.id] = nil
        idsByName[Name(schema: object.schemaName, name: object.name)] = nil
        for dependency in object.dependencies { dependents[dependency]?.remove(object.id) }
        if dependents[object.id]?.isEmpty ?? false { dependents[object.id] = nil }
    }

    private static func missingSchema(_ name: String) -> SQLError {
        SQLError(.invalidSchemaName, "schema \"\(name)\" does not exist")
    }
}

extension CatalogObject.Kind {
    /// Which statement removes an object of this kind.
    package var dropHint: String? {
        switch self {
        case .source: "Use DROP SOURCE to remove a source."
        case .table: "Use DROP TABLE to remove a table."
        case .materializedView: "Use DROP MATERIALIZED VIEW to remove a materialized view."
        case .view: "Use DROP VIEW to remove a view."
        case .sink: "Use DROP SINK to remove a sink."
        case .system: nil
        }
    }
}
