import MillColumnar
import MillExpr
import MillPlan

/// The equalities of a join's condition, apart from the rest of it.
///
/// `a.x = b.y` hashes; everything else of the condition is the residual, evaluated on pairs with equal keys. Equalities
/// whose sides can fail become keys only when there are no others: as keys they are computed for every row, as residual
/// only for rows with a partner.
struct JoinKeys {
    /// Over the left input's columns.
    var left: [BoundExpression] = []
    /// Over the right input's columns.
    var right: [BoundExpression] = []
    var residual: BoundExpression?

    init(_ condition: BoundExpression?, leftWidth: Int) {
        var residual: [BoundExpression] = []
        var pairs: [(predicate: BoundExpression, left: BoundExpression, right: BoundExpression)] = []
        for conjunct in condition?.conjuncts ?? [] {
            if let (left, right) = JoinKeys.equality(conjunct, leftWidth: leftWidth) {
                pairs.append((conjunct, left, right))
            } else {
                residual.append(conjunct)
            }
        }
        let hasSafeKey = pairs.contains { !$0.left.isFallible && !$0.right.isFallible }
        for pair in pairs {
            if hasSafeKey, pair.left.isFallible || pair.right.isFallible {
                residual.append(pair.predicate)
            } else if !zip(left, right).contains(where: { $0 == pair.left && $1 == pair.right }) {
                left.append(pair.left)
                right.append(pair.right)
            }
        }
        self.residual = BoundExpression.conjunction(residual)
    }

    /// The two sides of an equality between a join's inputs, each over its own input's columns; nil for anything else.
    static func equality(_ predicate: BoundExpression, leftWidth: Int) -> (left: BoundExpression, right: BoundExpression)? {
        guard case .call(let function, let operands, _, _) = predicate, function.name == "equal", operands.count == 2,
            operands[0].type == operands[1].type
        else { return nil }
        let columns = operands.map(\.columnsUsed)
        guard !columns[0].isEmpty, !columns[1].isEmpty else { return nil }
        func isLeft(_ index: Int) -> Bool { columns[index].allSatisfy { $0 < leftWidth } }
        func isRight(_ index: Int) -> Bool { columns[index].allSatisfy { $0 >= leftWidth } }
        if isLeft(0), isRight(1) { return (operands[0], operands[1].remapped { $0 - leftWidth }) }
        if isLeft(1), isRight(0) { return (operands[1], operands[0].remapped { $0 - leftWidth }) }
        return nil
    }
}
