package import MillBase
import MillCatalog
import MillColumnar
package import MillSQL
import Synchronization

/// Definitions, and what is known but not there.
extension Session {
    func define(_ parsed: ParsedStatement) async throws(SQLError) -> Outcome {
        var notices: [SQLError] = []
        defer { for notice in notices { self.notice(notice) } }
        switch parsed.statement {
        case .createRelation(let statement):
            try await engine.create(statement, definition: parsed.text, session: context, &notices)
            return .done(tag: statement.kind == .source ? "CREATE_SOURCE" : "CREATE_TABLE")
        case .createView(let statement):
            try await engine.create(statement, definition: parsed.text, session: context, &notices)
            return .done(tag: statement.isMaterialized ? "CREATE_MATERIALIZED_VIEW" : "CREATE_VIEW")
        case .createNamespace(let statement):
            try await engine.createSchema(statement, session: context, &notices)
            return .done(tag: statement.kind == .schema ? "CREATE_SCHEMA" : "CREATE_DATABASE")
        case .drop(let statement):
            try await engine.drop(statement, session: context, &notices)
            return .done(tag: "DROP_" + statement.kind.rawValue.replacing(" ", with: "_"))
        case .createSink(let statement): throw unsupported("CREATE SINK", at: statement.name.span.source)
        case .createIndex(let statement): throw unsupported("CREATE INDEX", at: statement.table.span.source)
        case .update(let statement): throw unsupported("UPDATE", at: statement.table.name.span.source)
        case .delete(let statement): throw unsupported("DELETE", at: statement.table.name.span.source)
        case .copy: throw unsupported("COPY", hint: "Use INSERT.")
        case .cursor: throw unsupported("a cursor", hint: "Fetch in parts with the extended protocol's row limit.")
        default: throw unsupported("this statement")
        }
    }

    private func unsupported(_ what: String, hint: String? = nil, at span: SourceSpan? = nil) -> SQLError {
        SQLError(.featureNotSupported, "\(what) is not supported", hint: hint, at: span)
    }

    // MARK: PREPARE and EXECUTE

    func executePrepared(_ statement: PreparedStatement, span: SourceSpan) async throws(SQLError) -> Outcome {
        switch statement {
        case .prepare(let name, _, let inner):
            switch inner {
            case .query, .insert, .update, .delete: break
            // A prepared EXECUTE could run itself.
            default: throw SQLError(.syntaxError, "only SELECT, INSERT, UPDATE and DELETE can be prepared", at: name.span.source)
            }
            let isNew = state.withLock { state in
                guard state.prepared[name.name] == nil else { return false }
                state.prepared[name.name] = inner
                return true
            }
            guard isNew else {
                throw SQLError(.duplicatePreparedStatement, "prepared statement \"\(name.name)\" already exists", at: name.span.source)
            }
            return .done(tag: "PREPARE")
        case .execute(let name, let arguments):
            guard let inner = state.withLock({ $0.prepared[name.name] }) else { throw Self.unknownPrepared(name.name) }
            let prepared = try await prepare(ParsedStatement(statement: inner, span: span, text: ""), parameterTypes: [])
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
            return .done(tag: "DEALLOCATE")
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
        try catalog.createSchema(statement.name.last.name)
    }
}
