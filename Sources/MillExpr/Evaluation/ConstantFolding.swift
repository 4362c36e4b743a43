import MillBase
import MillColumnar

extension BoundExpression {
    /// The expression with its constant parts evaluated.
    ///
    /// Only immutable functions are folded. A part that fails is left as it is: it fails when, and only when, a row reaches
    /// it. AND and OR lose operands that cannot change them.
    package func folded() -> BoundExpression {
        let children = children.map { $0.folded() }
        let node = children.isEmpty ? self : with(children: children)
        switch node {
        case .column, .literal, .parameter: return node
        case .and(let operands): return Self.junction(operands, deciding: false)
        case .or(let operands): return Self.junction(operands, deciding: true)
        case .call(let function, _, _, _) where function.volatility != .immutable: return node
        default: return children.allSatisfy(\.isLiteral) ? node.evaluatedConstant ?? node : node
        }
    }

    package var isLiteral: Bool { if case .literal = self { true } else { false } }

    private static func junction(_ operands: [BoundExpression], deciding: Bool) -> BoundExpression {
        if operands.contains(.literal(.boolean(deciding), .boolean)) { return .literal(.boolean(deciding), .boolean) }
        let left = operands.filter { $0 != .literal(.boolean(!deciding), .boolean) }
        if left.isEmpty { return .literal(.boolean(!deciding), .boolean) }
        if left.count == 1 { return left[0] }
        return deciding ? .or(left) : .and(left)
    }

    private var evaluatedConstant: BoundExpression? {
        // A folding that cannot be done now is done, or refused, when the expression runs.
        guard let evaluator = try? ExpressionCompiler.compile(self) else { return nil }
        let frame = EvaluationFrame(EvaluationContext(), RowErrors())
        let column = evaluator(DeltaBatch(columns: [], count: 1), frame)
        return frame.errors.isEmpty ? .literal(column.scalar(0), type) : nil
    }
}
