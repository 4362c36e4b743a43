package import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillDataflow
import MillIO
import MillOptimizer
package import MillPlan
import MillState

/// Ad-hoc SELECT: which rows it sees.
extension Engine {
    /// Plans a query and fixes what it reads: every relation and every running source as of one published epoch, system
    /// relations as of now, a source that no job reads up to its end now.
    package func queryRun(_ bound: BoundQuery, session: SessionContext) async throws(SQLError) -> QueryRun {
        let query = Optimizer.optimize(bound)
        let unique = relationProperties
        // A query's relations are read whole, once: nothing is ever taken back.
        let plan = StreamPlanner.planQuery(query) { id in
            StreamProperties(uniqueKey: unique(id).uniqueKey, appendOnly: session.uncommitted[id] == nil, distribution: .any)
        }
        var run = QueryRun(
            plan: plan, order: query.order, limit: query.limit, offset: query.offset, visible: query.visible, raisesErrors: session.raisesErrors)
        var stored: [ObjectID: RelationReference] = [:]
        var sourceIDs: Set<ObjectID> = []
        for node in plan.nodes {
            switch node.operation {
            case .relation(let relation, _) where relation.kind == .system: run.relations[relation.id] = try await systemRows(relation, session)
            case .relation(let relation, _): stored[relation.id] = relation
            case .source(let relation, _): sourceIDs.insert(relation.id)
            default: break
            }
        }
        try await untilRecovered(stored.keys, session.cancellation)
        try requireReady(stored.keys.sorted() + sourceIDs.sorted())
        guard !stored.isEmpty || !sourceIDs.isEmpty else { return run }
        let (record, tables) = await conductor.snapshots(Array(stored.keys))
        run.warnings = standstills(of: Array(stored.keys), record)
        for (id, relation) in stored {
            guard let parts = tables[id], parts.count == options.workerCount, let object = catalog.object(id) else {
                throw SQLError(.undefinedTable, "relation \"\(relation.name)\" does not exist")
            }
            let columns = Array(object.columns.indices)
            var rows = parts.flatMap { $0.batches(columns: columns, weightOffset: MaterializeOperator.weightOffset) }
            if let writes = session.uncommitted[id] { rows += await delta(of: writes, in: object) }
            run.relations[id] = rows
        }
        for id in sourceIDs {
            guard let definition = sources.definition(id) else { throw SQLError(.undefinedTable, "source \(id) does not exist") }
            // A source whose splits the epoch does not name is read by no job.
            var end = record.offsets[id] ?? [:]
            if end.isEmpty {
                end = try await offActor { () throws(SQLError) in
                    try definition.connector.highWatermarks(definition.connector.currentSplits())
                }
            }
            run.sources[id] = QueryRun.SourceRange(
                definition: definition, end: end, clock: environment.clock, patience: session.sourceTimeout, onRejects: onRejects)
        }
        return run
    }
}
