package import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillConnectors
import MillDataflow
import MillIO
import MillMeta
import MillOptimizer
import MillPlan
package import MillSQL
import MillStore

/// CREATE SINK.
///
/// Order of checks: syntax, what is not there, names, options, the relation, then the target, which is asked off the engine while other
/// definitions go on; only then anything is stored.
extension Engine {
    /// A sink that may be created.
    private struct SinkDraft {
        var object: CatalogObject
        var plan: StreamPlan
        var options: SinkOptions
        var relation: SinkConnectors.Relation

        var inputs: [ObjectID] { object.dependencies + plan.inputs.map(\.id) }
    }

    package func create(_ statement: CreateSink, definition: String, session: SessionContext, _ notices: inout [SQLError])
        async throws(SQLError)
    {
        try refuseUnsupported(statement)
        guard keeper != nil else {
            throw SQLError(.objectNotInPrerequisiteState, "a sink needs a data directory", hint: "Start the server with --data-dir.")
        }
        try await following(session) { (session) throws(SQLError) in try await define(statement, definition: definition, session: session, &notices) }
    }

    private func define(_ statement: CreateSink, definition: String, session: SessionContext, _ notices: inout [SQLError])
        async throws(SQLError)
    {
        try await definitions.lock(unless: session.cancellation)
        var isLocked = true
        defer { if isLocked { definitions.unlock() } }
        if existing(statement.name, ifNotExists: statement.ifNotExists, &notices) { return }
        var draft = try draft(statement, definition: definition, session)
        while !recovering(draft.inputs).isEmpty {
            definitions.unlock()
            isLocked = false
            try await untilRecovered(draft.inputs, session.cancellation)
            try await definitions.lock(unless: session.cancellation)
            isLocked = true
            if existing(statement.name, ifNotExists: statement.ifNotExists, &notices) { return }
            draft = try self.draft(statement, definition: definition, session)
        }
        try requireReady(draft.inputs)
        let connector = try connector(of: draft.options, draft.relation)
        // A target that is away takes its time to be given up: other definitions go on meanwhile.
        definitions.unlock()
        isLocked = false
        let target = try await offActor(
            for: options.answerTimeout, unless: session.cancellation, what: "the target of sink \"\(draft.object.name)\""
        ) {
            () throws(SQLError) in try connector.prepare()
        }
        try await definitions.lock(unless: session.cancellation)
        isLocked = true
        if existing(statement.name, ifNotExists: statement.ifNotExists, &notices) { return }
        let columns = draft.object.columns
        draft = try self.draft(statement, definition: definition, session)
        guard draft.object.columns == columns else {
            throw SQLError(
                .objectNotInPrerequisiteState, "what sink \"\(draft.object.name)\" reads was changed meanwhile", hint: "Try again.")
        }
        try requireReady(draft.inputs)
        try await requireRunning(draft.inputs)
        try await add(draft, target, session)
        notices += target.notices.map { SQLError(.successfulCompletion, $0) }
    }

    private func refuseUnsupported(_ statement: CreateSink) throws(SQLError) {
        if statement.orReplace {
            throw SQLError(
                .featureNotSupported, "CREATE OR REPLACE SINK is not supported", hint: "Drop the sink first.",
                at: statement.name.span.source)
        }
        if let into = statement.into {
            throw SQLError(
                .featureNotSupported, "CREATE SINK INTO a table is not supported", hint: "Create a materialized view.", at: into.span.source
            )
        }
        if let key = statement.format?.keyEncode {
            throw SQLError(.featureNotSupported, "KEY ENCODE of a sink is not supported", hint: "Leave it out.", at: key.name.span.source)
        }
    }

    /// Stores and starts it; under the lock of definitions.
    private func add(_ draft: SinkDraft, _ target: SinkTarget, _ session: SessionContext) async throws(SQLError) {
        var object = draft.object
        let random = environment.random
        let name = Self.hexadecimal(random.next()) + Self.hexadecimal(random.next())
        let wanted = session.settings.duration("execution.checkpointing.interval")
        let interval = draft.options.commitEvery(checkpoints: keeper?.interval ?? .zero, sessionMilliseconds: wanted.map { Int($0 / .milliseconds(1)) })
        object.options.append(CatalogOption(SinkOptions.sinkName, name))
        if let incarnation = target.incarnation { object.options.append(CatalogOption(SinkOptions.incarnation, incarnation)) }
        object.options.append(CatalogOption(SinkOptions.commitInterval, "\(Int(interval / .milliseconds(1)))"))
        var changed = catalog
        let created = try changed.create(object)
        let plan = draft.plan
        let sink = try sink(created, plan, note: nil)
        let checksum = try await storing { (meta) throws(SQLError) in try meta.create(created, job: (plan, .creating)) }
        catalog = changed
        planChecksums[created.id] = checksum
        plans[created.id] = plan
        sinks[created.id] = sink
        creatingSinks.insert(created.id)
        outboxes.put(sink.outbox)
        do throws(SQLError) {
            var job = newJob(created, plan)
            _ = prepare(&job, isResumed: false)
            abandonments[created.id] = job.abandonment
            try await conductor.attach(job)
        } catch {
            await takeBack(created)
            throw error
        }
        sink.delivery.start()
    }

    private static func hexadecimal(_ number: UInt64) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }

    // MARK: Drafts

    /// Binds and plans it as the catalog is now.
    private func draft(_ statement: CreateSink, definition: String, _ session: SessionContext) throws(SQLError) -> SinkDraft {
        let span = statement.name.span.source
        let written = Self.options(of: statement)
        let options: SinkOptions
        do throws(SQLError) { options = try SinkOptions(written) } catch { throw error.located(at: span) }
        var relationSpan = span
        if case .relation(let name) = statement.input { relationSpan = name.span.source }
        let binder = Binder(catalog: reader, context: session.binderContext(.view, functions: catalogFunctions(session)))
        let bound = try binder.bind(createView: statement.view)
        let place = relationSpan
        let (plan, known) = try plan(bound, options, emitsOnClose: statement.emitOnWindowClose, at: place)
        let key = try key(options, bound.columns, known, at: span)
        if !options.takesRows { try requireSkippable(plan, at: place) }
        let relation = SinkConnectors.Relation(
            name: Self.relationName(statement), fields: bound.columns.map { Field($0.name, $0.type) }, key: key)
        let object = CatalogObject(
            id: ObjectID(0), schemaName: bound.schemaName, name: bound.name, kind: .sink, columns: bound.columns, primaryKey: key ?? [],
            dependencies: binder.dependencies, definition: definition, options: written)
        return SinkDraft(object: object, plan: plan, options: options, relation: relation)
    }

    /// Those of WITH, then `format` and `encode` with the encoding's; connectors that have none of these refuse them.
    private static func options(of statement: CreateSink) -> [CatalogOption] {
        let options = statement.options.map { CatalogOption($0.key, Binder.text(of: $0)) }
        guard let format = statement.format else { return options }
        let words = [CatalogOption("format", format.format.name.lowercased()), CatalogOption("encode", format.encode.name.name.lowercased())]
        let encoding = format.encode.options.map { CatalogOption($0.key, Binder.text(of: $0)) }
        // RisingWave has some in either place.
        return options + words + encoding.filter { !options.contains($0) }
    }

    private static func relationName(_ statement: CreateSink) -> String {
        if case .relation(let name) = statement.input { name.last.name } else { statement.name.last.name }
    }

    /// - Returns: the plan, and the columns that tell its rows apart, where that is known.
    private func plan(
        _ bound: BoundView, _ options: SinkOptions, emitsOnClose: Bool, at span: SourceSpan
    ) throws(SQLError) -> (StreamPlan, key: [Int]?) {
        let query = Optimizer.optimize(bound.query)
        do throws(SQLError) {
            let changes = try StreamPlanner.planChangelog(query, relationProperties: relationProperties)
            let root = StreamOperation.sink(dropsRetractions: options.forcesAppendOnly)
            let properties = changes[changes.root].properties
            // Rows that only come need not meet others.
            if properties.appendOnly, !emitsOnClose { return (changes.with(root: root), properties.uniqueKey) }
            let placed = try StreamPlanner.planView(query, emitsOnClose: emitsOnClose, relationProperties: relationProperties)
            let found = placed[placed.root].properties
            guard options.isUpsert || options.forcesAppendOnly || found.appendOnly else {
                throw SQLError(
                    .featureNotSupported,
                    "rows of \"\(bound.name)\" are changed and deleted, and a sink of type append-only only adds rows",
                    hint: (options.takesUpserts ? "Say type = 'upsert', or force" : "Say force")
                        + "_append_only = 'true': what is deleted then stays, and an update is one more row.")
            }
            return (placed.with(root: root), found.uniqueKey)
        } catch { throw error.located(at: span) }
    }

    private func key(_ options: SinkOptions, _ columns: [CatalogColumn], _ known: [Int]?, at span: SourceSpan) throws(SQLError) -> [Int]? {
        guard let names = options.primaryKey else {
            guard options.isUpsert else { return nil }
            if let known, !known.isEmpty { return known }
            throw SQLError(
                .invalidParameterValue, "nothing tells the rows of a sink of type upsert apart",
                hint: "Say which columns do: primary_key = 'column, ...'.",
                at: span)
        }
        var key: [Int] = []
        for name in names {
            guard let index = columns.firstIndex(where: { $0.name == name }) else {
                throw SQLError(
                    .undefinedColumn, "column \"\(name)\" named in primary_key does not exist",
                    hint: "Columns are: \(columns.map(\.name).joined(separator: ", ")).", at: span)
            }
            guard !key.contains(index) else {
                throw SQLError(.duplicateColumn, "column \"\(name)\" appears twice in primary_key", at: span)
            }
            key.append(index)
        }
        return options.isUpsert ? key : nil
    }

    /// Changes alone are enough for what keeps no rows.
    private func requireSkippable(_ plan: StreamPlan, at span: SourceSpan) throws(SQLError) {
        for node in plan.nodes {
            switch node.operation {
            case .relation, .filter, .project, .exchange, .sink: break
            default:
                throw SQLError(
                    .featureNotSupported, "snapshot = 'false' is for a sink from a materialized view or table",
                    hint: "Create a materialized view, and the sink from it.", at: span)
            }
        }
    }

    private func connector(of options: SinkOptions, _ relation: SinkConnectors.Relation) throws(SQLError) -> any SinkConnector {
        do throws(SQLError) { return try assembly.sink(options: options.rest, of: relation) } catch { throw options.explained(error) }
    }

    // MARK: As it runs

    /// A sink of the catalog with what a checkpoint has of its outbox; it is not started.
    func sink(_ object: CatalogObject, _ plan: StreamPlan, note: StateNote?) throws(SQLError) -> Sink {
        let options = try SinkOptions(object.options)
        let fields = object.schema
        let relation = SinkConnectors.Relation(name: object.name, fields: fields, key: options.isUpsert ? object.primaryKey : nil)
        let directory = "\(keeper?.outboxDirectory ?? "")/\(object.id)"
        let outbox = try Outbox(
            object.id, directory: directory, files: environment.files, limits: Outbox.Limits(byteCountMax: self.options.outboxBytesMax),
            note: note)
        let refused = RefusedRowLog(directory: directory, files: environment.files)
        let milliseconds = object.option(named: SinkOptions.commitInterval).flatMap { Int($0) } ?? 0
        let task = SinkTask(
            name: SinkName(object.option(named: SinkOptions.sinkName) ?? ""), incarnation: object.option(named: SinkOptions.incarnation),
            fields: fields,
            commitEvery: .milliseconds(milliseconds), commitRows: options.commitRows, commitBytes: options.commitBytes)
        let assembly = assembly
        let delivery = SinkDelivery(outbox, refused, task, environment: environment) { () throws(SQLError) in
            try assembly.sink(options: options.rest, of: relation)
        }
        return Sink(
            id: object.id, isUpsert: options.isUpsert, takesRows: options.takesRows, outbox: outbox, refused: refused, delivery: delivery)
    }
}
