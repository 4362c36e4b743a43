package import MillBase
package import MillColumnar

/// An expression whose names and types are settled: what the binder makes and plans carry.
///
/// Columns are numbered in the input of the operator that evaluates the expression. Implicit casts are explicit here, so
/// evaluation never guesses a type.
package indirect enum BoundExpression: Hashable, Sendable {
    case column(Int, SQLType)
    case literal(Scalar, SQLType)
    /// A statement parameter `$number`, counted from 1; replaced by a literal before a plan runs.
    case parameter(Int, SQLType)
    case call(ScalarFunction, [BoundExpression], SQLType, SourceSpan?)
    case cast(BoundExpression, SQLType, SourceSpan?)
    /// Three-valued; any number of operands.
    case and([BoundExpression])
    case or([BoundExpression])
    case not(BoundExpression)
    case isNull(BoundExpression)
    case isNotDistinct(BoundExpression, BoundExpression)
    /// The first branch whose condition is true; conditions are boolean, all results have the type. Errors of a branch
    /// that is not taken do not exist.
    case caseWhen([CaseBranch], otherwise: BoundExpression?, SQLType)
    /// The first argument that is present; errors of later ones do not exist.
    case coalesce([BoundExpression], SQLType)
    /// `value IN (literals)`; the literals are of the value's type, without duplicates.
    case inList(BoundExpression, [Scalar], negated: Bool)

    package struct CaseBranch: Hashable, Sendable {
        package var condition: BoundExpression
        package var result: BoundExpression

        package init(_ condition: BoundExpression, _ result: BoundExpression) {
            self.condition = condition
            self.result = result
        }
    }

    package var type: SQLType {
        switch self {
        case .column(_, let type), .literal(_, let type), .parameter(_, let type), .call(_, _, let type, _), .cast(_, let type, _): type
        case .caseWhen(_, _, let type), .coalesce(_, let type): type
        case .and, .or, .not, .isNull, .isNotDistinct, .inList: .boolean
        }
    }

    /// The direct operands, in order.
    package var children: [BoundExpression] {
        switch self {
        case .column, .literal, .parameter: []
        case .call(_, let arguments, _, _): arguments
        case .cast(let operand, _, _), .not(let operand), .isNull(let operand), .inList(let operand, _, _): [operand]
        case .and(let operands), .or(let operands), .coalesce(let operands, _): operands
        case .isNotDistinct(let left, let right): [left, right]
        case .caseWhen(let branches, let otherwise, _): branches.flatMap { [$0.condition, $0.result] } + (otherwise.map { [$0] } ?? [])
        }
    }

    /// The same expression with its direct operands replaced, in the order of `children`.
    package func with(children: [BoundExpression]) -> BoundExpression {
        switch self {
        case .column, .literal, .parameter: return self
        case .call(let function, _, let type, let span): return .call(function, children, type, span)
        case .cast(_, let type, let span): return .cast(children[0], type, span)
        case .not: return .not(children[0])
        case .isNull: return .isNull(children[0])
        case .inList(_, let list, let negated): return .inList(children[0], list, negated: negated)
        case .and: return .and(children)
        case .or: return .or(children)
        case .coalesce(_, let type): return .coalesce(children, type)
        case .isNotDistinct: return .isNotDistinct(children[0], children[1])
        case .caseWhen(let branches, let otherwise, let type):
            let pairs = branches.indices.map { CaseBranch(children[2 * $0], children[2 * $0 + 1]) }
            return .caseWhen(pairs, otherwise: otherwise == nil ? nil : children[2 * branches.count], type)
        }
    }

    /// Bottom-up rewriting: children first, then `change` on the node.
    package func rewritten(_ change: (BoundExpression) throws(SQLError) -> BoundExpression) throws(SQLError) -> BoundExpression {
        var renewed: [BoundExpression] = []
        for child in children { renewed.append(try child.rewritten(change)) }
        return try change(renewed.isEmpty ? self : with(children: renewed))
    }

    /// The numbers of the input columns that it reads.
    package var columnsUsed: Set<Int> {
        var found: Set<Int> = []
        collectColumns(&found)
        return found
    }

    private func collectColumns(_ found: inout Set<Int>) {
        if case .column(let index, _) = self { found.insert(index) }
        for child in children { child.collectColumns(&found) }
    }

    /// The same expression over another input, where old column `n` is `map(n)`.
    package func remapped(_ map: (Int) -> Int) -> BoundExpression {
        if case .column(let index, let type) = self { return .column(map(index), type) }
        let children = children
        return children.isEmpty ? self : with(children: children.map { $0.remapped(map) })
    }
}
