import MillBase
import MillBinder
import MillCatalog
import MillColumnar
import MillIO
import MillOptimizer
import MillPlan
import MillSQL

/// EXPLAIN: how a statement would run, or how a materialized view does.
extension Session {
    func explain(_ explain: Explain) async throws(SQLError) -> Outcome {
        let stage = try ExplainStage(explain)
        let text: String
        switch explain.subject {
        case .statement(let statement): text = stage == .ast ? statement.description : try await plan(of: statement, stage)
        case .materializedView(let name):
            guard stage == .stream else {
                throw SQLError(
                    .featureNotSupported, "EXPLAIN (\(stage.rawValue)) of a materialized view is not supported",
                    hint: "What is stored of it is the stream plan. EXPLAIN (\(stage.rawValue)) takes the statement of SHOW CREATE MATERIALIZED VIEW.",
                    at: name.span.source)
            }
            text = try await engine.storedPlan(of: name).explained
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { [Scalar.string(String($0))] }
        return .table(DeltaBatch.batches(lines, [Field("QUERY PLAN", .varchar)]), verb: "EXPLAIN")
    }

    private func plan(of statement: Statement, _ stage: ExplainStage) async throws(SQLError) -> String {
        let reader = await engine.reader
        let properties = await engine.relationProperties
        switch statement {
        case .query(let query):
            let bound = try await bind(query, [])
            if stage == .bound { return bound.explained }
            let optimized = Optimizer.optimize(bound)
            if stage == .logical { return optimized.explained }
            return StreamPlanner.planQuery(optimized, relationProperties: properties).explained
        case .createView(let view):
            let whole = try Binder(catalog: reader, context: context.binderContext(.view)).bind(createView: view)
            let bound = whole.query
            if stage == .bound { return bound.explained }
            let optimized = Optimizer.optimize(bound)
            if stage == .logical || !view.isMaterialized { return optimized.explained }
            return try Engine.plan(whole, emitsOnClose: view.emitOnWindowClose, at: view.name.span.source, properties).explained
        case .insert, .update, .delete:
            let now = engine.environment.clock.nowMicros
            let writes = try await bound(context) { (context) throws(SQLError) in
                try Binder(catalog: reader, context: context.binderContext(.statement(now: now))).bind(write: statement)
            }
            return writes.map { write in
                write.title + "\n" + Optimizer.optimize(write.query).explained.split(separator: "\n").map { "  " + $0 }.joined(separator: "\n")
            }.joined()
        default:
            throw SQLError(
                .featureNotSupported, "EXPLAIN of this statement is not supported",
                hint: "Queries, INSERT, UPDATE, DELETE, CREATE MATERIALIZED VIEW and, by EXPLAIN MATERIALIZED VIEW, those that are there can be explained.")
        }
    }
}

/// What EXPLAIN shows, by the name of its option.
private enum ExplainStage: String {
    case ast = "AST"
    case bound = "BOUND"
    case logical = "LOGICAL"
    case stream = "PHYSICAL"

    /// PostgreSQL's options that ask for more or less of what our plans do not have.
    private static let withoutEffect: Set<String> = ["VERBOSE", "COSTS", "SETTINGS", "GENERIC_PLAN", "BUFFERS", "WAL", "TIMING", "SUMMARY", "MEMORY"]

    /// - Throws: 0A000 for ANALYZE and formats other than text, 42601 for what is no option.
    init(_ explain: Explain) throws(SQLError) {
        self = .stream
        var isAnalyze = explain.isAnalyze
        for option in explain.options {
            let name = option.name.name.uppercased()
            let place = option.name.span.source
            if name == "FORMAT" {
                guard option.word == "text" else {
                    throw SQLError(
                        .featureNotSupported, "EXPLAIN (FORMAT \((option.word ?? "").uppercased())) is not supported",
                        hint: "Plans are text: leave FORMAT out.", at: place)
                }
                continue
            }
            guard let isOn = option.isOn else { throw SQLError(.syntaxError, "\(name) requires a Boolean value", at: place) }
            if name == "ANALYZE" {
                isAnalyze = isAnalyze || isOn
            } else if let stage = ExplainStage(rawValue: name) {
                if isOn { self = stage }
            } else if !Self.withoutEffect.contains(name) {
                throw SQLError(
                    .syntaxError, "unrecognized EXPLAIN option \"\(name.lowercased())\"", hint: "The plan's stages are AST, BOUND, LOGICAL and PHYSICAL.",
                    at: place)
            }
        }
        guard !isAnalyze else {
            throw SQLError(.featureNotSupported, "EXPLAIN ANALYZE is not supported", hint: "SHOW JOBS shows what running jobs do.")
        }
    }
}

extension Explain.Option {
    /// Its value in lower case, however it is written; nil without one.
    fileprivate var word: String? {
        switch value {
        case .word(let text), .string(let text), .number(let text): text.lowercased()
        case .boolean(let isTrue): isTrue ? "true" : "false"
        default: nil
        }
    }

    /// nil when it is neither on nor off.
    fileprivate var isOn: Bool? {
        guard value != nil else { return true }
        return switch word {
        case "on", "true", "1": true
        case "off", "false", "0": false
        default: nil
        }
    }
}

extension Engine {
    /// The plan that a materialized view runs by: of when it was created or last rebuilt.
    /// - Throws: 42P01, 42809; 55000 for a stored plan that cannot be used.
    func storedPlan(of name: ObjectName) throws(SQLError) -> StreamPlan {
        let view: CatalogObject
        do throws(SQLError) { view = try catalog.require(.materializedView, schema: name.schemaName, name: name.last.name) } catch {
            throw error.located(at: name.span.source)
        }
        guard let plan = plans[view.id] else {
            let reason = restoration.reasons[view.id]
            throw SQLError(
                .objectNotInPrerequisiteState, "materialized view \"\(view.name)\" has no plan that can be used",
                detail: reason?.message, hint: reason?.hint, at: name.span.source)
        }
        return plan
    }
}
