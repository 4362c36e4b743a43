import MillColumnar
import MillExpr
import MillPlan
import MillSQL
import Synchronization

/// A query bound, optimized and planned, which may run any number of times, at the same time too. What it reads is fixed when it runs.
final class QueryPlan: Sendable {
    /// What it shows, as it was written.
    let schema: Schema
    /// Optimized.
    let query: BoundQuery
    /// For relations without changes that are not published.
    let steps: StreamPlan

    init(schema: Schema, query: BoundQuery, steps: StreamPlan) {
        self.schema = schema
        self.query = query
        self.steps = steps
    }
}

/// A plan that a prepared statement keeps, for as long as what it was made from is what it was.
final class KnownPlan: Sendable {
    private let state: Mutex<(plan: QueryPlan, generation: PlanCache.Generation)>

    init(_ plan: QueryPlan, _ generation: PlanCache.Generation) { state = Mutex((plan, generation)) }

    var current: (plan: QueryPlan, generation: PlanCache.Generation) { state.withLock { $0 } }

    func renew(by other: KnownPlan) {
        let fresh = other.current
        state.withLock { $0 = fresh }
    }
}

/// Plans of queries by their text, for all sessions: who asks the same again, as a dashboard does, waits for no parser, no binder and no planner.
///
/// Only what means the same to everybody at any time is in it (`Binder.isLasting`), and only what is small. A change of the catalog, or of what
/// is relied on in a relation's changes, empties it: see `Engine.catalog` and `Engine.plans`. Any thread.
final class PlanCache: Sendable {
    /// Of what a plan was made from. A plan may be run while this is what it was before the catalog was read for it.
    struct Generation: Hashable, Sendable { fileprivate var number: UInt64 = 0 }

    /// A text's bytes: texts that are equal as characters may mean different values.
    private struct Text: Hashable {
        let bytes: [UInt8]
        /// Computed without the lock.
        private let hash: Int

        /// nil where nothing is kept: PREPARE has no text of its own, and a long one is seldom sent twice.
        init?(_ text: String, bytesMax: Int) {
            guard !text.isEmpty, text.utf8.count <= bytesMax else { return nil }
            bytes = Array(text.utf8)
            var hasher = Hasher()
            bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
            hash = hasher.finalize()
        }

        func hash(into hasher: inout Hasher) { hasher.combine(hash) }
    }

    /// What was kept or asked for lately.
    private struct Recent<Value> {
        /// Those since `old` were all there were.
        private var young: [Text: Value] = [:]
        private var old: [Text: Value] = [:]

        var count: Int { young.count + old.count }

        func contains(_ text: Text) -> Bool { young[text] != nil || old[text] != nil }

        /// - Returns: with the value what goes; to be let go of without the lock, as in `put`.
        mutating func find(_ text: Text) -> (value: Value?, gone: [Text: Value]) {
            if let value = young[text] { return (value, [:]) }
            guard let value = old.removeValue(forKey: text) else { return (nil, [:]) }
            return (value, put(value, of: text))
        }

        mutating func put(_ value: Value, of text: Text) -> [Text: Value] {
            // Two sessions made one at the same time.
            guard young[text] == nil else { return [:] }
            young[text] = value
            guard young.count >= PlanCache.youngMax else { return [:] }
            defer { (old, young) = (young, [:]) }
            return old
        }
    }

    private struct State {
        var generation = Generation()
        var plans = Recent<QueryPlan>()
        /// By all that was sent, from which places in them count.
        var statements = Recent<ParsedStatement>()
    }

    static let youngMax = 128
    static let textBytesMax = 4096
    /// A parsed text takes some hundred times its bytes.
    static let parsedBytesMax = 1024

    private let state = Mutex(State())

    var generation: Generation { state.withLock { $0.generation } }
    var count: Int { state.withLock { $0.plans.count } }

    func plan(of text: String) -> KnownPlan? {
        guard let text = Text(text, bytesMax: Self.textBytesMax) else { return nil }
        let (found, generation) = state.withLock { ($0.plans.find(text), $0.generation) }
        return found.value.map { KnownPlan($0, generation) }
    }

    /// - Parameter generation: as it was before the catalog was read.
    func keep(_ plan: QueryPlan, of text: String, _ generation: Generation) {
        guard let text = Text(text, bytesMax: Self.textBytesMax) else { return }
        _ = state.withLock { state in state.generation == generation ? state.plans.put(plan, of: text) : [:] }
    }

    /// What a client's text says; nil where that is not known.
    func statement(sentAs text: String) -> ParsedStatement? {
        guard let text = Text(text, bytesMax: Self.parsedBytesMax) else { return nil }
        return state.withLock { $0.statements.find(text) }.value
    }

    /// Keeps it if its plan is kept, so not yet when it is asked for the first time.
    func keep(_ statement: ParsedStatement, sentAs text: String) {
        guard let text = Text(text, bytesMax: Self.parsedBytesMax), let own = Text(statement.text, bytesMax: Self.parsedBytesMax) else { return }
        _ = state.withLock { state in state.plans.contains(own) ? state.statements.put(statement, of: text) : [:] }
    }

    /// What plans are made from has changed.
    func empty() {
        _ = state.withLock { state in
            state.generation.number += 1
            defer { (state.plans, state.statements) = (Recent(), Recent()) }
            return (state.plans, state.statements)
        }
    }
}

extension QueryPlan {
    /// Whether it is worth its memory: short texts name large views, and constants such as `repeat('x', 1000000)` are computed once.
    var isSmall: Bool {
        var size = Size()
        for step in steps.nodes { size.parts += 1 + step.schema.count / 8 }
        var open = [query.plan]
        while let node = open.popLast() {
            size.parts += 1
            switch node {
            case .scan(let scan): size.parts += scan.columns.count / 8
            case .values(let values): size.parts += values.rows.count
            default: break
            }
            guard size.parts <= Size.max else { return false }
            do throws(Size.TooLarge) {
                _ = try node.mappingExpressions { (expression) throws(Size.TooLarge) in
                    try size.add(expression)
                    return expression
                }
            } catch { return false }
            open += node.inputs
        }
        return true
    }

    private struct Size {
        struct TooLarge: Error {}

        /// Operations, parts of expressions, and literals' bytes by 64: some hundred bytes each.
        static let max = 1000
        var parts = 0

        mutating func add(_ expression: BoundExpression) throws(TooLarge) {
            var open = [expression]
            while let next = open.popLast() {
                parts += 1
                switch next {
                case .literal(let value, _): add(value)
                case .inList(_, let values, _):
                    parts += values.count
                    guard parts <= Self.max else { throw TooLarge() }
                    for value in values { add(value) }
                default: break
                }
                guard parts <= Self.max else { throw TooLarge() }
                open += next.children
            }
        }

        private mutating func add(_ value: Scalar) {
            switch value {
            case .string(let text): parts += text.utf8.count / 64
            case .bytes(let bytes): parts += bytes.count / 64
            default: break
            }
        }
    }
}
