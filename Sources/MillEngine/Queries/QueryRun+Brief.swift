import MillBase
import MillColumnar
import MillExpr
import MillPlan

extension QueryRun {
    /// Whether it is done sooner than another thread is woken: few rows that are there, one operation after the other that gives no more of
    /// them than it takes, few and simple expressions, and no text made, whose length nobody knows. It cannot be cancelled, so what it may
    /// take is bounded: some milliseconds where each part of an expression takes as long as the division of two numerics, else less than one.
    var isBrief: Bool {
        guard sources.isEmpty, tables.isEmpty else { return false }
        var work = Work()
        // Inputs come before what reads them, so all rows are counted when there is an expression.
        return plan.nodes.allSatisfy { node in
            switch node.operation {
            case .relation(let relation, let columns):
                for batch in relations[relation.id] ?? [] where !work.isTooMuch { work.add(batch, columns) }
            case .values(let rows): work.rows += rows.count
            case .exchange, .result: break
            case .filter(let condition): work.add(condition)
            case .project(let expressions): expressions.forEach { work.add($0) }
            case .aggregate(let keys, let calls):
                work.parts += keys.count + calls.count
                work.textReads += keys.count
                for part in calls.flatMap({ [$0.argument, $0.filter] }) { part.map { work.add($0) } }
            default: return false
            }
            return !work.isTooMuch
        }
    }

    /// What a query does to rows that are there, as far as it is counted.
    private struct Work {
        static let rowsMax = 4096
        /// Of expressions; compiling them takes as long whether there are rows or not.
        static let partsMax = 256
        /// Rows times parts.
        static let evaluationsMax = 1 << 15
        /// Of the columns that are read, times how often expressions and keys read a text.
        static let textBytesMax = 1 << 20
        static let literalBytesMax = 256
        /// Of the functions of texts those that look at no more than their bytes: patterns are compiled, some for each row.
        static let comparisons: Set<String> = ["equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"]

        var rows = 0
        var parts = 1
        var textBytes = 0
        var textReads = 1
        /// Something whose work depends on more than that.
        var isUnknown = false

        var isTooMuch: Bool {
            isUnknown || rows > Self.rowsMax || parts > Self.partsMax || rows * parts > Self.evaluationsMax || textBytes * textReads > Self.textBytesMax
        }

        mutating func add(_ batch: DeltaBatch, _ columns: [Int]) {
            rows += batch.count
            guard rows <= Self.rowsMax else { return }
            for column in columns.map({ batch.columns[$0] }) where column.type.physical == .string {
                let texts = column.values(StringView.self)
                for row in 0..<batch.count where !column.isNull(row) { textBytes += texts[row].count }
            }
        }

        mutating func add(_ expression: BoundExpression) {
            parts += 1
            // Deeper than that it is not looked at.
            guard !isTooMuch else { return }
            switch expression {
            case .column(_, let type):
                if type.physical == .string { textReads += 1 }
                return
            case .call(let function, let operands, _, _) where Self.comparisons.contains(function.name): return operands.forEach { addOperand($0) }
            case .isNotDistinct(let left, let right):
                addOperand(left)
                return addOperand(right)
            case .inList(let value, let list, _):
                parts += list.count
                return addOperand(value)
            case .isNull(let operand): return addOperand(operand)
            default: break
            }
            if expression.type.physical == .string || expression.children.contains(where: { $0.type.physical == .string }) { isUnknown = true }
            for child in expression.children { add(child) }
        }

        /// What is compared may be a short text that is written out: it is looked at as far as the text beside it goes.
        private mutating func addOperand(_ operand: BoundExpression) {
            if case .literal(.string(let text), _) = operand, text.utf8.count <= Self.literalBytesMax {
                parts += 1
            } else {
                add(operand)
            }
        }
    }
}
