import MillColumnar
import MillExpr
import MillPlan

/// The equalities of a join's condition, apart from the rest of it.
///
/// `a.x = b.y` hashes, and so does `a.x IS NOT DISTINCT FROM b.y`, as two equalities: of whether each is missing, and of the values with
/// something in the place of a missing one. Everything else is the residual, evaluated on pairs with equal keys. Equalities
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
            } else if case .isNotDistinct(let a, let b) = conjunct, let sides = JoinKeys.sides(a, b, leftWidth: leftWidth) {
                let present = [sides.left, sides.right].map { BoundExpression.coalesce([$0, .literal(a.type.anyValue, a.type)], a.type) }
                pairs.append((conjunct, .isNull(sides.left), .isNull(sides.right)))
                pairs.append((conjunct, present[0], present[1]))
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
        guard case .call(let function, let operands, _, _) = predicate, function.name == "equal", operands.count == 2 else { return nil }
        return sides(operands[0], operands[1], leftWidth: leftWidth)
    }

    /// Two expressions of one type, each as one over its own input's columns; nil unless they are of different inputs.
    private static func sides(
        _ a: BoundExpression, _ b: BoundExpression, leftWidth: Int
    ) -> (left: BoundExpression, right: BoundExpression)? {
        let operands = [a, b]
        let columns = operands.map(\.columnsUsed)
        guard a.type == b.type, !columns[0].isEmpty, !columns[1].isEmpty else { return nil }
        func isLeft(_ index: Int) -> Bool { columns[index].allSatisfy { $0 < leftWidth } }
        func isRight(_ index: Int) -> Bool { columns[index].allSatisfy { $0 >= leftWidth } }
        if isLeft(0), isRight(1) { return (operands[0], operands[1].remapped { $0 - leftWidth }) }
        if isLeft(1), isRight(0) { return (operands[1], operands[0].remapped { $0 - leftWidth }) }
        return nil
    }
}

extension SQLType {
    /// Some value of the type, to stand where one is missing.
    fileprivate var anyValue: Scalar {
        switch self {
        case .boolean: .boolean(false)
        case .int16, .int32, .int64, .date, .time, .timestamp, .timestamptz: .int(0)
        case .float32, .float64: .float(0)
        case .numeric: .decimal(Decimal(0))
        case .varchar, .unknown: .string("")
        case .jsonb: .string("null")
        case .bytea: .bytes([])
        case .interval: .interval(Interval(months: 0, days: 0, micros: 0))
        }
    }
}
