import MillBase
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

    /// A statement's bytes: texts that are equal as characters may mean different values.
    private struct Text: Hashable {
        let bytes: [UInt8]

        /// nil where nothing is kept: PREPARE has no text of its own, and a long one is seldom sent twice.
        init?(_ text: some Collection<UInt8>) {
            guard !text.isEmpty, text.count <= PlanCache.textBytesMax else { return nil }
            bytes = Array(text)
        }
    }

    private struct Entry {
        let plan: QueryPlan
        /// What the text says, where that is short and the text is all that was sent: places in it count from its beginning.
        let statement: ParsedStatement?
    }

    private struct State {
        var generation = Generation()
        /// Those that were asked for since `old` were all there were.
        var young: [Text: Entry] = [:]
        var old: [Text: Entry] = [:]

        /// - Returns: what goes; to be let go of without the lock.
        mutating func put(_ entry: Entry, of text: Text) -> [Text: Entry] {
            // Two sessions made one at the same time.
            guard young[text] == nil else { return [:] }
            young[text] = entry
            guard young.count >= PlanCache.youngMax else { return [:] }
            defer { (old, young) = (young, [:]) }
            return old
        }
    }

    static let youngMax = 128
    static let textBytesMax = 4096
    /// A parsed text takes some hundred times its bytes.
    static let parsedBytesMax = 1024

    private let state = Mutex(State())

    var generation: Generation { state.withLock { $0.generation } }
    var count: Int { state.withLock { $0.young.count + $0.old.count } }

    func plan(of text: String) -> KnownPlan? {
        guard let text = Text(text.utf8) else { return nil }
        let (entry, generation, _) = state.withLock { state -> (Entry?, Generation, [Text: Entry]) in
            if let entry = state.young[text] { return (entry, state.generation, [:]) }
            guard let entry = state.old.removeValue(forKey: text) else { return (nil, state.generation, [:]) }
            return (entry, state.generation, state.put(entry, of: text))
        }
        return entry.map { KnownPlan($0.plan, generation) }
    }

    /// What a client's text says, semicolons behind it or not; nil where that is not known.
    func statement(of text: String) -> ParsedStatement? {
        guard text.utf8.count <= Self.textBytesMax,
            let end = text.utf8.lastIndex(where: { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\n") }),
            let text = Text(text.utf8[...end])
        else { return nil }
        return state.withLock { ($0.young[text] ?? $0.old[text])?.statement }
    }

    /// - Parameter generation: as it was before the catalog was read.
    func keep(_ plan: QueryPlan, of statement: ParsedStatement, _ generation: Generation) {
        guard let text = Text(statement.text.utf8) else { return }
        let isWhole = statement.span.start == 0 && text.bytes.count <= Self.parsedBytesMax
        let entry = Entry(plan: plan, statement: isWhole ? statement : nil)
        _ = state.withLock { state in state.generation == generation ? state.put(entry, of: text) : [:] }
    }

    /// What plans are made from has changed.
    func empty() {
        _ = state.withLock { state in
            state.generation.number += 1
            defer { (state.young, state.old) = ([:], [:]) }
            return [state.young, state.old]
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
