package import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillMeta
package import MillSQL
import Synchronization

/// Definitions, and what is known but not there.
extension Session {
    func define(_ parsed: ParsedStatement) async throws(SQLError) -> Outcome {
        var notices: [SQLError] = []
        defer { for notice in notices { self.notice(notice) } }
        try await engine.untilRestored(context.cancellation)
        switch parsed.statement {
        case .createRelation(let statement):
            try await engine.create(statement, definition: parsed.text, session: context, &notices)
        case .createView(let statement):
            try await engine.create(statement, definition: parsed.text, session: context, &notices)
        case .createNamespace(let statement) where statement.kind == .catalog:
            try await engine.attachCatalog(statement, session: context, &notices)
        case .createSink(let statement):
            try await engine.create(statement, definition: parsed.text, session: context, &notices)
        case .createNamespace(let statement):
            try await engine.createSchema(statement, session: context, &notices)
        case .drop(let statement):
            try await engine.drop(statement, session: context, &notices)
        case .jobControl(let statement):
            switch statement.verb {
            case .rebuild: try await engine.rebuild(statement, session: context)
            case .pause: try await engine.pause(statement, session: context, &notices)
            case .resume: try await engine.resume(statement, session: context, &notices)
            }
        default:
            let hint: String? =
                switch parsed.statement {
                case .copy(let copy) where copy.isFrom: "Use INSERT; read_csv, read_json and read_parquet read files in FROM."
                case .copy: "Send the query by itself; CREATE SINK writes files."
                case .createIndex, .comment: "No answer depends on it: leave it out."
                case .alter: "Drop it and create it again."
                case .cursor: "Fetch in parts with the extended protocol's row limit."
                case .cancelJobs: "DROP the materialized view."
                default: nil
                }
            throw SQLError(.featureNotSupported, "\(parsed.statement.command) is not supported", hint: hint, at: parsed.span)
        }
        return .done(tag: parsed.statement.command)
    }

    // MARK: PREPARE and EXECUTE

    func executePrepared(_ statement: PreparedStatement, span: SourceSpan) async throws(SQLError) -> Outcome {
        switch statement {
        case .prepare(let name, let types, let inner):
            switch inner {
            case .query, .insert, .update, .delete: break
            // A prepared EXECUTE could run itself.
            default: throw SQLError(.syntaxError, "only SELECT, INSERT, UPDATE and DELETE can be prepared", at: name.span.source)
            }
            guard state.withLock({ $0.prepared[name.name] }) == nil else {
                throw SQLError(.duplicatePreparedStatement, "prepared statement \"\(name.name)\" already exists", at: name.span.source)
            }
            let binder = Binder(catalog: await engine.reader, context: context.binderContext(.view))
            var known: [SQLType?] = []
            for type in types { known.append(try binder.type(of: type)) }
            let prepared = try await prepare(ParsedStatement(statement: inner, span: span, text: ""), parameterTypes: known, isKept: true)
            state.withLock { $0.prepared[name.name] = prepared }
            return .done(tag: "PREPARE")
        case .execute(let name, let arguments):
            guard let prepared = state.withLock({ $0.prepared[name.name] }) else { throw Self.unknownPrepared(name.name) }
            guard arguments.count == prepared.parameterTypes.count else {
                throw SQLError(
                    .syntaxError, "wrong number of parameters for prepared statement \"\(name.name)\"",
                    detail: "Expected \(prepared.parameterTypes.count) parameters but got \(arguments.count).", at: name.span.source)
            }
            return try await execute(prepared, parameters: try await values(of: arguments, prepared.parameterTypes))
        case .deallocate(let name):
            let existed = state.withLock { state in
                guard let name else {
                    state.prepared = [:]
                    return true
                }
                return state.prepared.removeValue(forKey: name.name) != nil
            }
            guard existed else { throw Self.unknownPrepared(name?.name ?? "") }
            return .done(tag: Statement.prepared(statement).command)
        }
    }

    /// The arguments of EXECUTE, as a SELECT gives them in the parameters' types.
    private func values(of arguments: [Expression], _ types: [SQLType]) async throws(SQLError) -> [Scalar] {
        guard !arguments.isEmpty else { return [] }
        let casts = zip(arguments, types).map { "CAST(\($0.description) AS \($1.name))" }.joined(separator: ", ")
        guard case .query(let query) = try Parser.parseStatement("SELECT \(casts)") else { return [] }
        let batches = try await engine.queryRun(try await bind(query, []), session: context).collect(context.cancellation)
        guard let batch = batches.first else { return [] }
        return batch.columns.map { $0.scalar(0) }
    }
}

extension Engine {
    package func createSchema(_ statement: CreateNamespace, session: SessionContext, _ notices: inout [SQLError]) async throws(SQLError) {
        try await definitions.lock(unless: session.cancellation)
        defer { definitions.unlock() }
        guard statement.kind == .schema else {
            throw SQLError(.featureNotSupported, "CREATE DATABASE is not supported", hint: "Every database name leads to the same objects.")
        }
        if statement.ifNotExists, catalog.schemaExists(statement.name.last.name) {
            notices.append(SQLError(.successfulCompletion, "schema \"\(statement.name.last.name)\" already exists, skipping"))
            return
        }
        var changed = catalog
        let name = statement.name.last.name
        try changed.createSchema(name)
        try await store { (meta) throws(SQLError) in try meta.createSchema(name) }
        catalog = changed
    }
}
