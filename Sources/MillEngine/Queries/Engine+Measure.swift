package import MillBase
package import MillColumnar
import MillConnectorKit
import MillDataflow
import MillOptimizer
package import MillPlan
import MillSQL

/// Runs a query as a job over what its sources hold, keeping nothing: for benchmarks.
extension Engine {
    package struct Measured: Sendable, Hashable {
        package var rowCount: Int64
        package var checksum: UInt64
        package var stateByteCount: Int
    }

    /// - Throws: a source's failure, 0A000 for what a job cannot be, 57P01 after a stop.
    package func measure(_ query: BoundQuery) async throws(SQLError) -> Measured {
        let plan = try StreamPlanner.planChangelog(Optimizer.optimize(query), relationProperties: relationProperties).with(root: .blackhole)
        let id = ObjectID(1)
        // A bounded source says when it is read; any other is read up to its end now.
        var ends: [ObjectID: [SourceSplit: SplitOffset]] = [:]
        for case .source(let relation, _) in plan.nodes.map(\.operation) {
            guard let definition = sources.definition(relation.id) else { continue }
            ends[relation.id] = try await offActor { () throws(SQLError) in
                try definition.connector.highWatermarks(definition.connector.currentSplits())
            }
        }
        let wanted = ends
        let before = conductor.published.epoch
        try await conductor.attach(JobPlan(
                id: id, name: "measured query", plan: plan, storage: keeper.map { JobStorage(store: $0.store, recovered: nil) }))
        let record = try await conductor.wait { record in
            guard record.epoch > before else { return false }
            return !record.sourceFailures.isEmpty || record.hasReached(wanted)
        }
        let (_, parts) = try await conductor.onWorkers { circuit -> Measured in
            let statistics = circuit.jobStatistics[id]
            let root = circuit.blackhole(id)
            return Measured(rowCount: root?.rowCount ?? 0, checksum: root?.checksum ?? 0, stateByteCount: statistics?.stateByteCount ?? 0)
        }
        await conductor.detach([id])
        if let failure = record.sourceFailures.values.first { throw failure }
        return parts.reduce(Measured(rowCount: 0, checksum: 0, stateByteCount: 0)) { sum, part in
            Measured(
                rowCount: sum.rowCount + part.rowCount, checksum: sum.checksum &+ part.checksum, stateByteCount: sum.stateByteCount + part.stateByteCount)
        }
    }
}

extension Session {
    /// Binds a SELECT and measures it as a job.
    package func measure(_ text: String) async throws(SQLError) -> Engine.Measured {
        let statements = try Session.parse(text)
        guard case .query(let query)? = statements.first?.statement else { throw SQLError(.syntaxError, "only a SELECT can be measured") }
        return try await engine.measure(try await bind(query, []))
    }

    /// All rows of a SELECT or SHOW.
    package func rows(_ text: String) async throws(SQLError) -> [DeltaBatch] {
        let statement = try Session.parse(text).first?.statement
        if case .show? = statement, let statement, case .table(let batches, _) = try await show(statement) { return batches }
        guard case .query(let query)? = statement else { throw SQLError(.syntaxError, "only SELECT and SHOW have rows") }
        return try await engine.queryRun(try await bind(query, []), session: context).collect(context.cancellation)
    }

    /// Runs statements to their end; rows are dropped.
    package func run(_ text: String) async throws(SQLError) {
        for statement in try parsed(text) {
            let outcome = try await execute(try await prepare(statement, parameterTypes: []), parameters: [])
            if case .rows(let channel, _) = outcome { try await channel.drain() }
            try await settle()
        }
    }
}
