import MillBase
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillDataflow
import MillPlan
import MillStore

/// Rows of the relations that the engine makes when they are read.
extension Engine {
    func systemRows(_ relation: RelationReference, _ session: SessionContext) async throws(SQLError) -> [DeltaBatch] {
        guard let object = reader.object(relation.id) else { throw SQLError(.undefinedTable, "relation \"\(relation.name)\" does not exist") }
        if relation.id.number & EngineCatalog.rejectsBit != 0 {
            return DeltaBatch.batches(rejectRows(ObjectID(relation.id.number & ~EngineCatalog.rejectsBit)), object.schema)
        }
        if relation.id.number & EngineCatalog.errorsBit != 0 {
            try await untilRestored(session.cancellation)
            let job = ObjectID(relation.id.number & ~EngineCatalog.errorsBit)
            if let sink = sinks[job] { return DeltaBatch.batches(try await refusedRows(sink), object.schema) }
            return DeltaBatch.batches(catalog.object(job)?.kind == .sink ? [] : try await errorRows(job), object.schema)
        }
        if relation.id.number & EngineCatalog.lateBit != 0 {
            try await untilRestored(session.cancellation)
            return DeltaBatch.batches(try await lateRows(ObjectID(relation.id.number & ~EngineCatalog.lateBit)), object.schema)
        }
        guard let system = SystemRelations.relation(relation.id) else { throw SQLError(.undefinedTable, "relation \"\(relation.name)\" does not exist") }
        return DeltaBatch.batches(system.rows(session.systemContext(catalog)), object.schema)
    }

    private func rejectRows(_ source: ObjectID) -> [[Scalar]] {
        let replayed = replayLogs[source]?.entries ?? []
        return rejects.entries(of: source).map { entry in
            var (split, position) = (entry.split, entry.reject.position)
            // A value of a replayed record is where the record was at first.
            if split == ReplayingConnector.split, entry.reject.column != nil, replayed.indices.contains(Int(position)) {
                (split, position) = (replayed[Int(position)].split, replayed[Int(position)].position)
            }
            return [
                .string(split.topic), .int(Int64(split.partition)), .int(position),
                entry.reject.column.map { .string($0) } ?? .null, .bytes(entry.reject.raw), .string(entry.reject.reason), .int(entry.rejectedAtMicros),
            ]
        }
    }

    /// What a sink's target would not take.
    private func refusedRows(_ sink: Sink) async throws(SQLError) -> [[Scalar]] {
        let refused = sink.refused
        let (entries, dropped) = try await offActor { () throws(SQLError) in try refused.entries() }
        var rows = entries.map { entry -> [Scalar] in
            [
                .int(Int64(clamping: entry.epoch.number)), entry.column.map { .string($0) } ?? .null, .string(entry.row), .string(entry.reason),
                .int(entry.refusedAtMicros),
            ]
        }
        if dropped > 0 { rows.append([.null, .null, .null, .string("\(dropped) earlier rows that are not kept"), .null]) }
        return rows
    }

    /// The errors of all workers' shards of a job, summed.
    private func errorRows(_ job: ObjectID) async throws(SQLError) -> [[Scalar]] {
        let parts = try await conductor.onWorkers { circuit in
            circuit.errors(of: job).map { ($0.entries, $0.droppedCount) } ?? ([:], 0)
        }.results
        var sums: [OperatorErrors.Entry: Int64] = [:]
        var dropped: Int64 = 0
        for (entries, count) in parts {
            sums.merge(entries, uniquingKeysWith: +)
            dropped += count
        }
        var rows = sums.filter { $0.value != 0 }.map { entry, count -> [Scalar] in
            [.string(entry.operatorName), .string(entry.sqlState.code), .string(entry.message), .string(entry.row), .int(count)]
        }
        if dropped != 0 {
            rows.append([.null, .string(SQLState.configurationLimitExceeded.code), .string("further errors that were not kept"), .null, .int(dropped)])
        }
        return rows
    }

    /// The rows that came too late for a job, of all its workers, and how many are no longer kept.
    private func lateRows(_ job: ObjectID) async throws(SQLError) -> [[Scalar]] {
        let parts = try await conductor.onWorkers { $0.lateRows(of: job)?.kept ?? LateRows.Kept() }.results
        let kept = parts.reduce(into: LateRows.Kept()) { $0.merge($1) }
        var rows = kept.entries.sorted { $0.lateAtMicros < $1.lateAtMicros }.map { entry -> [Scalar] in
            [.string(entry.operatorName), .string(entry.row), .int(entry.weight), .int(entry.watermarkMicros), .int(entry.lateAtMicros)]
        }
        if kept.droppedCount != 0 { rows.append([.string("earlier rows that are not kept"), .null, .int(kept.droppedCount), .null, .null]) }
        return rows
    }
}
