import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillConnectorKit
import MillDataflow
import MillIO
import MillPlan
import MillSQL
import MillStore

/// REPLAY REJECTS: records that were refused become part of their source, corrected or because the definition takes them now.
///
/// A record that decodes is appended to the source's side split, which names the reject that it stands for: one sync makes it a record and
/// takes the reject away, so a crash at any moment leaves it one or the other. One that does not decode stays what it is.
extension Engine {
    /// The rejects that a statement chose, each once.
    struct ReplayChoice: Sendable {
        var entries: [ReplayLog.Entry] = []
        /// Those for which USING gives NULL.
        var uncorrected: [RejectStore.Key] = []
        /// Why an expression of the statement fails for some of them, which then have NULL.
        var failure: SQLError?
    }

    /// What became of them.
    struct Replayed: Sendable {
        var count = 0
        var notices: [SQLError] = []
    }

    /// - Parameters:
    ///   - rows: batches of topic, partition, offset and corrected record of whole records that were refused.
    ///   - failure: of an expression, for some of them.
    /// - Throws: as `requireReplayable`; 54000 beyond the side split's limit, 53100 or 58030 when it cannot be stored.
    func replay(_ statement: ReplayRejects, rows: [DeltaBatch], failure: SQLError?, session: SessionContext) async throws(SQLError) -> Replayed {
        try await definitions.lock(unless: session.cancellation)
        defer { definitions.unlock() }
        let (object, definition, log) = try requireReplayable(statement)
        var choice = choice(of: object.id, rows)
        choice.failure = failure
        try log.requireRoom(for: choice.entries.reduce(0) { $0 + $1.record.count })
        let refused = try refusals(of: choice.entries, definition, object)
        // A record that is refused as a whole stays what it is; a value is NULL, as in any record.
        let kept = Set(refused.filter { $0.column == nil }.map(\.position))
        let accepted = choice.entries.indices.filter { !kept.contains(Int64($0)) }.map { choice.entries[$0] }
        if !accepted.isEmpty {
            try await offActor { () throws(SQLError) in try log.append(accepted) }
            rejects.remove(accepted.map { RejectStore.Key(split: $0.split, position: $0.position) }, of: object.id)
            await handOver([ReplayingConnector.split], of: definition)
            conductor.wake()
        }
        return Replayed(count: accepted.count, notices: ReplayReport(choice, refused, source: object.name).notices)
    }

    /// The source that a statement names, and its side split.
    /// - Throws: 42P01, 42809; 0A000 for a bounded source, 55000 for one that does not run.
    private func requireReplayable(_ statement: ReplayRejects) throws(SQLError) -> (CatalogObject, SourceDefinition, ReplayLog) {
        let object = try source(of: statement)
        let place = statement.source.span.source
        guard let definition = sources.definition(object.id), let connector = definition.connector as? ReplayingConnector else {
            throw SQLError(.objectNotInPrerequisiteState, "source \"\(object.name)\" does not run", hint: "SHOW JOBS tells why.", at: place)
        }
        guard !connector.isBounded else {
            throw SQLError(
                .featureNotSupported, "source \"\(object.name)\" ends with what it reads: nothing can be added to it",
                hint: "Correct the files and create the source again.", at: place)
        }
        return (object, definition, connector.log)
    }

    /// - Throws: 42P01, 42809.
    @discardableResult
    func source(of statement: ReplayRejects) throws(SQLError) -> CatalogObject {
        let (schema, name, place) = (statement.source.schemaName, statement.source.last.name, statement.source.span.source)
        do throws(SQLError) { return try catalog.require(.source, schema: schema, name: name) } catch {
            guard error.sqlState == .wrongObjectType, let other = catalog.object(schema: schema, name: name) else { throw error.located(at: place) }
            let inputs = sourcesFeeding(other.id).compactMap { catalog.object($0)?.name }
            throw SQLError(
                .wrongObjectType, "\(other.kind.rawValue) \"\(name)\" is not a source and has no rejects",
                hint: inputs.isEmpty ? "SHOW SOURCES lists the sources." : "It reads from \(inputs.map { "\"\($0)\"" }.joined(separator: ", ")).", at: place)
        }
    }

    /// The rejects that are still there of those that rows name.
    private func choice(of source: ObjectID, _ rows: [DeltaBatch]) -> ReplayChoice {
        struct Name: Hashable {
            var topic: String
            var partition: Int64
            var offset: Int64
        }
        var splits: [Name: SourceSplit] = [:]
        for entry in rejects.entries(of: source) where entry.reject.column == nil {
            splits[Name(topic: entry.split.topic, partition: Int64(entry.split.partition), offset: entry.reject.position)] = entry.split
        }
        var choice = ReplayChoice()
        for batch in rows {
            for row in 0..<batch.count {
                guard case .string(let topic) = batch.columns[0].scalar(row), case .int(let partition) = batch.columns[1].scalar(row),
                    case .int(let offset) = batch.columns[2].scalar(row),
                    let split = splits.removeValue(forKey: Name(topic: topic, partition: partition, offset: offset))
                else { continue }
                switch batch.columns[3].scalar(row) {
                case .bytes(let bytes): choice.entries.append(ReplayLog.Entry(split: split, position: offset, record: bytes))
                case .string(let text): choice.entries.append(ReplayLog.Entry(split: split, position: offset, record: Array(text.utf8)))
                default: choice.uncorrected.append(RejectStore.Key(split: split, position: offset))
                }
            }
        }
        return choice
    }

    /// What of corrected records cannot be read; positions are their places in the list.
    private func refusals(
        of entries: [ReplayLog.Entry], _ definition: SourceDefinition, _ object: CatalogObject
    ) throws(SQLError) -> [Reject] {
        guard !entries.isEmpty else { return [] }
        let decoder = try definition.makeDecoder(Array(object.columns.indices))
        return try decoder.decode(RawChunk(lines: entries.map(\.record), from: 0, partition: ReplayingConnector.split.partition)).rejects
    }

    // MARK: Where side splits are kept

    /// Takes up side splits of earlier processes, and forgets those of sources that are gone. A source whose side split cannot be read does
    /// not run.
    /// - Throws: 58030.
    func restoreReplays() async throws(SQLError) {
        guard let directory = replayDirectory else { return }
        let (files, bytesMax, known) = (environment.files, options.replayBytesMax, Set(catalog.objects.filter { $0.kind == .source }.map(\.id)))
        let logs = try await offActor { () throws(SQLError) in
            do throws(IOFailure) { return try Self.readReplays(files, directory, of: known, bytesMax: bytesMax) } catch { throw error.sqlError }
        }
        for (id, result) in logs {
            do throws(SQLError) {
                let log = try result.get()
                rejects.remove(log.entries.map { RejectStore.Key(split: $0.split, position: $0.position) }, of: id)
                replayLogs[id] = log
            } catch {
                restoration.sources[id] = nil
                restoration.reasons[id] = error
            }
        }
    }

    private nonisolated static func readReplays(
        _ files: any FileSystem, _ directory: String, of known: Set<ObjectID>, bytesMax: Int
    ) throws(IOFailure) -> [ObjectID: Result<ReplayLog, SQLError>] {
        guard files.exists(directory) else { return [:] }
        var logs: [ObjectID: Result<ReplayLog, SQLError>] = [:]
        for name in try files.list(directory) {
            guard let id = UInt32(name).map({ ObjectID($0) }), known.contains(id) else {
                try files.remove(directory + "/" + name)
                continue
            }
            do throws(SQLError) {
                logs[id] = .success(try ReplayLog(reading: ReplayLog.Place(files, directory: directory, name: name), bytesMax: bytesMax))
            } catch { logs[id] = .failure(error) }
        }
        return logs
    }

    /// A source's connector with its side split.
    func replaying(_ connector: any SourceConnector, of id: ObjectID) -> ReplayingConnector {
        let place = replayDirectory.map { ReplayLog.Place(environment.files, directory: $0, name: String(id.number)) }
        let log = replayLogs[id] ?? ReplayLog(at: place, bytesMax: options.replayBytesMax)
        replayLogs[id] = log
        return ReplayingConnector(connector, log)
    }

    /// Of a source that is gone.
    func forgetReplays(of id: ObjectID) {
        try? replayLogs.removeValue(forKey: id)?.remove()  // Else the next start removes the file.
    }
}

extension Session {
    func replay(_ statement: ReplayRejects) async throws(SQLError) -> Outcome {
        let source = statement.source
        try await engine.source(of: statement)
        var name = source
        name.parts[name.parts.count - 1].name += "_rejects"
        let record = statement.record?.description ?? "raw"
        let condition = statement.condition.map { " AND (\($0.description))" } ?? ""
        // As a query, so that both expressions may be whatever a query may say.
        let text = "SELECT topic, \"partition\", \"offset\", \(record) AS record FROM \(name.description) WHERE column_name IS NULL\(condition)"
        let bound: BoundQuery
        do throws(SQLError) {
            guard case .query(let query) = try Parser.parseStatement(text) else { throw SQLError(.internalError, "REPLAY REJECTS asks for no query") }
            bound = try await bind(query, [])
            guard [.bytea, .varchar].contains(bound.schema[3].type) else {
                throw SQLError(.datatypeMismatch, "the corrected record is \(bound.schema[3].type.name), not bytea or varchar", hint: "Cast it.")
            }
        } catch { throw error.elsewhere(at: source.span.source) }
        var session = context
        session.raisesErrors = true
        var failure: SQLError?
        var rows: [DeltaBatch]
        do throws(SQLError) { rows = try await engine.queryRun(bound, session: session).collect(session.cancellation) } catch {
            // One record that an expression fails for is left as it is; the others go on.
            guard error.sqlState.isDataException else { throw error.elsewhere(at: source.span.source) }
            failure = error
            session.raisesErrors = false
            do throws(SQLError) { rows = try await engine.queryRun(bound, session: session).collect(session.cancellation) } catch {
                throw error.elsewhere(at: source.span.source)
            }
        }
        let answer = try await engine.replay(statement, rows: rows, failure: failure, session: context)
        for notice in answer.notices { self.notice(notice) }
        return .done(tag: "REPLAY \(answer.count)")
    }
}

extension SQLError {
    /// Of the query that stands for a statement: its positions are none in the statement.
    fileprivate func elsewhere(at span: SourceSpan) -> SQLError { SQLError(sqlState, message, detail: detail, hint: hint, at: span) }
}

extension SQLState {
    /// A value is the reason, as in a division by zero.
    fileprivate var isDataException: Bool { code.hasPrefix("22") }
}
