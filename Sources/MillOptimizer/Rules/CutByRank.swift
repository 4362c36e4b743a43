import MillColumnar
import MillExpr
import MillPlan

/// Makes a condition on a rank the cut of the ranking itself, so that rows behind it are not numbered, nor kept where the input is
/// append-only:
///
///     Filter { rn <= 10 and price > 5 }              Filter { price > 5 }
///       Rank { partition, by, [row_number] }   ->      TopN { partition, by, limit: 10, [row_number] }
///
/// Comparisons of one of the ranking's columns with a constant become bounds: `rn <= n`, `rn < n`, `rn = n`, `n >= rn`, BETWEEN. A
/// lower bound alone is left to the filter, since all rows are numbered then; so is a second column's. What nobody reads
/// of the numbers goes with `PruneColumns`, and with it most of the changes.
///
/// Law: a row's numbers depend on the rows before it alone, so no row that is kept looks different.
struct CutByRank: Optimizer.Rule {
    let name = "CutByRank"

    func apply(to plan: LogicalPlan) -> LogicalPlan {
        plan.rewriting { node in
            guard case .filter(let filter) = node, case .rank(var rank) = filter.input, rank.cut == nil else { return node }
            let width = rank.input.schema.count
            for (place, function) in rank.functions.enumerated() {
                guard let (cut, rest) = cut(function, column: width + place, filter.predicate.conjuncts) else { continue }
                rank.cut = cut
                let predicate = BoundExpression.conjunction(rest)
                return predicate.map { .filter(LogicalFilter(input: .rank(rank), predicate: $0)) } ?? .rank(rank)
            }
            return node
        }
    }

    /// The cut that conditions make on a column, and the other conditions; nil if nothing bounds it from above.
    private func cut(_ function: RankFunction, column: Int, _ conjuncts: [BoundExpression]) -> (Cut, rest: [BoundExpression])? {
        var (low, high): (Int64, Int64?) = (1, nil)
        var rest: [BoundExpression] = []
        for conjunct in conjuncts {
            guard let bounds = bounds(conjunct, column) else {
                rest.append(conjunct)
                continue
            }
            if let bound = bounds.low { low = max(low, bound) }
            if let bound = bounds.high { high = min(high ?? .max, bound) }
        }
        guard let high else { return nil }
        return (Cut(function, limit: Int(max(high, low - 1) - (low - 1)), offset: Int(low - 1)), rest)
    }

    /// The least and the greatest number that a comparison with a constant lets through.
    private func bounds(_ predicate: BoundExpression, _ column: Int) -> (low: Int64?, high: Int64?)? {
        guard case .call(let function, let operands, _, _) = predicate, operands.count == 2 else { return nil }
        switch (operands[0], operands[1]) {
        case (.column(column, _), .literal(.int(let bound), _)): return bounds(function.name, bound)
        case (.literal(.int(let bound), _), .column(column, _)): return Self.mirrored[function.name].flatMap { bounds($0, bound) }
        default: return nil
        }
    }

    private func bounds(_ comparison: String, _ bound: Int64) -> (low: Int64?, high: Int64?)? {
        // Numbers start at 1: bounds below are as good as 0, and none is near the greatest integer.
        let bound = min(max(bound, 0), .max - 1)
        switch comparison {
        case "equal": return (bound, bound)
        case "less_or_equal": return (nil, bound)
        case "less": return (nil, bound - 1)
        case "greater_or_equal": return (bound, nil)
        case "greater": return (bound + 1, nil)
        default: return nil
        }
    }

    private static let mirrored = [
        "equal": "equal", "less_or_equal": "greater_or_equal", "less": "greater", "greater_or_equal": "less_or_equal", "greater": "less",
    ]
}
