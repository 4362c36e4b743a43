package import MillBase
import MillColumnar
import MillExpr
package import MillPlan

/// A stream plan's meaning, computed the slow and plain way: whole relations as arrays of rows, one operation after another.
///
/// The laws compare running circuits with it, so it shares no code with operators: dictionaries and sorting in place of state,
/// rows in place of columns, a row that is there three times is three rows in place of weights.
package struct ReferencePlan {
    private let plan: StreamPlan
    private let relations: [ObjectID: [ReferenceRow]]

    /// - Parameters:
    ///   - relations: the rows of every source, table and view that the plan reads.
    ///   - inputs: what of a node's inputs counts; all rows unless told.
    ///   - output: what of a node's rows is given out; all unless told.
    package static func evaluate(
        _ plan: StreamPlan, _ relations: [ObjectID: [ReferenceRow]], inputs: (StreamNode, [[ReferenceRow]]) -> [[ReferenceRow]] = { $1 },
        output: (NodeIndex, [ReferenceRow]) -> [ReferenceRow] = { $1 }
    ) -> [ReferenceRow] {
        let reference = ReferencePlan(plan: plan, relations: relations)
        var results: [[ReferenceRow]] = []
        for (number, node) in plan.nodes.enumerated() {
            results.append(output(NodeIndex(number), reference.apply(node, inputs(node, node.inputs.map { results[$0.number] }))))
        }
        return results[plan.root.number]
    }

    /// Whether two right evaluations of a plan may look different: which of several equal values stands for a group is open, and
    /// so is what DISTINCT leaves for a sum.
    package static func mayLookDifferent(_ plan: StreamPlan) -> Bool {
        plan.nodes.contains { node in
            switch node.operation {
            case .aggregate(let keys, let calls):
                let schema = plan[node.inputs[0]].schema
                return keys.contains { looksVary(schema[$0].type) } || calls.contains { $0.distinct && looksVary($0.type) }
            case .sessionAggregate(let window, _, _): return window.partition.contains { looksVary(plan[node.inputs[0]].schema[$0].type) }
            default: return false
            }
        }
    }

    private static func looksVary(_ type: SQLType) -> Bool { type.isNumeric || type.isFloat || type == .interval }

    package static func counts(_ rows: [ReferenceRow]) -> ReferenceCounts {
        rows.reduce(into: [:]) { counts, row in counts[row, default: 0] += 1 }
    }

    private func apply(_ node: StreamNode, _ inputs: [[ReferenceRow]]) -> [ReferenceRow] {
        switch node.operation {
        case .source(let relation, let columns), .relation(let relation, let columns):
            return (relations[relation.id] ?? []).map { row in columns.map { row[$0] } }
        case .values(let rows): return rows.map { row in row.map { ReferenceValue($0) } }
        case .filter(let predicate): return inputs[0].filter { ReferenceExpression.evaluate(predicate, $0).isTrue }
        case .project(let expressions): return inputs[0].map { row in expressions.map { ReferenceExpression.evaluate($0, row) } }
        case .timeWindow(let window): return inputs[0].flatMap { windows(of: $0, window) }
        // What it changes of a row no window shows.
        case .panes: return inputs[0]
        case .sessionWindow(let window): return sessions(inputs[0], window, schema(node.inputs[0]))
        case .sessionAggregate(let window, let keys, let calls):
            let schema = schema(node.inputs[0])
            return aggregate(sessions(inputs[0], window, schema), keys, calls, window.schema(over: schema))
        case .exchange, .materialize, .result, .blackhole, .sink: return inputs[0]
        case .aggregate(let keys, let calls): return aggregate(inputs[0], keys, calls, schema(node.inputs[0]))
        case .join(let kind, let leftKeys, let rightKeys, let residual):
            return Join(
                kind: kind, residual: residual, leftWidth: schema(node.inputs[0]).count, rightWidth: schema(node.inputs[1]).count
            ).rows(inputs[0], inputs[1], leftKeys, rightKeys)
        case .union: return inputs.flatMap { $0 }
        case .rank(let window, let functions, let cut): return rank(inputs[0], window, functions, cut)
        }
    }

    private func schema(_ index: NodeIndex) -> Schema { plan[index].schema }

    // MARK: Order

    private func rank(_ rows: [ReferenceRow], _ window: Window, _ functions: [RankFunction], _ cut: Cut?) -> [ReferenceRow] {
        let partitions = Dictionary(grouping: rows) { row in window.partition.map { row[$0].key } }.values
        return partitions.flatMap { partition in
            let sorted = partition.sorted { precedes($0, $1, window.order) }
            let keys = sorted.map { row in window.order.map { row[$0.column].key } }
            let numbered = sorted.indices.map { index in
                let first = keys.firstIndex(of: keys[index]) ?? index
                return [RankFunction.rowNumber: index + 1, .rank: first + 1, .denseRank: Set(keys[...index]).count]
            }
            return sorted.indices.compactMap { (index) -> ReferenceRow? in
                if let cut, let number = numbered[index][cut.function], number <= cut.offset || number - cut.offset > cut.limit ?? .max {
                    return nil
                }
                return sorted[index] + functions.map { .integer(Int64(numbered[index][$0] ?? 0)) }
            }
        }
    }

    /// The keys, then every other column ascending with NULL last, then how the values look, so that the order is total.
    private func precedes(_ a: ReferenceRow, _ b: ReferenceRow, _ order: [SortKey]) -> Bool {
        let rest = a.indices.filter { index in !order.contains { $0.column == index } }
        let all = order + rest.map { SortKey(column: $0, descending: false, nullsFirst: false) }
        for key in all {
            let (left, right) = (a[key.column], b[key.column])
            if left.key == right.key { continue }
            if left.isNull { return key.nullsFirst }
            if right.isNull { return !key.nullsFirst }
            return ReferenceValue.isLess(left, right) != key.descending
        }
        for key in all where a[key.column] != b[key.column] { return ReferenceValue.looksLess(a[key.column], b[key.column]) }
        return false
    }

    // MARK: Time windows

    /// Every window [s, s + size) with s = offset + n * slide that holds the row's time.
    private func windows(of row: ReferenceRow, _ window: TimeWindow) -> [ReferenceRow] {
        let isDate = plan.nodes.contains { node in
            if case .timeWindow(window) = node.operation { return plan[node.inputs[0]].schema[window.timeColumn].type == .date }
            return false
        }
        guard let time = time(row[window.timeColumn], isDate: isDate) else { return [row + [.null, .null]] }
        let (size, slide, offset) = (Int128(window.sizeMicros), Int128(window.slideMicros), Int128(window.offsetMicros))
        // Far enough before the time, then every start in turn.
        var start = (time - offset) / slide * slide + offset - (size / slide + 2) * slide
        var result: [ReferenceRow] = []
        while start <= time {
            if time < start + size { result.append(row + [.integer(Int64(start)), .integer(Int64(start + size))]) }
            start += slide
        }
        return result
    }

    /// Microseconds; nil when missing or beyond what windows can express.
    private func time(_ value: ReferenceValue, isDate: Bool) -> Int128? {
        guard case .integer(let number) = value else { return nil }
        let time = Int128(number) * (isDate ? 86_400_000_000 : 1)
        let bound = Int128(Int64.max / 4)
        return time > -bound && time < bound ? time : nil
    }

    /// The rows of each partition sorted by time, cut where two neighbours are more than the gap apart.
    private func sessions(_ rows: [ReferenceRow], _ window: SessionWindow, _ schema: Schema) -> [ReferenceRow] {
        let isDate = schema[window.timeColumn].type == .date
        var partitions: [ReferenceRow: [(time: Int128, row: ReferenceRow)]] = [:]
        var result: [ReferenceRow] = []
        for row in rows {
            if let time = time(row[window.timeColumn], isDate: isDate) {
                partitions[window.partition.map { row[$0].key }, default: []].append((time, row))
            } else {
                result.append(row + [.null, .null])
            }
        }
        for partition in partitions.values {
            let sorted = partition.sorted { $0.time < $1.time }
            var session: [(time: Int128, row: ReferenceRow)] = []
            for (index, entry) in sorted.enumerated() {
                session.append(entry)
                if index + 1 < sorted.count, sorted[index + 1].time - entry.time <= Int128(window.gapMicros) { continue }
                let bounds = [session[0].time, entry.time + Int128(window.gapMicros)].map { ReferenceValue.integer(Int64($0)) }
                result += session.map { $0.row + bounds }
                session = []
            }
        }
        return result
    }

    // MARK: Aggregates

    private func aggregate(_ rows: [ReferenceRow], _ keys: [Int], _ calls: [AggregateCall], _ schema: Schema) -> [ReferenceRow] {
        var groups: [ReferenceRow: [ReferenceRow]] = [:]
        for row in rows { groups[keys.map { row[$0].key }, default: []].append(row) }
        if keys.isEmpty, groups.isEmpty { groups[[]] = [] }
        return groups.values.map { rows in (rows.first.map { first in keys.map { first[$0] } } ?? []) + calls.map { ReferenceAggregate.value($0, rows) } }
    }
}

/// Joins by looking at every pair.
private struct Join {
    let kind: JoinKind
    let residual: BoundExpression?
    let leftWidth: Int
    let rightWidth: Int

    func rows(_ left: [ReferenceRow], _ right: [ReferenceRow], _ leftKeys: [Int], _ rightKeys: [Int]) -> [ReferenceRow] {
        var result: [ReferenceRow] = []
        var rightMatched = Set<Int>()
        // Only spares the comparison of keys: the rows of one key are still all looked at.
        var places: [ReferenceRow: [Int]] = [:]
        for (index, row) in right.enumerated() { places[rightKeys.map { row[$0].key }, default: []].append(index) }
        for row in left {
            let key = leftKeys.map { row[$0].key }
            var isMatched = false
            for place in key.contains(.null) ? [] : places[key] ?? [] {
                let pair = row + right[place]
                if let residual, !ReferenceExpression.evaluate(residual, pair).isTrue { continue }
                isMatched = true
                rightMatched.insert(place)
                if kind != .semi, kind != .anti { result.append(pair) }
            }
            switch kind {
            case .left, .full: if !isMatched { result.append(row + Array(repeating: .null, count: rightWidth)) }
            case .semi: if isMatched { result.append(row) }
            case .anti: if !isMatched { result.append(row) }
            case .inner, .right: break
            }
        }
        if kind == .right || kind == .full {
            for (place, row) in right.enumerated() where !rightMatched.contains(place) {
                result.append(Array(repeating: .null, count: leftWidth) + row)
            }
        }
        return result
    }
}
