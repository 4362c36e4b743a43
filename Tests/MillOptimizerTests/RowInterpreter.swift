import MillBase
import MillColumnar
import MillExpr
import MillPlan

/// Runs a logical plan row by row over tables held in memory: slow, plain, and the judge of every rule.
///
/// Knows the functions that the tests' statements use. A division by zero makes the row an error, counted in `failures`.
struct RowInterpreter {
    /// A relation's rows by its name; a row holds every column but a hidden one.
    var tables: [String: [[Scalar]]]
    private(set) var failures = 0

    init(tables: [String: [[Scalar]]]) { self.tables = tables }

    mutating func rows(_ plan: LogicalPlan) -> [[Scalar]] {
        switch plan {
        // A hidden row number is not among the values, and no statement of the tests reads it.
        case .scan(let node): return (tables[node.relation.name] ?? []).map { row in node.columns.map { row.indices.contains($0) ? row[$0] : .null } }
        case .values(let node): return node.rows.map { row in row.map { value($0, []) } }
        case .project(let node):
            let input = rows(node.input)
            return input.map { row in node.expressions.map { value($0, row) } }
        case .filter(let node):
            let input = rows(node.input)
            return input.filter { value(node.predicate, $0) == .boolean(true) }
        case .aggregate(let node): return aggregate(node)
        case .join(let node): return join(node)
        case .union(let node): return node.inputs.flatMap { rows($0) }
        case .timeWindow, .sessionWindow: return []
        case .rank(let node): return rank(node)
        }
    }

    private mutating func rank(_ node: LogicalRank) -> [[Scalar]] {
        var partitions: [[Scalar]: [[Scalar]]] = [:]
        for row in rows(node.input) { partitions[node.window.partition.map { row[$0] }, default: []].append(row) }
        var output: [[Scalar]] = []
        for partition in partitions.values {
            let sorted = partition.sorted { before($0, $1, node.window.order) }
            var numbers: [RankFunction: Int] = [.rowNumber: 0, .rank: 0, .denseRank: 0]
            for (index, row) in sorted.enumerated() {
                numbers[.rowNumber] = index + 1
                if index == 0 || before(sorted[index - 1], row, node.window.order) {
                    numbers[.rank] = index + 1
                    numbers[.denseRank, default: 0] += 1
                }
                if let cut = node.cut, let number = numbers[cut.function], number <= cut.offset || Int64(number) > cut.last { continue }
                output.append(row + node.functions.map { .int(Int64(numbers[$0] ?? 0)) })
            }
        }
        return output
    }

    private func before(_ a: [Scalar], _ b: [Scalar], _ order: [SortKey]) -> Bool {
        for key in order {
            let (x, y) = (a[key.column], b[key.column])
            if x == y { continue }
            if x.isNull || y.isNull { return x.isNull == key.nullsFirst }
            return (compare(x, y) < 0) != key.descending
        }
        return false
    }

    private mutating func join(_ node: LogicalJoin) -> [[Scalar]] {
        let left = rows(node.left)
        let right = rows(node.right)
        let nullLeft = Array(repeating: Scalar.null, count: node.left.schema.count)
        let nullRight = Array(repeating: Scalar.null, count: node.right.schema.count)
        var matchedRight = Set<Int>()
        var output: [[Scalar]] = []
        for l in left {
            var isMatched = false
            for (index, r) in right.enumerated() {
                guard node.condition.map({ value($0, l + r) == .boolean(true) }) ?? true else { continue }
                isMatched = true
                matchedRight.insert(index)
                if node.kind != .semi, node.kind != .anti { output.append(l + r) }
            }
            switch node.kind {
            case .semi where isMatched, .anti where !isMatched: output.append(l)
            case .left where !isMatched, .full where !isMatched: output.append(l + nullRight)
            default: break
            }
        }
        if node.kind == .right || node.kind == .full {
            for (index, r) in right.enumerated() where !matchedRight.contains(index) { output.append(nullLeft + r) }
        }
        return output
    }

    private mutating func aggregate(_ node: LogicalAggregate) -> [[Scalar]] {
        var order: [[Scalar]] = []
        var groups: [[Scalar]: [[Scalar]]] = [:]
        for row in rows(node.input) {
            let key = node.keys.map { value($0, row) }
            if groups[key] == nil { order.append(key) }
            groups[key, default: []].append(row)
        }
        if node.keys.isEmpty, order.isEmpty, !node.calls.isEmpty { order = [[]] }
        return order.map { key in key + node.calls.map { result($0, groups[key] ?? []) } }
    }

    private mutating func result(_ call: AggregateCall, _ rows: [[Scalar]]) -> Scalar {
        var values: [Scalar] = []
        for row in rows {
            if let filter = call.filter, value(filter, row) != .boolean(true) { continue }
            let item = call.argument.map { value($0, row) } ?? .boolean(true)
            if !item.isNull { values.append(item) }
        }
        if call.distinct { values = Array(Set(values)) }
        switch call.function {
        case .count: return .int(Int64(values.count))
        case .sum: return values.isEmpty ? .null : .int(values.reduce(0) { if case .int(let n) = $1 { $0 + n } else { $0 } })
        case .min: return values.min { compare($0, $1) < 0 } ?? .null
        case .max: return values.max { compare($0, $1) < 0 } ?? .null
        case .singleValue:
            if rows.count > 1 { failures += 1 }
            return values.first ?? .null
        case .avg, .boolAnd, .boolOr: return .null
        }
    }

    // MARK: Expressions

    private func compare(_ a: Scalar, _ b: Scalar) -> Int {
        switch (a, b) {
        case (.int(let x), .int(let y)): x < y ? -1 : x > y ? 1 : 0
        case (.string(let x), .string(let y)): x < y ? -1 : x > y ? 1 : 0
        case (.boolean(let x), .boolean(let y)): x == y ? 0 : x ? 1 : -1
        default: 0
        }
    }

    private mutating func value(_ expression: BoundExpression, _ row: [Scalar]) -> Scalar {
        switch expression {
        case .column(let index, _): return row[index]
        case .literal(let value, _): return value
        case .parameter: return .null
        case .cast(let operand, _, _): return value(operand, row)
        case .call(let function, let arguments, _, _): return call(function.name, arguments.map { value($0, row) })
        case .and(let operands): return junction(operands.map { value($0, row) }, deciding: false)
        case .or(let operands): return junction(operands.map { value($0, row) }, deciding: true)
        case .not(let operand):
            guard case .boolean(let truth) = value(operand, row) else { return .null }
            return .boolean(!truth)
        case .isNull(let operand): return .boolean(value(operand, row).isNull)
        case .isNotDistinct(let a, let b): return .boolean(value(a, row) == value(b, row))
        case .caseWhen(let branches, let otherwise, _):
            for branch in branches where value(branch.condition, row) == .boolean(true) { return value(branch.result, row) }
            return otherwise.map { value($0, row) } ?? .null
        case .coalesce(let operands, _):
            for operand in operands {
                let item = value(operand, row)
                if !item.isNull { return item }
            }
            return .null
        case .inList(let operand, let list, let negated):
            let item = value(operand, row)
            if item.isNull { return .null }
            if list.contains(item) { return .boolean(!negated) }
            return list.contains(.null) ? .null : .boolean(negated)
        }
    }

    private func junction(_ values: [Scalar], deciding: Bool) -> Scalar {
        if values.contains(.boolean(deciding)) { return .boolean(deciding) }
        return values.contains(.null) ? .null : .boolean(!deciding)
    }

    private mutating func call(_ name: String, _ arguments: [Scalar]) -> Scalar {
        if arguments.contains(.null) { return .null }
        let order = arguments.count == 2 ? compare(arguments[0], arguments[1]) : 0
        switch name {
        case "equal": return .boolean(order == 0)
        case "not_equal": return .boolean(order != 0)
        case "less": return .boolean(order < 0)
        case "less_or_equal": return .boolean(order <= 0)
        case "greater": return .boolean(order > 0)
        case "greater_or_equal": return .boolean(order >= 0)
        default: break
        }
        guard arguments.count == 2, case .int(let a) = arguments[0], case .int(let b) = arguments[1] else { return .null }
        switch name {
        case "add": return .int(a &+ b)
        case "subtract": return .int(a &- b)
        case "multiply": return .int(a &* b)
        case "divide":
            if b == 0 { failures += 1 }
            return b == 0 ? .null : .int(a / b)
        default: return .null
        }
    }
}
