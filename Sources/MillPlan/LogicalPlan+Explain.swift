import MillColumnar
import MillExpr

extension LogicalPlan {
    /// EXPLAIN's text: one line an operator, inputs indented below, the last line without a newline.
    package var explained: String {
        var lines: [String] = []
        explain(depth: 0, &lines)
        return lines.joined(separator: "\n")
    }

    private func explain(depth: Int, _ lines: inout [String]) {
        lines.append(String(repeating: "  ", count: depth) + summary)
        for input in inputs { input.explain(depth: depth + 1, &lines) }
    }

    /// The operator's own line, without its inputs.
    private var summary: String {
        switch self {
        case .scan(let node): return "LogicalScan { \(node.relation.name): \(ExplainExpression(node.schema).names(Array(node.schema.indices))) }"
        case .values(let node):
            let printer = ExplainExpression(names: [])
            let rows = node.rows.map { "(" + $0.map { printer.text($0) }.joined(separator: ", ") + ")" }
            return "LogicalValues { rows: [\(rows.joined(separator: ", "))] }"
        case .project(let node):
            return "LogicalProject { \(ExplainText.projection(node.expressions, names: node.names, input: node.input.schema)) }"
        case .filter(let node): return "LogicalFilter { \(ExplainExpression(node.input.schema).text(node.predicate)) }"
        case .aggregate(let node):
            let printer = ExplainExpression(node.input.schema)
            let keys = node.keys.map { printer.text($0) }.joined(separator: ", ")
            let calls = node.calls.map { printer.text($0) }.joined(separator: ", ")
            return "LogicalAggregate { keys: [\(keys)]" + (node.calls.isEmpty ? "" : ", calls: [\(calls)]") + " }"
        case .join(let node):
            let printer = ExplainExpression(node.left.schema + node.right.schema)
            return "LogicalJoin { \(node.kind.rawValue)" + (node.condition.map { ", on: " + printer.text($0) } ?? "") + " }"
        case .union: return "LogicalUnion"
        case .timeWindow(let node): return "LogicalTimeWindow { \(ExplainText.window(node.window, input: node.input.schema)) }"
        case .sessionWindow(let node): return "LogicalSessionWindow { \(ExplainText.window(node.window, input: node.input.schema)) }"
        case .rank(let node):
            let text = ExplainText.rank(node.window, node.functions, node.cut, schema: node.input.schema)
            return "Logical\(node.cut == nil ? "Rank" : "TopN") { \(text) }"
        }
    }
}

extension BoundQuery {
    /// EXPLAIN's text of the plan below the outermost order and cut, if there are any.
    package var explained: String {
        guard !order.isEmpty || limit != nil || offset != 0 else { return plan.explained }
        let cut = ExplainText.cut(order: order, limit: limit, offset: offset, schema: plan.schema)
        return "LogicalOrder { \(cut) }\n" + plan.explained.split(separator: "\n").map { "  " + $0 }.joined(separator: "\n")
    }
}

/// The parts that logical and stream plans print alike.
enum ExplainText {
    static func projection(_ expressions: [BoundExpression], names: [String], input: Schema) -> String {
        let printer = ExplainExpression(input)
        return zip(expressions, names).map { expression, name in
            let text = printer.text(expression)
            return text == name ? text : "\(text) as \(name)"
        }.joined(separator: ", ")
    }

    static func window(_ window: TimeWindow, input: Schema) -> String {
        var text = "on: \(ExplainExpression(input).name(window.timeColumn)), size: \(ExplainExpression.seconds(window.sizeMicros))"
        if window.slideMicros != window.sizeMicros { text += ", slide: \(ExplainExpression.seconds(window.slideMicros))" }
        if window.offsetMicros != 0 { text += ", offset: \(ExplainExpression.seconds(window.offsetMicros))" }
        return text
    }

    static func window(_ window: SessionWindow, input: Schema) -> String {
        let printer = ExplainExpression(input)
        let text = "on: \(printer.name(window.timeColumn)), gap: \(ExplainExpression.seconds(window.gapMicros))"
        return window.partition.isEmpty ? text : text + ", partition: \(printer.names(window.partition))"
    }

    static func rank(_ window: Window, _ functions: [RankFunction], _ cut: Cut?, schema: Schema) -> String {
        var parts: [String] = []
        if !window.partition.isEmpty { parts.append("partition: \(ExplainExpression(schema).names(window.partition))") }
        let rest = self.cut(order: window.order, limit: cut?.limit, offset: cut?.offset ?? 0, schema: schema)
        if !rest.isEmpty { parts.append(rest) }
        if let cut, cut.function != .rowNumber { parts.append("of: \(cut.function.rawValue)") }
        if !functions.isEmpty { parts.append("columns: [\(functions.map(\.rawValue).joined(separator: ", "))]") }
        return parts.joined(separator: ", ")
    }

    static func cut(order: [SortKey], limit: Int?, offset: Int, schema: Schema) -> String {
        let printer = ExplainExpression(schema)
        var parts: [String] = []
        if !order.isEmpty {
            let keys = order.map { key in
                let nulls = key.nullsFirst == key.descending ? "" : key.nullsFirst ? " nulls first" : " nulls last"
                return printer.name(key.column) + (key.descending ? " desc" : "") + nulls
            }
            parts.append("by: [\(keys.joined(separator: ", "))]")
        }
        if let limit { parts.append("limit: \(limit)") }
        if offset != 0 { parts.append("offset: \(offset)") }
        return parts.joined(separator: ", ")
    }
}
