import MillColumnar
import MillExpr

/// How near in time a join's condition wants the rows of its two sides: `a.at BETWEEN b.at - INTERVAL '1 minute' AND b.at + INTERVAL '5 minutes'`.
///
/// A fact is "this column of one side is at least that column of the other plus so much"; comparisons with constant intervals added on either
/// side are facts, everything else is not. Months have no fixed length, so an interval with some is none.
struct JoinTimeRange {
    /// A column of each side, in its own numbers.
    let columns: [Int]
    /// For each side how much its column is above the other's at least, in microseconds.
    let reach: [Int64]

    private struct Fact {
        var upper: Int
        var lower: Int
        var distance: Int64
    }

    /// - Parameter marked: for each side the columns that have a watermark.
    /// - Returns: nil when the condition does not bound a pair of such columns from both sides: with one bound a row without a finite time may
    ///   match any.
    init?(_ condition: BoundExpression?, leftWidth: Int, marked: [[Int]]) {
        let facts = (condition?.conjuncts ?? []).compactMap(Self.fact)
        func distance(_ upper: Int, _ lower: Int) -> Int64? {
            facts.filter { $0.upper == upper && $0.lower == lower }.map(\.distance).max()
        }
        for left in marked[0] {
            for right in marked[1] {
                guard let above = distance(left, leftWidth + right), let below = distance(leftWidth + right, left) else { continue }
                (columns, reach) = ([left, right], [above, below])
                return
            }
        }
        return nil
    }

    private static func fact(_ conjunct: BoundExpression) -> Fact? {
        guard case .call(let function, let operands, _, _) = conjunct, operands.count == 2, let left = moved(operands[0]), let right = moved(operands[1])
        else { return nil }
        switch function.name {
        case "greater", "greater_or_equal": return Fact(upper: left.column, lower: right.column, distance: right.micros - left.micros)
        case "less", "less_or_equal": return Fact(upper: right.column, lower: left.column, distance: left.micros - right.micros)
        default: return nil
        }
    }

    /// A column of times and what is added to it.
    private static func moved(_ expression: BoundExpression) -> (column: Int, micros: Int64)? {
        switch expression {
        case .column(let column, let type) where type == .timestamp || type == .timestamptz: return (column, 0)
        case .call(let function, let operands, _, _) where operands.count == 2:
            if function.name == "add", let base = moved(operands[0]) ?? moved(operands[1]), let by = micros(operands[1]) ?? micros(operands[0]) {
                return sum(base, by)
            }
            guard function.name == "subtract", let base = moved(operands[0]), let by = micros(operands[1]) else { return nil }
            return sum(base, -by)
        default: return nil
        }
    }

    private static func sum(_ base: (column: Int, micros: Int64), _ by: Int64) -> (column: Int, micros: Int64)? {
        let sum = base.micros + by
        return sum.magnitude < UInt64(Int64.max / 16) ? (base.column, sum) : nil
    }

    /// The length of a constant interval, if it is always the same.
    private static func micros(_ expression: BoundExpression) -> Int64? {
        guard case .literal(.interval(let interval), _) = expression.folded(), interval.months == 0 else { return nil }
        let (days, overflow) = Int64(interval.days).multipliedReportingOverflow(by: 86_400_000_000)
        let (sum, overflows) = days.addingReportingOverflow(interval.micros)
        return overflow || overflows || sum.magnitude >= UInt64(Int64.max / 16) ? nil : sum
    }
}
