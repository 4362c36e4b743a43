import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillPlan
import MillSQL

/// A catalog made by CREATE statements, and statements bound over it.
struct BinderWorld {
    var catalog = Catalog()

    static func standard() throws -> BinderWorld {
        var world = BinderWorld()
        try world.run(
            """
            CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR NOT NULL DEFAULT 'none');
            CREATE TABLE u (a INT, d BIGINT, e NUMERIC(10, 2));
            CREATE SOURCE s (k INT, ts TIMESTAMP, day DATE, name VARCHAR) WITH (connector = 'kafka', topic = 's');
            CREATE VIEW v AS SELECT a AS x, b + 1 AS y FROM t;
            """)
        return world
    }

    mutating func run(_ text: String) throws {
        for parsed in try Parser.parseStatements(text) {
            switch parsed.statement {
            case .createRelation(let statement):
                let binder = Binder(catalog: catalog, context: BinderContext(.view))
                let bound = try binder.bind(createRelation: statement)
                _ = try catalog.create(
                    CatalogObject(
                        id: ObjectID(0), schemaName: bound.schemaName, name: bound.name, kind: bound.kind, columns: bound.columns,
                        primaryKey: bound.primaryKey, options: bound.options))
            case .createView(let statement):
                let binder = Binder(catalog: catalog, context: BinderContext(.view))
                let bound = try binder.bind(createView: statement)
                _ = try catalog.create(
                    CatalogObject(
                        id: ObjectID(0), schemaName: bound.schemaName, name: bound.name, kind: bound.kind, columns: bound.columns,
                        dependencies: binder.dependencies, query: bound.query))
            case .insert(let statement):
                _ = try Binder(catalog: catalog, context: BinderContext(.statement(now: 0))).bind(insert: statement)
            case .query(let statement):
                _ = try Binder(catalog: catalog, context: BinderContext(.statement(now: 0))).bind(query: statement)
            default: break
            }
        }
    }

    func query(_ text: String, now: Int64 = 0) throws -> BoundQuery {
        guard case .query(let query) = try Parser.parseStatement(text) else { throw SQLError(.syntaxError, "no query") }
        return try Binder(catalog: catalog, context: BinderContext(.statement(now: now))).bind(query: query)
    }

    func insert(_ text: String) throws -> BoundInsert {
        guard case .insert(let insert) = try Parser.parseStatement(text) else { throw SQLError(.syntaxError, "no insert") }
        return try Binder(catalog: catalog, context: BinderContext(.statement(now: 0))).bind(insert: insert)
    }

    /// `name type, ...` of a query's output.
    func columns(_ text: String) throws -> String {
        try query(text).schema.map { "\($0.name) \($0.type.name)" }.joined(separator: ", ")
    }

    /// The error of a statement, and the text that its span covers.
    func failure(_ text: String) -> (error: SQLError, place: String)? {
        var world = self
        do {
            try world.run(text)
            return nil
        } catch let error as SQLError {
            let bytes = Array(text.utf8)
            let place = error.span.map { String(decoding: bytes[min($0.start, bytes.count)..<min(max($0.end, $0.start), bytes.count)], as: UTF8.self) }
            return (error, place ?? "")
        } catch { return nil }
    }
}
