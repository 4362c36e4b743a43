import MillBase
import MillColumnar
import MillExpr
import MillPlan

/// Takes the references to the query around out of a subquery's plan.
///
/// The binder numbers columns of the query around below zero. Conditions that read them are lifted, operator by operator,
/// to the top of the plan, where they become a join's condition; what they need of the subquery's own columns travels with
/// them as extra output columns, behind the original ones.
///
/// - A filter gives up its correlated conjuncts.
/// - A projection passes extra columns on.
/// - A grouping turns `outer = inner` into one more key; DISTINCT takes any condition that way.
/// - A ranking turns `outer = inner` into one more column of its partition: the first rows for each outer value.
/// - An inner join gives up conditions of both sides, a left join those of its left side.
///
/// A grouping without keys has one row even where nothing matched. After lifting it has none: `emptyRow` says what that
/// row would have held.
struct Decorrelation {
    let binder: Binder
    let span: SourceSpan

    struct Result {
        var plan: LogicalPlan
        /// Over the query around (below zero) and the plan's columns.
        var predicates: [BoundExpression] = []
        /// Values of the original columns where no row matches; nil when there is no row then.
        var emptyRow: [BoundExpression]?
    }

    /// - Throws: 0A000 where a reference stands in a place that cannot be lifted.
    func lift(_ plan: LogicalPlan) throws(SQLError) -> Result {
        guard plan.isCorrelated else { return Result(plan: plan) }
        switch plan {
        case .filter(let node): return try lift(node)
        case .project(let node): return try lift(node)
        case .aggregate(let node): return try lift(node)
        case .join(let node): return try lift(node)
        case .timeWindow(let node):
            let inner = try lift(node.input)
            return window(.timeWindow(LogicalTimeWindow(input: inner.plan, window: node.window)), over: node.input, inner)
        case .sessionWindow(let node): return try lift(node)
        case .rank(let node): return try lift(node)
        case .scan, .values, .union: throw refused("in \(Decorrelation.name(plan))")
        }
    }

    private static func name(_ plan: LogicalPlan) -> String {
        switch plan {
        case .union: "UNION"
        default: "this place"
        }
    }

    private func refused(_ place: String) -> SQLError {
        binder.unsupported(
            "a reference to the query around \(place)", hint: "Write the subquery as a join, or compare with the outer column by = in its WHERE.", at: span)
    }

    private func lift(_ node: LogicalFilter) throws(SQLError) -> Result {
        var result = try lift(node.input)
        let conjuncts = node.predicate.conjuncts
        let own = conjuncts.filter { !$0.isCorrelated }
        let correlated = conjuncts.filter(\.isCorrelated)
        if let emptyRow = result.emptyRow {
            guard correlated.isEmpty else { throw refused("in HAVING") }
            // The row without a match has to pass the same condition.
            if let condition = BoundExpression.conjunction(own.map { $0.substituting(emptyRow) }) {
                result.emptyRow = emptyRow.map { .caseWhen([.init(condition, $0)], otherwise: nil, $0.type) }
            }
        }
        if let predicate = BoundExpression.conjunction(own) { result.plan = .filter(LogicalFilter(input: result.plan, predicate: predicate)) }
        result.predicates += correlated
        return result
    }

    private func lift(_ node: LogicalProject) throws(SQLError) -> Result {
        guard !node.expressions.contains(where: \.isCorrelated) else { throw refused("in the output of a subquery") }
        let inner = try lift(node.input)
        let (expressions, names, predicates) = carrying(inner, behind: node.expressions, node.names)
        return Result(
            plan: .project(LogicalProject(input: inner.plan, expressions: expressions, names: names)), predicates: predicates,
            emptyRow: inner.emptyRow.map { row in node.expressions.map { $0.substituting(row) } })
    }

    /// The expressions with the columns that lifted predicates need behind them, and the predicates over these.
    private func carrying(
        _ inner: Result, behind expressions: [BoundExpression], _ names: [String]
    ) -> (expressions: [BoundExpression], names: [String], predicates: [BoundExpression]) {
        var expressions = expressions
        var names = names
        let schema = inner.plan.schema
        var places: [Int: Int] = [:]
        for column in inner.predicates.reduce(into: Set<Int>(), { $0.formUnion($1.columnsUsed) }).sorted() where !StandIn.isOuter(column) {
            let expression = BoundExpression.column(column, schema[column].type)
            if let known = expressions.firstIndex(of: expression) {
                places[column] = known
            } else {
                places[column] = expressions.count
                expressions.append(expression)
                names.append(schema[column].name)
            }
        }
        return (expressions, names, inner.predicates.map { $0.remapped { places[$0] ?? $0 } })
    }

    private func lift(_ node: LogicalAggregate) throws(SQLError) -> Result {
        guard !node.keys.contains(where: \.isCorrelated),
            !node.calls.contains(where: { ($0.argument?.isCorrelated ?? false) || ($0.filter?.isCorrelated ?? false) })
        else { throw refused("in an aggregate") }
        let inner = try lift(node.input)
        var keys = node.keys
        var names = Array(node.names.prefix(node.keys.count))
        var predicates: [BoundExpression] = []
        // Places among the keys, to be moved behind the calls below.
        for predicate in inner.predicates {
            if let (outer, own, rebuild) = Decorrelation.equality(predicate) {
                let key = keys.firstIndex(of: own) ?? keys.count
                if key == keys.count {
                    keys.append(own)
                    names.append("outer_\(key)")
                }
                predicates.append(rebuild(outer, .column(key, own.type)))
            } else if node.calls.isEmpty {
                var places: [Int: Int] = [:]
                let schema = inner.plan.schema
                for column in predicate.columnsUsed.sorted() where !StandIn.isOuter(column) {
                    let expression = BoundExpression.column(column, schema[column].type)
                    let key = keys.firstIndex(of: expression) ?? keys.count
                    if key == keys.count {
                        keys.append(expression)
                        names.append(schema[column].name)
                    }
                    places[column] = key
                }
                predicates.append(predicate.remapped { places[$0] ?? $0 })
            } else {
                throw refused("by another condition than = under an aggregate")
            }
        }
        let aggregate = LogicalPlan.aggregate(
            LogicalAggregate(input: inner.plan, keys: keys, calls: node.calls, names: names + node.names.dropFirst(node.keys.count)))
        // Original keys, calls, extra keys.
        let extra = keys.count - node.keys.count
        let schema = aggregate.schema
        let sources = Array(0..<node.keys.count) + Array(keys.count..<keys.count + node.calls.count) + Array(node.keys.count..<keys.count)
        let emptyRow: [BoundExpression]? =
            node.keys.isEmpty && !node.calls.isEmpty ? node.calls.map { .literal($0.function == .count ? .int(0) : .null, $0.type) } : nil
        guard extra > 0, !node.calls.isEmpty else { return Result(plan: aggregate, predicates: predicates, emptyRow: emptyRow) }
        let places = Dictionary(uniqueKeysWithValues: sources.enumerated().map { ($1, $0) })
        return Result(
            plan: .project(
                LogicalProject(input: aggregate, expressions: sources.map { .column($0, schema[$0].type) }, names: sources.map { schema[$0].name })),
            predicates: predicates.map { $0.remapped { places[$0] ?? $0 } }, emptyRow: emptyRow)
    }

    /// `outer = inner` in either order, with how to say it of another inner expression; nil for anything else.
    static func equality(
        _ predicate: BoundExpression
    ) -> (outer: BoundExpression, inner: BoundExpression, rebuild: (BoundExpression, BoundExpression) -> BoundExpression)? {
        let children = predicate.children
        guard children.count == 2 else { return nil }
        switch predicate {
        case .call(let function, _, _, _) where function.name == "equal": break
        case .isNotDistinct: break
        default: return nil
        }
        func isOuter(_ expression: BoundExpression) -> Bool { expression.columnsUsed.allSatisfy(StandIn.isOuter) && !expression.columnsUsed.isEmpty }
        func isInner(_ expression: BoundExpression) -> Bool { !expression.isCorrelated }
        if isOuter(children[0]), isInner(children[1]) { return (children[0], children[1], { predicate.with(children: [$0, $1]) }) }
        if isOuter(children[1]), isInner(children[0]) { return (children[1], children[0], { predicate.with(children: [$1, $0]) }) }
        return nil
    }

    private func lift(_ node: LogicalJoin) throws(SQLError) -> Result {
        let right: Result
        switch node.kind {
        case .inner: right = try lift(node.right)
        case .left, .semi, .anti:
            guard !node.right.isCorrelated else { throw refused("in the right side of a join") }
            right = Result(plan: node.right)
        case .right, .full: throw refused("in a \(node.kind.rawValue) join")
        }
        let left = try lift(node.left)
        guard left.emptyRow == nil, right.emptyRow == nil else { throw refused("under an aggregate that is joined") }
        let leftCount = node.left.schema.count
        let rightCount = node.right.schema.count
        let leftExtra = left.plan.schema.count - leftCount
        // Old right columns start behind the left side's extra ones now.
        let shifted = node.condition?.remapped { $0 >= leftCount ? $0 + leftExtra : $0 }
        let conjuncts = shifted?.conjuncts ?? []
        let correlated = conjuncts.filter(\.isCorrelated)
        guard correlated.isEmpty || node.kind == .inner else { throw refused("in the condition of a \(node.kind.rawValue) join") }
        let join = LogicalPlan.join(
            LogicalJoin(
                left: left.plan, right: right.plan, kind: node.kind, condition: BoundExpression.conjunction(conjuncts.filter { !$0.isCorrelated })))
        var result = Result(plan: join)
        let moved = right.predicates.map { $0.remapped { StandIn.isOuter($0) ? $0 : $0 + leftCount + leftExtra } }
        result.predicates = left.predicates + moved + correlated
        guard leftExtra > 0, node.kind == .inner || node.kind == .left else { return result }
        // Original columns first: left, right, then the extras of both.
        let schema = join.schema
        let originals = Array(0..<leftCount) + Array(leftCount + leftExtra..<leftCount + leftExtra + rightCount)
        let sources = originals + schema.indices.filter { !originals.contains($0) }
        let places = Dictionary(uniqueKeysWithValues: sources.enumerated().map { ($1, $0) })
        return Result(
            plan: .project(
                LogicalProject(input: join, expressions: sources.map { .column($0, schema[$0].type) }, names: sources.map { schema[$0].name })),
            predicates: result.predicates.map { $0.remapped { places[$0] ?? $0 } })
    }

    private func lift(_ node: LogicalRank) throws(SQLError) -> Result {
        let inner = try lift(node.input)
        guard inner.emptyRow == nil else { throw refused("under an aggregate with LIMIT") }
        let count = node.input.schema.count
        var expressions = inner.plan.schema.enumerated().map { BoundExpression.column($0, $1.type) }
        var names = inner.plan.schema.map(\.name)
        var window = node.window
        var predicates: [BoundExpression] = []
        for predicate in inner.predicates {
            guard let (outer, own, rebuild) = Decorrelation.equality(predicate) else {
                throw refused("by another condition than = under LIMIT")
            }
            let column = expressions.firstIndex(of: own) ?? expressions.count
            if column == expressions.count {
                expressions.append(own)
                names.append("outer_\(column)")
            }
            if !window.partition.contains(column) { window.partition.append(column) }
            // Ranks come between the original columns and those carried along.
            predicates.append(rebuild(outer, .column(column < count ? column : column + node.functions.count, own.type)))
        }
        let width = expressions.count
        let input = LogicalPlan.project(LogicalProject(input: inner.plan, expressions: expressions, names: names))
        let plan = LogicalPlan.rank(LogicalRank(input: input, window: window, functions: node.functions, names: node.names, cut: node.cut))
        let schema = plan.schema
        let sources = Array(0..<count) + Array(width..<schema.count) + Array(count..<width)
        return Result(
            plan: .project(
                LogicalProject(
                    input: plan, expressions: sources.map { .column($0, schema[$0].type) }, names: sources.map { schema[$0].name })),
            predicates: predicates)
    }

    /// The rows that one outer row sees make sessions of their own: what they are found by parts the sessions too.
    private func lift(_ node: LogicalSessionWindow) throws(SQLError) -> Result {
        let inner = try lift(node.input)
        var session = node.window
        for predicate in inner.predicates {
            guard let (_, own, _) = Decorrelation.equality(predicate), case .column(let column, _) = own else {
                throw refused("below SESSION")
            }
            if !session.partition.contains(column) { session.partition.append(column) }
        }
        return window(.sessionWindow(LogicalSessionWindow(input: inner.plan, window: session)), over: node.input, inner)
    }

    /// A window over a lifted input, with its bounds in front of the columns that were added below.
    private func window(_ plan: LogicalPlan, over input: LogicalPlan, _ inner: Result) -> Result {
        let count = input.schema.count
        let extra = inner.plan.schema.count - count
        guard extra > 0 else { return Result(plan: plan, predicates: inner.predicates) }
        let schema = plan.schema
        let sources = Array(0..<count) + [count + extra, count + extra + 1] + Array(count..<count + extra)
        let places = Dictionary(uniqueKeysWithValues: sources.enumerated().map { ($1, $0) })
        return Result(
            plan: .project(
                LogicalProject(input: plan, expressions: sources.map { .column($0, schema[$0].type) }, names: sources.map { schema[$0].name })),
            predicates: inner.predicates.map { $0.remapped { places[$0] ?? $0 } })
    }
}
