package import MillBase
import MillBinder
import MillCatalog
import MillConnectorKit
import MillDataflow
import MillMeta
import MillOptimizer
import MillPlan
package import MillSQL

/// REBUILD MATERIALIZED VIEW.
extension Engine {
    /// Plans a view anew from its definition, as the catalog and this program are now, and starts it without state, with all jobs that
    /// read it. They can be read again when they have caught up.
    /// - Throws: 42P01, 42809; 0A000 when its columns would not be what they were, which what reads it relies on.
    package func rebuild(_ statement: JobControl, session: SessionContext) async throws(SQLError) {
        try await definitions.lock(unless: session.cancellation)
        defer { definitions.unlock() }
        guard statement.kind == .materializedView else {
            throw SQLError(.featureNotSupported, "REBUILD \(statement.kind.rawValue) is not supported", at: statement.name.span.source)
        }
        let object: CatalogObject
        do throws(SQLError) {
            object = try catalog.require(.materializedView, schema: statement.name.schemaName, name: statement.name.last.name)
        } catch { throw error.located(at: statement.name.span.source) }
        try await requireRunning([object.id])
        let plan = try planAnew(object, session)
        let jobs = dependentJobs(of: object.id)
        try requireReadable(by: jobs, at: statement.name.span.source)
        let checksum = try await storing { (meta) throws(SQLError) in try meta.replacePlan(of: object.id, by: plan) }
        plans[object.id] = plan
        planChecksums[object.id] = checksum
        for id in jobs { abandonments.removeValue(forKey: id)?.abandon() }
        // Dependents leave the circuit first.
        await conductor.detach(jobs.reversed())
        for id in jobs {
            restoration.forget(id)
            if sinks[id] == nil {
                restoration.recovering[id] = Recovery()
                creating.insert(id)
            }
            restoration.jobs.insert(id)
        }
        await restoreRound()
    }

    /// A source that has stopped for good begins anew only when nothing else reads it: else these jobs would lose what they have and get nothing.
    private func requireReadable(by jobs: [ObjectID], at span: SourceSpan) throws(SQLError) {
        let failures = conductor.published.sourceFailures.filter { !$0.value.mayPass }
        func reads(_ job: ObjectID, _ source: ObjectID) -> Bool { plans[job]?.inputs.contains { $0.id == source } ?? false }
        for (source, failure) in failures where jobs.contains(where: { reads($0, source) }) {
            let others = plans.keys.filter { !jobs.contains($0) && reads($0, source) }.compactMap { catalog.object($0)?.name }.sorted()
            guard !others.isEmpty else { continue }
            throw SQLError(
                .objectNotInPrerequisiteState, "source \"\(catalog.object(source)?.name ?? "")\" has stopped: \(failure.message)",
                detail: "Others read it, too: \(others.joined(separator: ", ")).",
                hint: "It is read from its beginning again once it has a single reader: drop the others first, or make another source.", at: span)
        }
    }

    private func planAnew(_ object: CatalogObject, _ session: SessionContext) throws(SQLError) -> StreamPlan {
        guard case .createView(let definition) = try Parser.parseStatement(object.definition) else {
            throw SQLError(.dataCorrupted, "the definition of materialized view \"\(object.name)\" is none of a view")
        }
        let binder = Binder(catalog: reader, context: session.binderContext(.view, functions: catalogFunctions(session)))
        let bound = try binder.bind(createView: definition)
        guard bound.columns == object.columns, Set(binder.dependencies).isSubset(of: object.dependencies) else {
            throw SQLError(
                .featureNotSupported, "materialized view \"\(object.name)\" would have other columns or inputs than it had",
                hint: "Drop it and create it again.")
        }
        return try Self.plan(bound, emitsOnClose: definition.emitOnWindowClose, at: definition.name.span.source, relationProperties)
    }

    /// A job and all that read it, itself or through others, each after what it reads.
    private func dependentJobs(of id: ObjectID) -> [ObjectID] {
        var found: Set<ObjectID> = [id]
        // Readers have higher identifiers than what they read.
        for (reader, plan) in plans.sorted(by: { $0.key < $1.key }) where plan.inputs.contains(where: { found.contains($0.id) }) {
            found.insert(reader)
        }
        return found.sorted()
    }
}
