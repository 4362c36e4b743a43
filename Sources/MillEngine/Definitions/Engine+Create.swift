package import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillDataflow
import MillIO
import MillMeta
import MillOptimizer
import MillPlan
package import MillSQL
import MillStore

/// CREATE SOURCE, TABLE and [MATERIALIZED] VIEW.
extension Engine {
    /// A notice instead of an error for IF NOT EXISTS; nil when the name is free.
    func existing(_ name: ObjectName, ifNotExists: Bool, _ notices: inout [SQLError]) -> Bool {
        let schema = name.parts.count >= 2 ? name.parts[name.parts.count - 2].name : nil
        guard ifNotExists, catalog.object(schema: schema, name: name.last.name) != nil else { return false }
        notices.append(SQLError(.duplicateTable, "relation \"\(name.last.name)\" already exists, skipping"))
        return true
    }

    /// - Throws: 0A000 for OR REPLACE of what is there: those that read it would have to be planned anew.
    private func refuseReplacing(_ name: ObjectName, orReplace: Bool) throws(SQLError) {
        guard orReplace, let there = catalog.object(schema: name.schemaName, name: name.last.name) else { return }
        throw SQLError(
            .featureNotSupported, "CREATE OR REPLACE of \(there.kind.rawValue) \"\(there.name)\", which is there, is not supported", hint: "Drop it first.",
            at: name.span.source)
    }

    /// - Throws: 22023 for an option of what has none.
    private func refuseOptions(_ options: [WithOption], of what: String) throws(SQLError) {
        guard let option = options.first else { return }
        throw SQLError(
            .invalidParameterValue, "\(what) has no option \"\(option.key)\"", hint: "Tables and views have no options: leave WITH (...) out.",
            at: option.span.source)
    }

    package func create(_ statement: CreateRelation, definition: String, session: SessionContext, _ notices: inout [SQLError]) async throws(SQLError) {
        try await refuseForeign(statement.name)
        try await definitions.lock(unless: session.cancellation)
        var isLocked = true
        defer { if isLocked { definitions.unlock() } }
        if existing(statement.name, ifNotExists: statement.ifNotExists, &notices) { return }
        try refuseReplacing(statement.name, orReplace: statement.orReplace)
        let binder = Binder(catalog: reader, context: session.binderContext(.statement(now: environment.clock.nowMicros)))
        let bound = try binder.bind(createRelation: statement)
        var draft = CatalogObject(
            id: ObjectID(0), schemaName: bound.schemaName, name: bound.name, kind: bound.kind, columns: bound.columns, primaryKey: bound.primaryKey,
            watermark: bound.watermark, definition: definition, options: bound.options)
        if bound.kind == .table { return try await createTable(draft, rows: bound.query, statement, session) }
        var made = try assembledSource(draft, statement)
        // A broker that is away takes its time to be given up: other definitions go on meanwhile.
        definitions.unlock()
        isLocked = false
        if draft.columns.isEmpty {
            draft.columns = try await columns(of: made.connector, statement)
            made = try assembledSource(draft, statement)
        }
        if let encode = made.encode, !draft.options.contains(where: { ["encode", "format", "value.format"].contains($0.name) }) {
            draft.options.append(CatalogOption("encode", encode))
        }
        let connector = made.connector
        let origin = try await offActor { () throws(SQLError) in try connector.resolveOrigin() }
        try await definitions.lock(unless: session.cancellation)
        isLocked = true
        if existing(statement.name, ifNotExists: statement.ifNotExists, &notices) { return }
        var changed = catalog
        let object = try changed.create(draft)
        try await store { (meta) throws(SQLError) in try meta.create(object, origin: origin) }
        catalog = changed
        register(object, made, origin: origin)
        notices += made.notices.map { SQLError(.successfulCompletion, $0) }
    }

    /// The columns of a source that is declared without.
    /// - Throws: 42P16 when its records do not say which they have.
    private func columns(of connector: any SourceConnector, _ statement: CreateRelation) async throws(SQLError) -> [CatalogColumn] {
        let found = try await offActor { () throws(SQLError) in try connector.columns() } ?? []
        let span = statement.name.span.source
        guard !found.isEmpty else {
            throw SQLError(
                .invalidTableDefinition, "source \"\(statement.name.last.name)\" has no columns", hint: "List them: CREATE SOURCE name (column type, ...).",
                at: span)
        }
        guard found.count <= Limits.columnsMax else {
            throw SQLError(.tooManyColumns, "a source can have at most \(Limits.columnsMax) columns", hint: "List those that you want.", at: span)
        }
        return found.map { CatalogColumn($0.name, $0.type) }
    }

    /// Where the checkpoint has the jobs that read a source.
    private func resumedOffsets(of source: ObjectID) -> [SourceSplit: SplitOffset] {
        keeper?.recovered?.record.position.offsets[source] ?? [:]
    }

    /// Where a job's state is kept; nil without a data directory.
    func storage(of job: ObjectID, recovered: RecoveredState?) -> JobStorage? {
        keeper.map { JobStorage(store: $0.store, recovered: recovered, planChecksum: planChecksums[job]) }
    }

    /// A job that begins without state.
    func newJob(_ object: CatalogObject, _ plan: StreamPlan) -> JobPlan {
        JobPlan(
            id: object.id, name: object.name, plan: plan, watermark: object.watermark, storage: storage(of: object.id, recovered: nil))
    }

    /// From here on jobs can read a source.
    func register(_ object: CatalogObject, _ made: AssembledSource, origin: [SourceSplit: SplitOffset]) {
        let source = SourceDefinition(
            id: object.id, name: object.name, connector: replaying(made.connector, of: object.id), makeDecoder: made.makeDecoder, origin: origin)
        if object.watermark != nil { watchIdleness() }
        let pausedAt = paused[object.id].map { _ in lastPublishedOffsets(of: object.id) }
        sources.add(
            source, watermark: object.watermark, resumed: resumedOffsets(of: object.id), published: Set(lastPublishedOffsets(of: object.id).keys),
            pausedAt: pausedAt
        ) { [weak self] in
            Task { await self?.splitsMayHaveChanged(source) }
        }
        // What was replayed right before the end of an earlier process is in no epoch that it noted.
        if replayLogs[object.id].map({ $0.count > 0 }) ?? false { _ = sources.add([ReplayingConnector.split], to: object.id) }
    }

    /// Under the lock of definitions.
    private func createTable(
        _ draft: CatalogObject, rows query: BoundQuery?, _ statement: CreateRelation, _ session: SessionContext
    ) async throws(SQLError) {
        if let connector = draft.connectorName {
            throw SQLError(
                .featureNotSupported, "a table with connector \"\(connector)\" is not supported", hint: "Use CREATE SOURCE and a materialized view over it.",
                at: statement.name.span.source)
        }
        try refuseOptions(statement.options, of: "table \"\(draft.name)\"")
        var changed = catalog
        let object = try changed.create(draft)
        let plan = Self.tablePlan(object)
        try await store { (meta) throws(SQLError) in try meta.create(object, job: (plan, query == nil ? .running : .creating)) }
        // Until all rows are in, nobody reads it or writes to it: what fails is taken back, with all that is in it.
        if query != nil { creating.insert(object.id) }
        defer { creating.remove(object.id) }
        catalog = changed
        plans[object.id] = plan
        do throws(SQLError) {
            try await conductor.attach(newJob(object, plan))
            guard let query else { return }
            let transaction = OpenTransaction(isBlock: false)
            _ = try await add(BoundInsert(table: object, query: query), session: session, to: transaction)
            do throws(SQLError) { try await commit(transaction) } catch {
                // What it says of stored changes is not so here: they go with the table.
                var error = error
                error.detail = "Table \"\(object.name)\" is not created."
                throw error
            }
            try await store { (meta) throws(SQLError) in try meta.setRunning(object.id) }
        } catch {
            await takeBack(object)
            throw error
        }
    }

    /// Removes what was created a moment ago, with what others built on it meanwhile; under the lock of definitions.
    ///
    /// Should the store not take that, the object is there again after a restart: a table whose rows are missing goes then, and a view
    /// begins anew.
    func takeBack(_ object: CatalogObject) async {
        // It may have been dropped meanwhile, and its name taken by another.
        guard catalog.object(object.id) != nil,
            let removed = try? catalog.drop(object.kind, schema: object.schemaName, name: object.name, cascade: true)
        else { return }
        let ids = removed.map(\.id)
        try? await store { (meta) throws(SQLError) in try meta.drop(ids) }  // As said above.
        await retire(removed)
    }

    /// The connector and decoders of a source that may be created.
    private func assembledSource(_ draft: CatalogObject, _ statement: CreateRelation) throws(SQLError) -> AssembledSource {
        guard let connector = draft.connectorName else {
            if let close = draft.options.first(where: { editDistance($0.name.lowercased(), "connector", atMost: 2) <= 2 }) {
                throw SQLError(
                    .invalidParameterValue, "source \"\(draft.name)\" has an option \"\(close.name)\" and no connector",
                    hint: "Perhaps you meant \"connector\".", at: statement.options.first { $0.key == close.name }?.span.source)
            }
            throw SQLError(
                .invalidParameterValue, "source \"\(draft.name)\" has no connector", hint: "Say where its records are: WITH (connector = 'kafka', ...).",
                at: statement.name.span.source)
        }
        guard draft.primaryKey.isEmpty else {
            throw SQLError(
                .featureNotSupported, "PRIMARY KEY on a source is not supported", hint: "Aggregate or deduplicate in a view.", at: statement.name.span.source)
        }
        if let column = draft.columns.first(where: { !$0.isNullable || $0.defaultText != nil }) {
            let clause = column.isNullable ? "DEFAULT" : "NOT NULL"
            throw SQLError(
                .featureNotSupported, "\(clause) on column \"\(column.name)\" of a source is not supported",
                hint: column.isNullable ? "Use coalesce in a view." : "Records are kept as they come; say WHERE \(column.name) IS NOT NULL in a view.",
                at: statement.name.span.source)
        }
        guard catalog.object(schema: draft.schemaName, name: draft.name) == nil else {
            throw SQLError(.duplicateTable, "relation \"\(draft.name)\" already exists", at: statement.name.last.span.source)
        }
        return try assembly.source(
            name: connector, options: draft.options, fields: draft.columns.map { Field($0.name, $0.type) }, catalogs: attached.finder)
    }

    /// A view that may be created.
    private struct ViewDraft {
        var object: CatalogObject
        /// Of a materialized view.
        var plan: StreamPlan?

        /// What has to be readable, named or read through views.
        var inputs: [ObjectID] { object.dependencies + (plan?.inputs.map(\.id) ?? []) }
    }

    /// Binds and plans a view as the catalog is now; under the lock of definitions.
    private func draft(
        _ statement: CreateView, definition: String, _ session: SessionContext
    ) throws(SQLError) -> ViewDraft {
        let binder = Binder(catalog: reader, context: session.binderContext(.view, functions: catalogFunctions(session)))
        let bound = try binder.bind(createView: statement)
        let object = CatalogObject(
            id: ObjectID(0), schemaName: bound.schemaName, name: bound.name, kind: bound.kind, columns: bound.columns,
            dependencies: binder.dependencies, definition: definition, options: bound.options, query: bound.query)
        let isStored = bound.kind == .materializedView
        let span = statement.name.span.source
        return ViewDraft(
            object: object,
            plan: isStored ? try Self.plan(bound, emitsOnClose: statement.emitOnWindowClose, at: span, relationProperties) : nil)
    }

    package func create(_ statement: CreateView, definition: String, session: SessionContext, _ notices: inout [SQLError]) async throws(SQLError) {
        try await following(session) { (session) throws(SQLError) in try await define(statement, definition: definition, session: session, &notices) }
    }

    private func define(
        _ statement: CreateView, definition: String, session: SessionContext, _ notices: inout [SQLError]
    ) async throws(SQLError) {
        try await definitions.lock(unless: session.cancellation)
        var isLocked = true
        defer { if isLocked { definitions.unlock() } }
        if existing(statement.name, ifNotExists: statement.ifNotExists, &notices) { return }
        try refuseReplacing(statement.name, orReplace: statement.orReplace)
        try refuseOptions(statement.options, of: "\(statement.isMaterialized ? "materialized view" : "view") \"\(statement.name.last.name)\"")
        var draft = try draft(statement, definition: definition, session)
        while !recovering(draft.inputs).isEmpty {
            definitions.unlock()
            isLocked = false
            try await untilRecovered(draft.inputs, session.cancellation)
            try await definitions.lock(unless: session.cancellation)
            isLocked = true
            // Names may mean something else by now.
            if existing(statement.name, ifNotExists: statement.ifNotExists, &notices) { return }
            draft = try self.draft(statement, definition: definition, session)
        }
        try requireReady(draft.inputs)
        guard let plan = draft.plan else {
            var changed = catalog
            let object = try changed.create(draft.object)
            try await store { (meta) throws(SQLError) in try meta.create(object) }
            catalog = changed
            return
        }
        try await requireRunning(draft.inputs)
        var changed = catalog
        let object = try changed.create(draft.object)
        let checksum = try await storing { (meta) throws(SQLError) in try meta.create(object, job: (plan, .creating)) }
        catalog = changed
        planChecksums[object.id] = checksum
        creating.insert(object.id)
        plans[object.id] = plan
        let job = newJob(object, plan)
        abandonments[object.id] = job.abandonment
        let before: Epoch
        do throws(SQLError) { before = try await conductor.attach(job) } catch {
            await takeBack(object)
            throw error
        }
        // Taking over what is there may take long, and so may a broker that is away: other definitions go on meanwhile.
        definitions.unlock()
        isLocked = false
        try await takeOver(object, plan, job, after: before, session, &notices)
    }

    /// Returns once a new view has what was there when it was attached; without the lock of definitions.
    /// - Throws: what keeps it from that; the view is gone then, or begins anew at the next start if the store could not be told any more.
    private func takeOver(
        _ object: CatalogObject, _ plan: StreamPlan, _ job: JobPlan, after before: Epoch, _ session: SessionContext, _ notices: inout [SQLError]
    ) async throws(SQLError) {
        let id = object.id
        let conductor = conductor
        let cancellation = session.cancellation
        // The epoch that the job is in may never end without this.
        cancellation.onCancel { _ in
            job.abandonment.abandon()
            conductor.wake()
        }
        let ends = await sourceEnds(of: plan, cancellation, &notices)
        if plan.inputs.contains(where: { $0.kind == .source && ends[$0.id] == nil }), cancellation.settle() == nil {
            // Nobody knows for how long the broker is away.
            restoration.recovering[id] = Recovery()
            Task { await recover(job, after: before, isResumed: false) }
            return
        }
        // Readable from the epoch on that has all that was there at CREATE: readers never go back behind a SELECT on the source.
        var failure: SQLError?
        do throws(SQLError) {
            let record = try await conductor.wait { record in
                if cancellation.reason != nil { return true }
                guard record.epoch > before else { return false }
                if record.jobFailures[id] != nil || ends.keys.contains(where: { record.sourceFailures[$0] != nil }) { return true }
                return !record.catchingUp.contains(id) && record.hasReached(ends)
            }
            failure = record.jobFailures[id] ?? ends.keys.lazy.compactMap { record.sourceFailures[$0] }.first
        } catch { failure = error }
        let cancelled = cancellation.settle()
        // An engine that stops abandons all jobs; the epoch that runs then leaves their rows out.
        if failure == nil, cancelled == nil, job.abandonment.isAbandoned, abandonments[id] === job.abandonment { failure = .shuttingDown }
        if cancelled != nil || failure != nil, creating.contains(id), catalog.object(id)?.name == object.name {
            await abandon(object)
            throw failure ?? (cancelled ?? .userRequest).error
        }
        creating.remove(id)
        await noteRunning(id)
        if catalog.object(id) == nil { throw SQLError(.queryCanceled, "materialized view \"\(object.name)\" was dropped while it was being created") }
    }

    /// The stream plan of a materialized view.
    static func plan(
        _ view: BoundView, emitsOnClose: Bool, at span: SourceSpan, _ properties: @escaping StreamPlanner.RelationProperties
    ) throws(SQLError) -> StreamPlan {
        do throws(SQLError) {
            return try StreamPlanner.planView(Optimizer.optimize(view.query), emitsOnClose: emitsOnClose, relationProperties: properties)
        } catch { throw error.located(at: span) }
    }

    /// Takes a view whose creation was cancelled out again, with what was built on it meanwhile.
    private func abandon(_ object: CatalogObject) async {
        // At once: the epoch that the job is in may never end without it.
        abandonments[object.id]?.abandon()
        // After a stop the store has it as a view in creation, which begins anew at the next start.
        guard (try? await definitions.lock(unless: ending)) != nil else { return }
        defer { definitions.unlock() }
        await takeBack(object)
    }

    /// The ends of the sources that a plan reads, as their connectors know them now; a source that cannot say is left out, with a warning.
    private func sourceEnds(
        of plan: StreamPlan, _ cancellation: CancellationHook, _ notices: inout [SQLError]
    ) async -> [ObjectID: [SourceSplit: SplitOffset]] {
        var ends: [ObjectID: [SourceSplit: SplitOffset]] = [:]
        for case .source(let relation, _) in plan.nodes.map(\.operation) {
            guard let connector = sources.definition(relation.id)?.connector else { continue }
            do throws(SQLError) {
                ends[relation.id] = try await offActor(for: options.answerTimeout, unless: cancellation, what: "its connector") { () throws(SQLError) in
                    try connector.highWatermarks(connector.currentSplits())
                }
            } catch {
                if cancellation.reason != nil { return ends }
                notices.append(
                    SQLError(
                        SQLState("01000"), "source \"\(relation.name)\" does not answer: \(error.message)",
                        hint: "The view takes over its records when it does, and can be read then; SHOW JOBS tells."))
            }
        }
        return ends
    }

    /// DML in, rows kept by what tells them apart.
    private static func tablePlan(_ table: CatalogObject) -> StreamPlan {
        let schema = table.schema
        let key = table.rowKey
        let reference = RelationReference(id: table.id, name: table.name, kind: .table)
        let marks = table.watermark.map { [$0.column] } ?? []
        var plan = StreamPlan()
        let input = plan.add(
            StreamNode(
                .source(reference, columns: Array(schema.indices)), inputs: [], schema: schema,
                properties: StreamProperties(appendOnly: false, distribution: .any, watermarks: marks)))
        let placed = StreamProperties(uniqueKey: key, appendOnly: false, distribution: .hash(key), watermarks: marks)
        let exchange = plan.add(StreamNode(.exchange(.hash(key)), inputs: [input], schema: schema, properties: placed))
        _ = plan.add(StreamNode(.materialize(key: key), inputs: [exchange], schema: schema, properties: placed))
        return plan
    }

    /// What a job may rely on in a relation's deltas.
    var relationProperties: StreamPlanner.RelationProperties {
        { [plans, catalog] id in
            if let plan = plans[id] { return plan[plan.root].properties }
            let source = catalog.object(id).flatMap { $0.kind == .source ? $0 : nil }
            return StreamProperties(appendOnly: true, distribution: .any, watermarks: source?.watermark.map { [$0.column] } ?? [])
        }
    }
}

extension CatalogObject {
    var connectorName: String? { options.first { $0.name == "connector" }?.value }
}
