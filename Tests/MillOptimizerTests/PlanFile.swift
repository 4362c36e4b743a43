import MillBase
import MillBinder
import MillCatalog
import MillExpr
import MillOptimizer
import MillPlan
import MillSQL

/// A golden file of plans: cases of `-- sql`, `-- logical` and `-- stream`, sharing one catalog from top to bottom.
///
/// Lines that begin with `#` are comments and stay. A case's statements run in order; the plans printed are those of its
/// last SELECT or CREATE MATERIALIZED VIEW, after the optimizer.
struct PlanFile {
    /// The file's text with the plans as they are now.
    static func blessed(_ text: String) throws -> String { try read(text).blessed }

    /// The plans of every case.
    static func planned(_ text: String) throws -> [PlanWorld.Planned] { try read(text).planned }

    private static func read(_ text: String) throws -> (blessed: String, planned: [PlanWorld.Planned]) {
        var world = PlanWorld()
        var planned: [PlanWorld.Planned] = []
        var output: [String] = []
        var sql: [String] = []
        var section = ""
        func finish() throws {
            guard !sql.isEmpty else { return }
            var after: [String] = []
            while let line = sql.last, line.isEmpty || line.hasPrefix("#") {
                if !line.isEmpty { after.insert(line, at: 0) }
                sql.removeLast()
            }
            let statements = sql.filter { !$0.hasPrefix("#") }.joined(separator: "\n")
            output.append(contentsOf: sql)
            sql = []
            guard let plans = try world.run(statements) else { return }
            planned.append(plans)
            output += ["-- logical", plans.logical.explained, "-- stream", plans.stream.explained, ""] + after
        }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            switch line {
            case "-- sql":
                try finish()
                section = "sql"
                output.append(line)
            case "-- logical", "-- stream": section = "plan"
            default:
                if section == "sql" { sql.append(line) } else if line.hasPrefix("#") {
                    try finish()
                    output.append(line)
                }
            }
        }
        try finish()
        while output.last?.isEmpty ?? false { output.removeLast() }
        return (output.joined(separator: "\n") + "\n", planned)
    }
}

/// A catalog that statements build up, with what the planner has derived for its relations.
struct PlanWorld {
    var catalog = Catalog()
    var properties: [ObjectID: StreamProperties] = [:]

    /// A query after the optimizer, and the stream plan made of it.
    typealias Planned = (logical: BoundQuery, stream: StreamPlan)

    /// Runs statements; the plans of the last that has some.
    mutating func run(_ text: String) throws -> Planned? {
        var plans: Planned?
        for parsed in try Parser.parseStatements(text) {
            switch parsed.statement {
            case .createRelation(let statement):
                let binder = Binder(catalog: catalog, context: BinderContext(.view))
                let bound = try binder.bind(createRelation: statement)
                let object = try catalog.create(
                    CatalogObject(
                        id: ObjectID(0), schemaName: bound.schemaName, name: bound.name, kind: bound.kind, columns: bound.columns,
                        primaryKey: bound.primaryKey))
                let marks = bound.watermark.map { [$0.column] } ?? []
                if bound.kind == .source { properties[object.id] = StreamProperties(appendOnly: true, distribution: .any, watermarks: marks) }
                if bound.kind == .table {
                    let key = bound.primaryKey.isEmpty ? nil : bound.primaryKey
                    properties[object.id] = StreamProperties(
                        uniqueKey: key, appendOnly: false, distribution: .hash(key ?? Array(bound.columns.indices)), watermarks: marks)
                }
            case .createView(let statement):
                let binder = Binder(catalog: catalog, context: BinderContext(.view))
                let bound = try binder.bind(createView: statement)
                let object = try catalog.create(
                    CatalogObject(
                        id: ObjectID(0), schemaName: bound.schemaName, name: bound.name, kind: bound.kind, columns: bound.columns,
                        dependencies: binder.dependencies, query: bound.query))
                guard bound.kind == .materializedView else { continue }
                let query = Optimizer.optimize(bound.query)
                let plan = try StreamPlanner.planView(
                    query, emitsOnClose: statement.emitOnWindowClose, relationProperties: relationProperties)
                properties[object.id] = plan[plan.root].properties
                plans = (query, plan)
            case .query(let query):
                let bound = Optimizer.optimize(try bind(query))
                plans = (bound, StreamPlanner.planQuery(bound, relationProperties: relationProperties))
            default: break
            }
        }
        return plans
    }

    func bind(_ query: Query) throws(SQLError) -> BoundQuery {
        try Binder(catalog: catalog, context: BinderContext(.statement(now: 0))).bind(query: query)
    }

    func relationProperties(_ id: ObjectID) -> StreamProperties {
        properties[id] ?? StreamProperties(appendOnly: false, distribution: .any)
    }
}
