import MillColumnar
import MillExpr

extension StreamPlan {
    /// EXPLAIN's text: from the root down, each node with where its rows are, its unique key and whether it is append-only.
    ///
    /// A node with several consumers bears a number, `#3`; it is printed in full where it is met first and by its number
    /// elsewhere. Last line without a newline.
    package var explained: String {
        guard !nodes.isEmpty else { return "" }
        var consumers = Array(repeating: 0, count: nodes.count)
        for node in nodes { for input in node.inputs { consumers[input.number] += 1 } }
        var labels: [Int: Int] = [:]
        var printed: Set<Int> = []
        var lines: [String] = []
        func walk(_ index: NodeIndex, depth: Int) {
            let indent = String(repeating: "  ", count: depth)
            var label = ""
            if consumers[index.number] > 1 {
                let number = labels[index.number] ?? labels.count + 1
                labels[index.number] = number
                label = " #\(number)"
            }
            let node = self[index]
            guard printed.insert(index.number).inserted else {
                lines.append(indent + node.operation.title + label + " (see above)")
                return
            }
            lines.append(indent + node.operation.title + label + summary(node) + closing(node) + " " + properties(node))
            for input in node.inputs { walk(input, depth: depth + 1) }
        }
        walk(root, depth: 0)
        return lines.joined(separator: "\n")
    }

    private func properties(_ node: StreamNode) -> String {
        let printer = ExplainExpression(node.schema)
        var parts: [String] = []
        switch node.properties.distribution {
        case .any: parts.append("any")
        case .single: parts.append("single")
        case .hash(let columns): parts.append("hash" + printer.names(columns))
        }
        if let key = node.properties.uniqueKey { parts.append("key" + printer.names(key)) }
        if node.properties.appendOnly { parts.append("append-only") }
        if !node.properties.watermarks.isEmpty { parts.append("watermark" + printer.names(node.properties.watermarks)) }
        return "<" + parts.joined(separator: ", ") + ">"
    }

    /// What goes by a watermark, with a blank before; empty when all stays.
    private func closing(_ node: StreamNode) -> String {
        guard let closing = node.closing else { return "" }
        // They keep nothing to let go, and only leave alone what is late.
        if case .panes = node.operation { return "" }
        let names = zip(node.inputs, closing.columns).map { ExplainExpression(self[$0].schema).name($1) }
        return " \(closing.emitsOnClose ? "emits and closes" : "closes") by " + names.joined(separator: " and ")
    }

    /// The node's arguments in braces, with a blank before; empty when it has none.
    private func summary(_ node: StreamNode) -> String {
        let input = node.inputs.first.map { self[$0].schema } ?? []
        let own = ExplainExpression(node.schema)
        let printer = ExplainExpression(input)
        switch node.operation {
        case .source(let relation, _), .relation(let relation, _):
            return " { \(relation.name): \(own.names(Array(node.schema.indices))) }"
        case .values(let rows): return " { rows: \(rows.count) }"
        case .filter(let predicate): return " { \(printer.text(predicate)) }"
        case .project(let expressions):
            return " { \(ExplainText.projection(expressions, names: node.schema.map(\.name), input: input)) }"
        case .timeWindow(let window), .panes(let window): return " { \(ExplainText.window(window, input: input)) }"
        case .sessionWindow(let window): return " { \(ExplainText.window(window, input: input)) }"
        case .sessionAggregate(let window, let keys, let calls):
            let keyText = ExplainExpression(window.schema(over: input)).names(keys)
            let callText = calls.map { printer.text($0) }.joined(separator: ", ")
            let text = "\(ExplainText.window(window, input: input)), keys: \(keyText)"
            return " { \(text)" + (calls.isEmpty ? "" : ", calls: [\(callText)]") + " }"
        case .exchange, .union, .result, .blackhole: return ""
        case .sink(let dropsRetractions): return dropsRetractions ? "forces append-only" : ""
        case .aggregate(let keys, let calls):
            let text = calls.map { printer.text($0) }.joined(separator: ", ")
            return " { keys: \(printer.names(keys))" + (calls.isEmpty ? "" : ", calls: [\(text)]") + " }"
        case .join(let kind, let leftKeys, let rightKeys, let residual):
            let right = self[node.inputs[1]].schema
            let both = ExplainExpression(input + right)
            let pairs = zip(leftKeys, rightKeys).map { both.name($0) + " = " + both.name(input.count + $1) }
            var text = " { \(kind.rawValue)"
            if !pairs.isEmpty { text += ", on: " + pairs.joined(separator: " and ") }
            if let residual { text += ", residual: " + both.text(residual) }
            return text + " }"
        case .rank(let window, let functions, let cut): return " { \(ExplainText.rank(window, functions, cut, schema: input)) }"
        case .materialize(let key): return " { key: \(own.names(key)) }"
        }
    }
}

extension StreamOperation {
    /// The operator's name in plans.
    package var title: String {
        switch self {
        case .source: "StreamSource"
        case .relation: "StreamScan"
        case .values: "StreamValues"
        case .filter: "StreamFilter"
        case .project: "StreamProject"
        case .timeWindow: "StreamTimeWindow"
        case .panes: "StreamPanes"
        case .sessionWindow: "StreamSessionWindow"
        case .sessionAggregate: "StreamSessionAggregate"
        case .exchange: "StreamExchange"
        case .aggregate: "StreamAggregate"
        case .join(_, let leftKeys, _, _): leftKeys.isEmpty ? "StreamNestedLoopJoin" : "StreamHashJoin"
        case .union: "StreamUnion"
        case .rank(_, _, let cut): cut == nil ? "StreamRank" : "StreamTopN"
        case .materialize: "StreamMaterialize"
        case .result: "StreamResult"
        case .blackhole: "StreamBlackhole"
        case .sink: "StreamSink"
        }
    }
}
