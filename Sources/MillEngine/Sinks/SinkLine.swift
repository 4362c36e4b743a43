import MillBase
import MillCatalog
import MillColumnar
import MillIO
import MillMeta
import MillStore

/// One line of SHOW SINKS.
struct SinkLine: Sendable {
    static let schema: Schema = [
        Field("Name", .varchar), Field("Connector", .varchar), Field("Type", .varchar), Field("Relation", .varchar),
        Field("State", .varchar),
        Field("Rows", .int64), Field("Commits", .int64), Field("Epoch", .int64), Field("Lag", .int64), Field("Lag Bytes", .int64),
        Field("Refused", .int64),
        Field("Message", .varchar), Field("Since", .timestamptz), Field("Next Try", .timestamptz),
    ]

    var name: String
    var connector: String?
    var type: String
    /// What it reads; nil for a query.
    var relation: String?
    var condition: Condition
    var totals = OutboxTotals()
    var commitCount: Int64 = 0
    /// The last that the target has, or up to which nothing is left to send.
    var epoch = Epoch.zero
    /// Milliseconds since the oldest change that the target does not have; nil while that is not known.
    var lagMilliseconds: Int64?
    var lagBytes = 0
    /// Rows that the target would not take.
    var refusedCount: Int64 = 0
    var retryCount: Int64 = 0
    var errorCount: Int64 = 0

    /// Rows that the target has taken.
    var takenCount: Int64 { max(totals.rowsAdded - refusedCount, 0) }

    var row: [Scalar] {
        [
            .string(name), connector.map { .string($0) } ?? .null, .string(type), relation.map { .string($0) } ?? .null,
            .string(condition.state),
            .int(takenCount), .int(commitCount), .int(Int64(clamping: epoch.number)), lagMilliseconds.map { .int($0) } ?? .null,
            .int(Int64(lagBytes)),
            .int(refusedCount), condition.message.map { .string($0) } ?? .null, condition.sinceMicros.map { .int($0) } ?? .null,
            condition.nextTryMicros.map { .int($0) } ?? .null,
        ]
    }
}

extension Engine {
    /// The sinks of a schema, oldest first, with what they do now.
    func sinkLines(in schemaName: String) -> [SinkLine] {
        noteTroubles()
        return catalog.objects.filter { $0.kind == .sink && $0.schemaName == schemaName }.map { line($0) }
    }

    func line(_ object: CatalogObject) -> SinkLine {
        let relations = object.dependencies.compactMap { catalog.object($0)?.name }
        var line = SinkLine(
            name: object.name, connector: object.connectorName, type: object.option(named: "type")?.lowercased() ?? "",
            relation: relations.count == 1 ? relations[0] : nil, condition: sinkCondition(object))
        guard let sink = sinks[object.id] else { return line }
        let status = sink.delivery.status
        let progress = sink.outbox.progress
        (line.totals, line.commitCount, line.epoch) = (status.totals, status.commitCount, max(progress.committed, progress.settled))
        (line.retryCount, line.errorCount) = (status.retryCount, status.errorCount)
        line.lagBytes = sink.outbox.waitingBytes
        switch sink.outbox.oldestMicros {
        case nil: line.lagMilliseconds = 0
        case Int64.min?: break
        case let oldest?: line.lagMilliseconds = max(environment.clock.nowMicros - oldest, 0) / 1000
        }
        line.refusedCount = sink.refused.count
        return line
    }

    /// What a sink does: by its target first, then by what it reads.
    private func sinkCondition(_ object: CatalogObject) -> Condition {
        guard let sink = sinks[object.id] else {
            return Condition(restoration.gate.phase == nil ? "failed" : "recovering", message: restoration.reasons[object.id]?.description)
        }
        if let reason = sink.outbox.detachment { return Condition("failed", message: reason.description) }
        let status = sink.delivery.status
        if status.phase == .failed { return Condition("failed", message: status.reason?.description, sinceMicros: status.sinceMicros) }
        if let pause = pausedSinks[object.id] {
            return Condition("paused", message: "sink \"\(object.name)\" is paused", sinceMicros: pause.sinceMicros)
        }
        if status.phase == .retrying {
            var condition = Condition("retrying", message: status.reason?.description, sinceMicros: status.sinceMicros)
            condition.nextTryMicros = status.nextTryMicros
            return condition
        }
        if restoration.reasons[object.id] != nil || troubles[object.id] != nil {
            return Condition("retrying", trouble(of: object.id, reading: inputSources(of: object.id)))
        }
        if creatingSinks.contains(object.id) { return Condition("creating") }
        let refusedCount = sink.refused.count
        let refused = refusedCount > 0 ? "the target has not taken \(refusedCount == 1 ? "a row" : "\(refusedCount) rows"): see \"\(object.name)_errors\"" : nil
        return Condition("running", message: status.maintenance.map { "maintenance: \($0.description)" } ?? refused)
    }
}
