package import MillBase
import MillCatalog
import MillConnectorKit
import MillDataflow
import MillIO
import MillMeta
import MillPlan
package import MillSQL
import MillStore

/// PAUSE and RESUME of sources and materialized views (`docs/decisions/016-what-can-be-paused.md`).
///
/// A paused source is read no further by anybody, so all that comes from it stays true at one moment. A paused view leaves the shared
/// readers of its sources and keeps its place; resumed it catches up with readers of its own and joins them again. Both are in `meta.db`
/// before the statement is answered. Where exactly a view stood is in the checkpoints (`JobPlacement`); should the process end before one
/// has it, the view rests where the last published epoch left its sources, which is behind nothing that anybody has read.
extension Engine {
    /// - Throws: 42P01, 42809; 55000 for what cannot be paused alone, with what can; 57P01 when the engine stops, perhaps after the pause was stored.
    package func pause(_ statement: JobControl, session: SessionContext, _ notices: inout [SQLError]) async throws(SQLError) {
        try await untilThere(statement, session)
        try await definitions.lock(unless: session.cancellation)
        defer { definitions.unlock() }
        let object = try target(of: statement)
        if object.kind == .sink { return try await pauseSink(object, &notices) }
        guard paused[object.id] == nil else {
            notices.append(SQLError(.successfulCompletion, "\(object.kind.rawValue) \"\(object.name)\" is already paused, skipping"))
            return
        }
        if object.kind == .materializedView { try requirePausable(object, statement) } else { try requireReady(readers(of: object.id)) }
        // Epochs go on counting through restarts, so no two pauses have one number.
        let number = conductor.published.epoch.number
        let pause = StoredPause(number: number, sinceMicros: environment.clock.nowMicros)
        try await store { (meta) throws(SQLError) in try meta.setPause(pause, of: object.id) }
        paused[object.id] = pause
        let id = object.id
        if object.kind == .source {
            let parts = try await conductor.onWorkers { $0.pause(source: id) }.results
            sources.pause(id, at: parts.reduce(into: [:]) { $0.merge($1) { max($0, $1) } })
        } else {
            _ = try await conductor.onWorkers { $0.pause(job: id, number: number) }
        }
        conductor.wake()
    }

    /// - Throws: 42P01, 42809; 57P01 when the engine stops, perhaps after the end of the pause was stored.
    package func resume(_ statement: JobControl, session: SessionContext, _ notices: inout [SQLError]) async throws(SQLError) {
        try await untilThere(statement, session)
        try await definitions.lock(unless: session.cancellation)
        defer { definitions.unlock() }
        let object = try target(of: statement)
        if object.kind == .sink { return try await resumeSink(object, &notices) }
        guard paused[object.id] != nil else {
            notices.append(SQLError(.successfulCompletion, "\(object.kind.rawValue) \"\(object.name)\" is not paused, skipping"))
            return
        }
        let id = object.id
        // Its end is that of the pause: it would be lost where it is not yet.
        if object.kind == .materializedView { try requireReady([id]) }
        try await store { (meta) throws(SQLError) in try meta.setPause(nil, of: id) }
        paused[id] = nil
        sources.pause(id, at: nil)
        _ = try await conductor.onWorkers { circuit in
            if object.kind == .source { circuit.resume(source: id) } else { circuit.resume(job: id) }
        }
        conductor.wake()
    }

    /// After a start a view is paused, or goes on, once it is where it was.
    private func untilThere(_ statement: JobControl, _ session: SessionContext) async throws(SQLError) {
        let id = try target(of: statement).id
        try await untilRecovered([id] + readers(of: id), session.cancellation)
    }

    private func target(of statement: JobControl) throws(SQLError) -> CatalogObject {
        guard let kind = statement.kind.catalogKind, [.source, .materializedView, .sink].contains(kind) else {
            throw SQLError(
                .featureNotSupported, "\(statement.verb.rawValue) \(statement.kind.rawValue) is not supported",
                hint: "Sources, materialized views and sinks can be paused.", at: statement.name.span.source)
        }
        do throws(SQLError) { return try catalog.require(kind, schema: statement.name.schemaName, name: statement.name.last.name) } catch {
            throw error.located(at: statement.name.span.source)
        }
    }

    /// A view that stands still alone must not be mixed with what goes on, neither in its own rows nor in others'.
    private func requirePausable(_ view: CatalogObject, _ statement: JobControl) throws(SQLError) {
        try requireReady([view.id])
        let place = statement.name.span.source
        let inputs = plans[view.id]?.inputs ?? []
        if let reader = readers(of: view.id).first(where: { sinks[$0] == nil }).flatMap(catalog.object) {
            throw SQLError(
                .objectNotInPrerequisiteState, "materialized view \"\(view.name)\" cannot be paused alone: materialized view \"\(reader.name)\" reads it",
                hint: "PAUSE SOURCE holds all that comes from a source.", at: place)
        }
        if let input = inputs.first(where: { $0.kind != .source }) {
            throw SQLError(
                .objectNotInPrerequisiteState,
                "materialized view \"\(view.name)\" cannot be paused: it reads \(input.kind.rawValue) \"\(input.name)\", whose changes cannot wait",
                hint: "A view that reads only sources can be paused; PAUSE SOURCE holds all that comes from a source.", at: place)
        }
        guard !inputs.isEmpty, Set(inputs.map(\.id)).count == inputs.count else {
            let reason = inputs.isEmpty ? "it reads no source" : "it reads a source twice"
            throw SQLError(
                .objectNotInPrerequisiteState, "materialized view \"\(view.name)\" cannot be paused: \(reason)",
                hint: "PAUSE SOURCE holds all that comes from a source.", at: place)
        }
    }

    /// Materialized views whose plans read an object.
    func readers(of id: ObjectID) -> [ObjectID] {
        plans.filter { $0.key != id && $0.value.inputs.contains { $0.id == id } }.keys.sorted()
    }

    /// - Throws: 55000 for the first of these that is paused, or was and has not caught up; 57P01 after a stop.
    func requireRunning(_ ids: [ObjectID]) async throws(SQLError) {
        // As it is now: a view that was resumed a moment ago may be behind, with no epoch to say so.
        let catchingUp = try await conductor.onWorkers { $0.report.catchingUp }.results.reduce(into: Set()) { $0.formUnion($1) }
        for id in ids {
            guard let object = catalog.object(id) else { continue }
            let name = "\(object.kind.rawValue) \"\(object.name)\""
            if paused[id] != nil {
                throw SQLError(.objectNotInPrerequisiteState, "\(name) is paused", hint: "RESUME \(object.kind.rawValue.uppercased()) \(object.name)")
            }
            if catchingUp.contains(id), !creating.contains(id) {
                throw SQLError(.objectNotInPrerequisiteState, "\(name) was paused and has not caught up yet", hint: "FLUSH returns when it has.")
            }
        }
    }

    // MARK: After a restart

    func lastPublishedOffsets(of source: ObjectID) -> [SourceSplit: SplitOffset] { keeper?.lastPublished.offsets[source] ?? [:] }

    /// Where a job is to be that was paused, or had not caught up after it; nil for one that stands where its sources do.
    func placement(of id: ObjectID) throws(SQLError) -> JobPlacement? {
        let stored = try keeper?.recovered?.note(JobPlacement.noteKind, of: id).map { (note) throws(SQLError) in try JobPlacement(note) }
        guard let number = paused[id]?.number else { return stored.map { JobPlacement(offsets: $0.offsets) } }
        // A checkpoint from before this pause knows only where the view was then.
        let isKnown = stored?.pause == number
        var ends: [ObjectID: [SourceSplit: SplitOffset]] = [:]
        for input in plans[id]?.inputs ?? [] { ends[input.id] = isKnown ? stored?.offsets[input.id] : lastPublishedOffsets(of: input.id) }
        return JobPlacement(offsets: stored?.offsets ?? [:], ends: ends, pause: number)
    }
}
