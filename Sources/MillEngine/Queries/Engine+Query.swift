package import MillBase
import MillBinder
import MillCatalog
package import MillColumnar
import MillConnectorKit
import MillDataflow
import MillIO
import MillOptimizer
package import MillPlan
import MillState

/// Ad-hoc SELECT: which rows it sees.
extension Engine {
    /// How a query is carried out, for any session.
    func plan(_ bound: BoundQuery) -> QueryPlan {
        let query = Optimizer.optimize(bound)
        return QueryPlan(schema: bound.schema, query: query, steps: steps(of: query, changed: []))
    }

    /// - Parameter changed: relations with changes that are not published. Others are read whole, once: nothing is ever taken back.
    private func steps(of query: BoundQuery, changed: Set<ObjectID>) -> StreamPlan {
        let properties = relationProperties
        return StreamPlanner.planQuery(query) { id in
            StreamProperties(uniqueKey: properties(id).uniqueKey, appendOnly: !changed.contains(id), distribution: .any)
        }
    }

    /// Plans a query and fixes what it reads: every relation and every running source as of one published epoch, system relations as of now, a
    /// source that no job reads up to its end now.
    ///
    /// A block's query sees the epoch that the block saw first, and the block's own changes. A statement that writes sees the newest
    /// state of tables: what is ordered before it, published or not.
    ///
    /// - Parameter given: the rows of `RelationReference.givenRows`, of all its columns.
    package func queryRun(_ bound: BoundQuery, session: SessionContext, given: [DeltaBatch] = []) async throws(SQLError) -> QueryRun {
        try await queryRun(Optimizer.optimize(bound), nil, session: session, given: given)
    }

    /// Fixes what a query reads: see `queryRun` of a bound one.
    func queryRun(_ plan: QueryPlan, session: SessionContext) async throws(SQLError) -> QueryRun {
        try await queryRun(plan.query, plan.steps, session: session, given: [])
    }

    /// - Parameter known: steps for relations without changes that are not published; nil: none are known.
    private func queryRun(
        _ query: BoundQuery, _ known: StreamPlan?, session: SessionContext, given: [DeltaBatch]
    ) async throws(SQLError) -> QueryRun {
        let transaction = session.transaction
        // Before the images are taken: what is published meanwhile is still in this list, and left out by its position.
        let staged: [StagedTransaction] = transaction.map { $0.isBlock ? [] : self.staged } ?? []
        let changed = Set(transaction.map { Array($0.changes.keys) } ?? []).union(staged.flatMap(\.changes.keys))
        let plan = known.flatMap { $0.reads(anyOf: changed) ? nil : $0 } ?? steps(of: query, changed: changed)
        var run = QueryRun(
            plan: plan, order: query.order, limit: query.limit, offset: query.offset, visible: query.visible, raisesErrors: session.raisesErrors,
            threads: threads)
        var stored: [ObjectID: RelationReference] = [:]
        var sourceIDs: Set<ObjectID> = []
        var files: [RelationReference] = []
        for node in plan.nodes {
            switch node.operation {
            case .relation(.givenRows, _): run.relations[RelationReference.givenRows.id] = given
            case .relation(let relation, _) where relation.kind == .system: run.relations[relation.id] = try await systemRows(relation, session)
            case .relation(let relation, _): stored[relation.id] = relation
            case .source(let relation, _) where relation.kind == .files: files.append(relation)
            case .source(let relation, _) where relation.kind == .catalogTable: run.tables[relation.id] = try catalogTable(relation, query.plan)
            case .source(let relation, _): sourceIDs.insert(relation.id)
            default: break
            }
        }
        for relation in files where run.sources[relation.id] == nil { run.sources[relation.id] = try await range(of: relation, session) }
        if !stored.isEmpty || !sourceIDs.isEmpty { try await untilRestored(session.cancellation) }
        try await untilRecovered(stored.keys, session.cancellation)
        try requireReady(stored.keys.sorted() + sourceIDs.sorted())
        guard !stored.isEmpty || !sourceIDs.isEmpty else { return run }
        if stored.count == 1, sourceIDs.isEmpty, let table = stored.keys.first.flatMap(catalog.object), table.kind == .table,
            let keys = KeyLookup.keys(of: table.id, key: table.rowKey, in: query.plan)
        {
            let batches = DeltaBatch.batches(keys, table.rowKey.map { Field(table.columns[$0].name, table.columns[$0].type) })
            run.relations[table.id] = try await storedRows(of: table, underKeys: DeltaBatch.consolidate(batches, by: .values), transaction)
            return run
        }
        let (record, tables) = try await images(Array(stored.keys), transaction)
        run.warnings = standstills(of: stored.keys + sourceIDs.filter { record.offsets[$0]?.isEmpty == false }, record)
        for (id, relation) in stored {
            guard let parts = tables[id], parts.count == options.workerCount, let object = catalog.object(id) else {
                throw SQLError(.undefinedTable, "relation \"\(relation.name)\" does not exist")
            }
            let columns = Array(object.columns.indices)
            run.relations[id] =
                parts.flatMap { $0.batches(columns: columns, weightOffset: MaterializeOperator.weightOffset) }
                + unpublished(id, after: record, staged, transaction)
        }
        for id in sourceIDs { run.sources[id] = try await range(of: id, record, session) }
        return run
    }

    /// What is there of a source: as far as the epoch has it, or to its end now when no job reads it.
    private func range(of source: ObjectID, _ record: EpochRecord, _ session: SessionContext) async throws(SQLError) -> QueryRun.SourceRange {
        guard let definition = sources.definition(source) else { throw SQLError(.undefinedTable, "source \(source) does not exist") }
        var end = record.offsets[source] ?? [:]
        if end.isEmpty {
            end = try await offActor { () throws(SQLError) in try definition.connector.highWatermarks(definition.connector.currentSplits()) }
        }
        return QueryRun.SourceRange(definition: definition, end: end, clock: environment.clock, patience: session.sourceTimeout, onRejects: onRejects)
    }

    /// A table of an attached catalog, with what the query asks of its columns.
    private func catalogTable(_ relation: RelationReference, _ plan: LogicalPlan) throws(SQLError) -> QueryRun.TableRange {
        guard let table = relation.table, let catalog = try attached.find(table.catalog) else {
            throw SQLError(.undefinedTable, "relation \"\(relation.name)\" does not exist")
        }
        return QueryRun.TableRange(catalog: catalog, table: table, bounds: ScanBounds.bounds(of: relation.id, in: plan))
    }
}

extension StreamPlan {
    fileprivate func reads(anyOf relations: Set<ObjectID>) -> Bool {
        guard !relations.isEmpty else { return false }
        return nodes.contains { if case .relation(let relation, _) = $0.operation { relations.contains(relation.id) } else { false } }
    }
}
