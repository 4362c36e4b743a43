import MillBase
import MillColumnar
import MillExpr
import MillPlan

extension QueryRun {
    private static let rowsMax = 4096
    private static let textBytesMax = 1 << 20
    /// Rows times parts of expressions.
    private static let workMax = 1 << 17
    /// Of those with texts as arguments the ones that look at no more than their bytes: patterns are compiled, some for each row.
    private static let comparisons: Set<String> = ["equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"]

    /// Whether it is done sooner than another thread is woken: few rows that are there, one operation after the other that gives no more of
    /// them than it takes, few and simple expressions, and no text made, whose length nobody knows. What is here is bounded by the limits
    /// above, a millisecond or so, as it cannot be cancelled.
    var isBrief: Bool {
        guard sources.isEmpty, tables.isEmpty else { return false }
        var rowCount = 0
        var textBytes = 0
        var partCount = 1
        func isSimple(_ expression: BoundExpression?) -> Bool {
            guard let expression else { return true }
            partCount += 1
            guard partCount * rowCount <= Self.workMax else { return false }
            switch expression {
            case .column, .literal, .parameter: return true
            case .inList(_, let list, _): partCount += list.count
            case .call(let function, let arguments, _, _):
                if arguments.contains(where: { $0.type.physical == .string }), !Self.comparisons.contains(function.name) { return false }
            default: break
            }
            return expression.type.physical != .string && expression.children.allSatisfy(isSimple)
        }
        // Inputs come before what reads them, so all rows are counted when there is an expression.
        return plan.nodes.allSatisfy { node in
            switch node.operation {
            case .relation(let relation, let columns):
                for batch in relations[relation.id] ?? [] {
                    rowCount += batch.count
                    guard rowCount <= Self.rowsMax else { return false }
                    for column in columns where batch.columns[column].type.physical == .string {
                        let texts = batch.columns[column].values(StringView.self)
                        for row in 0..<batch.count where !batch.columns[column].isNull(row) { textBytes += texts[row].count }
                    }
                }
                return textBytes <= Self.textBytesMax
            case .values(let rows):
                rowCount += rows.count
                return rowCount <= Self.rowsMax
            case .exchange, .result: return true
            case .filter(let condition): return isSimple(condition)
            case .project(let expressions): return expressions.allSatisfy(isSimple)
            case .aggregate(let keys, let calls):
                partCount += keys.count + calls.count
                return calls.allSatisfy { isSimple($0.argument) && isSimple($0.filter) } && partCount * rowCount <= Self.workMax
            default: return false
            }
        }
    }
}
